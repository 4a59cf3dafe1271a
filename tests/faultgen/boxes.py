"""Faults of detections: boxes that were not decoded, tied rows in another order, caps on their number."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx

from faultgen.graph import Graph
from faultgen.networks import IMAGE_TRUNKS, Plan, build, draw_feeds, draw_plan
from faultgen.planting import Array, Planter, Random, chance, chosen, floats, need
from faultgen.sides import recorded, two_models


def _grid(height: int, width: int, stride: float) -> Array:
    """Centres of the cells (1, 2, places) in pixels."""
    rows, columns = np.mgrid[0:height, 0:width]
    return (np.stack([columns, rows]).reshape(1, 2, -1) + 0.5) * stride


def _decoded(random: Random, folder: Path, decode: Callable[[Graph, str, tuple[int, int], float], str]) -> None:
    """A head of boxes and scores (samples, 4 + classes, places), decoded to pixels in A's graph, raw in B's."""
    plan = draw_plan(random, IMAGE_TRUNKS, outputs=1, head="map")
    classes, stride = int(random.integers(1, 6)), float(chosen(random, (4, 8, 16)))

    def middle(g: Graph, x: str, *, is_full: bool) -> str:
        _, height, width = g.shape[x]
        y = g.reshape(g.conv(x, 4 + classes, 1, gain=0.4), (4 + classes, height * width))
        return decode(g, y, (height, width), stride) if is_full else y

    models = [_topless(plan, partial(middle, is_full=told)) for told in (True, False)]
    two_models(random, folder, (models[0], models[1]), draw_feeds(random, plan), layers=0.3)


def _topless(plan: Plan, middle: Callable[[Graph, str], str]) -> onnx.ModelProto:
    """A network whose output is what `middle` makes."""
    g = Graph(
        np.random.default_rng(plan.seed),
        opset=plan.opset,
        style=plan.style,
        batch=plan.samples if plan.fixed_batch else "N",
    )
    x = g.take(plan.input_name, plan.input_shape)
    for number in range(plan.depth):
        x = g.block(x, plan.wide, plan.activation, stride=2 if number == 0 else 1)
    return g.model([g.rename(middle(g, x), plan.output_names[0])])


def _split(g: Graph, y: str, sizes: tuple[int, ...]) -> list[str]:
    """Slices along the axis behind the samples."""
    ends = np.cumsum((0, *sizes))
    made = []
    for start, stop in itertools.pairwise(ends.tolist()):
        bounds = [g.constant([value], np.int64) for value in (start, stop, 1)]
        made.append(g.op("Slice", [y, *bounds], (int(stop - start), g.shape[y][1])))
    return made


def _decode_v5(g: Graph, y: str, size: tuple[int, int], stride: float) -> str:
    """Sigmoid of everything; centres around the cell, sides as squares times an anchor."""
    centre, side, score = _split(g, g.op("Sigmoid", [y]), (2, 2, g.shape[y][0] - 4))
    centre = g.op("Add", [g.op("Mul", [centre, g.constant(2 * stride)]), g.constant(_grid(*size, stride) - stride)])
    twice = g.op("Mul", [side, g.constant(2.0)])
    side = g.op("Mul", [g.op("Mul", [twice, twice]), g.constant([[[3.0 * stride], [4.5 * stride]]])])
    return g.op("Concat", [centre, side, score], g.shape[y], axis=1)


def _decode_sides(g: Graph, y: str, size: tuple[int, int], stride: float) -> str:
    """Distances of the four sides from the cell's centre, in strides; sigmoid of the scores."""
    least, most, score = _split(g, y, (2, 2, g.shape[y][0] - 4))
    grid = g.constant(_grid(*size, stride))
    least = g.op("Sub", [grid, g.op("Mul", [least, g.constant(stride)])])
    most = g.op("Add", [grid, g.op("Mul", [most, g.constant(stride)])])
    return g.op("Concat", [least, most, g.op("Sigmoid", [score])], g.shape[y], axis=1)


def _decode_exp(g: Graph, y: str, size: tuple[int, int], stride: float) -> str:
    """Centres as offsets from the cell, sides as exponentials, both in strides; scores by sigmoid."""
    centre, side, score = _split(g, y, (2, 2, g.shape[y][0] - 4))
    centre = g.op("Add", [g.op("Mul", [centre, g.constant(stride)]), g.constant(_grid(*size, stride))])
    side = g.op("Mul", [g.op("Exp", [side]), g.constant(stride)])
    return g.op("Concat", [centre, side, g.op("Sigmoid", [score])], g.shape[y], axis=1)


def _missing_decode(random: Random, folder: Path) -> None:
    _decoded(random, folder, chosen(random, (_decode_v5, _decode_sides, _decode_exp)))


def detections(random: Random, count: int, *, ties: int) -> tuple[Array, Array]:
    """(boxes (count, 4) in pixels, scores (count,) falling); the first `ties` scores come in equal groups."""
    corner, side = random.uniform(0, 400, (count, 2)), random.uniform(8, 200, (count, 2))
    scores = np.sort(random.uniform(0.05, 0.98, count))[::-1]
    for start in range(0, ties, 3):
        scores[start : start + 3] = scores[start]
    return np.concatenate([corner, corner + side], axis=1), np.sort(scores)[::-1]


def _tied(random: Random, folder: Path) -> None:
    """Detections by falling score; rows of exactly the same score stand in another order."""
    count = int(random.integers(12, 60))
    boxes, scores = detections(random, count, ties=int(random.integers(6, count)))
    labels = random.integers(0, 5, count)
    order = np.lexsort((random.random(count), -scores))
    need((order != np.arange(count)).any())
    rows = np.concatenate([boxes, scores[:, None], labels[:, None]], axis=1)
    if chance(random, 0.5):
        a, b = ({"detections": floats(side[None])} for side in (rows, rows[order]))
    else:
        a, b = (
            {"boxes": floats(boxes[at]), "scores": floats(scores[at]), "labels": floats(labels[at])}
            for at in (np.arange(count), order)
        )
    feeds = {"x": floats(random.normal(0, 1, (1, 3, 8, 8)))}
    recorded(folder, None, feeds, (a, b), visible=1e-3)


def _capped(random: Random, folder: Path) -> None:
    """One side keeps fewer boxes: B's rows are the best of A's, the others absent or empty."""
    count = int(random.integers(30, 120))
    kept = int(random.integers(8, count * 3 // 4))
    boxes, scores = detections(random, count, ties=0)
    rows = np.concatenate([boxes, scores[:, None], random.integers(0, 5, (count, 1))], axis=1)
    other = rows[:kept] if chance(random, 0.6) else np.where(np.arange(count)[:, None] < kept, rows, 0)
    a, b = ({"detections": floats(side[None])} for side in (rows, other))
    feeds = {"x": floats(random.normal(0, 1, (1, 3, 8, 8)))}
    recorded(folder, None, feeds, (a, b), documents={"post": {"conf_threshold": 0.05, "max_det": count}})


def _capped_graph(random: Random, folder: Path) -> None:
    """Both graphs end in TopK, with another k."""
    plan = replace(draw_plan(random, ("cnn", "residual"), samples=1), head="detect", outputs=1, opset=17)
    k = sorted(int(value) for value in random.choice(np.arange(4, 25), 2, replace=False))

    def after(g: Graph, y: str, *, keep: int) -> str:
        scores = g.reshape(g.op("Sigmoid", [y]), (int(np.prod(g.shape[y])),))
        return g.op("TopK", [scores, g.constant([keep], np.int64)], (keep,), outputs=2, axis=-1)

    models = [build(plan, after=partial(after, keep=told)) for told in (k[1], k[0])]
    two_models(random, folder, (models[0], models[1]), draw_feeds(random, plan))


PLANTERS = (
    Planter("missing-decode", "output", _missing_decode),
    Planter("topk-order", "output", _tied),
    Planter("nms-topk-cap", "output", _capped, variant="rows"),
    Planter("nms-topk-cap", "output", _capped_graph, variant="graph"),
)
