"""The table and the first failure on a terminal: coloured where there is one, plain text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from driftgate.comparing.trend import Trend
from driftgate.domain.comparisons import Comparison
from driftgate.domain.results import Results
from driftgate.escaping import terminal
from driftgate.messages.message import Message, message
from driftgate.messages.text import text
from driftgate.reporting.versions import trend_lines
from driftgate.reporting.view.comparison import ComparisonBlock, step_of
from driftgate.reporting.view.findings import FindingLine
from driftgate.reporting.view.links import Column, LinkName, MetricLine, VerdictLine
from driftgate.reporting.view.nodes import NodeLine, Nodes
from driftgate.reporting.view.page import Subject, page
from driftgate.reporting.view.readings import Reading
from driftgate.reporting.view.scores import ScoreLine
from driftgate.reporting.view.table import Place, Row

COLUMNS = ("column-check", "column-result", "column-value", "column-limit", "column-where", "column-note")
COLOURS = {"PASS": "green", "FAIL": "bold red", "ERROR": "bold yellow", "-": "dim"}
GAP = "  "


def show(results: Results, console: Console) -> None:
    """Print every subject: headline, six rows, scores, and the first failure with its numbers."""
    whole = page(results)
    if len(whole.subjects) != 1:
        _print(console, Text(_say(whole.headline), style=COLOURS[whole.cell]))
    for one in whole.subjects:
        title = Text.assemble(
            (f"{_name(one.name)} {_name(one.target)}{_mark('colon')}", "bold"),
            (_say(one.headline), COLOURS[one.cell]),
        )
        _print(console, Text(), title)
        (_show_table if console.is_terminal else _print_table)(one.rows, console)
        _print(console, *(Text(line) for line in _below(one)))


def _name(foreign: str) -> str:
    return terminal.inert(foreign, terminal.LIMIT)


def _say(said: Message) -> str:
    return terminal.inert(text(said, _name))


def _label(code: str) -> str:
    return _say(message(code))


def _mark(name: str) -> str:
    return _label(f"mark-{name}")


def _between(name: str, parts: Iterable[str]) -> str:
    return _mark(name).join(parts)


def _within(inner: str) -> str:
    return f"{_mark('open')}{inner}{_mark('close')}"


def _about(title: str, said: str) -> str:
    return f"{title}{_mark('colon')}{said}"


def _print(console: Console, *lines: Text) -> None:
    for line in lines:
        console.print(_encodable(line, console), soft_wrap=True)


def _encodable(line: Text, console: Console) -> Text:
    """The line as the console's file can take it; a table is no reason to fail in a Latin-1 log."""
    if console.encoding.startswith("utf"):
        return line
    return Text(line.plain.encode(console.encoding, "replace").decode(console.encoding), spans=list(line.spans))


def _show_table(rows: Sequence[Row], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for code in COLUMNS:
        table.add_column(Text(_label(code)), overflow="fold")
    for row in rows:
        cells = [Text(cell) for cell in _cells(row)]
        cells[1].stylize(COLOURS[row.cell])
        table.add_row(*(_encodable(cell, console) for cell in cells))
    console.print(table)


def _print_table(rows: Sequence[Row], console: Console) -> None:
    lines = [tuple(_label(code) for code in COLUMNS), *(_cells(row) for row in rows)]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    for line in lines:
        padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True))
        _print(console, Text(GAP.join(padded).rstrip()))


def _cells(row: Row) -> tuple[str, ...]:
    value, bound = ("", "") if row.reading is None else (_value(row.reading), _bound(row.reading))
    note = _say(row.notes[0]) if row.notes else ""
    more = f" (+{len(row.notes) - 1})" if len(row.notes) > 1 else ""
    return (_name(row.title), row.cell, value, bound, _place(row.place), note + more)


def _value(number: Reading) -> str:
    unit = "" if number.unit is None else f" {_say(number.unit)}"
    return f"{_say(number.title)} {terminal.inert(number.value)}{unit}"


def _bound(number: Reading) -> str:
    unit = "" if number.unit is None or not number.limit else f" {_say(number.unit)}"
    return f"{number.relation} {terminal.inert(number.limit)}{unit}".strip()


def _place(place: Place) -> str:
    parts = [] if place.output is None else [_name(place.output)]
    if place.sample is not None:
        parts.append(f"{_label('where-sample')} {_name(place.sample)}")
    if place.channel is not None:
        parts.append(f"{_label('where-channel')} {place.channel}")
    return _between("comma", parts)


def _below(one: Subject) -> list[str]:
    lines = [_score(line) for line in one.scores]
    lines += [_about(f"{_label('performance')} {_name(line.stage)}", _say(line.told)) for line in one.performance]
    lines.append(_say(one.measured_on))
    if one.unchanged is not None:
        lines.append(_say(one.unchanged))
    if one.comparison is not None:
        lines += compared(one.comparison)
    if one.failure is not None:
        lines += ["", _say(message("first-failure", check=one.failure.title))]
        lines += [line for verdict in one.failure.lines for line in _verdict(verdict)]
        lines += [f"  {_say(note)}" for note in one.failure.notes]
        lines += [f"  {_metrics(line, one.failure.metrics.columns)}" for line in one.failure.metrics.lines]
        lines += [line for found in one.failure.findings for line in _cause(found)]
        if one.failure.unexplained:
            lines.append(f"  {_about(_label('cause'), _say(one.failure.unexplained))}")
        lines += _nodes(one.failure.nodes) if one.failure.nodes is not None else []
        lines += [f"  {_label('next')} {_say(note)}" for note in one.failure.next]
    for link, found in one.investigated:
        lines += ["", f"{_name(link)}{_mark('end')}", *_nodes(found)]
    for title, verdicts in one.errors:
        lines += ["", _say(message("not-established", check=title))]
        lines += [line for verdict in verdicts for line in _verdict(verdict)]
    return lines


def show_comparison(found: Comparison, console: Console) -> None:
    """Print a step from one version to the next."""
    step = step_of(found)
    for one in step.subjects:
        title = f"{_name(one.subject)} {_name(one.target)}{_mark('colon')}{_name(step.base)} → {_name(step.head)}"
        _print(console, Text(), Text(title, style="bold"))
        for place, line in enumerate(compared(one.block)[1:]):
            _print(console, Text(line, style=COLOURS[one.block.cell] if place == 0 else ""))
    if step.gone is not None:
        _print(console, Text(_say(step.gone)))


def show_trends(found: Sequence[Trend], versions: Sequence[str], console: Console) -> None:
    """Print the numbers from version to version."""
    if not found:
        return
    head = ("", _label("compare-column-what"), *map(_name, versions), "")
    lines = [head]
    for line in trend_lines(found):
        name = f"{_name(line.subject)} {_name(line.target)}"
        lines.append((name, _say(line.what), *map(terminal.inert, line.texts), line.bars))
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(head))]
    _print(console, Text(), Text(_label("compare-trend"), style="bold"))
    for line_ in lines:
        padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(line_, widths, strict=True))
        _print(console, Text(GAP.join(padded).rstrip()))


def compared(found: ComparisonBlock) -> list[str]:
    """The comparison of one subject with a baseline, line by line."""
    lines = ["", _about(_label("compare-title"), _say(found.headline))]
    lines += [f"  {_say(said)}" for said in (found.moved, found.samples) if said is not None]
    lines.append(f"  {_about(_label('compare-changed'), _between('semicolon', map(_say, found.changed)))}")
    for line in found.lines:
        sides = [_say(one) if isinstance(one, Message) else terminal.inert(one) for one in (line.base, line.head)]
        numbers = " → ".join(side for side in sides if side)
        how = f"{_within(_say(line.how))}" if line.how is not None else ""
        lines.append(f"  {_about(_say(line.change), _say(line.what))}{_mark('comma') if numbers else ''}{numbers}{how}")
    return [*lines, *(f"  {_say(said)}" for said in (found.cut, found.same) if said is not None)]


def _score(line: ScoreLine) -> str:
    return _about(f"{_label('score')} {_name(line.name)}", _between("comma", map(_say, line.parts)))


def _cause(found: FindingLine) -> list[str]:
    about = _within(_between("list", map(_name, found.subjects))) if found.subjects else ""
    numbers = (
        f"{_say(name)} {value}{'' if unit is None else f' {_say(unit)}'}" for name, value, unit in found.evidence
    )
    steps = (found.next, found.actor, *((found.untouched,) if found.untouched is not None else ()))
    said = _about(f"{found.code}{_within(_say(found.sure))}", f"{_say(found.cause)}{about}")
    return [
        f"  {_about(_label('cause'), said)}",
        *([f"    {_between('comma', numbers)}"] if found.evidence else []),
        f"    → {_between('semicolon', map(_say, steps))}",
    ]


def _nodes(found: Nodes) -> list[str]:
    told = _between("semicolon", map(_say, found.told))
    if found.of_vendor:
        lines = [f"  {_about(_label('first-vendor-node'), _about(_node(found), told))}"]
        lines += [f"    {_about(_node(line), line.cosine)}" for line in found.lines[1:]]
        return [*lines, *(f"  {_say(note)}" for note in found.notes), f"  {_say(found.cost)}"]
    between = f"{_name(found.reference)} → {_name(found.candidate)}"
    first = _about(_between("comma", (f"{_name(found.op)} {_name(found.node)}", between)), told)
    lines = [f"  {_about(_label('first-node'), first) if found.node else told}"]
    lines += [f"    {_about(_node(line), _between('comma', _errors(line)))}" for line in found.lines[1:]]
    headline = [f"  {_say(found.headline)}"] if found.headline is not None else []
    return [*lines, *headline, *(f"  {_say(note)}" for note in found.notes), f"  {_say(found.cost)}"]


def _errors(line: NodeLine) -> Iterator[str]:
    yield f"{_label('column-excess')} {line.excess}"
    if line.clipped:
        yield f"{_label('column-clipped')} {line.clipped}"
    yield f"{_label('column-own')} {line.own}"
    yield f"{_label('column-total')} {line.total}"


def _node(named: Nodes | NodeLine) -> str:
    return " ".join(_name(part) for part in (named.op, named.node) if part)


def _metrics(line: MetricLine, columns: Sequence[Column]) -> str:
    numbers = (
        f"{_say(column.title)} {value}" + (f" {_say(column.unit)}" if column.unit is not None else "")
        for column, value in zip(columns, line.values, strict=True)
        if value
    )
    return _about(_name(line.output), _between("comma", numbers))


def _verdict(line: VerdictLine) -> list[str]:
    parts = [_link(line.link)]
    place = _place(line.place)
    if place:
        parts.append(place)
    if line.reading is not None:
        parts.append(_between("comma", (_value(line.reading), f"{_label('limit')} {_bound(line.reading)}")))
    if line.reason is not None:
        parts.append(_say(line.reason))
    long = [f"    {part}" for value in line.long_texts for part in terminal.block(value).strip("\n").split("\n")]
    return [f"  {_between('colon', parts)}", *long]


def _link(link: LinkName) -> str:
    kind = "" if link.kind is None else _within(_say(link.kind))
    stages = f"{link.reference} → {link.candidate}" if link.candidate else link.reference
    return f"{terminal.inert(stages)}{kind}"
