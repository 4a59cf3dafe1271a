"""hb_compile's two tables: nodes with unit, threshold and type, outputs with their cosines (toolchain facts §2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from driftgate.domain.toolchain.build import NodeInfo, NodeTable, OutputCosine
from driftgate.domain.toolchain.common import Listing
from driftgate.vendor.cells import finite
from driftgate.vendor.files import another_file, read_text
from driftgate.vendor.tables import Table, bar_tables, cell, column, comma_table

TOOL = "hb_compile"
NODE = ("Node", "Node Name", "NodeName")
OP = ("NodeType", "Node Type")
UNIT = ("ON",)
THRESHOLD = ("Threshold", "Thresholds")
CALIBRATED = ("Calibrated Cosine",)
QUANTIZED = ("Quantized Cosine",)
TYPE = ("Output Data Type",)
TENSOR = ("TensorName", "Tensor Name")
KNOWN = tuple(name for names in (NODE, OP, UNIT, THRESHOLD, CALIBRATED, QUANTIZED, TYPE, TENSOR) for name in names)
#: Stand in cells for a type that is not told, or that is merged into a neighbour.
NO_TYPE = ("--", "-", "", "fused")


def read_node_info(path: Path) -> NodeTable:
    """`node_info.csv`, or the same table out of a log; ArtifactError where there is none."""
    return parse_node_info(read_text(path), name=str(path))


def parse_node_info(text: str, *, name: str = "-") -> NodeTable:
    """The same from text."""
    table = comma_table(text, NODE)
    found = node_table([table] if table is not None else log_tables(text))
    if found is None:
        raise another_file(text, name, tool=TOOL, wanted=("Node", "NodeType", "ON"))
    return found


def log_tables(text: str) -> tuple[Table, ...]:
    """All tables of a log that may be one of the two."""
    return tuple(bar_tables(text, KNOWN, least=2))


def node_table(tables: Sequence[Table]) -> NodeTable | None:
    """The last table with nodes and their units; None where there is none."""
    for table in reversed(tables):
        node, unit = column(table, NODE), column(table, UNIT)
        if node is not None and unit is not None and (table.rows or table.odd):
            return _nodes(table, node, unit)
    return None


def output_cosines(tables: Sequence[Table]) -> Listing[OutputCosine]:
    """The rows of the last table of outputs."""
    for table in reversed(tables):
        tensor, calibrated, quantized = (column(table, names) for names in (TENSOR, CALIBRATED, QUANTIZED))
        if tensor is not None and column(table, NODE) is None and (calibrated or quantized):
            rows = (
                OutputCosine(row[tensor], finite(cell(row, calibrated)), finite(cell(row, quantized)))
                for row in table.rows
            )
            return Listing(tuple(rows), table.odd)
    return Listing(())


def _nodes(table: Table, node: str, unit: str) -> NodeTable:
    op, threshold, calibrated, quantized, dtype = (
        column(table, names) for names in (OP, THRESHOLD, CALIBRATED, QUANTIZED, TYPE)
    )
    nodes = tuple(
        NodeInfo(
            node=row[node],
            op=cell(row, op),
            on="" if row[unit] in ("--", "-", "NULL") else row[unit],
            dtypes=tuple(kind for part in cell(row, dtype).split(",") if (kind := part.strip()) not in NO_TYPE),
            threshold=finite(cell(row, threshold)),
            calibrated=finite(cell(row, calibrated)),
            quantized=finite(cell(row, quantized)),
        )
        for row in table.rows
    )
    return NodeTable(table.columns, nodes, table.odd)
