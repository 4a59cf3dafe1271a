"""The table and the first failure on a terminal: coloured where there is one, plain text elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from driftgate.domain.results import Results
from driftgate.escaping import terminal
from driftgate.messages.message import Message, message
from driftgate.reporting.consolelines import (
    COLOURS,
    about,
    between,
    bounded,
    encodable,
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
from driftgate.reporting.view.comparison import ComparisonBlock
from driftgate.reporting.view.findings import FindingLine
from driftgate.reporting.view.links import Column, LinkName, MetricLine, VerdictLine
from driftgate.reporting.view.nodes import NodeLine, Nodes
from driftgate.reporting.view.page import Subject, page
from driftgate.reporting.view.scores import ScoreLine
from driftgate.reporting.view.table import Row

COLUMNS = ("column-check", "column-result", "column-value", "column-limit", "column-where", "column-note")


def show(results: Results, console: Console) -> None:
    """Print every subject: headline, six rows, scores, and the first failure with its numbers."""
    whole = page(results)
    if len(whole.subjects) != 1:
        printed(console, Text(say(whole.headline), style=COLOURS[whole.cell]))
    for one in whole.subjects:
        title = Text.assemble(
            (f"{named(one.name)} {named(one.target)}{mark('colon')}", "bold"),
            (say(one.headline), COLOURS[one.cell]),
        )
        printed(console, Text(), title)
        (_show_table if console.is_terminal else _print_table)(one.rows, console)
        printed(console, *(Text(line) for line in _below(one)))


def _show_table(rows: Sequence[Row], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for code in COLUMNS:
        table.add_column(Text(label(code)), overflow="fold")
    for row in rows:
        cells = [Text(cell) for cell in _cells(row)]
        cells[1].stylize(COLOURS[row.cell])
        table.add_row(*(encodable(cell, console) for cell in cells))
    console.print(table)


def _print_table(rows: Sequence[Row], console: Console) -> None:
    lines = [tuple(label(code) for code in COLUMNS), *(_cells(row) for row in rows)]
    printed(console, *map(Text, padded(lines)))


def _cells(row: Row) -> tuple[str, ...]:
    value, bound = ("", "") if row.reading is None else (valued(row.reading), bounded(row.reading))
    note = say(row.notes[0]) if row.notes else ""
    more = f" (+{len(row.notes) - 1})" if len(row.notes) > 1 else ""
    return (named(row.title), row.cell, value, bound, placed(row.place), note + more)


def _below(one: Subject) -> list[str]:
    lines = [_score(line) for line in one.scores]
    lines += [about(f"{label('performance')} {named(line.stage)}", say(line.told)) for line in one.performance]
    lines.append(say(one.measured_on))
    if one.unchanged is not None:
        lines.append(say(one.unchanged))
    lines += [say(said) for said in one.waivers]
    if one.comparison is not None:
        lines += ["", *compared(one.comparison)]
    if one.failure is not None:
        lines += ["", say(message("first-failure", check=one.failure.title))]
        lines += [line for verdict in one.failure.lines for line in _verdict(verdict)]
        lines += [f"  {say(note)}" for note in one.failure.notes]
        lines += [f"  {_metrics(line, one.failure.metrics.columns)}" for line in one.failure.metrics.lines]
        lines += [line for found in one.failure.findings for line in _cause(found)]
        if one.failure.unexplained:
            lines.append(f"  {about(label('cause'), say(one.failure.unexplained))}")
        lines += _nodes(one.failure.nodes) if one.failure.nodes is not None else []
        lines += [f"  {label('next')} {say(note)}" for note in one.failure.next]
    for link, found in one.investigated:
        lines += ["", f"{named(link)}{mark('end')}", *_nodes(found)]
    for title, verdicts in one.errors:
        lines += ["", say(message("not-established", check=title))]
        lines += [line for verdict in verdicts for line in _verdict(verdict)]
    return lines


def compared(found: ComparisonBlock) -> list[str]:
    """The comparison of one subject with a baseline, line by line."""
    lines = [about(label("compare-title"), say(found.headline))]
    lines += [f"  {say(said)}" for said in (*found.eroded, found.moved, found.samples) if said is not None]
    lines.append(f"  {about(label('compare-changed'), between('semicolon', map(say, found.changed)))}")
    for line in found.lines:
        sides = [say(one) if isinstance(one, Message) else terminal.inert(one) for one in (line.base, line.head)]
        numbers = " → ".join(side for side in sides if side)
        how = f"{within(say(line.how))}" if line.how is not None else ""
        lines.append(f"  {about(say(line.change), say(line.what))}{mark('comma') if numbers else ''}{numbers}{how}")
    return [*lines, *(f"  {say(said)}" for said in (found.cut, found.same) if said is not None)]


def _score(line: ScoreLine) -> str:
    return about(f"{label('score')} {named(line.name)}", between("comma", map(say, line.parts)))


def _cause(found: FindingLine) -> list[str]:
    subjects = within(between("list", map(named, found.subjects))) if found.subjects else ""
    numbers = (f"{say(name)} {value}{'' if unit is None else f' {say(unit)}'}" for name, value, unit in found.evidence)
    steps = (found.next, found.actor, *((found.untouched,) if found.untouched is not None else ()))
    said = about(f"{found.code}{within(say(found.sure))}", f"{say(found.cause)}{subjects}")
    return [
        f"  {about(label('cause'), said)}",
        *([f"    {between('comma', numbers)}"] if found.evidence else []),
        f"    → {between('semicolon', map(say, steps))}",
    ]


def _nodes(found: Nodes) -> list[str]:
    told = between("semicolon", map(say, found.told))
    if found.of_vendor:
        lines = [f"  {about(label('first-vendor-node'), about(_node(found), told))}"]
        lines += [f"    {about(_node(line), line.cosine)}" for line in found.lines[1:]]
        return [*lines, *(f"  {say(note)}" for note in found.notes), f"  {say(found.cost)}"]
    sides = f"{named(found.reference)} → {named(found.candidate)}"
    first = about(between("comma", (f"{named(found.op)} {named(found.node)}", sides)), told)
    lines = [f"  {about(label('first-node'), first) if found.node else told}"]
    lines += [f"    {about(_node(line), between('comma', _errors(line)))}" for line in found.lines[1:]]
    headline = [f"  {say(found.headline)}"] if found.headline is not None else []
    return [*lines, *headline, *(f"  {say(note)}" for note in found.notes), f"  {say(found.cost)}"]


def _errors(line: NodeLine) -> Iterator[str]:
    yield f"{label('column-excess')} {line.excess}"
    if line.clipped:
        yield f"{label('column-clipped')} {line.clipped}"
    yield f"{label('column-own')} {line.own}"
    yield f"{label('column-total')} {line.total}"


def _node(one: Nodes | NodeLine) -> str:
    return " ".join(named(part) for part in (one.op, one.node) if part)


def _metrics(line: MetricLine, columns: Sequence[Column]) -> str:
    numbers = (
        f"{say(column.title)} {value}" + (f" {say(column.unit)}" if column.unit is not None else "")
        for column, value in zip(columns, line.values, strict=True)
        if value
    )
    return about(named(line.output), between("comma", numbers))


def _verdict(line: VerdictLine) -> list[str]:
    parts = [_link(line.link)]
    place = placed(line.place)
    if place:
        parts.append(place)
    if line.reading is not None:
        parts.append(between("comma", (valued(line.reading), f"{label('limit')} {bounded(line.reading)}")))
    if line.reason is not None:
        parts.append(say(line.reason))
    long = [f"    {part}" for value in line.long_texts for part in terminal.block(value).strip("\n").split("\n")]
    return [f"  {between('colon', parts)}", *long]


def _link(link: LinkName) -> str:
    kind = "" if link.kind is None else within(say(link.kind))
    stages = f"{link.reference} → {link.candidate}" if link.candidate else link.reference
    return f"{terminal.inert(stages)}{kind}"
