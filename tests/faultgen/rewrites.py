"""Faults of graph optimisation: folding and fusing that change what is computed; and float noise, which does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from faultgen.graph import Graph
from faultgen.networks import IMAGE_TRUNKS, TRUNKS, Hook, build, draw_feeds, draw_plan
from faultgen.planting import Array, Planter, Random, chance, chosen, gap, need
from faultgen.running import run
from faultgen.sides import two_models
from support.rewriting import folded

#: Builds the healthy and the rewritten form of a piece of network, told which of them.
Piece = Callable[[Graph, str, bool], str]


def _rewritten(random: Random, folder: Path, trunks: tuple[str, ...], piece: Piece, **fixed: Any) -> None:
    """The rewritten graph has, in half of the cases, every batch norm of the trunk folded, rightly."""
    plan = draw_plan(random, trunks, **fixed)
    model, other = (build(plan, middle=_told(piece, is_wrong)) for is_wrong in (False, True))
    other = folded(other) if chance(random, 0.5) else other
    two_models(random, folder, (model, other), draw_feeds(random, plan))


def _told(piece: Piece, is_wrong: bool) -> Hook:
    """The hook of one form; nodes of the rewritten one have names that the other does not have."""

    def hook(g: Graph, x: str) -> str:
        if is_wrong:
            g.jump(50)
        return piece(g, x, is_wrong)

    return hook


def _statistics(g: Graph, count: int) -> tuple[Array, Array, Array, Array]:
    """Gain, shift, mean, variance of a batch norm."""
    return (
        g.random.uniform(0.5, 1.6, count),
        g.random.normal(0, 0.5, count),
        g.random.normal(0, 0.5, count),
        g.random.uniform(0.3, 3.0, count),
    )


def _fold(way: str, weight: Array, bias: Array, norm: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
    """Weight and bias of the folded convolution, wrong in one way."""
    gain, shift, mean, variance = norm
    factor = gain / np.sqrt(variance + 1e-5)
    spread = {"no-root": gain / (variance + 1e-5), "no-gain": 1 / np.sqrt(variance + 1e-5)}.get(way, factor)
    side = (1, -1, 1, 1) if way == "axis" else (-1, 1, 1, 1)
    made = (0.0 if way == "no-mean" else bias - mean) * spread + (0.0 if way == "no-shift" else shift)
    if way == "no-bias":
        made = shift - mean * spread
    return weight * spread.reshape(side), made


_FOLDS = ("no-root", "no-gain", "axis", "no-mean", "no-shift", "no-bias")


def _wrong_fold(random: Random, folder: Path) -> None:
    way = chosen(random, _FOLDS)

    def piece(g: Graph, x: str, is_wrong: bool) -> str:
        count = g.shape[x][0]
        weight = g.random.normal(0, np.sqrt(2 / (9 * count)), (count, count, 3, 3))
        bias, norm = g.random.normal(0, 0.4, count), _statistics(g, count)
        if is_wrong:
            weight, bias = _fold(way, weight, bias, norm)
        y = g.op("Conv", [x, g.constant(weight), g.constant(bias)], kernel_shape=[3, 3], pads=[1] * 4)
        if not is_wrong:
            y = g.op("BatchNormalization", [y, *(g.constant(value) for value in norm)], epsilon=1e-5)
        return g.act(y, "Relu")

    _rewritten(random, folder, IMAGE_TRUNKS, piece)


def _shared_fold(random: Random, folder: Path) -> None:
    """Two branches share a convolution's weight; one branch's batch norm is folded into it for both."""

    def piece(g: Graph, x: str, is_wrong: bool) -> str:
        count = g.shape[x][0]
        weight = g.random.normal(0, np.sqrt(2 / (9 * count)), (count, count, 3, 3))
        norms = [_statistics(g, count) for _ in range(2)]
        parts = []
        folded = [_fold("", weight, np.zeros(count), norm) for norm in norms]
        shared = g.constant(folded[0][0] if is_wrong else weight)
        for norm, (_, bias) in zip(norms, folded, strict=True):
            inputs = [x, shared, g.constant(bias)] if is_wrong else [x, shared]
            y = g.op("Conv", inputs, kernel_shape=[3, 3], pads=[1] * 4)
            if not is_wrong:
                y = g.op("BatchNormalization", [y, *(g.constant(value) for value in norm)], epsilon=1e-5)
            parts.append(g.act(y, "Relu"))
        return g.op("Concat", parts, (2 * count, *g.shape[x][1:]), axis=1)

    _rewritten(random, folder, IMAGE_TRUNKS, piece)


_FLAGS: Mapping[str, Mapping[str, Any]] = {"transB": {"transB": 1}, "alpha": {"alpha": 0.5}, "beta": {"beta": 0.25}}


def _gemm_flag(random: Random, folder: Path) -> None:
    """MatMul and Add become one Gemm; its weight is square, so a wrong flag or a lost factor is no error."""
    way = chosen(random, ("transB", "alpha", "beta", "bias"))

    def piece(g: Graph, x: str, is_wrong: bool) -> str:
        (wide,) = g.shape[x]
        weight, bias = g.constant(g.random.normal(0, 1 / np.sqrt(wide), (wide, wide))), g.random.normal(0, 0.7, wide)
        if is_wrong:
            inputs = [x, weight] if way == "bias" else [x, weight, g.constant(bias)]
            return g.act(g.op("Gemm", inputs, **_FLAGS.get(way, {})), "Relu")
        return g.act(g.op("Add", [g.op("MatMul", [x, weight]), g.constant(bias)]), "Relu")

    _rewritten(random, folder, ("mlp",), piece)


def _lost_piece(random: Random, folder: Path) -> None:
    """A rewrite loses or changes something: an activation, the order of operands, the other summand, a permutation."""
    way = chosen(random, ("activation", "operands", "order", "summand", "permutation"))

    def piece(g: Graph, x: str, is_wrong: bool) -> str:
        count, height, width = g.shape[x]
        y, z = g.conv(x, count), g.conv(x, count, 1)
        if way == "activation":
            y = y if is_wrong else g.op("Relu", [y])
        elif way == "operands":
            y = g.op("Sub", [z, y] if is_wrong else [y, z])
        elif way == "order":
            y = g.op("Concat", [z, y] if is_wrong else [y, z], (2 * count, height, width), axis=1)
        elif way == "summand":
            y = g.op("Add", [y, y if is_wrong else z])
        else:
            y = g.reshape(y, (2, count // 2, height, width))
            y = y if is_wrong else g.swap(y, 1, 0, 2, 3)
            y = g.reshape(y, (count, height, width))
        return g.act(g.conv(y, count, 1), "LeakyRelu")

    _rewritten(random, folder, IMAGE_TRUNKS, piece)


def _resize_axes(random: Random, folder: Path) -> None:
    """A transpose was pushed through a Resize, whose scales kept their order."""
    side = 2 * int(random.integers(3, 9))
    seed = int(random.integers(1 << 31))
    plan = draw_plan(random, ("cnn",), height=2 * side, width=2 * side, head="map")

    def piece(g: Graph, x: str, is_wrong: bool) -> str:
        count, height, width = g.shape[x]
        need(height == width)
        y = g.conv(x, count, 1)
        scales = g.constant([1, 1, 2, 1])
        mode: dict[str, Any] = {
            "mode": "nearest",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        }
        if is_wrong:
            y = g.op("Resize", [y, "", scales], (count, 2 * height, width), **mode)
            return g.reshape(y, (count, height, 2 * width))
        y = g.op("Resize", [g.swap(y, 0, 2, 1), "", scales], (count, 2 * width, height), **mode)
        return g.swap(y, 0, 2, 1)

    models = tuple(build(replace(plan, seed=seed), middle=_told(piece, told)) for told in (False, True))
    two_models(random, folder, (models[0], models[1]), draw_feeds(random, plan))


def _norm_fusion(random: Random, folder: Path) -> None:
    """The pattern of a layer norm becomes one operator with another epsilon, without its gain, or without its shift."""
    way = chosen(random, ("epsilon", "epsilon", "gain", "shift"))
    epsilons = (1e-3, 1e-12) if chance(random, 0.5) else (1e-12, 1e-3)
    small = float(10 ** random.uniform(-2.0, -1.2)) if way == "epsilon" else 1.0

    def piece(g: Graph, x: str, is_wrong: bool) -> str:
        wide = g.shape[x][-1]
        gain, shift = g.random.uniform(0.4, 1.8, wide), g.random.normal(0, 0.5, wide)
        x = g.op("Mul", [x, g.constant(small)])
        if is_wrong:
            gain, shift = np.ones(wide) if way == "gain" else gain, np.zeros(wide) if way == "shift" else shift
            epsilon = epsilons[1] if way == "epsilon" else epsilons[0]
            return g.op("LayerNormalization", [x, g.constant(gain), g.constant(shift)], axis=-1, epsilon=epsilon)
        centred = g.op("Sub", [x, g.mean(x, -1, keep=True)])
        variance = g.mean(g.op("Mul", [centred, centred]), -1, keep=True)
        spread = g.op("Sqrt", [g.op("Add", [variance, g.constant(epsilons[0])])])
        return g.op("Add", [g.op("Mul", [g.op("Div", [centred, spread]), g.constant(gain)]), g.constant(shift)])

    _rewritten(random, folder, ("transformer",), piece, opset=17)


def _constant_fold(random: Random, folder: Path) -> None:
    """A sub-graph of constants, computed on A's side; on B's it is one constant of another value."""
    way = chosen(random, ("exp", "affine", "root", "slice"))
    wrong = chosen(random, ("scaled", "shuffled", "unfinished"))

    def piece(g: Graph, x: str, is_wrong: bool) -> str:
        count = g.shape[x][0]
        side = (count,) if len(g.shape[x]) == 1 else (g.shape[x][-1],) if len(g.shape[x]) == 2 else (count, 1, 1)
        base, factor = g.random.uniform(0.2, 1.5, side), g.random.uniform(0.4, 2.0, side)
        value = {
            "exp": np.exp(base),
            "affine": base * factor + 0.5,
            "root": np.sqrt(base + factor),
            "slice": base * factor,
        }[way]
        if is_wrong:
            made = {"scaled": value * 1.5, "shuffled": np.roll(value, 1, axis=0), "unfinished": base}[wrong]
            return g.op("Mul", [x, g.constant(made)])
        first, second = g.constant(base), g.constant(factor)
        if way == "exp":
            told = g.op("Exp", [first], side)
        elif way == "affine":
            told = g.op("Add", [g.op("Mul", [first, second], side), g.constant(0.5)], side)
        elif way == "root":
            told = g.op("Sqrt", [g.op("Add", [first, second], side)], side)
        else:
            told = g.op("Mul", [second, first], side)
        return g.op("Mul", [x, told])

    _rewritten(random, folder, TRUNKS, piece)


def _noise(random: Random, folder: Path) -> None:
    """A correct fold of a batch norm: only the order of the sums differs."""

    def piece(g: Graph, x: str, is_folded: bool) -> str:
        count = g.shape[x][0]
        weight = g.random.normal(0, np.sqrt(2 / (9 * count)), (count, count, 3, 3))
        bias, norm = g.random.normal(0, 0.4, count), _statistics(g, count)
        if is_folded:
            weight, bias = _fold("", weight, bias, norm)
        y = g.op("Conv", [x, g.constant(weight), g.constant(bias)], kernel_shape=[3, 3], pads=[1] * 4)
        if not is_folded:
            y = g.op("BatchNormalization", [y, *(g.constant(value) for value in norm)], epsilon=1e-5)
        return g.act(y, "Relu")

    plan = draw_plan(random, IMAGE_TRUNKS)
    models = tuple(build(plan, middle=_told(piece, told)) for told in (False, True))
    feeds = draw_feeds(random, plan)
    need(1e-9 < gap(run(models[0], feeds), run(models[1], feeds)) < 1e-5)
    two_models(random, folder, (models[0], models[1]), feeds, visible=0.0)


PLANTERS = (
    Planter("bn-fold-error", "graph", _wrong_fold),
    Planter("bn-fold-error", "graph", _shared_fold, variant="shared"),
    Planter("graph-fusion-error", "graph", _gemm_flag, variant="gemm"),
    Planter("graph-fusion-error", "graph", _lost_piece, variant="lost"),
    Planter("graph-fusion-error", "graph", _resize_axes, variant="axes"),
    Planter("norm-fusion-error", "graph", _norm_fusion, ("norm-semantics",)),
    Planter("constant-fold-bug", "graph", _constant_fold),
    Planter("numeric-noise", "graph", _noise),
)
