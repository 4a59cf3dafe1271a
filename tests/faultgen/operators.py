"""Faults of one operator at export: its attribute, its axis, its semantics differ between the two graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from faultgen.graph import Graph
from faultgen.networks import IMAGE_TRUNKS, TRUNKS, Hook, Plan, build, draw_feeds, draw_plan
from faultgen.planting import Planter, Random, chance, chosen, need
from faultgen.sides import two_models

#: Puts one operator behind the trunk; the last argument says how it is written.
Form = Callable[[Graph, str, str], str]


def _written(random: Random, folder: Path, plan: Plan, form: Form, ways: tuple[str, str]) -> None:
    """The same network twice, with one operator written in two ways."""
    models = tuple(build(plan, middle=_as(form, way)) for way in ways)
    two_models(random, folder, (models[0], models[1]), draw_feeds(random, plan))


def _as(form: Form, way: str) -> Hook:
    return lambda g, x: form(g, x, way)


def _two(random: Random, ways: tuple[str, ...]) -> tuple[str, str]:
    first, second = random.choice(len(ways), 2, replace=False)
    return ways[first], ways[second]


def _resize_mode(random: Random, folder: Path) -> None:
    plan = replace(draw_plan(random, IMAGE_TRUNKS), head=chosen(random, ("map", "detect")))
    factor = int(chosen(random, (2, 2, 3)))
    kind = "nearest" if chance(random, 0.2) else "linear"
    ways = ("half_pixel", "asymmetric", "align_corners")

    def form(g: Graph, x: str, way: str) -> str:
        channels, height, width = g.shape[x]
        scales = g.constant([1, 1, factor, factor])
        more: dict[str, Any] = {"nearest_mode": "floor"} if kind == "nearest" else {}
        shape = (channels, factor * height, factor * width)
        y = g.op("Resize", [x, "", scales], shape, mode=kind, coordinate_transformation_mode=way, **more)
        return g.act(g.conv(y, channels), "Relu")

    _written(random, folder, plan, form, _two(random, ways))


def _count_pad(random: Random, folder: Path) -> None:
    plan = draw_plan(random, IMAGE_TRUNKS)
    kernel = int(chosen(random, (3, 5)))

    def form(g: Graph, x: str, way: str) -> str:
        pads = [kernel // 2] * 4
        shared: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [1, 1], "pads": pads}
        y = g.op("AveragePool", [x], **shared, count_include_pad=int(way))
        return g.act(g.conv(y, g.shape[x][0], 1), "Relu")

    _written(random, folder, plan, form, _two(random, ("0", "1")))


def _ceil_mode(random: Random, folder: Path) -> None:
    """One row and column more or less; a classifier's output keeps its shape, a map's does not."""
    plan = draw_plan(random, IMAGE_TRUNKS)
    kind = chosen(random, ("MaxPool", "AveragePool"))
    kernel = int(chosen(random, (2, 3)))

    def form(g: Graph, x: str, way: str) -> str:
        channels, height, width = g.shape[x]
        ceil = int(way)
        sizes = [(-((kernel - side) // 2) if ceil else (side - kernel) // 2) + 1 for side in (height, width)]
        need(any((side - kernel) % 2 for side in (height, width)) and min(height, width) >= kernel)
        y = g.op(kind, [x], (channels, *sizes), kernel_shape=[kernel] * 2, strides=[2, 2], ceil_mode=ceil)
        return g.act(g.conv(y, channels, 1), "Relu")

    _written(random, folder, plan, form, ("1", "0") if chance(random, 0.8) else ("0", "1"))


def _softmax_axis(random: Random, folder: Path) -> None:
    """Over channels, over the last axis, or over everything behind the samples as opset 11 has it."""
    plan = draw_plan(random, (*IMAGE_TRUNKS, "transformer"))
    plan = replace(plan, head=chosen(random, ("map", "detect")))
    axes = _two(random, ("1", "-1"))
    to_old = chance(random, 0.3)

    def after(g: Graph, y: str, axis: str) -> str:
        if axis == "old":
            flat = g.reshape(y, (int(np.prod(g.shape[y])),))
            return g.reshape(g.op("Softmax", [flat], axis=-1), g.shape[y])
        return g.op("Softmax", [y], axis=int(axis))

    ways = (axes[0], "old") if to_old else axes
    models = tuple(build(plan, after=_as(after, way)) for way in ways)
    two_models(random, folder, (models[0], models[1]), draw_feeds(random, plan))


def _grouped(g: Graph, x: str, groups: int) -> str:
    """Normalised over each group of channels as exporters write it, with gain and shift a channel."""
    channels, height, width = g.shape[x]
    gain, shift = g.random.uniform(0.6, 1.4, (channels, 1, 1)), g.random.normal(0, 0.3, (channels, 1, 1))
    y = g.reshape(x, (groups, channels // groups * height * width))
    y = g.op("InstanceNormalization", [y, g.constant(np.ones(groups)), g.constant(np.zeros(groups))], epsilon=1e-5)
    y = g.reshape(y, (channels, height, width))
    return g.op("Add", [g.op("Mul", [y, g.constant(gain)]), g.constant(shift)])


def _group_count(random: Random, folder: Path) -> None:
    """Group norm that runs as layer norm or instance norm, or the other way."""
    plan = replace(draw_plan(random, IMAGE_TRUNKS), head=chosen(random, ("map", "detect")))
    ways = _two(random, ("1", "4", str(plan.wide)))

    def form(g: Graph, x: str, way: str) -> str:
        return g.act(_grouped(g, x, int(way)), "Relu")

    _written(random, folder, plan, form, ways)


def _norm_axis(random: Random, folder: Path) -> None:
    """Layer norm over the tokens where the width is meant; both axes have one size, so nothing fails."""
    plan = draw_plan(random, ("transformer",), opset=17)
    plan = replace(plan, height=plan.wide)

    def form(g: Graph, x: str, way: str) -> str:
        gain, shift = g.constant(g.random.uniform(0.6, 1.4, plan.wide)), g.constant(g.random.normal(0, 0.2, plan.wide))
        if way == "width":
            return g.op("LayerNormalization", [x, gain, shift], axis=-1, epsilon=1e-5)
        y = g.op("LayerNormalization", [g.swap(x, 1, 0), gain, shift], axis=-1, epsilon=1e-5)
        return g.swap(y, 1, 0)

    _written(random, folder, plan, form, _two(random, ("width", "tokens")))


def _other_weights(random: Random, folder: Path) -> None:
    """Another checkpoint: every weight moved a little, or only a part of the layers loaded."""
    plan = draw_plan(random, TRUNKS)
    model = build(plan)
    is_partial = chance(random, 0.4)
    amount = float(random.uniform(0.05, 0.3))
    other = onnx.ModelProto()
    other.CopyFrom(model)
    trained = [t for t in other.graph.initializer if t.data_type == onnx.TensorProto.FLOAT and int(np.prod(t.dims)) > 4]
    first = int(random.integers(len(trained))) if is_partial else 0
    for tensor in trained[first:]:
        array = onnx.numpy_helper.to_array(tensor)
        noise = random.normal(0, float(array.std()) + 1e-3, array.shape)
        moved = noise if is_partial and array.ndim > 1 else array + amount * noise
        if array.min() >= 0:
            moved = np.abs(moved) + 1e-3
        tensor.CopyFrom(onnx.numpy_helper.from_array(moved.astype(np.float32), tensor.name))
    two_models(random, folder, (model, other), draw_feeds(random, plan))


PLANTERS = (
    Planter("resize-coordinate-mode", "graph", _resize_mode),
    Planter("pooling-count-include-pad", "graph", _count_pad),
    Planter("pooling-ceil-mode", "graph", _ceil_mode),
    Planter("softmax-axis", "graph", _softmax_axis),
    Planter("norm-semantics", "graph", _group_count, ("norm-fusion-error",), "groups"),
    Planter("norm-semantics", "graph", _norm_axis, ("norm-fusion-error", "graph-fusion-error"), "axis"),
    Planter("weights-mismatch", "graph", _other_weights),
)
