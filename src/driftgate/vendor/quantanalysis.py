"""QuantAnalysis' tables of a QAT chain: layer by layer, statistics, sensitive operators (toolchain facts §10).

Releases add and leave out columns, so metrics are what the header names. Files are text between bars or rules, or CSV.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from driftgate.domain.toolchain.common import Entry, Listing
from driftgate.domain.toolchain.comparisons import LayerComparison, LayerStatistic, SensitiveOperator
from driftgate.errors import ArtifactError
from driftgate.vendor.cells import finite, integer, torch_size
from driftgate.vendor.console import whole_lines
from driftgate.vendor.files import another_file, read_text
from driftgate.vendor.tables import Row, Table, bar_tables, cell, column, rule_tables

TOOL = "QuantAnalysis"
INDEX = ("", "Index", "Unnamed: 0")
MODULE = ("mod_name",)
BASE_OP = ("base_op_type",)
ANALYSED_OP = ("analy_op_type",)
OP = ("Op Name",)
ATTRIBUTE = ("Attr",)
SHAPE = ("shape",)
DTYPE = ("quant_dtype", "dtype")
SCALE = ("qscale", "scale")
OPERATOR = ("op_name",)
KIND = ("sensitive_type",)
OPERATOR_TYPE = ("op_type",)
FLOPS = ("flops",)
#: What a sensitive operator may be sorted by; the first of them that is a column is the table's metric.
METRICS = ("L1", "Cosine", "MSE", "SQNR", "KL", "Atol", "Rtol", "max_qscale_diff")


def read_layers(path: Path) -> Listing[LayerComparison]:
    """`compare_per_layer_out.txt` or `.csv`; ArtifactError where there is no such table."""
    return parse_layers(read_text(path), name=str(path))


def parse_layers(text: str, *, name: str = "-") -> Listing[LayerComparison]:
    """The same from text."""
    return _listing(text, name, (MODULE, BASE_OP, ANALYSED_OP, SHAPE, DTYPE), (MODULE, ANALYSED_OP), _layer)


def read_statistics(path: Path) -> Listing[LayerStatistic]:
    """`statistic.txt`; ArtifactError where there is no such table."""
    return parse_statistics(read_text(path), name=str(path))


def parse_statistics(text: str, *, name: str = "-") -> Listing[LayerStatistic]:
    """The same from text."""
    return _listing(text, name, (OP, MODULE, ATTRIBUTE, SHAPE), (OP, ATTRIBUTE), _statistic)


def read_sensitive_operators(path: Path) -> Listing[SensitiveOperator]:
    """A file of sensitive operators, the most sensitive first; ArtifactError where there is no such table."""
    return parse_sensitive_operators(read_text(path), name=str(path))


def parse_sensitive_operators(text: str, *, name: str = "-") -> Listing[SensitiveOperator]:
    """The same from text."""
    return _listing(text, name, (OPERATOR, KIND, OPERATOR_TYPE), (OPERATOR, KIND), _sensitive)


def _listing(
    text: str,
    name: str,
    known: Sequence[Sequence[str]],
    needed: Sequence[Sequence[str]],
    read: Callable[[Table, Row], Entry | None],
) -> Listing[Entry]:
    """The rows of the first table with the needed columns and rows; those that `read` refuses are unread."""
    for table in _tables(text, [name for names in known for name in names]):
        if (table.rows or table.odd) and all(column(table, names) for names in needed):
            entries = [read(table, row) for row in table.rows]
            good = tuple(entry for entry in entries if entry is not None)
            return Listing(good, table.odd + len(entries) - len(good))
    raise _no_table(text, name, needed)


def _no_table(text: str, name: str, needed: Iterable[Sequence[str]]) -> ArtifactError:
    return another_file(text, name, tool=TOOL, wanted=(names[0] for names in needed))


def _tables(text: str, known: Sequence[str]) -> Iterator[Table]:
    yield from bar_tables(text, known, least=2)
    yield from rule_tables(whole_lines(text), known, least=2)
    yield from _comma_tables(text, known)


def _comma_tables(text: str, known: Sequence[str]) -> Iterator[Table]:
    """A CSV file, in which shapes are quoted. A last line without its end may be cut and is odd."""
    try:
        columns, *below = [row for row in csv.reader(io.StringIO(text, newline="")) if row] or [[]]
    except csv.Error:
        return
    if len({name.strip() for name in columns} & set(known)) < 2:
        return
    cut = bool(below) and not text.endswith(("\n", "\r"))
    whole = below[: len(below) - cut]
    rows = [dict(zip(columns, row, strict=True)) for row in whole if len(row) == len(columns)]
    yield Table(tuple(columns), tuple(rows), len(below) - len(rows))


def _index(table: Table, row: Row) -> int | None:
    return integer(cell(row, column(table, INDEX)))


def _metrics(table: Table, row: Row, named: Iterable[Sequence[str]]) -> tuple[tuple[str, float], ...]:
    """Each other column that holds a number here."""
    own = {column(table, names) for names in named}
    return tuple(
        (name, value) for name in table.columns if name not in own and (value := finite(row[name])) is not None
    )


def _layer(table: Table, row: Row) -> LayerComparison | None:
    index = _index(table, row)
    named = (INDEX, MODULE, BASE_OP, ANALYSED_OP, SHAPE, DTYPE, SCALE)
    _, module, base, analysed, shape, dtype, scale = (cell(row, column(table, names)) for names in named)
    if index is None:
        return None
    return LayerComparison(
        index, module, base, analysed, torch_size(shape), dtype, finite(scale), _metrics(table, row, named)
    )


def _statistic(table: Table, row: Row) -> LayerStatistic | None:
    index = _index(table, row)
    named = (INDEX, OP, MODULE, ATTRIBUTE, SHAPE, DTYPE, SCALE)
    _, op, module, attribute, shape, dtype, scale = (cell(row, column(table, names)) for names in named)
    if index is None:
        return None
    return LayerStatistic(
        index, op, module, attribute, dtype, finite(scale), torch_size(shape), _metrics(table, row, named)
    )


def _sensitive(table: Table, row: Row) -> SensitiveOperator | None:
    named = (OPERATOR, KIND, OPERATOR_TYPE, DTYPE, FLOPS)
    name, kind, op, dtype, flops = (cell(row, column(table, names)) for names in named)
    own = {column(table, names) for names in named}
    metric = column(table, METRICS) or next((column for column in table.columns if column not in own), "")
    value = finite(cell(row, metric or None))
    if not name or value is None:
        return None
    return SensitiveOperator(name, kind, op, metric, value, dtype, integer(flops.partition("(")[0]))
