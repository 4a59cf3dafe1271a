"""The job summary: the table first, then the first failure, then everything else folded."""

from __future__ import annotations

from driftgate.domain.results import Results
from driftgate.escaping import markdown
from driftgate.messages.message import Param, message
from driftgate.reporting.templates import environment
from driftgate.reporting.view.page import page, shortened

#: GitHub drops a whole summary above 1 MiB; other steps' text and ours are counted apart.
LIMIT_BYTES = 1_000_000
#: Lines in each folded table; the next smaller is taken where the page is too long. -1: the overview alone.
DETAIL = (200, 20, 0, -1)
ICONS = {"PASS": "✅", "FAIL": "❌", "ERROR": "⚠️", "-": "➖"}


def summary(results: Results) -> str:
    """The page in GitHub's Markdown, at most `LIMIT_BYTES` long in UTF-8."""
    template = environment(
        finished=markdown.finished,
        filters={
            "code": markdown.code,
            "cell": markdown.cell,
            "fenced": markdown.fenced,
            "say": markdown.prose,
            "title": markdown.titled,
            "html": markdown.html,
            "html_title": markdown.html_titled,
        },
        names={"label": _label, "icon": _icon},
    ).get_template("summary.md.j2")
    whole = page(results)
    written = ""
    for lines in DETAIL:
        written = template.render(page=shortened(whole, max(lines, 0)), details=lines > 0, subjects=lines >= 0)
        if len(written.encode("utf-8", "replace")) <= LIMIT_BYTES:
            break
    return written


def _label(code: str, **params: Param) -> markdown.Markdown:
    return markdown.titled(message(code, **params))


def _icon(cell: str) -> markdown.Markdown:
    return markdown.Markdown(ICONS[cell])
