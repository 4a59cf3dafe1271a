"""Causes in a graph: an attribute, a constant, weights or a fused part that computes something else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench, Side, feed_sets
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.surgery import (
    added_constant,
    attribute,
    copied,
    forced,
    label,
    replaced,
    with_attributes,
    with_constants,
    with_input,
    with_inputs,
)
from driftgate.diagnosis.trials import Explanation, Fact, Rule, explained, fact, trial

Tensor = NDArray[Any]

MOST_NODES = 48  # of one kind, that are changed one by one
COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric")
NEAREST = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
EPSILONS = (1e-3, 1e-5, 1e-6, 1e-2, 1e-4, 1e-7, 1e-8, 1e-12)
WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


@dataclass(frozen=True, slots=True)
class Variant:
    """A model with one thing changed."""

    code: str
    transform: str
    model: onnx.ModelProto
    nodes: tuple[str, ...]
    facts: tuple[Fact, ...] = ()


Vary = Callable[[Side, int, onnx.NodeProto], Iterator[Variant]]


def _set(side: Side, code: str, transform: str, place: int, **values: object) -> Variant:
    model = _model(side)
    return Variant(code, transform, with_attributes(model, (place,), **values), (label(model.graph.node[place]),))


def _model(side: Side) -> onnx.ModelProto:
    return side.whole_model


def _average_pool(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    now = int(attribute(node, "count_include_pad", 0))
    yield _set(side, "pooling-count-include-pad", f"count_include_pad={1 - now}", place, count_include_pad=1 - now)
    yield from _pool(side, place, node)


def _pool(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    now = int(attribute(node, "ceil_mode", 0))
    yield _set(side, "pooling-ceil-mode", f"ceil_mode={1 - now}", place, ceil_mode=1 - now)


def _resize(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    mode = attribute(node, "mode", "nearest")
    coordinate = attribute(node, "coordinate_transformation_mode", "half_pixel")
    near = attribute(node, "nearest_mode", "round_prefer_floor")
    for other in COORDINATES:
        for rounding in NEAREST if mode == "nearest" else (near,):
            if (other, rounding) != (coordinate, near):
                yield _set(
                    side,
                    "resize-coordinate-mode",
                    f"{other} {rounding}" if mode == "nearest" else other,
                    place,
                    coordinate_transformation_mode=other,
                    nearest_mode=rounding,
                )
    for other in ("nearest", "linear", "cubic"):
        if other != mode:
            yield _set(side, "resize-coordinate-mode", f"mode={other}", place, mode=other)
    for number in (2, 3):
        sizes = side.value(node.input[number]) if len(node.input) > number else None
        if sizes is not None and sizes.size <= 5 and len(set(sizes.tolist())) > 1:
            for order in sorted(set(itertools.permutations(sizes.tolist()))):
                if order != tuple(sizes.tolist()):
                    model = with_input(_model(side), place, number, np.array(order, sizes.dtype))
                    yield Variant("graph-fusion-error", "axes of the resize", model, (label(node),))


def _softmax(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    for axis in (1, -1, 2, 3, 0):
        yield from _softmaxes(side, place, node, axis, whole=False)
        yield from _softmaxes(side, place, node, axis, whole=True)


def _softmaxes(side: Side, place: int, node: onnx.NodeProto, axis: int, *, whole: bool) -> Iterator[Variant]:
    """A softmax along one axis, or along one and all behind it, whatever the opset is."""
    model = copied(_model(side))
    name = f"driftgate.{place}.{axis}.{int(whole)}"
    shape, flat, bent = f"{name}.shape", f"{name}.flat", f"{name}.bent"
    if whole:
        nodes = [
            helper.make_node("Shape", [node.input[0]], [shape]),
            helper.make_node("Flatten", [node.input[0]], [flat], axis=axis),
            helper.make_node(node.op_type, [flat], [bent], axis=-1 if _opset(model) >= 13 else 1),
            helper.make_node("Reshape", [bent, shape], [node.output[0]]),
        ]
        model = replaced(model, place, nodes)
    elif _opset(model) >= 13 or axis == -1:
        model = with_attributes(model, (place,), axis=axis)
    else:
        nodes = _softmax_by_hand(model, node, axis, name)
        model = replaced(model, place, nodes)
    told = f"axis {axis}" + (" and all behind" if whole else "")
    yield Variant("softmax-axis", told, model, (label(node),), (("axis", float(axis), ""),))


def _softmax_by_hand(model: onnx.ModelProto, node: onnx.NodeProto, axis: int, name: str) -> list[onnx.NodeProto]:
    x = node.input[0]
    top, centred, raised, total = (f"{name}.{part}" for part in ("top", "centred", "raised", "total"))
    return [
        helper.make_node("ReduceMax", [x], [top], axes=[axis], keepdims=1),
        helper.make_node("Sub", [x, top], [centred]),
        helper.make_node("Exp", [centred], [raised]),
        helper.make_node("ReduceSum", [raised], [total], axes=[axis], keepdims=1),
        helper.make_node("Div", [raised, total], [node.output[0]]),
    ]


def _opset(model: onnx.ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def _norm(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    now = float(attribute(node, "epsilon", 1e-5))
    code = "norm-fusion-error"
    for epsilon in EPSILONS:
        if not math.isclose(epsilon, now, rel_tol=1e-3):
            found = _set(side, code, f"epsilon={epsilon:g}", place, epsilon=epsilon)
            yield Variant(
                code, found.transform, found.model, found.nodes, (("epsilon", epsilon, ""), ("its epsilon", now, ""))
            )
    if node.op_type == "LayerNormalization":
        for axis in (-1, -2, -3, 1):
            if axis != int(attribute(node, "axis", -1)):
                yield _set(side, code, f"axis={axis}", place, axis=axis)
    for number in (1, 2):
        held = side.value(node.input[number]) if len(node.input) > number else None
        if held is None:
            continue
        for name in side.constants.names() if side.constants is not None else ():
            other = side.value(name)
            if (
                other is not None
                and other.shape == held.shape
                and name != node.input[number]
                and other.dtype == held.dtype
            ):
                yield Variant(code, "another constant", with_input(_model(side), place, number, other), (label(node),))
        yield Variant(
            code,
            "gamma 1" if number == 1 else "beta 0",
            with_input(_model(side), place, number, np.full_like(held, 2 - number)),
            (label(node),),
        )
    if node.op_type == "InstanceNormalization":
        yield from _grouped(side, place, node)


def _grouped(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Instance normalisation as a normalisation over groups of channels; one group is a layer."""
    gamma = side.value(node.input[1])
    if gamma is None:
        return
    channels = gamma.size
    for groups in (g for g in range(1, channels) if channels % g == 0):
        model = copied(_model(side))
        name = f"driftgate.group.{place}.{groups}"
        ones, zeros = (added_constant(model, np.full(groups, v, np.float32)) for v in (1.0, 0.0))
        to = added_constant(model, np.array([0, groups, -1], np.int64))
        nodes = [
            helper.make_node("Shape", [node.input[0]], [f"{name}.shape"]),
            helper.make_node("Reshape", [node.input[0], to], [f"{name}.in"]),
            helper.make_node(
                "InstanceNormalization",
                [f"{name}.in", ones, zeros],
                [f"{name}.out"],
                epsilon=attribute(node, "epsilon", 1e-5),
            ),
            helper.make_node("Reshape", [f"{name}.out", f"{name}.shape"], [f"{name}.back"]),
        ]
        nodes += _scaled_by_channel(model, node, f"{name}.back", name)
        yield Variant(
            "norm-semantics",
            f"{groups} groups",
            replaced(model, place, nodes),
            (label(node),),
            (("groups", float(groups), ""),),
        )


def _scaled_by_channel(model: onnx.ModelProto, node: onnx.NodeProto, value: str, name: str) -> list[onnx.NodeProto]:
    around = added_constant(model, np.array([1, -1, 1, 1], np.int64))
    return [
        helper.make_node("Reshape", [node.input[1], around], [f"{name}.gamma"]),
        helper.make_node("Reshape", [node.input[2], around], [f"{name}.beta"]),
        helper.make_node("Mul", [value, f"{name}.gamma"], [f"{name}.scaled"]),
        helper.make_node("Add", [f"{name}.scaled", f"{name}.beta"], [node.output[0]]),
    ]


def _batch_norm(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Statistics of the batch instead of those that were learnt."""
    changed = _with_batch_statistics(_model(side), place)
    yield Variant("train-mode-export", "statistics of the batch", changed, (label(node),))


def _with_batch_statistics(whole: onnx.ModelProto, place: int) -> onnx.ModelProto:
    model = copied(whole)
    node = whole.graph.node[place]
    name = f"driftgate.batch.{place}"
    epsilon = added_constant(model, np.array(attribute(node, "epsilon", 1e-5), np.float32))
    x = node.input[0]
    mean, centred, square, variance, safe, root, normal = (
        f"{name}.{part}" for part in ("mean", "centred", "square", "variance", "safe", "root", "normal")
    )
    axes = _reduce_axes(model, [0, 2, 3])
    nodes = [
        _reduce(model, x, mean, axes),
        helper.make_node("Sub", [x, mean], [centred]),
        helper.make_node("Mul", [centred, centred], [square]),
        _reduce(model, square, variance, axes),
        helper.make_node("Add", [variance, epsilon], [safe]),
        helper.make_node("Sqrt", [safe], [root]),
        helper.make_node("Div", [centred, root], [normal]),
        *_scaled_by_channel(model, node, normal, name),
    ]
    return replaced(model, place, nodes)


def _reduce_axes(model: onnx.ModelProto, axes: list[int]) -> str | list[int]:
    return added_constant(model, np.array(axes, np.int64)) if _opset(model) >= 18 else axes


def _reduce(model: onnx.ModelProto, source: str, target: str, axes: str | list[int]) -> onnx.NodeProto:
    if isinstance(axes, str):
        return helper.make_node("ReduceMean", [source, axes], [target], keepdims=1)
    return helper.make_node("ReduceMean", [source], [target], axes=axes, keepdims=1)


def _gemm(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    for name in ("transA", "transB"):
        now = int(attribute(node, name, 0))
        yield _set(side, "graph-fusion-error", f"{name}={1 - now}", place, **{name: 1 - now})
    for name in ("alpha", "beta"):
        if not math.isclose(float(attribute(node, name, 1.0)), 1.0):
            yield _set(side, "graph-fusion-error", f"{name}=1", place, **{name: 1.0})


def _swapped(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    model = copied(_model(side))
    changed = model.graph.node[place]
    if len(changed.input) >= 2:
        changed.input[0], changed.input[1] = changed.input[1], changed.input[0]
        yield Variant("graph-fusion-error", "operands exchanged", model, (label(node),))


def _matmul(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    yield from _swapped(side, place, node)
    for number in (0, 1):
        value = side.value(node.input[number])
        if value is not None and value.ndim >= 2 and value.shape[-1] == value.shape[-2]:
            model = with_input(_model(side), place, number, np.ascontiguousarray(value.swapaxes(-1, -2)))
            yield Variant("graph-fusion-error", "operand transposed", model, (label(node),))
        elif value is None:
            for order in ([1, 0], [0, 2, 1], [0, 1, 3, 2]):
                model = copied(_model(side))
                name = f"driftgate.turned.{place}.{number}"
                changed = onnx.NodeProto()
                changed.CopyFrom(node)
                changed.input[number] = name
                turn = helper.make_node("Transpose", [node.input[number]], [name], perm=order)
                yield Variant(
                    "graph-fusion-error", "operand transposed", replaced(model, place, [turn, changed]), (label(node),)
                )


def _transpose(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    now = tuple(attribute(node, "perm", ()) or ())
    if 2 <= len(now) <= 4:
        for order in itertools.permutations(range(len(now))):
            if order != now:
                yield _set(side, "graph-fusion-error", f"perm={list(order)}", place, perm=list(order))


def _axis(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    now = attribute(node, "axis")
    for axis in (0, 1, 2, 3, -1):
        if axis != now:
            yield _set(side, "graph-fusion-error", f"axis={axis}", place, axis=axis)


def _axes(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    now = attribute(node, "axes")
    norm = _is_norm_part(_model(side), node)
    code = "norm-semantics" if norm else "graph-fusion-error"
    options: tuple[list[int], ...] = ([1], [-1], [2], [3], [2, 3], [1, 2, 3], [0, 2, 3], [1, 2], [0])
    held = side.value(node.input[1]) if len(node.input) > 1 else None
    for axes in options:
        if now is not None and list(now) != axes:
            yield _set(side, code, f"axes={axes}", place, axes=axes)
        elif held is not None and held.tolist() != axes:
            model = with_input(_model(side), place, 1, np.array(axes, np.int64))
            yield Variant(code, f"axes={axes}", model, (label(node),))


def _is_norm_part(model: onnx.ModelProto, node: onnx.NodeProto) -> bool:
    readers = [other.op_type for other in model.graph.node if node.output[0] in other.input]
    return "Sub" in readers or "Add" in readers


def _grid_sample(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    now = int(attribute(node, "align_corners", 0))
    yield _set(side, "resize-coordinate-mode", f"align_corners={1 - now}", place, align_corners=1 - now)


def _depth(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    now = attribute(node, "mode", "DCR")
    yield _set(side, "graph-fusion-error", "mode", place, mode="CRD" if now == "DCR" else "DCR")


VARIATIONS: Mapping[str, Vary] = {
    "AveragePool": _average_pool,
    "MaxPool": _pool,
    "LpPool": _pool,
    "Resize": _resize,
    "GridSample": _grid_sample,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "LayerNormalization": _norm,
    "InstanceNormalization": _norm,
    "GroupNormalization": _norm,
    "SimplifiedLayerNormalization": _norm,
    "BatchNormalization": _batch_norm,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Sub": _swapped,
    "Div": _swapped,
    "Transpose": _transpose,
    "Concat": _axis,
    "Gather": _axis,
    "ReduceMean": _axes,
    "ReduceSum": _axes,
    "ReduceMax": _axes,
    "DepthToSpace": _depth,
}


def _can_vary(bench: Bench) -> bool:
    return (
        (bench.a.runs or bench.b.runs) and bool(bench.outputs_a) and bool(bench.outputs_b) and bench.start > FLOAT_FLOOR
    )


def suspects(bench: Bench, side: Side) -> tuple[int, ...]:
    """Nodes that may be at fault: those at the first tensor that differs and around it, or all."""
    model = _model(side)
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


def first_difference(bench: Bench) -> str | None:
    """The first tensor of one name on both sides that differs, in the candidate's order."""
    a, b = bench.values_a, bench.values_b
    for name, _ in bench.order:
        if name in a and name in b and residual(a[name], b[name]) > max(FLOAT_FLOOR, bench.floor):
            return name
    return None


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
            node = _model(side).graph.node[place]
            vary = VARIATIONS.get(node.op_type)
            tried[node.op_type] = tried.get(node.op_type, 0) + 1
            if vary is None or tried[node.op_type] > MOST_NODES:
                continue
            for variant in vary(side, place, node):
                if not bench.has_time:
                    yield from best
                    return
                found = _test(bench, side, variant, wanted)
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
    model = _model(side)
    places = tuple(place for place, node in enumerate(model.graph.node) if node.op_type == op)
    names = tuple(label(model.graph.node[place]) for place in places)
    for code, name, values in ALL_AT_ONCE[op]:
        for value in values:
            variant = Variant(code, f"{name}={value} on all", with_attributes(model, places, **{name: value}), names)
            found = _test(bench, side, variant, wanted)
            if found and found[0].confirmed:
                yield from found
                return


def _test(bench: Bench, side: Side, variant: Variant, wanted: Mapping[str, Tensor]) -> tuple[Explanation, ...]:
    e = bench.evidence
    feeds = e.feeds_a if side is bench.a else (e.feeds_b or e.feeds_a)
    made = bench.run(side, feeds, variant.model)
    if made is None:
        return ()
    after = bench.distance(wanted, {name: made[name] for name in wanted if name in made})
    tried = trial(variant.code, variant.transform, bench.start, after, bench.floor, target=variant.nodes[0])
    return explained(tried, subjects=variant.nodes, facts=variant.facts) if tried.result.value == "confirmed" else ()


# constants and weights


def _two_models(bench: Bench) -> bool:
    return bench.a.model is not None and bench.b.runs and bool(bench.outputs_a) and bench.start > FLOAT_FLOOR


def changed_constants(bench: Bench) -> dict[str, tuple[Tensor, Tensor]]:
    """Constants of one name and shape that have other values: (reference's, candidate's)."""
    found = {}
    for name in bench.b.constants.names() if bench.b.constants is not None else ():
        a, b = bench.a.value(name), bench.b.value(name)
        if (
            a is None
            or b is None
            or a.shape != b.shape
            or a.dtype != b.dtype
            or np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        ):
            continue
        found[name] = (a, b)
    return found


def paired_weights(bench: Bench) -> tuple[tuple[int, int, Tensor, Tensor], ...]:
    """(node of the reference, node of the candidate, weights of both) of linear operators, by name of the weights
    or else in order among those of one operator and shape."""
    if bench.a.model is None or bench.b.model is None:
        return ()
    rows_a, rows_b = ([*_linear(side)] for side in (bench.a, bench.b))
    named = {name: (place, value) for place, name, _, value in rows_a}
    found = []
    for place, name, op, value in rows_b:
        partner = named.get(name)
        if partner is None or partner[1].shape != value.shape:
            same = [row for row in rows_a if row[2] == op and row[3].shape == value.shape]
            mine = [row for row in rows_b if row[2] == op and row[3].shape == value.shape]
            at = [row[0] for row in mine].index(place)
            partner = (same[at][0], same[at][3]) if len(same) == len(mine) else None
        if partner is not None:
            found.append((partner[0], place, partner[1], value))
    return tuple(found)


def _linear(side: Side) -> Iterator[tuple[int, str, str, Tensor]]:
    model = _model(side)
    maker = {name: node for node in model.graph.node for name in node.output}
    for place, node in enumerate(model.graph.node):
        if node.op_type in WEIGHTED and len(node.input) > 1:
            value, name = side.value(node.input[1]), node.input[1]
            made = maker.get(name)
            if value is None and made is not None and made.op_type == "DequantizeLinear":
                value, name = _dequantised(side, made), made.input[0]
            if value is not None and value.dtype.kind == "f" and value.ndim >= 2:
                yield place, name, node.op_type, value


def _dequantised(side: Side, node: onnx.NodeProto) -> Tensor | None:
    integers, scale = side.value(node.input[0]), side.value(node.input[1])
    if integers is None or scale is None:
        return None
    zero = side.value(node.input[2]) if len(node.input) > 2 else None
    around = [1] * integers.ndim
    if scale.size > 1:
        around[int(attribute(node, "axis", 1))] = -1
    offset = (
        np.zeros(around, np.float32)
        if zero is None
        else zero.astype(np.float32).reshape(around if zero.size > 1 else [1] * integers.ndim)
    )
    found: Tensor = ((integers.astype(np.float32) - offset) * scale.reshape(around)).astype(np.float32)
    return found


def find_other_constants(bench: Bench) -> Iterator[Explanation]:
    """The candidate with the reference's weights and constants."""
    if bench.fixed_point:
        return
    changed = changed_constants(bench)
    weights = [row for row in paired_weights(bench) if residual(row[2], row[3]) > FLOAT_FLOOR]
    if not changed and not weights:
        return
    model = with_constants(_model(bench.b), {name: a for name, (a, _) in changed.items()})
    model = with_inputs(model, [(place, 1, a) for _, place, a, _ in weights])
    made = bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, model)
    if made is None:
        return
    code = _constants_code(bench, changed, weights)
    worst = max((residual(a, b) for a, b in [*changed.values(), *((a, b) for _, _, a, b in weights)]), default=0.0)
    facts = (
        ("constants that differ", float(len(changed) or len(weights)), ""),
        ("largest difference", worst, "of the range"),
    )
    tried = trial(code, "constants of the reference", bench.start, bench.distance(bench.outputs_a, made), bench.floor)
    nodes = tuple(label(_model(bench.b).graph.node[place]) for _, place, _, _ in weights)
    yield from explained(tried, subjects=(*changed, *nodes)[:12], facts=facts)


def _constants_code(
    bench: Bench, changed: Mapping[str, tuple[Tensor, Tensor]], weights: Sequence[tuple[int, int, Tensor, Tensor]]
) -> str:
    model = _model(bench.b)
    learnt = {
        name
        for node in model.graph.node
        if node.op_type in (*WEIGHTED, "BatchNormalization", "PRelu", "LSTM", "GRU")
        for name in node.input[1:]
    }
    if weights or any(name in learnt for name in changed):
        return "weights-mismatch"
    norms = [n for n in model.graph.node if "Normalization" in n.op_type and set(n.input[1:]) & set(changed)]
    if norms:
        theirs = {node.op_type for node in _model(bench.a).graph.node}
        return "weights-mismatch" if norms[0].op_type in theirs else "norm-fusion-error"
    if all(a.dtype.kind in "iub" for a, _ in changed.values()):
        return "trace-constant-baked"
    return "weights-mismatch" if any(a.ndim >= 2 for a, _ in changed.values()) else "constant-fold-bug"


def find_computed_constants(bench: Bench) -> Iterator[Explanation]:
    """What the reference computes is a constant in the candidate: is it the value that is computed here?"""
    if bench.a.model is None or bench.b.constants is None or not bench.a.runs:
        return
    computed = {name: node for node in bench.a.model.graph.node for name in node.output}
    reached = _reached(bench.a)
    suffix = next((given.suffix for given in feed_sets(bench.a.model, bench.evidence.feeds_a)), "")
    values = {name.removesuffix(suffix): value for name, value in bench.values_a.items()}
    for name in bench.b.constants.names():
        held = bench.b.value(name)
        if held is None or held.size > 4096 or bench.a.value(name) is not None:
            continue
        like = (
            [name]
            if name in computed
            else [
                t for t in computed if t in values and _alike(values[t], held) and computed[t].op_type not in WEIGHTED
            ]
        )
        for tensor in like[:16]:
            yield from _with_computed(bench, name, tensor, dynamic=tensor in reached)


def _alike(value: Tensor, held: Tensor) -> bool:
    return value.size == held.size and value.size <= 16 and value.dtype == held.dtype


def _reached(side: Side) -> set[str]:
    """Tensors that an input reaches."""
    model = _model(side)
    held = {tensor.name for tensor in model.graph.initializer}
    found = {value.name for value in model.graph.input if value.name not in held}
    for node in model.graph.node:
        if any(name in found for name in node.input):
            found.update(node.output)
    return found


def _with_computed(bench: Bench, name: str, tensor: str, *, dynamic: bool) -> Iterator[Explanation]:
    """The value that the reference computes, run by run, given to the candidate."""
    e = bench.evidence
    sets = _sets(bench, e.feeds_a)
    made: dict[str, Tensor] = {}
    largest = 0.0
    held = bench.b.value(name)
    for suffix, feeds in sets:
        tapped = bench.run(bench.a, feeds, taps=(tensor,))
        if tapped is None or tensor not in tapped or held is None:
            return
        value = tapped[tensor]
        largest = max(
            largest,
            float(
                np.abs(
                    np.asarray(value, np.float64).reshape(-1)[:1] - np.asarray(held, np.float64).reshape(-1)[:1]
                ).max(initial=0.0)
            ),
        )
        found = bench.run(
            bench.b,
            feeds,
            with_constants(
                _model(bench.b),
                {
                    name: value.astype(held.dtype).reshape(held.shape)
                    if value.size == held.size
                    else value.astype(held.dtype)
                },
            ),
        )
        if found is None:
            return
        made.update({f"{output}{suffix}": result for output, result in found.items()})
    code = "trace-constant-baked" if dynamic else "constant-fold-bug"
    tried = trial(
        code, "value computed anew", bench.start, bench.distance(bench.outputs_a, made), bench.floor, target=name
    )
    if tried.result.value == "confirmed":
        yield from explained(
            tried,
            subjects=(name, tensor),
            facts=(("runs compared", float(len(sets)), ""), ("difference of the constant", largest, "")),
        )


def _sets(bench: Bench, feeds: Mapping[str, Tensor]) -> list[tuple[str, Mapping[str, Tensor]]]:
    return [(given.suffix, given.feeds) for given in feed_sets(_model(bench.a), feeds)]


def find_one_shape_only(bench: Bench) -> Iterator[Explanation]:
    """Of several feeds of other shapes, some agree and some do not."""
    good = [name for name, a, b in bench.pairs if residual(a, b) <= FLOAT_FLOOR]
    bad = [name for name, a, b in bench.pairs if residual(a, b) > FLOAT_FLOOR]
    model = bench.a.model or bench.b.model
    if not good or not bad or model is None or len(_feed_names(bench)) <= len(model.graph.output):
        return
    yield from fact(
        "trace-constant-baked",
        ("runs that agree", float(len(good)), ""),
        ("runs that differ", float(len(bad)), ""),
        subjects=bad,
        confirmed=False,
    )


def _feed_names(bench: Bench) -> list[str]:
    return list(bench.evidence.feeds_a)


# batch normalisation folded


def find_wrong_fold(bench: Bench) -> Iterator[Explanation]:
    """Batch normalisations folded anew into the candidate's convolutions."""
    if bench.b.model is None or bench.a.model is None or bench.fixed_point:
        return
    folds = [*_folds(bench.a)]
    if not folds:
        return
    changes: list[tuple[int, int, Tensor]] = []
    wrong: list[str] = []
    taken: set[int] = set()
    for output, op, weight, bias in folds:
        place = _folded_at(bench, output, op, weight, taken)
        if place is None:
            continue
        taken.add(place)
        node = bench.b.model.graph.node[place]
        held = bench.b.value(node.input[1])
        shift = bench.b.value(node.input[2]) if len(node.input) > 2 else None
        if held is None:
            continue
        if residual(weight, held) > FLOAT_FLOOR:
            changes.append((place, 1, weight))
            wrong.append(label(node))
        if shift is not None and residual(bias, shift) > FLOAT_FLOOR:
            changes.append((place, 2, bias))
            wrong.append(label(node))
    model = with_inputs(bench.b.model, changes)
    short = [place for place in taken if len(model.graph.node[place].input) < 3]
    for output, _, _, bias in folds:
        for place in short:
            if model.graph.node[place].output[0] == output:
                model.graph.node[place].input.append(added_constant(model, bias))
                wrong.append(label(model.graph.node[place]))
    if not wrong:
        return
    made = bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, model)
    if made is None:
        return
    tried = trial("bn-fold-error", "folded anew", bench.start, bench.distance(bench.outputs_a, made), bench.floor)
    yield from explained(
        tried,
        subjects=tuple(dict.fromkeys(wrong)),
        facts=(("convolutions folded wrongly", float(len(set(wrong))), ""),),
    )


def _folds(side: Side) -> Iterator[tuple[str, str, Tensor, Tensor]]:
    """(output, operator, weights, bias) of every convolution with its batch normalisation."""
    model = _model(side)
    maker = {name: node for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        if node.op_type != "BatchNormalization":
            continue
        conv = maker.get(node.input[0])
        if conv is None or conv.op_type not in ("Conv", "ConvTranspose", "Gemm"):
            continue
        gamma, beta, mean, variance = (side.value(name) for name in node.input[1:5])
        weight = side.value(conv.input[1])
        bias = side.value(conv.input[2]) if len(conv.input) > 2 else np.zeros(1, np.float32)
        if gamma is None or beta is None or mean is None or variance is None or weight is None or bias is None:
            continue
        factor = gamma.astype(np.float64) / np.sqrt(
            variance.astype(np.float64) + float(attribute(node, "epsilon", 1e-5))
        )
        axis = 0 if conv.op_type == "Conv" else 1
        if conv.op_type == "Gemm":
            axis = 0 if attribute(conv, "transB", 0) else 1
        around = [1] * weight.ndim
        around[axis] = -1
        if weight.shape[axis] != factor.size:
            continue
        folded = (weight * factor.reshape(around)).astype(np.float32)
        yield node.output[0], conv.op_type, folded, ((bias - mean) * factor + beta).astype(np.float32)


def _folded_at(bench: Bench, output: str, op: str, weight: Tensor, taken: set[int]) -> int | None:
    """The candidate's convolution that stands for it: by what it makes, else the nearest weights."""
    model = _model(bench.b)
    fits = [
        place
        for place, node in enumerate(model.graph.node)
        if node.op_type == op
        and place not in taken
        and (held := bench.b.value(node.input[1])) is not None
        and held.shape == weight.shape
    ]
    named = [place for place in fits if output in model.graph.node[place].output]
    if named:
        return named[0]

    def gap(place: int) -> float:
        held = bench.b.value(model.graph.node[place].input[1])
        return math.inf if held is None else float(np.abs(held - weight).mean())

    return min(fits, key=gap, default=None)


# a region that computes something else


def find_wrong_region(bench: Bench) -> Iterator[Explanation]:
    """The first tensor that differs given the reference's value: does the rest agree?"""
    a, b = bench.values_a, bench.values_b
    if bench.fixed_point or not bench.same_feeds:
        return
    makers = {name: node for node in _model(bench.b).graph.node for name in node.output}
    for name, op in bench.order:
        if name not in a or name not in b or name not in makers:
            continue
        before = residual(a[name], b[name])
        if before <= FLOAT_FLOOR:
            continue
        outputs = {output.name for output in _model(bench.b).graph.output}
        made = bench.run(bench.b, bench.evidence.feeds_a, forced(_model(bench.b), {name: a[name]}))
        if made is None:
            return
        code = _region_code(bench, makers[name], name)
        after = bench.distance(bench.outputs_a, {key: made[key] for key in bench.outputs_a if key in made})
        tried = trial(code, "value of the reference", bench.start, after, bench.floor, target=name)
        facts = (("difference at the node", before, "of the range"),)
        found = explained(tried, subjects=(label(makers[name]), op), facts=facts)
        # At an output this only repeats that the output differs: what is established is where, not why.
        for one in found:
            yield Explanation(
                one.code,
                one.confirmed and (name not in outputs or _differs(bench, name)),
                one.evidence,
                one.share,
                one.subjects,
                one.trials,
            )
        return


def _differs(bench: Bench, name: str) -> bool:
    """Whether the two models make a tensor by other operators."""
    ops = [
        next((node.op_type for node in _model(side).graph.node if name in node.output), "")
        for side in (bench.a, bench.b)
    ]
    return ops[0] != ops[1]


def _region_code(bench: Bench, node: onnx.NodeProto, name: str) -> str:
    theirs = next((other for other in _model(bench.a).graph.node if name in other.output), None)
    if "Normalization" in node.op_type:
        return "norm-fusion-error" if theirs is None or theirs.op_type != node.op_type else "norm-semantics"
    if theirs is not None and theirs.op_type == "BatchNormalization" and node.op_type in WEIGHTED:
        return "bn-fold-error"
    return "graph-fusion-error"


# batches


def find_batch(bench: Bench) -> Iterator[Explanation]:
    """Samples one by one give what the batch does not."""
    e = bench.evidence
    feeds = e.feeds_b or e.feeds_a
    counts = {value.shape[0] for value in feeds.values() if value.ndim}
    if len(counts) != 1 or not bench.b.runs or not bench.outputs_a:
        return
    count = counts.pop()
    if not 1 < count <= 64:
        return
    rows = []
    for sample in range(count):
        made = bench.run(bench.b, {name: value[sample : sample + 1] for name, value in feeds.items()})
        if made is None:
            return
        rows.append(made)
    stacked = {
        name: np.concatenate([row[name] for row in rows]) for name in rows[0] if all(row[name].ndim for row in rows)
    }
    whole = bench.run(bench.b, feeds)
    before = bench.distance(bench.outputs_a, whole)
    after = bench.distance(bench.outputs_a, {n: stacked[n] for n in bench.outputs_a if n in stacked})
    tried = trial("batch-shape-mismatch", "one sample at a time", before, after, bench.floor)
    if tried.result.value == "confirmed" and before > bench.floor:
        yield from explained(tried, facts=(("samples", float(count), ""),))


def find_batch_shape(bench: Bench) -> Iterator[Explanation]:
    """The candidate gives fewer samples than it was fed, or its model has another constant batch."""
    model = bench.b.model
    batch = max(
        (value.shape[0] for value in (bench.evidence.feeds_b or bench.evidence.feeds_a).values() if value.ndim),
        default=0,
    )
    if model is None or batch < 2 or bench.rerun_b is not None:
        return
    held = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name not in held and dims and dims[0].HasField("dim_value") and dims[0].dim_value not in (0, batch):
            yield from fact(
                "batch-shape-mismatch",
                ("batch of the model", float(dims[0].dim_value), ""),
                ("batch that is fed", float(batch), ""),
                subjects=(value.name,),
            )
            return
    for node in model.graph.node:
        to = bench.b.value(node.input[1]) if node.op_type == "Reshape" and len(node.input) > 1 else None
        if to is not None and to.size and int(to[0]) not in (0, -1, batch):
            yield from fact(
                "batch-shape-mismatch",
                ("batch in a reshape", float(to[0]), ""),
                ("batch that is fed", float(batch), ""),
                subjects=(label(node),),
            )
            return


# several causes of one kind, dropout


def find_training(bench: Bench) -> Iterator[Explanation]:
    """All batch normalisations with statistics of the batch; dropout that is active."""
    for side, wanted in ((bench.a, bench.outputs_b), (bench.b, bench.outputs_a)):
        if not side.runs:
            continue
        model = _model(side)
        places = [place for place, node in enumerate(model.graph.node) if node.op_type == "BatchNormalization"]
        if len(places) > 1:
            changed = model
            for place in reversed(places):
                changed = _with_batch_statistics(changed, place)
            names = tuple(label(model.graph.node[place]) for place in places)
            yield from _test(
                bench, side, Variant("train-mode-export", "statistics of the batch", changed, names), wanted
            )
    active = [
        label(node)
        for side in (bench.a, bench.b)
        if side.model is not None
        for node in side.model.graph.node
        if node.op_type == "Dropout" and _is_active(side, node)
    ]
    if active:
        yield from fact("train-mode-export", ("active dropouts", float(len(active)), ""), subjects=active)


def _is_active(side: Side, node: onnx.NodeProto) -> bool:
    mode = side.value(node.input[2]) if len(node.input) > 2 else None
    return mode is not None and bool(mode.reshape(-1)[0])


RULES = (
    Rule(("trace-constant-baked", "constant-fold-bug"), 2, _two_models, find_computed_constants),
    Rule(("weights-mismatch", "constant-fold-bug", "trace-constant-baked"), 2, _two_models, find_other_constants),
    Rule(("bn-fold-error",), 2, _two_models, find_wrong_fold),
    Rule(("batch-shape-mismatch",), 2, lambda bench: bench.b.runs, find_batch),
    Rule(("batch-shape-mismatch",), 1, lambda bench: bench.b.model is not None, find_batch_shape),
    Rule(("train-mode-export",), 2, _can_vary, find_training),
    Rule(
        (
            "pooling-count-include-pad",
            "pooling-ceil-mode",
            "resize-coordinate-mode",
            "softmax-axis",
            "norm-semantics",
            "norm-fusion-error",
            "train-mode-export",
            "graph-fusion-error",
        ),
        3,
        _can_vary,
        find_variant,
    ),
    Rule(("trace-constant-baked",), 3, lambda bench: bool(bench.pairs), find_one_shape_only),
    Rule(("graph-fusion-error", "norm-fusion-error", "bn-fold-error"), 3, _two_models, find_wrong_region),
)
