"""The search for the node that was meant otherwise: one by one, the likely ones first, then all of a kind alike."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence

from driftgate.diagnosis.bench import Bench, Side
from driftgate.diagnosis.graphs.axes import vary_axes, vary_axis, vary_depth, vary_transpose
from driftgate.diagnosis.graphs.differences import Difference
from driftgate.diagnosis.graphs.kinds import halves
from driftgate.diagnosis.graphs.normalisation import EPSILONS, vary_norm
from driftgate.diagnosis.graphs.operands import vary_gemm, vary_matmul, vary_operands
from driftgate.diagnosis.graphs.pooling import vary_average_pool, vary_pool
from driftgate.diagnosis.graphs.regions import first_difference
from driftgate.diagnosis.graphs.resizing import COORDINATES, vary_grid_sample, vary_resize
from driftgate.diagnosis.graphs.rewrites import read_parting
from driftgate.diagnosis.graphs.softmax import vary_softmax
from driftgate.diagnosis.graphs.training import vary_batch_norm
from driftgate.diagnosis.graphs.twins import Twins, output_names
from driftgate.diagnosis.graphs.variants import Variant, Vary, try_variant
from driftgate.diagnosis.surgery import label, with_attributes
from driftgate.domain.investigations import Explanation

MOST_NODES = 48  # of one kind, that are changed one by one
MOST_RUNS = 100
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


def suspects(bench: Bench, side: Side) -> tuple[tuple[int, ...], bool]:
    """Nodes that may be at fault, and whether the first are the likeliest: those at the first tensor that differs and
    around it; or all, where that is not known."""
    model = side.whole_model
    places = range(len(model.graph.node))
    first = first_difference(bench)
    made = {name: place for place, node in enumerate(model.graph.node) for name in node.output}
    start = None if first is None or first in output_names(model) else made.get(first)
    if start is None:
        return tuple(places), False
    return tuple(sorted(places, key=lambda place: (place != start, abs(place - start)))), True


def find_variant(bench: Bench) -> Iterator[Explanation]:
    """One attribute changed in the reference's model gives the candidate's outputs, or undone in the candidate's
    model the reference's. Where both models run and part somewhere, only nodes there are changed."""
    told = read_parting(bench)
    if told is not None and not told[1]:
        return
    end = bench.costs.runs + MOST_RUNS
    for side, wanted in ((bench.a, bench.outputs_b), (bench.b, bench.outputs_a)):
        if not side.runs or (side is bench.b and not (bench.replays_b or not bench.recorded_b)):
            continue
        if side is bench.a and not bench.same_feeds and bench.b.runs:
            continue
        places, is_sorted = suspects(bench, side) if told is None else (_parted(told, side), True)
        for variant in _variants(side, places, is_sorted=is_sorted):
            if not bench.has_time or bench.costs.runs >= end:
                return
            found = try_variant(bench, side, variant, wanted)
            if found and found[0].confirmed:
                yield from found
                return


def _parted(told: tuple[Twins, tuple[Difference, ...]], side: Side) -> tuple[int, ...]:
    twins, differences = told
    both = [half for one in differences for half in halves(twins, one) if half.twin.side is side]
    names = {name for half in both for node in half.nodes for name in node.output}
    return tuple(place for place, node in enumerate(side.whole_model.graph.node) if names & set(node.output))


def _variants(side: Side, places: Sequence[int], *, is_sorted: bool) -> Iterator[Variant]:
    """All of a kind alike, because exporters do so; then node by node, of every kind as many as are looked at. Where
    no node is likelier than another, the likeliest kinds first and one variant of each node in turn."""
    nodes = side.whole_model.graph.node
    counts = Counter(nodes[place].op_type for place in places)
    for op in [op for op in ALL_AT_ONCE if counts[op] > 1]:
        yield from _all_at_once(side, op)
    kinds = {op: number for number, op in enumerate(VARIATIONS)}
    found = [place for place in places if nodes[place].op_type in kinds]
    tried: Counter[str] = Counter()
    waiting: deque[Iterator[Variant]] = deque()
    for place in found if is_sorted else sorted(found, key=lambda one: kinds[nodes[one].op_type]):
        op = nodes[place].op_type
        tried[op] += 1
        if tried[op] <= MOST_NODES:
            waiting.append(VARIATIONS[op](side, place, nodes[place]))
    while waiting:
        variants = waiting.popleft()
        variant = next(variants, None)
        if variant is not None:
            yield variant
            (waiting.appendleft if is_sorted else waiting.append)(variants)


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


def _all_at_once(side: Side, op: str) -> Iterator[Variant]:
    model = side.whole_model
    places = tuple(place for place, node in enumerate(model.graph.node) if node.op_type == op)
    names = tuple(label(model.graph.node[place]) for place in places)
    for code, name, values in ALL_AT_ONCE[op]:
        for value in values:
            yield Variant(code, f"{name}={value} on all", with_attributes(model, places, **{name: value}), names)
