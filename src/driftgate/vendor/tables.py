"""Tables as tools print them: rows between bars under a header, or comma-separated values; read by their headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from driftgate.vendor.console import plain_lines, without_prefix

Row = Mapping[str, str]
_BORDER = re.compile(r"^[+|]?[-=+:|\s]{3,}$")


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns as the tool names them, and rows by column. A row that has fewer or more cells than
    the header is not in `rows`; `odd` counts those."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    odd: int = 0


def bar_tables(text: str, known: Iterable[str]) -> Iterator[Table]:
    """Tables between bars, their borders or not. A header is a row in which one of the `known` columns stands.

    Rows before any header cannot be read and are passed over.
    """
    wanted = {_key(name) for name in known}
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    odd = 0
    for line in plain_lines(text):
        said = without_prefix(line).strip()
        if not said.startswith("|") or _BORDER.match(said):
            continue
        cells = tuple(cell.strip() for cell in said.strip("|").split("|"))
        if wanted.intersection(map(_key, cells)):
            if columns:
                yield Table(columns, tuple(rows), odd)
            columns, rows, odd = cells, [], 0
        elif columns and said.endswith("|") and len(cells) == len(columns):
            rows.append(dict(zip(columns, cells, strict=True)))
        elif columns:
            odd += 1
    if columns:
        yield Table(columns, tuple(rows), odd)


def comma_table(text: str, known: Iterable[str]) -> Table | None:
    """Comma-separated values whose first row is a header with one of the `known` columns; None where it is none.

    Commas inside the last column need no quotes there.
    """
    lines = [line for line in plain_lines(text.removeprefix("\ufeff")) if line.strip()]
    columns = _cells(lines[0]) if lines else ()
    wanted = {_key(name) for name in known}
    if not wanted.intersection(map(_key, columns)):
        return None
    rows: list[Row] = []
    odd = 0
    for line in lines[1:]:
        cells = _cells(line, most=len(columns))
        if len(cells) == len(columns):
            rows.append(dict(zip(columns, cells, strict=True)))
        else:
            odd += 1
    return Table(columns, tuple(rows), odd)


def column(table: Table, names: Sequence[str]) -> str | None:
    """The table's own name of the first of these columns that it has, whatever its case and blanks."""
    own = {_key(name): name for name in table.columns}
    return next((own[_key(name)] for name in names if _key(name) in own), None)


def _key(name: str) -> str:
    return re.sub(r"[\s_]+", "", name).lower()


def _cells(line: str, most: int = 0) -> tuple[str, ...]:
    parts = line.split(",", most - 1) if most else line.split(",")
    return tuple(part.strip().strip('"') for part in parts)
