"""Where two graphs part: a walk from the outputs back to tensors that are the same on both sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.graphs.folds import folds_rightly
from driftgate.diagnosis.graphs.twins import Twin, Twins, axes_of, output_names, takes_axes
from driftgate.diagnosis.surgery import opset
from driftgate.numerics.alignment import same_shape

Tensor = NDArray[Any]

#: The order of their operands does not matter.
COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min", "Sum", "And", "Or", "Xor", "Equal"})
NORMS = frozenset(
    {
        *("LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization"),
        *("SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "GroupNorm"),
    }
)
SOFTMAXES = frozenset({"Softmax", "LogSoftmax"})
ONE_AXIS = 13  # the version from which on a softmax goes along one axis, not along all behind it as well
#: Attributes that change nothing that is computed, or are told by the weights as well.
IDLE = frozenset({"kernel_shape", "momentum", "stash_type", "seed", "storage_order", "spatial", "consumed_inputs"})
#: What stands for an attribute that is not there and has no default in the standard.
ABSENT: Mapping[str, float] = {"pads": 0, "strides": 1, "dilations": 1, "output_padding": 0}

#: Attributes that are read only where another one has a value.
DEPENDENT: Mapping[str, tuple[str, bytes]] = {"nearest_mode": ("mode", b"nearest"), "cubic_coeff_a": ("mode", b"cubic")}
MOST_TESTS = 40  # of parts that were perhaps rewritten rightly


@dataclass(frozen=True, slots=True)
class Site:
    """Where a tensor is read: an input of a node of the candidate, or (place -1) one of its outputs."""

    place: int
    number: int


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The candidate reads `b` where the reference has `a`; the nodes are those since the last tensors that are the
    same on both sides."""

    site: Site
    a: str
    b: str
    nodes_a: tuple[int, ...]
    nodes_b: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Altered:
    """A node that both have, with other attributes or constants (numbers of inputs, by the candidate's order)."""

    place_a: int
    place_b: int
    attributes: tuple[str, ...]
    constants: tuple[tuple[int, int], ...]


Difference = Rewritten | Altered


#: Computes a tensor of the reference of tensors of the candidate that have the same names.
Compute = Callable[[str, frozenset[str]], Tensor | None]


def find_parting(twins: Twins, compute: Compute) -> tuple[Difference, ...]:
    """All differences that the outputs depend on.

    A part that was rewritten rightly computes what the reference's would, of the candidate's own tensors: what it
    gives is wrong only because something before it is.
    """
    walk = _Walk(twins, compute)
    outputs = output_names(twins.b.model)
    for a, b in twins.ends:
        walk.visit(a, b, Site(-1, outputs.index(b)))
    return tuple(walk.found)


class _Walk:
    def __init__(self, twins: Twins, compute: Compute) -> None:
        self._twins = twins
        self._compute = compute
        self._left = MOST_TESTS
        self._right: dict[tuple[str, str], frozenset[str]] = {}
        self._seen: set[tuple[int, int]] = set()
        self.found: list[Difference] = []

    def visit(self, a: str, b: str, site: Site) -> None:
        """Compare what is read at a place of the candidate with what the reference reads there."""
        waiting = [(a, b, site)]
        while waiting:
            waiting.extend(self._step(*waiting.pop()))

    def _step(self, a: str, b: str, site: Site) -> Iterator[tuple[str, str, Site]]:
        twins = self._twins
        a, b = twins.a.through(a), twins.b.through(b)
        if twins.agree(a, b):
            return
        place_a, place_b = twins.a.maker.get(a), twins.b.maker.get(b)
        if place_a is None or place_b is None or twins.partner_in_b(a) or twins.partner_in_a(b):
            self.found.append(self._rewritten(a, b, site))
            return
        if not self._are_alike(place_a, place_b):
            conv = folds_rightly(twins.a, place_a, twins.b, place_b)
            anchors = self._anchors(a, b) if conv is None else frozenset[str]()
            if conv is not None:
                yield twins.a.node(conv).input[0], twins.b.node(place_b).input[0], Site(place_b, 0)
            elif anchors:
                yield from self._before(b, anchors)
            else:
                self.found.append(self._rewritten(a, b, site))
            return
        if (place_a, place_b) not in self._seen:
            self._seen.add((place_a, place_b))
            yield from self._compared(place_a, place_b)

    def _anchors(self, a: str, b: str) -> frozenset[str]:
        """Tensors of one name on both sides of which the candidate computes what the reference would; none where it
        does not, or where there are none."""
        if (a, b) in self._right:
            return self._right[a, b]
        twins = self._twins
        mine = region(twins.b, b, lambda name: twins.partner_in_a(name) is not None)
        shared = {name for place in mine for name in twins.b.node(place).output if name in twins.a.maker} - {a, b}
        stops = region(twins.a, a, lambda name: name in shared or twins.partner_in_b(name) is not None)
        read = frozenset(name for place in stops for name in twins.a.node(place).input if name in shared)
        found = frozenset[str]()
        if read and self._left:
            self._left -= 1
            made, value = self._compute(a, read), twins.b.value(b)
            found = read if made is not None and value is not None and twins.are_same(value, made) else found
        self._right[a, b] = found
        return found

    def _before(self, b: str, anchors: frozenset[str]) -> Iterator[tuple[str, str, Site]]:
        """Where the candidate reads the anchors on its way to a tensor."""
        twins = self._twins
        for place in region(twins.b, b, lambda name: name in anchors or twins.partner_in_a(name) is not None):
            for number, name in enumerate(twins.b.node(place).input):
                if name in anchors:
                    yield name, name, Site(place, number)

    def _compared(self, place_a: int, place_b: int) -> Iterator[tuple[str, str, Site]]:
        twins = self._twins
        pairs = self._inputs(place_a, place_b)
        attributes = other_attributes(twins, place_a, place_b)
        constants = []
        for number_a, number_b in pairs:
            a, b = twins.a.node(place_a).input[number_a], twins.b.node(place_b).input[number_b]
            x, y = twins.a.constant(a), twins.b.constant(b)
            if x is None or y is None:
                yield a, b, Site(place_b, number_b)
            elif not twins.are_same(x, y):
                constants.append((number_a, number_b))
        if attributes or constants:
            self.found.append(Altered(place_a, place_b, attributes, tuple(constants)))

    def _inputs(self, place_a: int, place_b: int) -> list[tuple[int, int]]:
        """Inputs that belong together: (number in the reference's node, in the candidate's)."""
        twins, a, b = self._twins, self._twins.a.node(place_a), self._twins.b.node(place_b)
        numbers = [number for number, name in enumerate(a.input) if name and not (number and takes_axes(a))]
        straight = [(number, number) for number in numbers]
        if a.op_type not in COMMUTATIVE or len(numbers) != 2:
            return straight
        crossed = [(0, 1), (1, 0)]

        def fit(pairs: list[tuple[int, int]]) -> int:
            return sum(
                2 * twins.agree(a.input[m], b.input[n])
                + ((twins.a.constant(a.input[m]) is None) == (twins.b.constant(b.input[n]) is None))
                for m, n in pairs
            )

        return crossed if fit(crossed) > fit(straight) else straight

    def _are_alike(self, place_a: int, place_b: int) -> bool:
        """Whether two nodes are of one operator, with constants at the same inputs."""
        twins, a, b = self._twins, self._twins.a.node(place_a), self._twins.b.node(place_b)
        if (a.op_type, a.domain) != (b.op_type, b.domain) or has_graphs(a):
            return False
        if takes_axes(a):
            return True
        if len(a.input) != len(b.input):
            return False
        for name_a, name_b in zip(a.input, b.input, strict=True):
            if bool(name_a) != bool(name_b):
                return False
            x, y = twins.a.constant(name_a), twins.b.constant(name_b)
            if x is not None and y is not None and a.op_type in NORMS and same_shape(x, y) is None:
                return False
        return True

    def _rewritten(self, a: str, b: str, site: Site) -> Rewritten:
        twins = self._twins
        return Rewritten(
            site,
            a,
            b,
            region(twins.a, a, lambda name: twins.partner_in_b(name) is not None),
            region(twins.b, b, lambda name: twins.partner_in_a(name) is not None),
        )


def region(twin: Twin, name: str, is_known: Callable[[str], bool]) -> tuple[int, ...]:
    """Nodes that make a tensor of tensors that are known and of constants, in the order of the graph."""
    found: set[int] = set()
    waiting = [name]
    while waiting:
        place = twin.maker.get(current := waiting.pop())
        if place is None or place in found or twin.constant(current) is not None or is_known(current):
            continue
        found.add(place)
        waiting.extend(name for name in twin.node(place).input if name)
    return tuple(sorted(found))


def since(model: onnx.ModelProto, node: onnx.NodeProto) -> int:
    """The version of the operators from which on a node means what it means in a model; 0 where that is not known."""
    version = _version(model, node.domain)
    try:
        return int(onnx.defs.get_schema(node.op_type, version, node.domain).since_version)
    except onnx.defs.SchemaError:
        return 0


def has_graphs(node: onnx.NodeProto) -> bool:
    """Whether a node has graphs in it."""
    return any(entry.HasField("g") or entry.graphs for entry in node.attribute)


def other_attributes(twins: Twins, place_a: int, place_b: int) -> tuple[str, ...]:
    """Names of the attributes that say something else."""
    told = [meant(twin, twin.node(place)) for twin, place in ((twins.a, place_a), (twins.b, place_b))]
    return tuple(sorted(name for name in {**told[0], **told[1]} if not _are_equal(name, *told)))


def meant(twin: Twin, node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes as they are meant: axes counted from the first, what is the default or does nothing left out."""
    version = _version(twin.model, node.domain)
    found = _defaults(node, version)
    usual = dict(found)
    found |= {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}
    kept = {name: value for name, value in found.items() if name not in IDLE or node.op_type.endswith("Pool")}
    rank = twin.rank(node.input[0]) if node.input else None
    if node.op_type in SOFTMAXES and rank:
        first = int(kept.pop("axis")) % rank
        kept["axes"] = tuple(range(first, rank)) if version < ONE_AXIS else (first,)
    if takes_axes(node):
        kept["axes"] = axes_of(twin, node)
    for name, (owner, value) in DEPENDENT.items():
        if name in kept and kept.get(owner) != value:
            del kept[name]
    if rank and isinstance(kept.get("axis"), int):
        kept["axis"] = kept["axis"] % rank
    return {name: value for name, value in kept.items() if name in ("axis", "axes") or usual.get(name) != value}


def _defaults(node: onnx.NodeProto, version: int) -> dict[str, Any]:
    """Attributes that a node has without saying so."""
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return {}
    defaults = {name: entry.default_value for name, entry in schema.attributes.items()}
    return {name: onnx.helper.get_attribute_value(value) for name, value in defaults.items() if value.name}


def _version(model: onnx.ModelProto, domain: str) -> int:
    if domain in ("", "ai.onnx"):
        return opset(model)
    return next((entry.version for entry in model.opset_import if entry.domain == domain), 1)


def _are_equal(name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    if name not in a or name not in b:
        there = a.get(name, b.get(name))
        if name not in ABSENT or not isinstance(there, Iterable):
            return False
        return all(value == ABSENT[name] for value in there)
    x, y = a[name], b[name]
    if isinstance(x, float) and isinstance(y, float):
        return math.isclose(x, y, rel_tol=1e-5)
    if isinstance(x, onnx.TensorProto) and isinstance(y, onnx.TensorProto):
        return np.array_equal(onnx.numpy_helper.to_array(x), onnx.numpy_helper.to_array(y))
    return bool(x == y)
