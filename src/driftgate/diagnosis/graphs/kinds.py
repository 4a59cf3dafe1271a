"""What a difference between two graphs is called, by the operators that take part in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import onnx

from driftgate.diagnosis.graphs.differences import NORMS, SOFTMAXES, Altered, Difference, Rewritten, meant
from driftgate.diagnosis.graphs.twins import Twin, Twins, axes_of, is_active_dropout
from driftgate.localisation.points import LINEAR

LEARNT = frozenset({*LINEAR, "BatchNormalization", "PRelu", "LSTM", "GRU", "RNN"})
RESIZES = frozenset({"Resize", "Upsample", "GridSample"})
POOLS = frozenset({"AveragePool", "MaxPool", "LpPool"})
ROOTS = frozenset({"Sqrt", "Pow", "Reciprocal", "Rsqrt"})
#: Operators whose constant integers are sizes or places that tracing records.
SIZED = frozenset({"Reshape", "Expand", "Tile", "Slice", "ConstantOfShape", "Range", "Gather", "Pad", "Split"})
#: Operators that move numbers and change none.
MOVERS = frozenset(
    {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Shape", "Gather", "Concat", "Cast", "Slice"}
)
#: Operators that a normalisation is made of when it is taken apart.
NORM_PARTS = frozenset({*ROOTS, *MOVERS, *NORMS, "ReduceMean", "Sub", "Mul", "Div", "Add"})
AFFINE = frozenset({"Add", "Mul", "Sub", "Div", "Cast"})
#: Operators around which batch normalisations are folded.
FOLDED_WITH = frozenset({*LINEAR, *MOVERS, *AFFINE, "BatchNormalization", "FusedConv", "Relu", "LeakyRelu", "Clip"})
MOST_NODES = 24  # of a region that is still known by its operators

#: (operator, attribute) → code of a node whose attribute says something else.
ATTRIBUTES: Mapping[tuple[frozenset[str], str], str] = {
    (POOLS, "ceil_mode"): "pooling-ceil-mode",
    (POOLS, "count_include_pad"): "pooling-count-include-pad",
    (RESIZES, "coordinate_transformation_mode"): "resize-coordinate-mode",
    (RESIZES, "nearest_mode"): "resize-coordinate-mode",
    (RESIZES, "mode"): "resize-coordinate-mode",
    (RESIZES, "cubic_coeff_a"): "resize-coordinate-mode",
    (RESIZES, "exclude_outside"): "resize-coordinate-mode",
    (RESIZES, "align_corners"): "resize-coordinate-mode",
    (SOFTMAXES, "axes"): "softmax-axis",
    (NORMS, "epsilon"): "norm-fusion-error",
    (NORMS, "axis"): "norm-semantics",
    (NORMS, "num_groups"): "norm-semantics",
    (NORMS, "groups"): "norm-semantics",
    (frozenset({"BatchNormalization"}), "training_mode"): "train-mode-export",
}


@dataclass(frozen=True, slots=True)
class Half:
    """The nodes of one side of a difference."""

    twin: Twin
    nodes: tuple[onnx.NodeProto, ...]

    def of(self, kinds: frozenset[str]) -> list[onnx.NodeProto]:
        """Those of some operators."""
        return [node for node in self.nodes if node.op_type in kinds]

    def has(self, *kinds: str) -> bool:
        """Whether there is one of these operators."""
        return bool(self.of(frozenset(kinds)))

    def consists_of(self, kinds: frozenset[str]) -> bool:
        """Whether there is no other operator."""
        return all(node.op_type in kinds for node in self.nodes)

    @property
    def norms(self) -> list[onnx.NodeProto]:
        """Normalisations that are one operator."""
        return self.of(NORMS)

    @property
    def means(self) -> list[onnx.NodeProto]:
        """Means of a normalisation that is taken apart: beside them there are a root and a division."""
        apart = bool(self.of(ROOTS)) and self.has("Div", "Mul")
        return self.of(frozenset({"ReduceMean"})) if apart else []

    @property
    def takes_batch(self) -> bool:
        """Whether a mean goes over the samples."""
        return any(0 in (axes_of(self.twin, node) or ()) for node in self.means)


Holds = Callable[[Half, Half], bool]


def _trains(a: Half, b: Half) -> bool:
    return any(
        (one.takes_batch or any(_is_training(one.twin, node) for node in one.nodes)) and not other.takes_batch
        for one, other in ((a, b), (b, a))
    )


def _is_training(twin: Twin, node: onnx.NodeProto) -> bool:
    told = node.op_type == "BatchNormalization" and meant(twin, node).get("training_mode", 0) == 1
    return told or is_active_dropout(twin, node)


def _is_other_norm(a: Half, b: Half) -> bool:
    """Both normalise by one operator; or both by parts, over other axes; or one with statistics that were learnt."""
    if not (a.consists_of(NORM_PARTS | {"BatchNormalization"}) and b.consists_of(NORM_PARTS | {"BatchNormalization"})):
        return False
    if a.norms and b.norms:
        return True
    if a.means and b.means:
        return [axes_of(a.twin, node) for node in a.means] != [axes_of(b.twin, node) for node in b.means]
    learnt = [one.has("BatchNormalization") for one in (a, b)]
    return (learnt[0] and bool(b.norms or b.means)) or (learnt[1] and bool(a.norms or a.means))


def _is_fused_norm(a: Half, b: Half) -> bool:
    fused = bool((a.norms and b.means) or (a.means and b.norms) or (a.means and b.means))
    return fused and a.consists_of(NORM_PARTS) and b.consists_of(NORM_PARTS)


def _is_folded(a: Half, b: Half) -> bool:
    counts = [len(one.of(frozenset({"BatchNormalization"}))) for one in (a, b)]
    return counts[0] > counts[1] and a.consists_of(FOLDED_WITH) and b.consists_of(FOLDED_WITH)


def _turns_softmax(a: Half, b: Half) -> bool:
    around = MOVERS | SOFTMAXES
    return 0 < len(a.of(SOFTMAXES)) == len(b.of(SOFTMAXES)) and a.consists_of(around) and b.consists_of(around)


def _counts_padding(a: Half, b: Half) -> bool:
    return bool(a.of(POOLS)) and bool(b.of(POOLS)) and a.has("Pad") != b.has("Pad")


def _resizes_otherwise(a: Half, b: Half) -> bool:
    kinds = [Counter((node.domain, node.op_type) for node in one.of(RESIZES)) for one in (a, b)]
    told = [Counter(_coordinates(one.twin, node) for node in one.of(RESIZES)) for one in (a, b)]
    return bool(kinds[0]) and kinds[0] == kinds[1] and told[0] != told[1]


def _coordinates(twin: Twin, node: onnx.NodeProto) -> tuple[str, ...]:
    found = meant(twin, node)
    return tuple(str(found.get(name)) for name in ("coordinate_transformation_mode", "mode", "nearest_mode"))


#: The first that holds names a part that was rewritten.
REGIONS: tuple[tuple[str, Holds], ...] = (
    ("train-mode-export", _trains),
    ("norm-semantics", _is_other_norm),
    ("norm-fusion-error", _is_fused_norm),
    ("bn-fold-error", _is_folded),
    ("softmax-axis", _turns_softmax),
    ("pooling-count-include-pad", _counts_padding),
    ("resize-coordinate-mode", _resizes_otherwise),
)


def _is_norm_of_parts(twins: Twins, b: str) -> bool:
    """Whether the candidate makes by one normalisation what the reference makes by other operators."""
    a = twins.partner_in_a(b)
    places = (twins.b.maker.get(b), None if a is None else twins.a.maker.get(a))
    if places[0] is None or places[1] is None:
        return False
    return twins.b.node(places[0]).op_type in NORMS and twins.a.node(places[1]).op_type not in NORMS


def halves(twins: Twins, difference: Difference) -> tuple[Half, Half]:
    """The nodes of both sides that take part."""
    if isinstance(difference, Altered):
        return _half(twins.a, (difference.place_a,)), _half(twins.b, (difference.place_b,))
    return _half(twins.a, difference.nodes_a), _half(twins.b, difference.nodes_b)


def _half(twin: Twin, places: Iterable[int]) -> Half:
    return Half(twin, tuple(twin.node(place) for place in places))


def code_of(twins: Twins, difference: Difference) -> str | None:
    """The code of a difference; None where it only follows from another one."""
    return _altered(twins, difference) if isinstance(difference, Altered) else _rewritten(twins, difference)


def _altered(twins: Twins, difference: Altered) -> str | None:
    a, b = twins.a.node(difference.place_a), twins.b.node(difference.place_b)
    for (kinds, name), code in ATTRIBUTES.items():
        if a.op_type in kinds and name in difference.attributes:
            return code
    if a.op_type in POOLS and difference.attributes and _shapes_differ(twins, a.output[0], b.output[0]):
        return "pooling-ceil-mode"
    if a.op_type in POOLS and "pads" in difference.attributes:
        return "pooling-count-include-pad"
    if a.op_type.startswith("Reduce") and "axes" in difference.attributes:
        return "norm-semantics" if _feeds(twins.a, a, {"Sub", "Add", "Sqrt"}) else "graph-fusion-error"
    if difference.attributes:
        return "graph-fusion-error"
    return _other_constants(twins, difference, a, b)


def _other_constants(twins: Twins, difference: Altered, a: onnx.NodeProto, b: onnx.NodeProto) -> str | None:
    values = [twins.a.constant(a.input[number]) for number, _ in difference.constants]
    kinds = {value.dtype.kind for value in values if value is not None}
    if a.op_type == "Dropout":
        return "train-mode-export"
    if a.op_type in LEARNT or a.op_type in NORMS:
        return "weights-mismatch"
    if kinds <= set("iub"):
        if _shapes_differ(twins, a.input[0], b.input[0]):
            return None
        return "trace-constant-baked" if a.op_type in SIZED else "graph-fusion-error"
    if a.op_type == "Add" and _feeds(twins.a, a, set(ROOTS)):
        return "norm-fusion-error"
    return "weights-mismatch" if any(v is not None and v.size > 1 for v in values) else "constant-fold-bug"


def _shapes_differ(twins: Twins, a: str, b: str) -> bool:
    x, y = twins.a.value(a), twins.b.value(b)
    return x is not None and y is not None and x.shape != y.shape


def _feeds(twin: Twin, node: onnx.NodeProto, kinds: set[str]) -> bool:
    return any(node.output[0] in other.input and other.op_type in kinds for other in twin.model.graph.node)


def _rewritten(twins: Twins, difference: Rewritten) -> str | None:
    a, b = difference.a, difference.b
    if b not in twins.b.reached:
        return "trace-constant-baked" if a in twins.a.reached else "constant-fold-bug"
    if a not in twins.a.reached:
        return "graph-fusion-error"
    half_a, half_b = halves(twins, difference)
    if max(len(half_a.nodes), len(half_b.nodes)) > MOST_NODES:
        return "graph-fusion-error"
    if not half_b.nodes and half_a.consists_of(AFFINE) and _is_norm_of_parts(twins, b):
        return "norm-fusion-error"
    return next((code for code, holds in REGIONS if holds(half_a, half_b)), "graph-fusion-error")
