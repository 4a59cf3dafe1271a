"""What reports on a terminal are put together from: names, sentences, marks, numbers, lines that any console takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from driftgate.escaping import terminal
from driftgate.messages.message import Message, message
from driftgate.messages.text import text
from driftgate.reporting.view.readings import Reading
from driftgate.reporting.view.table import Place

COLOURS = {"PASS": "green", "FAIL": "bold red", "ERROR": "bold yellow", "-": "dim"}
GAP = "  "


def named(foreign: str) -> str:
    """A foreign name, safe for a terminal and not too long."""
    return terminal.inert(foreign, terminal.LIMIT)


def say(said: Message) -> str:
    """A message in the reader's language, safe for a terminal."""
    return terminal.inert(text(said, named))


def label(code: str) -> str:
    """The sentence of a code without parameters."""
    return say(message(code))


def mark(name: str) -> str:
    """A mark of the reader's language, such as comma."""
    return label(f"mark-{name}")


def between(name: str, parts: Iterable[str]) -> str:
    """Parts with a mark between them."""
    return mark(name).join(parts)


def within(inner: str) -> str:
    """Something within brackets."""
    return f"{mark('open')}{inner}{mark('close')}"


def about(title: str, said: str) -> str:
    """What is said of something."""
    return f"{title}{mark('colon')}{said}"


def printed(console: Console, *lines: Text) -> None:
    """Print whole lines, however long."""
    for line in lines:
        console.print(encodable(line, console), soft_wrap=True)


def encodable(line: Text, console: Console) -> Text:
    """The line as the console's file can take it; a table is no reason to fail in a Latin-1 log."""
    if console.encoding.startswith("utf"):
        return line
    return Text(line.plain.encode(console.encoding, "replace").decode(console.encoding), spans=list(line.spans))


def padded(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows of a plain table, each column as wide as its widest cell."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        yield GAP.join(cells).rstrip()


def valued(number: Reading) -> str:
    """A number with its title and unit."""
    unit = "" if number.unit is None else f" {say(number.unit)}"
    return f"{say(number.title)} {terminal.inert(number.value)}{unit}"


def bounded(number: Reading) -> str:
    """Its limit with relation and unit; empty where nothing bounds it."""
    unit = "" if number.unit is None or not number.limit else f" {say(number.unit)}"
    return f"{number.relation} {terminal.inert(number.limit)}{unit}".strip()


def placed(place: Place) -> str:
    """Where a worst value stands."""
    parts = [] if place.output is None else [named(place.output)]
    if place.sample is not None:
        parts.append(f"{label('where-sample')} {named(place.sample)}")
    if place.channel is not None:
        parts.append(f"{label('where-channel')} {place.channel}")
    return between("comma", parts)
