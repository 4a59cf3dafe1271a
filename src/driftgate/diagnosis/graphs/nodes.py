"""The search for the node that was meant otherwise: one by one, the likely ones first, then all of a kind alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench, Side
from driftgate.diagnosis.graphs.axes import vary_axes, vary_axis, vary_depth, vary_transpose
from driftgate.diagnosis.graphs.normalisation import EPSILONS, vary_norm
from driftgate.diagnosis.graphs.operands import vary_gemm, vary_matmul, vary_operands
from driftgate.diagnosis.graphs.pooling import vary_average_pool, vary_pool
from driftgate.diagnosis.graphs.regions import first_difference
from driftgate.diagnosis.graphs.resizing import COORDINATES, vary_grid_sample, vary_resize
from driftgate.diagnosis.graphs.softmax import vary_softmax
from driftgate.diagnosis.graphs.training import vary_batch_norm
from driftgate.diagnosis.graphs.variants import Variant, Vary, try_variant
from driftgate.diagnosis.surgery import label, with_attributes
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]

MOST_NODES = 48  # of one kind, that are changed one by one
VARIATIONS: Mapping[str, Vary] = {
    "AveragePool": vary_average_pool,
    "MaxPool": vary_pool,
    "LpPool": vary_pool,
    "Resize": vary_resize,
    "GridSample": vary_grid_sample,
    "Softmax": vary_softmax,
    "LogSoftmax": vary_softmax,
    "LayerNormalization": vary_norm,
    "InstanceNormalization": vary_norm,
    "GroupNormalization": vary_norm,
    "SimplifiedLayerNormalization": vary_norm,
    "BatchNormalization": vary_batch_norm,
    "Gemm": vary_gemm,
    "MatMul": vary_matmul,
    "Sub": vary_operands,
    "Div": vary_operands,
    "Transpose": vary_transpose,
    "Concat": vary_axis,
    "Gather": vary_axis,
    "ReduceMean": vary_axes,
    "ReduceSum": vary_axes,
    "ReduceMax": vary_axes,
    "DepthToSpace": vary_depth,
}


def suspects(bench: Bench, side: Side) -> tuple[int, ...]:
    """Nodes that may be at fault: those at the first tensor that differs and around it, or all."""
    model = side.whole_model
    places = range(len(model.graph.node))
    first = first_difference(bench)
    if first is None:
        return tuple(places)
    made = {name: place for place, node in enumerate(model.graph.node) for name in node.output}
    start = made.get(first)
    return (
        tuple(places)
        if start is None
        else tuple(sorted(places, key=lambda place: (place != start, abs(place - start))))
    )


def find_variant(bench: Bench) -> Iterator[Explanation]:
    """One attribute changed in the reference's model gives the candidate's outputs, or undone in the candidate's
    model the reference's."""
    best: tuple[Explanation, ...] = ()
    for side, wanted in ((bench.a, bench.outputs_b), (bench.b, bench.outputs_a)):
        if not side.runs or (side is bench.b and not (bench.replays_b or not bench.recorded_b)):
            continue
        if side is bench.a and not bench.same_feeds and bench.b.runs:
            continue
        tried: dict[str, int] = {}
        for place in suspects(bench, side):
            node = side.whole_model.graph.node[place]
            vary = VARIATIONS.get(node.op_type)
            tried[node.op_type] = tried.get(node.op_type, 0) + 1
            if vary is None or tried[node.op_type] > MOST_NODES:
                continue
            for variant in vary(side, place, node):
                if not bench.has_time:
                    yield from best
                    return
                found = try_variant(bench, side, variant, wanted)
                if found and found[0].confirmed:
                    yield from found
                    return
        for op in [op for op, count in tried.items() if count > 1 and op in ALL_AT_ONCE]:
            yield from _all_at_once(bench, side, op, wanted)
    yield from best


#: Attributes that an exporter sets alike on all nodes.
ALL_AT_ONCE: Mapping[str, tuple[tuple[str, str, tuple[object, ...]], ...]] = {
    "AveragePool": (
        ("pooling-count-include-pad", "count_include_pad", (0, 1)),
        ("pooling-ceil-mode", "ceil_mode", (0, 1)),
    ),
    "MaxPool": (("pooling-ceil-mode", "ceil_mode", (0, 1)),),
    "Resize": (("resize-coordinate-mode", "coordinate_transformation_mode", COORDINATES),),
    "Softmax": (("softmax-axis", "axis", (1, -1, 2, 3)),),
    "LayerNormalization": (("norm-fusion-error", "epsilon", EPSILONS),),
}


def _all_at_once(bench: Bench, side: Side, op: str, wanted: Mapping[str, Tensor]) -> Iterator[Explanation]:
    model = side.whole_model
    places = tuple(place for place, node in enumerate(model.graph.node) if node.op_type == op)
    names = tuple(label(model.graph.node[place]) for place in places)
    for code, name, values in ALL_AT_ONCE[op]:
        for value in values:
            variant = Variant(code, f"{name}={value} on all", with_attributes(model, places, **{name: value}), names)
            found = try_variant(bench, side, variant, wanted)
            if found and found[0].confirmed:
                yield from found
                return
