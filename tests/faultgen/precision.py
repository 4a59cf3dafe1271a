"""Faults of precision: ranges that do not fit one scale, small signals, overflow, single nodes that need more bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from faultgen.calibrations import LOSS, open_plan, quantised_link
from faultgen.graph import Graph
from faultgen.networks import IMAGE_TRUNKS, Plan, build, draw_feeds
from faultgen.planting import Planter, Random, all_live, chance, chosen, floats, gap, need, save
from faultgen.quantiser import (
    copied,
    params,
    points,
    quantised,
    ranges,
    step_of,
    with_pairs,
    with_weights,
)
from faultgen.running import outputs_of, run


def _mixed_concat(random: Random, folder: Path) -> None:
    """Boxes in pixels and scores in one tensor with one scale."""
    plan = open_plan(random, IMAGE_TRUNKS, outputs=1, head="map")
    classes, size = int(random.integers(1, 6)), float(chosen(random, (320, 416, 640, 1280)))
    is_first = chance(random, 0.7)

    def after(g: Graph, y: str) -> str:
        box = g.op("Mul", [g.op("Sigmoid", [g.conv(y, 4, 1)]), g.constant(size)])
        score = g.op("Sigmoid", [g.conv(y, classes, 1)])
        parts = [box, score] if is_first else [score, box]
        return g.op("Concat", parts, (4 + classes, *g.shape[y][1:]), axis=1)

    model, calib, name = build(plan, after=after), draw_feeds(random, plan, 8), plan.output_names[0]
    everything = chance(random, 0.4)
    inner = [tensor for tensor in points(model) if not _feeds_concat(model, tensor)]
    thresholds = ranges(model, calib, inner if everything else [name])
    other = with_pairs(model, thresholds)
    feeds = draw_feeds(random, plan)
    a, b = run(model, feeds)[name], run(other, feeds)[name]
    scores = slice(4, None) if is_first else slice(0, classes)
    need(gap({name: a[:, scores]}, {name: b[:, scores]}) > 0.3 and gap({name: a}, {name: b}) < 0.05)
    quantised_link(
        random, folder, (model, other), feeds, thresholds, calib=calib if chance(random, 0.5) else None, least=0.0
    )


def _feeds_concat(model: onnx.ModelProto, tensor: str) -> bool:
    return any(node.op_type == "Concat" and tensor in node.input for node in model.graph.node)


def _unequal_weights(random: Random, folder: Path) -> None:
    """Depthwise weights whose channels differ a hundredfold, evened out by the batch norm behind; one scale for all."""
    plan = open_plan(random, IMAGE_TRUNKS)
    spread = float(random.uniform(1.3, 2.2))
    held: list[str] = []

    def middle(g: Graph, x: str) -> str:
        count = g.shape[x][0]
        size = 10 ** np.linspace(-spread, 0, count)
        g.random.shuffle(size)
        weight = g.random.normal(0, 0.4, (count, 1, 3, 3)) * size.reshape(-1, 1, 1, 1)
        held.append(g.constant(weight))
        y = g.op("Conv", [x, held[-1]], kernel_shape=[3, 3], pads=[1] * 4, group=count)
        norm = (1 / size, g.random.normal(0, 0.2, count), np.zeros(count), np.ones(count))
        return g.act(g.op("BatchNormalization", [y, *(g.constant(v) for v in norm)], epsilon=1e-5), "Relu")

    model = build(plan, middle=middle)
    form = chosen(random, ("fake", "integer"))
    names = [t.name for t in model.graph.initializer if t.name != held[-1]]
    other = with_weights(model, form, per_channel=False, skip=() if chance(random, 0.3) else names)[0]
    thresholds: dict[str, float] = {}
    if chance(random, 0.4):
        thresholds = ranges(model, draw_feeds(random, plan, 8), points(model))
        other = with_pairs(other, thresholds)
    quantised_link(random, folder, (model, other), draw_feeds(random, plan), thresholds, least=LOSS)


def _rounded_away(random: Random, folder: Path) -> None:
    """What the heads read is smaller than half a step: everything behind is constant."""
    plan = open_plan(random)
    model, calib = build(plan), draw_feeds(random, plan, 8)
    _, thresholds = quantised(model, calib, outputs=False)
    name = chosen(random, [name for name in thresholds if name not in model.graph.input][-2:])
    wrong = {**thresholds, name: thresholds[name] * float(random.uniform(300, 3000))}
    other, feeds = with_pairs(model, wrong), draw_feeds(random, plan)
    need(any(float(np.ptp(array, axis=0).max()) == 0 and len(array) > 1 for array in run(other, feeds).values()))
    need(
        any(
            array.shape == array[:1].shape or np.array_equal(array, array[:1].repeat(len(array), 0))
            for array in run(other, feeds).values()
        )
    )
    quantised_link(random, folder, (model, other), feeds, wrong if chance(random, 0.5) else None, least=LOSS)


def _dead_branch(random: Random, folder: Path) -> None:
    """One head answers the same whatever comes in; the candidate is a board, its file cannot be run here."""
    plan = open_plan(random, samples=int(random.integers(2, 5)))
    model, feeds = build(plan), draw_feeds(random, plan)
    a = run(model, feeds)
    need(all(float(np.ptp(array, axis=0).max()) > 1e-3 for array in a.values()))
    dead = chosen(random, list(a))
    noise = {name: floats(array + random.normal(0, 0.004 * array.std(), array.shape)) for name, array in a.items()}
    level = a[dead].mean((0, *range(2, a[dead].ndim)), keepdims=True) * 0 + (
        0 if chance(random, 0.5) else float(a[dead].mean())
    )
    b = {**noise, dead: floats(np.broadcast_to(level, a[dead].shape))}
    need(all_live(a))
    save(folder, tensors={"inputs": feeds, "outputs_a": a, "outputs_b": b}, models={"model_a": model})


def _small_signal(random: Random, folder: Path) -> None:
    """Key points: a large resting place plus a movement smaller than one step, over the frames of a film."""
    plan = open_plan(random, outputs=1, head="classify", samples=int(random.integers(10, 31)))
    size, move = float(random.uniform(60, 300)), float(random.uniform(0.05, 0.2))

    def after(g: Graph, y: str) -> str:
        base = g.random.uniform(0.3, 1.0, g.shape[y]) * size
        y = g.op("Mul", [g.op("Tanh", [y]), g.constant(move * size / 127 * 4)])
        return g.op("Add", [y, g.constant(base)])

    model, name = build(plan, after=after), plan.output_names[0]
    first = draw_feeds(random, plan, 1)[plan.input_name]
    steps = np.cumsum(random.normal(0, 0.04, (plan.samples, *plan.input_shape)), axis=0)
    feeds = {plan.input_name: floats(first + steps)}
    thresholds = ranges(model, feeds, [name])
    other = with_pairs(model, thresholds)
    a, b = run(model, feeds)[name], run(other, feeds)[name]
    moving = float(np.linalg.norm(a - a.mean(0)))
    need(float(np.abs(a - a.mean(0)).max()) < step_of(thresholds[name]) and np.linalg.norm(a - b) > 0.7 * moving)
    quantised_link(random, folder, (model, other), feeds, thresholds, least=0.0)


def with_halves(model: onnx.ModelProto) -> onnx.ModelProto:
    """Every result of floats rounded to half precision, as a float16 build has it."""
    made = copied(model)
    outputs = set(outputs_of(model))
    nodes: list[onnx.NodeProto] = []
    for node in made.graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        name = copy.output[0]
        if name in outputs:
            nodes.append(copy)
            continue
        copy.output[0] = f"{name}_full"
        nodes.append(copy)
        nodes.append(
            helper.make_node("Cast", [f"{name}_full"], [f"{name}_half"], name=f"{name}_to_half", to=TensorProto.FLOAT16)
        )
        nodes.append(helper.make_node("Cast", [f"{name}_half"], [name], name=f"{name}_to_full", to=TensorProto.FLOAT))
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def _half_overflow(random: Random, folder: Path) -> None:
    """Squares of a layer norm, or sums of a convolution, pass 65504."""
    is_norm = chance(random, 0.6)
    plan = open_plan(random, ("transformer",) if is_norm else IMAGE_TRUNKS, opset=13)
    size = float(random.uniform(400, 1500)) if is_norm else float(random.uniform(2e4, 2e5))

    def middle(g: Graph, x: str) -> str:
        x = g.op("Mul", [x, g.constant(size)])
        if not is_norm:
            return g.op("Mul", [g.conv(x, g.shape[x][0]), g.constant(1 / size)])
        centred = g.op("Sub", [x, g.mean(x, -1, keep=True)])
        variance = g.mean(g.op("Mul", [centred, centred]), -1, keep=True)
        return g.op("Div", [centred, g.op("Sqrt", [g.op("Add", [variance, g.constant(1e-5)])])])

    model = build(plan, middle=middle)
    quantised_link(random, folder, (model, with_halves(model)), draw_feeds(random, plan), None, layers=0.7)


def _deep(random: Random, folder: Path) -> None:
    """Many residual layers, each with weights of few bits; the three worst carry less than half of the loss."""
    plan = open_plan(random, ("residual",), head="map", outputs=1, samples=1, wide=8, depth=1)
    count, bits = int(random.integers(18, 31)), int(chosen(random, (3, 4)))

    def middle(g: Graph, x: str) -> str:
        for _ in range(count):
            x = g.op("Add", [x, g.op("Relu", [g.conv(x, 8, bias=False, gain=0.2)])])
        return x

    model, feeds = build(plan, middle=middle), draw_feeds(random, plan)
    names = [node.input[1] for node in model.graph.node if node.op_type == "Conv"]
    chain, outside = names[-count - 1 : -1], [*names[: -count - 1], names[-1]]

    def loss(kept: Sequence[str]) -> float:
        return gap(a, run(with_weights(model, "fake", bits=bits, skip=[*outside, *kept])[0], feeds))

    a = run(model, feeds)
    need(LOSS < loss(()) < 0.5)
    single = np.sort([loss([other for other in chain if other != name]) for name in chain])[::-1] ** 2
    need(single[0] < 0.2 * single.sum() and single[:3].sum() < 0.45 * single.sum())
    other = with_weights(model, "fake", bits=bits, skip=outside)[0]
    quantised_link(random, folder, (model, other), feeds, None, least=LOSS, layers=1.0)


def _steep(random: Random) -> tuple[Plan, onnx.ModelProto, str]:
    """A network with a gate whose inner tensor has a long tail: (plan, model, that tensor)."""
    plan = open_plan(random, IMAGE_TRUNKS, head=chosen(random, ("map", "detect")))
    kind = chosen(random, ("Reciprocal", "Exp"))
    held: list[str] = []

    def middle(g: Graph, x: str) -> str:
        y = g.op("Sigmoid", [g.conv(x, g.shape[x][0], 1)])
        if kind == "Reciprocal":
            y = g.op("Reciprocal", [g.op("Add", [g.op("Mul", [y, y]), g.constant(0.003)])])
        else:
            y = g.op("Exp", [g.op("Mul", [y, g.constant(7.0)])])
        held.append(y)
        gate = g.op("Div", [y, g.op("Add", [y, g.constant(3.0)])])
        return g.op("Mul", [x, gate])

    model = build(plan, middle=middle)
    return plan, model, held[-1]


def _sensitive(random: Random, folder: Path) -> None:
    """One tensor carries nearly all of the loss; the ablation of every tensor often lies there."""
    plan, model, name = _steep(random)
    calib, feeds = draw_feeds(random, plan, 8), draw_feeds(random, plan)
    thresholds = ranges(model, calib, [*points(model), name])
    other = with_pairs(model, thresholds)
    a = run(model, feeds)
    total = gap(a, run(other, feeds))
    single = {tensor: gap(a, run(with_pairs(model, {tensor: told}), feeds)) for tensor, told in thresholds.items()}
    need(single[name] > 0.85 * total and sorted(single.values())[-2] < 0.4 * single[name])
    documents = (
        {"ablation": {tensor: round(value, 6) for tensor, value in single.items()}} if chance(random, 0.6) else None
    )
    quantised_link(random, folder, (model, other), feeds, thresholds, calib=calib, documents=documents, least=LOSS)


def _fallback(random: Random, folder: Path) -> None:
    """The side file gives one tensor 16 bits; the graph quantises it with 8 all the same."""
    plan, model, name = _steep(random)
    calib, feeds = draw_feeds(random, plan, 8), draw_feeds(random, plan)
    thresholds = ranges(model, calib, [*points(model), name])
    a, other = run(model, feeds), with_pairs(model, thresholds)
    asked = {**dict.fromkeys(thresholds, 8), name: 16}
    need(gap(a, run(with_pairs(model, thresholds, bits=asked), feeds)) < 0.4 * gap(a, run(other, feeds)))
    quantised_link(
        random,
        folder,
        (model, other),
        feeds,
        None,
        calib=calib if chance(random, 0.5) else None,
        documents={"quant_params": {**params(thresholds), "bits": asked}},
        least=LOSS,
    )


def _blocked(random: Random, folder: Path) -> None:
    """A side branch reads what stands before the activation, so the wide tensor is quantised, not the narrow one."""
    plan = open_plan(random, IMAGE_TRUNKS, head=chosen(random, ("map", "detect")))
    kind = chosen(random, ("Relu", "Clip"))
    low, held = float(random.uniform(15, 40)), list[str]()

    def middle(g: Graph, x: str) -> str:
        count = g.shape[x][0]
        weight = np.abs(g.random.normal(0, 1, (count, count, 1, 1))) * -low / count
        weight[: count // 2] = g.random.normal(0, 1.2 / np.sqrt(count), (count // 2, count, 1, 1))
        wide = g.op("Conv", [x, g.constant(weight)], kernel_shape=[1, 1])
        narrow = g.act(wide, kind)
        held.extend((wide, narrow))
        side = g.op("Mul", [g.op("Sigmoid", [wide]), g.constant(0.1)])
        return g.op("Add", [narrow, side])

    model, calib, feeds = build(plan, middle=middle), draw_feeds(random, plan, 8), draw_feeds(random, plan)
    wide, narrow = held[-2:]
    inner = [name for name in points(model) if name != narrow]
    blocked, fused = (ranges(model, calib, [*inner, name]) for name in (wide, narrow))
    a, other = run(model, feeds), with_pairs(model, blocked)
    need(gap(a, run(with_pairs(model, fused), feeds)) < 0.5 * gap(a, run(other, feeds)))
    quantised_link(
        random, folder, (model, other), feeds, blocked, calib=calib if chance(random, 0.5) else None, least=LOSS
    )


def _crossing(random: Random, folder: Path) -> None:
    """One score lies within the noise of the decision's threshold."""
    plan = open_plan(random, outputs=1)

    def after(g: Graph, y: str) -> str:
        return g.op("Sigmoid", [y])

    model, calib, feeds = build(plan, after=after), draw_feeds(random, plan, 8), draw_feeds(random, plan)
    name = plan.output_names[0]
    thresholds = ranges(model, calib, points(model) if chance(random, 0.5) else [name])
    other = with_pairs(model, thresholds)
    a, b = (run(side, feeds)[name].reshape(-1).astype(np.float64) for side in (model, other))
    near = [
        at for at in np.flatnonzero((a > 0.15) & (a < 0.8)) if 1e-4 < abs(a[at] - b[at]) < step_of(thresholds[name])
    ]
    need(len(near) > 0)
    at = near[int(random.integers(len(near)))]
    threshold = round(float(a[at] + b[at]) / 2, 5)
    flips = (a >= threshold) != (b >= threshold)
    need(flips.any() and flips.sum() <= max(1, a.size // 20) and gap({name: a}, {name: b}) < 0.02)
    quantised_link(
        random,
        folder,
        (model, other),
        feeds,
        thresholds if chance(random, 0.4) else None,
        least=1e-5,
        layers=0.0,
        documents={"post": {"conf_threshold": threshold}},
    )


PLANTERS = (
    Planter("mixed-range-concat", "quantisation", _mixed_concat),
    Planter("weight-range-imbalance", "quantisation", _unequal_weights),
    Planter("constant-output", "quantisation", _rounded_away, ("outlier-range", "small-signal-lost"), "rounded"),
    Planter("constant-output", "quantisation", _dead_branch, variant="dead"),
    Planter("small-signal-lost", "quantisation", _small_signal),
    Planter("fp16-overflow", "quantisation", _half_overflow, ("nan-output",)),
    Planter("error-accumulation", "quantisation", _deep, ("quantization-noise",)),
    Planter("sensitive-nodes", "quantisation", _sensitive, ("outlier-range",)),
    Planter("precision-fallback", "quantisation", _fallback),
    Planter("fusion-blocked", "quantisation", _blocked, ("sensitive-nodes", "outlier-range")),
    Planter("threshold-crossing", "quantisation", _crossing),
)
