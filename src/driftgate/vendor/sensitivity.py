"""hmct-debugger's sensitivity of nodes, weights and activations, as it logs them (toolchain facts §4.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from driftgate.domain.toolchain.comparisons import NodeSensitivity, Sensitivity
from driftgate.vendor.cells import finite
from driftgate.vendor.console import whole_lines
from driftgate.vendor.files import another_file, read_text
from driftgate.vendor.tables import Row, Table, bar_tables, column, rule_tables

TOOL = "hmct-debugger"
_TITLE = re.compile(r"^\s*={3,}\s*(?:(node|weight|activation)s? sensitivity|sensitivity of (\w+?)s?)\s*={3,}$", re.I)
#: Names of the column of nodes.
NODE = ("node", "weight", "activation", "name", "node name")
#: Numbers that say how sensitive a node is; other columns are kept as told.
METRICS = ("cosine-similarity", "mse", "mre", "sqnr", "chebyshev")
#: Say what a table is about where they are the head of its first column.
KINDS = ("weight", "activation")
#: The tool's own file names, where no title is left in an excerpt.
FILES = {
    "sensitivity_of_weight": "weight",
    "sensitivity_of_activation": "activation",
    "node_sensitivity": "node",
}


def read_sensitivity(path: Path) -> tuple[Sensitivity, ...]:
    """Every table of a file; ArtifactError where there is none."""
    return parse_sensitivity(read_text(path), kind=FILES.get(path.stem), name=str(path))


def parse_sensitivity(text: str, *, kind: str | None = None, name: str = "-") -> tuple[Sensitivity, ...]:
    """The same from text; `kind` is that of a table without a title. A title is for the first table below it."""
    found = tuple(
        read
        for kind_of, part in _parts(whole_lines(text), kind)
        for at, table in enumerate((*rule_tables(part, (*NODE, *METRICS), least=2), *_bars(part)))
        if (read := _sensitivity(table, kind_of if at == 0 else kind)) is not None
    )
    if not found:
        raise another_file(text, name, tool=TOOL, wanted=("node", METRICS[0]))
    return found


def _parts(lines: Sequence[str], kind: str | None) -> Iterator[tuple[str | None, Sequence[str]]]:
    """The lines below each title with the kind that it names."""
    start = 0
    for at, line in enumerate(lines):
        if title := _TITLE.match(line):
            yield kind, lines[start:at]
            kind, start = (title[1] or title[2]).lower(), at + 1
    yield kind, lines[start:]


def _bars(lines: Sequence[str]) -> tuple[Table, ...]:
    return tuple(bar_tables("\n".join((*lines, "")), (*NODE, *METRICS), least=2))


def _sensitivity(table: Table, kind: str | None) -> Sensitivity | None:
    node = column(table, NODE)
    metrics = [name for metric in METRICS if (name := column(table, (metric,)))]
    if node is None or not metrics or not (table.rows or table.odd):
        return None
    nodes = [_node(row, node, metrics) for row in table.rows]
    good = tuple(entry for entry in nodes if entry is not None)
    told = node.lower() if node.lower() in KINDS else kind
    return Sensitivity(told, good, table.odd + len(nodes) - len(good))


def _node(row: Row, node: str, metrics: Sequence[str]) -> NodeSensitivity | None:
    values = [(metric, finite(row[metric])) for metric in metrics]
    told = tuple((metric, value) for metric, value in values if value is not None)
    if not row[node] or len(told) < len(values):
        return None
    other = tuple((name, value) for name, value in row.items() if name != node and name not in metrics)
    return NodeSensitivity(row[node], told, other)
