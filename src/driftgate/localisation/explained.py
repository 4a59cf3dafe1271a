"""How much error a node's precision explains: rounding of its output, of its weights, of what it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from driftgate.domain.graphs import Graph
from driftgate.domain.measurements import Array
from driftgate.localisation.onnx_graph import Constants
from driftgate.localisation.points import LINEAR, RENAMED, Point

#: Relative error that float32 operators explain: sums in another order, a folded constant.
FLOAT_NOISE = 1e-5
#: A channel that hardly moves has the noise of the tensor it lies in, this much of it.
QUIET = 1e-2
UNIFORM = 12.0  # variance of rounding to a step of 1 is 1/12


@dataclass(frozen=True, slots=True)
class Weights:
    """Quantised weights of a linear operator, by output channel: `noise` is the variance that rounding them
    gives the output for an input of mean square 1, `gain` that for input noise of variance 1."""

    source: int
    noise: Array
    gain: Array


def read_weights(
    model: onnx.ModelProto, graph: Graph, points: Sequence[Point], constants: Constants
) -> Mapping[int, Weights]:
    """By point, what its weights' rounding costs; only points whose operator has quantised weights."""
    owner = {name: point.index for point in points for name in point.names}
    maker = {name: node for node in model.graph.node for name in node.output}
    found: dict[int, Weights] = {}
    for node in model.graph.node:
        if RENAMED.get(node.op_type, node.op_type) not in LINEAR or not node.output:
            continue
        point, source = owner.get(node.output[0]), owner.get(node.input[0])
        told = _quantised_weight(node, maker, constants)
        if point is None or source is None or told is None:
            continue
        weight, scale = told
        axis = _output_axis(node)
        parts = np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
        groups = next((a.i for a in node.attribute if a.name == "group"), 1)
        if node.op_type == "ConvTranspose" and groups > 1:
            continue
        scales = (
            np.broadcast_to(np.asarray(scale, np.float64).reshape(-1), (len(parts),))
            if np.size(scale)
            in (
                1,
                len(parts),
            )
            else np.full(len(parts), float(np.max(scale)))
        )
        found[point] = Weights(
            source=source,
            noise=scales**2 / UNIFORM * parts.shape[1],
            gain=scales**2 * (parts.astype(np.float64) ** 2).sum(1),
        )
    return found


def explained(
    point: Point,
    *,
    power: Array,
    weights: Weights | None,
    source_power: float,
    given_noise: float,
) -> Array:
    """Root mean square error that a point's precision explains, by channel.

    `power` is the mean square of the reference by channel, `source_power` that of the linear operator's input,
    `given_noise` the variance of rounding what it was given.
    """
    quiet = QUIET**2 * float(power.mean()) if power.size else 0.0
    variance = FLOAT_NOISE**2 * (power + quiet)
    if point.step is not None:
        variance = variance + point.step**2 / UNIFORM
    if weights is not None:
        fits = len(weights.noise) == len(power)
        noise = weights.noise if fits else np.full(len(power), weights.noise.max())
        gain = weights.gain if fits else np.full(len(power), weights.gain.max())
        variance = variance + noise * source_power + gain * given_noise
    else:
        variance = variance + given_noise
    explained_error: Array = np.sqrt(variance)
    return explained_error


def _quantised_weight(
    node: onnx.NodeProto, maker: Mapping[str, onnx.NodeProto], constants: Constants
) -> tuple[np.ndarray, np.ndarray] | None:
    """Integer weights (zero point taken off) and their scales."""
    places = {"QLinearConv": (3, 4, 5), "QLinearMatMul": (3, 4, 5), "QGemm": (3, 4, 5)}
    names: Sequence[str]
    if node.op_type in places:
        names = [node.input[place] for place in places[node.op_type]]
    else:
        made = maker.get(node.input[1]) if len(node.input) > 1 else None
        while made is not None and made.op_type in ("Transpose", "Identity", "Reshape"):
            if made.op_type == "Transpose":
                return None
            made = maker.get(made.input[0])
        if made is None or made.op_type != "DequantizeLinear":
            return None
        names = list(made.input)
    weight, scale = constants.value(names[0]), constants.value(names[1])
    zero = constants.value(names[2]) if len(names) > 2 and names[2] else None
    if weight is None or scale is None or weight.dtype.kind not in "iu":
        return None
    integers = weight.astype(np.float64)
    if zero is not None and zero.size == 1:
        integers = integers - float(zero.reshape(-1)[0])
    return integers, scale


def _output_axis(node: onnx.NodeProto) -> int:
    if node.op_type == "ConvTranspose":
        return 1
    if node.op_type in ("MatMul", "QLinearMatMul"):
        return -1
    if node.op_type in ("Gemm", "QGemm", "FusedGemm"):
        transposed = next((a.i for a in node.attribute if a.name == "transB"), 0)
        return 0 if transposed else 1
    return 0
