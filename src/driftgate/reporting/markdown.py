"""The job summary: the table first, then the first failure, then everything else folded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

from jinja2.sandbox import ImmutableSandboxedEnvironment

from driftgate.domain.results import Results
from driftgate.errors import StorageError
from driftgate.escaping import markdown
from driftgate.messages.message import Param, message
from driftgate.reporting.budget import fitting, utf8_bytes
from driftgate.reporting.templates import environment, rendering
from driftgate.reporting.view.page import page, shortened

#: GitHub drops a whole summary above 1 MiB; other steps' text and ours are counted apart.
LIMIT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Detail:
    """How much a page shows: `lines` in each folded table, each subject's page, the overview."""

    lines: int
    subjects: bool = True
    overview: bool = True


#: The next is taken where the page is too long.
LADDER = (Detail(200), Detail(20), Detail(0), Detail(0, subjects=False), Detail(0, subjects=False, overview=False))
ICONS = {"PASS": "✅", "FAIL": "❌", "ERROR": "⚠️", "-": "➖"}


@cache
def github(*, block_limit: int = markdown.BLOCK_LIMIT) -> ImmutableSandboxedEnvironment:
    """The environment of templates that write GitHub's Markdown; fenced blocks are cut at `block_limit` characters."""
    return environment(
        finished=markdown.finished,
        filters={
            "code": markdown.code,
            "cell": markdown.cell,
            "fenced": partial(markdown.fenced, limit=block_limit),
            "link": markdown.link,
            "say": markdown.prose,
            "title": markdown.titled,
            "html": markdown.html,
            "html_title": markdown.html_titled,
        },
        names={"label": _label, "sep": _mark, "icon": _icon},
    )


def summary(results: Results) -> str:
    """The page in GitHub's Markdown, at most `LIMIT_BYTES` long in UTF-8. Raises StorageError without templates."""
    written = fitting(_versions(results), utf8_bytes, LIMIT_BYTES)
    if written is None:
        raise StorageError(message("summary-long", limit_bytes=LIMIT_BYTES))
    return written


def _versions(results: Results) -> Iterator[Iterator[str]]:
    render = rendering(github(), "summary.md.j2", None)
    whole = page(results)
    for detail in LADDER:
        yield render(
            page=shortened(whole, detail.lines),
            details=detail.lines > 0,
            subjects=detail.subjects,
            overview=detail.overview,
        )


def _label(code: str, **params: Param) -> markdown.Markdown:
    return markdown.titled(message(code, **params))


def _mark(name: str) -> markdown.Markdown:
    return _label(f"mark-{name}")


def _icon(cell: str) -> markdown.Markdown:
    return markdown.Markdown(ICONS[cell])
