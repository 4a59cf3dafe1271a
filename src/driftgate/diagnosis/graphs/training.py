"""A model exported as if it were still trained: statistics of the batch, dropout that is active."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper

from driftgate.diagnosis.bench import Bench, Side
from driftgate.diagnosis.graphs.normalisation import scaled_by_channel
from driftgate.diagnosis.graphs.variants import Variant, try_variant
from driftgate.diagnosis.surgery import added_constant, attribute, copied, label, opset, replaced
from driftgate.diagnosis.trials import fact
from driftgate.domain.investigations import Explanation


def vary_batch_norm(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Statistics of the batch instead of those that were learnt."""
    changed = with_batch_statistics(side.whole_model, place)
    yield Variant("train-mode-export", "statistics of the batch", changed, (label(node),))


def with_batch_statistics(whole: onnx.ModelProto, place: int) -> onnx.ModelProto:
    """A model of which one batch normalisation of (samples, channels, …) takes the statistics of the batch."""
    model = copied(whole)
    node = whole.graph.node[place]
    name = f"driftgate.batch.{place}"
    epsilon = added_constant(model, np.array(attribute(node, "epsilon", 1e-5), np.float32))
    rows = added_constant(model, np.array([0, 0, -1], np.int64))
    axes = added_constant(model, np.array([0, 2], np.int64)) if opset(model) >= 18 else [0, 2]
    shape, flat, mean, centred, square, variance, safe, root, normal, back = (
        f"{name}.{part}"
        for part in ("shape", "flat", "mean", "centred", "square", "variance", "safe", "root", "normal", "back")
    )
    nodes = [
        helper.make_node("Shape", [node.input[0]], [shape]),
        helper.make_node("Reshape", [node.input[0], rows], [flat]),
        _reduce(flat, mean, axes),
        helper.make_node("Sub", [flat, mean], [centred]),
        helper.make_node("Mul", [centred, centred], [square]),
        _reduce(square, variance, axes),
        helper.make_node("Add", [variance, epsilon], [safe]),
        helper.make_node("Sqrt", [safe], [root]),
        helper.make_node("Div", [centred, root], [normal]),
        helper.make_node("Reshape", [normal, shape], [back]),
        *scaled_by_channel(node, back, name),
    ]
    return replaced(model, place, nodes)


def _reduce(source: str, target: str, axes: str | list[int]) -> onnx.NodeProto:
    if isinstance(axes, str):
        return helper.make_node("ReduceMean", [source, axes], [target], keepdims=1)
    return helper.make_node("ReduceMean", [source], [target], axes=axes, keepdims=1)


def find_training(bench: Bench) -> Iterator[Explanation]:
    """All batch normalisations with statistics of the batch; dropout that is active."""
    for side, wanted in ((bench.a, bench.outputs_b), (bench.b, bench.outputs_a)):
        if not side.runs:
            continue
        model = side.whole_model
        places = [place for place, node in enumerate(model.graph.node) if node.op_type == "BatchNormalization"]
        if len(places) > 1:
            changed = model
            for place in reversed(places):
                changed = with_batch_statistics(changed, place)
            names = tuple(label(model.graph.node[place]) for place in places)
            yield from try_variant(
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
