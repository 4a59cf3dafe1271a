"""Versions and gates on a terminal: a step from one version to the next, numbers along several, a line a clause."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from driftgate.comparing.trend import Trend
from driftgate.domain.comparisons import Comparison
from driftgate.domain.gates import GateLine
from driftgate.escaping import terminal
from driftgate.reporting.consolelines import (
    COLOURS,
    between,
    bounded,
    label,
    mark,
    named,
    padded,
    placed,
    printed,
    say,
    valued,
    within,
)
from driftgate.reporting.terminal import compared
from driftgate.reporting.versions import trend_lines
from driftgate.reporting.view.comparison import step_of
from driftgate.reporting.view.gate import GateRow, gate_block


def show_gate(lines: Sequence[GateLine], policy: str, console: Console) -> None:
    """Print one line for each clause, with what was found and wanted, then the outcome of it all."""
    found = gate_block(lines, policy)
    rows = [
        (
            row.cell,
            f"{named(row.subject)} {named(row.target)}",
            say(row.what),
            _found(row),
            " ".join((*((say(row.reason),) if row.reason is not None else ()), *(f"[{code}]" for code in row.codes))),
        )
        for row in found.rows
    ]
    printed(console, *(Text(line, style=COLOURS[row[0]]) for row, line in zip(rows, padded(rows), strict=True)))
    printed(console, Text(say(found.headline), style=COLOURS[found.cell]))


def _found(row: GateRow) -> str:
    """What was found and wanted, or the worst number with its limit and where it stands."""
    if row.number is None:
        return " ".join(terminal.inert(part) for part in (row.found, row.wanted) if part)
    where = between("comma", [part for part in (row.link, placed(row.place)) if part])
    return f"{valued(row.number)} {bounded(row.number)}{within(where)}"


def show_comparison(found: Comparison, console: Console) -> None:
    """Print a step from one version to the next."""
    step = step_of(found)
    for one in step.subjects:
        title = f"{named(one.subject)} {named(one.target)}{mark('colon')}{named(step.base)} → {named(step.head)}"
        printed(console, Text(), Text(title, style="bold"))
        first, *rest = compared(one.block)
        printed(console, Text(first, style=COLOURS[one.block.cell]), *map(Text, rest))
    if step.gone is not None:
        printed(console, Text(say(step.gone)))


def show_trends(found: Sequence[Trend], versions: Sequence[str], console: Console) -> None:
    """Print the numbers from version to version."""
    if not found:
        return
    head = ("", label("compare-column-what"), *map(named, versions), "")
    lines = [head]
    for line in trend_lines(found):
        name = f"{named(line.subject)} {named(line.target)}"
        lines.append((name, say(line.what), *map(terminal.inert, line.texts), line.bars))
    printed(console, Text(), Text(label("compare-trend"), style="bold"), *map(Text, padded(lines)))
