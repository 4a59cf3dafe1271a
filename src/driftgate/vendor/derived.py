"""What follows from the vendor's files for consistency: float operators inside, CPU operators, thresholds that were
never calibrated, a march that is not the target's, the input contract (vendor rules §2; toolchain facts §2.3, §11)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from driftgate.domain.platforms import PLATFORMS
from driftgate.domain.toolchain.build import NodeInfo, QuantInfo
from driftgate.domain.toolchain.common import InputContract

CPU = "CPU"
UNITS = ("BPU", "VPU", "SPU", CPU)
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGER = re.compile(r"(?:si|ui|int|uint|i|u)(?:4|8|16|32)")
#: Give integers that are no quantised values.
COUNTING = ("argmax", "argmin", "topk", "nonmaxsuppression", "shape", "size", "nonzero")
#: Only change the form of a number: at the edges they are not inside, elsewhere the operator between them counts.
CONVERSIONS = ("quantize", "dequantize", "cast", "quantizelinear", "dequantizelinear", "hzquantize", "hzdequantize")
FIELDS = tuple(field.name for field in fields(InputContract) if field.name != "name")
#: From this share of thresholds on that are exactly 1 nothing was calibrated: look-up tables keep limits of their own.
NEVER_CALIBRATED = 0.9


@dataclass(frozen=True, slots=True)
class FloatOperators:
    """Names of float operators: inside of the network, at its end, and those of which the table alone cannot tell."""

    inside: tuple[str, ...]
    tail: tuple[str, ...]
    undecided: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field of an input's contract of which two sources tell different things."""

    input: str
    field: str
    found: str
    other: str


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How many thresholds there are, and how many of them are exactly 1."""

    count: int
    ones: int

    @property
    def never_calibrated(self) -> bool | None:
        """Whether so many are 1 that no calibration was done; None where there are none."""
        return self.ones >= NEVER_CALIBRATED * self.count if self.count else None


def float_operators(nodes: Sequence[NodeInfo], consumers: Mapping[str, Iterable[str]] | None = None) -> FloatOperators:
    """Where the float operators stand.

    `consumers` are the graph's edges, with an entry for every node. Without them only the table's order is there:
    behind its last integer operator everything float is tail; before it, a float operator may be one or the other
    and is undecided. So is one that the graph does not have, as the log cuts names and merges nodes.
    """
    integers = [at for at, node in enumerate(nodes) if is_integer(node)]
    where: dict[str, list[str]] = {"inside": [], "tail": [], "undecided": []}
    for at, node in enumerate(nodes):
        if is_float(node) and not is_conversion(node):
            behind = [nodes[k].node for k in integers if k > at]
            where[_place(node.node, behind, consumers or {})].append(node.node)
    return FloatOperators(**{place: tuple(found) for place, found in where.items()})


def _place(name: str, integers: Sequence[str], consumers: Mapping[str, Iterable[str]]) -> str:
    """Where a float operator stands, of which these integer operators come later in the table."""
    if not integers:
        return "tail"
    own = _parts(name, consumers)
    if not own:
        return "undecided"
    after = _reached(own, consumers)
    merged = [_parts(integer, consumers) for integer in integers]
    if any(after & part for part in merged):
        return "inside"
    return "tail" if all(merged) else "undecided"


def _parts(name: str, consumers: Mapping[str, Iterable[str]]) -> set[str]:
    """The graph's nodes that a row stands for, as `A+B` for two; none where the graph lacks one of them."""
    parts = {name} if name in consumers else set(name.split("+"))
    return parts if parts <= consumers.keys() else set()


def _reached(start: set[str], consumers: Mapping[str, Iterable[str]]) -> set[str]:
    """All nodes behind these."""
    seen: set[str] = set()
    ahead = [node for name in start for node in consumers[name]]
    while ahead:
        node = ahead.pop()
        if node not in seen:
            seen.add(node)
            ahead += consumers.get(node, ())
    return seen


def is_float(node: NodeInfo) -> bool:
    """Whether all that the node gives is float; of a pair such as `f32,si16` one side is the integer itself."""
    return bool(node.dtypes) and all(dtype.lower() in FLOATS for dtype in node.dtypes)


def is_integer(node: NodeInfo) -> bool:
    """Whether the node gives quantised integers and nothing else: places and counts are none."""
    if node.op.lower() in COUNTING:
        return False
    return bool(node.dtypes) and all(INTEGER.fullmatch(dtype.lower()) for dtype in node.dtypes)


def is_conversion(node: NodeInfo) -> bool:
    """Whether it only changes the form of numbers."""
    return node.op.lower() in CONVERSIONS


def cpu_operators(nodes: Iterable[NodeInfo]) -> tuple[NodeInfo, ...]:
    """The nodes that the CPU runs, wholly or in part."""
    return tuple(node for node in nodes if CPU in _units(node))


def unknown_units(nodes: Iterable[NodeInfo]) -> tuple[NodeInfo, ...]:
    """The nodes of which the table does not say what runs them: not the CPU, only not known."""
    return tuple(node for node in nodes if not _units(node) or not set(_units(node)) <= set(UNITS))


def _units(node: NodeInfo) -> tuple[str, ...]:
    return tuple(unit for part in node.on.split("+") if (unit := part.strip().upper()))


def node_thresholds(nodes: Iterable[NodeInfo]) -> Thresholds:
    """Those of a node table; `fused` and dashes are none."""
    return _thresholds(node.threshold for node in nodes if node.threshold is not None)


def quant_info_thresholds(info: QuantInfo) -> Thresholds:
    """Those of quant_info.json."""
    return _thresholds(value for node in info.nodes for row in node.thresholds for value in row)


def _thresholds(values: Iterable[float]) -> Thresholds:
    told = tuple(values)
    return Thresholds(len(told), sum(value == 1.0 for value in told))


def march_fits(march: str | None, platform: str) -> bool | None:
    """Whether a model of this march is one for this platform; None where that cannot be known: no march, a platform
    that is not in the table, or a variant of the platform's march such as nash-b-lite."""
    target = PLATFORMS.get(platform)
    if not march or target is None:
        return None
    if march.startswith(f"{target.march}-"):
        return None
    return march == target.march


def first_contract(told: Iterable[Sequence[InputContract]]) -> tuple[InputContract, ...]:
    """The first contract that tells anything: settings, log, model, in the order in which they are to be believed."""
    return next((tuple(contract) for contract in told if contract), ())


def contract_conflicts(a: Sequence[InputContract], b: Sequence[InputContract]) -> tuple[Conflict, ...]:
    """Where two sources tell different things of one input; what only one of them tells is no conflict."""
    others = {contract.name: contract for contract in b}
    return tuple(
        Conflict(contract.name, name, str(ours), str(theirs))
        for contract in a
        if (other := others.get(contract.name)) is not None
        for name in FIELDS
        if None not in (ours := getattr(contract, name), theirs := getattr(other, name)) and ours != theirs
    )
