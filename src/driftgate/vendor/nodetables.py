"""The vendor's own comparison node by node: of hb_verifier, of hb_compile (log, `node_info.csv`), of QuantAnalysis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from driftgate.domain.investigations import VendorNode, VendorTable
from driftgate.errors import ArtifactError
from driftgate.messages.message import message
from driftgate.vendor.quantanalysis import ANALYSED_OP, parse_layers
from driftgate.vendor.tables import Row, Table, bar_tables, column, comma_table

NODE = ("Node", "NodeName", "Node Name", "Name", "mod_name")
TENSOR = ("TensorName", "Tensor Name", "Tensor")
OPERATOR = ("NodeType", "Node Type", "OpType", "op_type", "base_op_type")
UNIT = ("ON",)
TYPE = ("Output Data Type", "Data Type", "DataType", "quant_dtype")
#: Columns with a cosine, by what the candidate of the link is; the first one that a table has is taken.
COSINES: dict[str, tuple[str, ...]] = {
    "calibrated": ("Calibrated Cosine", "CosineSimilarity", "Cosine Similarity", "Cosine"),
    "": ("CosineSimilarity", "Cosine Similarity", "Quantized Cosine", "Cosine"),
}
LAYER_COSINE = "Cosine"
MOST_BYTES = 64 << 20


def read_node_table(path: Path, stage: str) -> VendorTable:
    """A file's node table, with the cosine that concerns this stage.

    Of several tables in a log the first with such a cosine of any node counts. Raises ArtifactError where the file
    cannot be read or holds no such table, naming what was found.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(MOST_BYTES).decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArtifactError(message("artifact-unreadable", path=str(path), reason=reason)) from error
    layers = _layers(text, path.name)
    if layers is not None:
        return layers
    wanted = COSINES.get(stage, COSINES[""])
    known = {name for names in (NODE, TENSOR, *COSINES.values()) for name in names}
    bars = tuple(bar_tables(text, known, least=2))
    comma = comma_table(text, known) if not bars else None
    tables = bars if comma is None else (comma,)
    for table in tables:
        name, cosine = column(table, NODE) or column(table, TENSOR), column(table, wanted)
        if name is None or cosine is None:
            continue
        nodes = _nodes(table, name, cosine)
        if _told(nodes):
            return VendorTable(path.name, cosine, nodes, table.odd)
    found = tuple(" | ".join(table.columns) for table in tables) or ("-",)
    raise ArtifactError(message("node-table-none", path=str(path), wanted=wanted, found=found))


def _layers(text: str, source: str) -> VendorTable | None:
    """QuantAnalysis' layers, text or CSV; None where this is another file, or no layer has a cosine.

    Names of modules may be absent or occur twice, so a layer is called by index and name (toolchain facts §10).
    """
    if ANALYSED_OP[0] not in text:
        return None
    try:
        found = parse_layers(text, name=source)
    except ArtifactError:
        return None
    cosines = [dict(layer.metrics).get(LAYER_COSINE) for layer in found.rows]
    nodes = tuple(
        VendorNode(f"{layer.index} {layer.module}".rstrip(), cosine, op=layer.base_op, dtype=layer.dtype)
        for layer, cosine in zip(found.rows, cosines, strict=True)
    )
    return VendorTable(source, LAYER_COSINE, nodes, found.unread) if _told(nodes) else None


def _told(nodes: Iterable[VendorNode]) -> bool:
    """Whether any node has a number: without one, nothing is said of them."""
    return any(node.cosine is not None for node in nodes)


def _nodes(table: Table, name: str, cosine: str) -> tuple[VendorNode, ...]:
    tensor, operator, unit, dtype = (column(table, names) for names in (TENSOR, OPERATOR, UNIT, TYPE))
    return tuple(
        VendorNode(
            node=row[name],
            tensor=_cell(row, tensor),
            op=_cell(row, operator),
            on=_cell(row, unit),
            dtype=_cell(row, dtype),
            cosine=_number(row[cosine]),
        )
        for row in table.rows
    )


def _cell(row: Row, name: str | None) -> str:
    return "" if name is None else row[name]


def _number(text: str) -> float | None:
    """A finite number; None for words, dashes and nothing."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
