"""The comment on a pull request: what changed at one glance, whole at any length, the same for the same results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from driftgate.domain.results import Results
from driftgate.errors import ConfigError
from driftgate.messages.message import message
from driftgate.reporting.budget import characters, fitting
from driftgate.reporting.markdown import github
from driftgate.reporting.templates import rendering
from driftgate.reporting.view import comment as view
from driftgate.reporting.view.gate import GateBlock
from driftgate.reporting.view.page import page

#: GitHub takes 65,536 characters; the rest is for the marker.
LIMIT = 65_000
TEMPLATE = "comment.md.j2"
LOG_CHARACTERS = 3000


@dataclass(frozen=True, slots=True)
class CommentLinks:
    """Which run a comment is of, and where the rest stands; None where that is not known.

    `archive_digest` is that of the zip file behind `archive_url`, as GitHub states it; `bundle_digest` the SHA-256 of
    the bundle.zip in it.
    """

    run_url: str | None = None
    archive_url: str | None = None
    archive_digest: str | None = None
    head_sha: str | None = None
    run_number: int | None = None
    attempt: int | None = None
    bundle_digest: str | None = None


def comment(
    results: Results,
    *,
    links: CommentLinks,
    template: Path | None = None,
    limit: int = LIMIT,
    gate: GateBlock | None = None,
) -> str:
    """The comment's text in GitHub's Markdown, without a marker; at most `limit` code points and UTF-16 units.

    `gate`: what a policy's clauses came to, where they were asked. `template` is a user's own, see
    docs/comment-template.md. Raises ConfigError where it is wrong, and where not even the shortest form fits.
    """
    written = fitting(_versions(results, links, template, gate), characters, limit)
    if written is None:
        raise ConfigError(message("comment-long", limit=limit))
    return written


def _versions(
    results: Results, links: CommentLinks, template: Path | None, gate: GateBlock | None
) -> Iterator[Iterator[str]]:
    render = rendering(github(block_limit=LOG_CHARACTERS), TEMPLATE, template)
    whole = page(results)
    for detail in view.LADDER:
        yield render(comment=view.comment(whole, detail), links=links, gate=gate)
