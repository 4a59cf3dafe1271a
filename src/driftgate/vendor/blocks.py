"""The blocks between banners that hb_compile prints at its end and hb_model_info as its answer (toolchain facts §3)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from driftgate.domain.toolchain.build import ModelBlocks, ModelTensor, NodeKind
from driftgate.domain.toolchain.common import Entries, InputContract, ToolVersions
from driftgate.vendor.cells import integer, shape
from driftgate.vendor.contracts import BLOCK_KEYS, contract
from driftgate.vendor.tables import Row, Table, bar_tables, column, rule_tables

_BANNER = re.compile(r"^#{3,} *(\S.*?) *#{3,}$")
_ENTRY = re.compile(r"^([A-Za-z][\w&]*(?: [\w&]+){0,3})\s*: ?(.*)$")
_INPUT = re.compile(r"^-{3,} ?input info : (?P<name>.+?)(?P<end> end)? -{3,}$")
_SHAPE = re.compile(r"^\[[\d,\s-]*\]$")
_WORD = re.compile(r"^\w+$")
#: Keys that are told about a model even where an excerpt has lost the banner above them.
LOOSE = (
    "BPU march",
    "bpu march",
    "calibration_type",
    "cal_data_dir",
    "builder version",
    "hbdk version",
    "hmct version",
    "horizon nn version",
    "extra_params",
    "quant_config",
    "remove_node_name",
    "remove_node_type",
)
MARCH = ("BPU march", "bpu march", "march")
VERSIONS = {"builder": ("builder version",), "hbdk": ("hbdk version",), "hmct": ("hmct version", "horizon nn version")}
INPUT_NAME = "input_name"
MEMORY_END = " memory"
LEAST_MEMORY = "min memory requirement"
REMOVABLE = "removable node info"
NODE_COLUMNS = ("Node Name",)
KIND_COLUMNS = ("Node Type", "Type")
TENSOR_COLUMNS = ("NAME", "TYPE", "SHAPE", "DATA_TYPE")

Said = Sequence[str]


def read_blocks(lines: Said) -> ModelBlocks:
    """What these lines, whole and without prefixes, say in blocks; empty where they have none."""
    entries, inputs = _entries(lines)
    tensors, unread = _tensors(lines)
    return ModelBlocks(
        entries=entries,
        inputs=inputs,
        tensors=tensors,
        removable=_removable(lines),
        memory=tuple(
            (key, size)
            for key, value in entries
            if (key.endswith(MEMORY_END) or key == LEAST_MEMORY) and (size := integer(value)) is not None
        ),
        unread=unread,
    )


def block_versions(blocks: ModelBlocks) -> ToolVersions:
    """The versions of what built the model."""
    return ToolVersions(**{name: blocks.entry(*keys) for name, keys in VERSIONS.items()})


def _removable(lines: Said) -> tuple[NodeKind, ...]:
    """The nodes below their banner, under a rule or between bars as the release has it."""
    banners = [(at, found[1]) for at, line in enumerate(lines) if (found := _BANNER.match(line))]
    start = next((at + 1 for at, title in banners if title.lower().startswith(REMOVABLE)), len(lines))
    below = lines[start : next((at for at, _ in banners if at > start), len(lines))]
    bars = bar_tables("\n".join((*below, "")), (*NODE_COLUMNS, *KIND_COLUMNS), least=2)
    for table in (*rule_tables(below, (*NODE_COLUMNS, *KIND_COLUMNS), least=2), *bars):
        node, kind = column(table, NODE_COLUMNS), column(table, KIND_COLUMNS)
        if node is not None and kind is not None:
            return tuple(NodeKind(row[node], row[kind]) for row in table.rows if row[node] and _WORD.match(row[kind]))
    return ()


def _entries(lines: Said) -> tuple[Entries, tuple[InputContract, ...]]:
    """`key : value` below banners, and those of each input, whose name begins its block where the head is lost."""
    entries: list[tuple[str, str]] = []
    inputs: dict[str, dict[str, str]] = {}
    section: str | None = None
    current: dict[str, str] | None = None
    for line in lines:
        if banner := _BANNER.match(line):
            section, current = banner[1], None
        elif block := _INPUT.match(line):
            current = None if block["end"] else inputs.setdefault(block["name"], {})
        elif not (entry := _ENTRY.match(line)):
            continue
        elif entry[1] == INPUT_NAME:
            current = inputs.setdefault(entry[2].strip(), {})
        elif current is not None:
            if field := BLOCK_KEYS.get(entry[1]):
                current.setdefault(field, entry[2].strip())
        elif section is not None or entry[1] in LOOSE or entry[1].endswith(MEMORY_END):
            entries.append((entry[1], entry[2].strip()))
    return tuple(entries), tuple(contract(name, told) for name, told in inputs.items())


def _tensors(lines: Said) -> tuple[tuple[ModelTensor, ...], int]:
    """The last table of inputs and outputs, and how many of its rows are damaged."""
    found: tuple[ModelTensor, ...] = ()
    unread = 0
    for table in rule_tables(lines, TENSOR_COLUMNS, least=3):
        names = [column(table, (name,)) for name in TENSOR_COLUMNS]
        rows = [tensor for row in table.rows if (tensor := _tensor(row, names))]
        found, unread = tuple(rows), table.odd + _lost(table, names)
    return found, unread


def _tensor(row: Row, names: Sequence[str | None]) -> ModelTensor | None:
    name, direction, size, dtype = ("" if column is None else row[column] for column in names)
    form = shape(size) if _SHAPE.match(size) else None
    if not name or direction not in ("input", "output") or form is None or not _WORD.match(dtype):
        return None
    return ModelTensor(name, direction, form, dtype)


def _lost(table: Table, names: Sequence[str | None]) -> int:
    """Rows that are no tensor although one stands below them; what follows the table is no row of it."""
    good = [at for at, row in enumerate(table.rows) if _tensor(row, names)]
    return good[-1] + 1 - len(good) if good else 0
