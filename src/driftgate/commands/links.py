"""Where the run that a verb works in can be seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from driftgate.commands.speaking import log
from driftgate.errors import GitHubError
from driftgate.github.environment import RunContext, read_context, read_event
from driftgate.reporting.comment import CommentLinks


def run_links(environment: Mapping[str, str]) -> CommentLinks:
    """The links of a run on GitHub or a server like it; none elsewhere, and none where its variables are wrong."""
    if environment.get("GITHUB_ACTIONS") != "true":
        return CommentLinks()
    try:
        path = environment.get("GITHUB_EVENT_PATH")
        run = read_context(environment, read_event(Path(path)) if path else {})
    except GitHubError as error:
        for problem in error.problems:
            log(problem)
        return CommentLinks()
    return links_of(run)


def links_of(
    run: RunContext,
    *,
    archive_url: str | None = None,
    archive_digest: str | None = None,
    bundle_digest: str | None = None,
) -> CommentLinks:
    """The links of one run, and of its archive where it was uploaded already."""
    return CommentLinks(
        run_url=run.run_url,
        archive_url=archive_url,
        archive_digest=archive_digest,
        bundle_digest=bundle_digest,
        head_sha=run.head_sha,
        run_number=run.run_number,
        attempt=run.run_attempt,
    )
