"""Tables as tools print them: between bars, below rules of dashes or between commas; read by their headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from driftgate.vendor.console import plain_lines, without_prefix

Row = Mapping[str, str]
_BORDER = re.compile(r"^[+|]?[-=+:|\s]{3,}$")
_BANNER = re.compile(r"^\s*(?:#{3,}|\*{3,}|={3,})")
_RULE = re.compile(r"^\s*-{2,}(?: +-{2,})*$")


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns as the tool names them, and rows by column. A row that has fewer or more cells than
    the header is not in `rows`; `odd` counts those. `closed`: a border stands below the last row."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    odd: int = 0
    closed: bool = False


def bar_tables(text: str, known: Iterable[str], least: int = 1) -> Iterator[Table]:
    """Tables between bars, their borders or not. A header is a row in which `least` of the `known` columns stand.

    Rows before any header cannot be read and are passed over, so are those of a table that begins behind the end of
    another one with a header that is not known.
    """
    wanted = {_key(name) for name in known}
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    odd = borders = 0
    for line in plain_lines(text):
        said = without_prefix(line).strip()
        if _BORDER.match(said):
            borders += bool(rows)
            continue
        if not said.startswith("|"):
            continue
        cells = _between_bars(said)
        if len(wanted.intersection(map(_key, cells))) >= least:
            if columns:
                yield Table(columns, tuple(rows), odd, borders > 0)
            columns, rows, odd, borders = cells, [], 0, 0
        elif not columns or borders > 1:
            continue
        elif said.endswith("|") and len(cells) == len(columns):
            rows.append(dict(zip(columns, cells, strict=True)))
            borders = 0
        else:
            odd += 1
    if columns:
        yield Table(columns, tuple(rows), odd, borders > 0)


def comma_table(text: str, known: Iterable[str]) -> Table | None:
    """Comma-separated values whose first row is a header with one of the `known` columns; None where it is none.

    Commas inside the last column need no quotes there. A last line without its end may be cut: it is odd.
    """
    lines = [line for line in plain_lines(text.removeprefix("\ufeff")) if line.strip()]
    columns = _cells(lines[0]) if lines else ()
    wanted = {_key(name) for name in known}
    if not wanted.intersection(map(_key, columns)):
        return None
    cut = len(lines) > 1 and not text.endswith(("\n", "\r"))
    rows: list[Row] = []
    odd = int(cut)
    for line in lines[1 : len(lines) - cut]:
        cells = _cells(line, most=len(columns))
        if len(cells) == len(columns):
            rows.append(dict(zip(columns, cells, strict=True)))
        else:
            odd += 1
    return Table(columns, tuple(rows), odd)


def rule_tables(lines: Sequence[str], known: Iterable[str], least: int = 1) -> Iterator[Table]:
    """Tables whose header stands above a rule of dashes, columns aligned by blanks, up to a blank line or banner.

    Of `lines` prefixes are gone and blanks in front are not. A row across a gap of the rule is odd, unless no row of
    the table follows it.
    """
    wanted = {_key(name) for name in known}
    at = 1
    while at < len(lines):
        if not _RULE.match(lines[at]):
            at += 1
            continue
        spans = [match.span() for match in re.finditer("-+", lines[at])]
        columns = _aligned(lines[at - 1], spans)
        at += 1
        if len(wanted.intersection(map(_key, columns))) < least:
            continue
        rows: list[Row] = []
        odd = skipped = 0
        rule = lines[at - 1]
        while at < len(lines) and lines[at].strip() and not (_RULE.match(lines[at]) or _BANNER.match(lines[at])):
            cells = _aligned(lines[at], spans, len(columns))
            if cells:
                rows.append(dict(zip(columns, cells, strict=True)))
                odd, skipped = odd + skipped, 0
            else:
                skipped += 1
            at += 1
        if rows and not skipped and at < len(lines) and _RULE.match(lines[at]) and lines[at] != rule:
            rows.pop()  # the header of the next table
        yield Table(columns, tuple(rows), odd)


def column(table: Table, names: Sequence[str]) -> str | None:
    """The table's own name of the first of these columns that it has, whatever its case and blanks."""
    own = {_key(name): name for name in table.columns}
    return next((own[_key(name)] for name in names if _key(name) in own), None)


def cell(row: Row, name: str | None) -> str:
    """The cell of a column; empty where the table has no such column."""
    return "" if name is None else row[name]


def _key(name: str) -> str:
    return re.sub(r"[\s_]+", "", name).lower()


def _between_bars(line: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in line.removeprefix("|").removesuffix("|").split("|"))


def _cells(line: str, most: int = 0) -> tuple[str, ...]:
    parts = line.split(",", most - 1) if most else line.split(",")
    return tuple(part.strip().strip('"') for part in parts)


def _aligned(line: str, spans: Sequence[tuple[int, int]], wanted: int = 0) -> tuple[str, ...]:
    """Cells below the parts of a rule, or between two blanks and more where the rule is one; empty if they cross."""
    if len(spans) == 1:
        found = tuple(re.split(r"\s{2,}", line.strip()))
        found = found if wanted in (0, len(found)) else tuple(line.split())
        return found if wanted in (0, len(found)) else ()
    starts = [start for start, _ in spans]
    gaps = "".join(line[end:start] for (_, end), start in zip(spans, starts[1:], strict=False))
    if (line[: starts[0]] + gaps).strip():
        return ()
    return tuple(line[a:b].strip() for a, b in zip(starts, [*starts[1:], len(line)], strict=True))
