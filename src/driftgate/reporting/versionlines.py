"""Versions and gates on a terminal: a step from one version to the next, numbers along several, a line a clause."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from driftgate.comparing.trend import Trend
from driftgate.domain.comparisons import Comparison
from driftgate.domain.gates import Clause, GateLine, outcome_of
from driftgate.domain.judgement import CELLS, Outcome, Verdict
from driftgate.escaping import terminal
from driftgate.messages.message import message
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
from driftgate.reporting.view.readings import reading, severity
from driftgate.reporting.view.table import place

#: Clauses that are of one thing where they name it, else of everything.
OF_SOMETHING = (Clause.HISTORY, Clause.ARTIFACTS, Clause.VERSIONS, Clause.BOARD_AGE)


def show_gate(lines: Sequence[GateLine], policy: str, console: Console) -> None:
    """Print one line for each clause, with what was found and wanted, then the outcome of it all."""
    rows = []
    for line in lines:
        of = "-of" if line.name and line.clause in OF_SOMETHING else ""
        what = say(message(f"clause-{line.clause.value}{of}", name=line.name))
        why = say(line.reason) if line.reason is not None else ""
        found = " ".join(terminal.inert(part) for part in (line.value, line.limit) if part) or _worst(line.verdicts)
        name = f"{named(line.subject)} {named(line.target)}"
        rows.append((CELLS[line.outcome], name, what, found, why))
    printed(console, *(Text(line, style=COLOURS[row[0]]) for row, line in zip(rows, padded(rows), strict=True)))
    outcome = outcome_of(lines)
    broken = sum(line.outcome is not Outcome.PASSED for line in lines)
    told = message(f"gate-{outcome.value}", policy=policy, count=len(lines), broken=broken)
    printed(console, Text(say(told), style=COLOURS[CELLS[outcome]]))


def _worst(verdicts: Sequence[Verdict]) -> str:
    """The number of the worst verdict that has one, with its limit and where it stands."""
    for worst in sorted(verdicts, key=severity, reverse=True):
        number = reading(worst)
        if number is not None:
            where = between("comma", [part for part in (worst.target, placed(place(worst))) if part])
            return f"{valued(number)} {bounded(number)}{within(where)}"
    return ""


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
