"""Weights of linear operators, those of one side paired with those of the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench, Side
from driftgate.diagnosis.surgery import attribute
from driftgate.domain.tensors import Quantization
from driftgate.localisation.points import LINEAR
from driftgate.localisation.rounding import output_axis
from driftgate.numerics.alignment import dequantised

Tensor = NDArray[Any]

QUANTISED = "_quantized"  # what onnxruntime's quantiser calls the integers of a weight
HALF = 0.6  # of a step: a half, and what float32 adds to it
ROUNDING = 0.1  # of a channel's length: so far rounding may take a weight, and more is another weight


def paired_weights(bench: Bench) -> tuple[tuple[int, int, Tensor, Tensor], ...]:
    """(node of the reference, node of the candidate, weights of both) of linear operators, by name of the weights
    or of the node, or else in order among those of one operator and shape."""
    return bench.once(_paired)


def _paired(bench: Bench) -> tuple[tuple[int, int, Tensor, Tensor], ...]:
    if bench.a.model is None or bench.b.model is None:
        return ()
    rows_a, rows_b = ([*_linear(side)] for side in (bench.a, bench.b))
    by_weights = {name: (place, value) for place, name, _, value in rows_a}
    nodes_a, nodes_b = (side.whole_model.graph.node for side in (bench.a, bench.b))
    by_node = {nodes_a[place].name: (place, value) for place, _, _, value in rows_a if nodes_a[place].name}
    found = []
    for place, name, op, value in rows_b:
        partner = by_weights.get(name, by_weights.get(name.removesuffix(QUANTISED)))
        if partner is None or partner[1].shape != value.shape:
            partner = by_node.get(nodes_b[place].name)
        if partner is None or partner[1].shape != value.shape:
            same = [row for row in rows_a if row[2] == op and row[3].shape == value.shape]
            mine = [row for row in rows_b if row[2] == op and row[3].shape == value.shape]
            at = [row[0] for row in mine].index(place)
            partner = (same[at][0], same[at][3]) if len(same) == len(mine) else None
        if partner is not None:
            found.append((partner[0], place, partner[1], value))
    return tuple(found)


def rounded_weights(bench: Bench) -> Iterator[tuple[int, int, Tensor, Tensor]]:
    """Those of `paired_weights` that differ, a channel scaled where a normalisation was folded into the candidate's."""
    for place_a, place_b, a, b in paired_weights(bench):
        if not np.array_equal(a, b):
            yield place_a, place_b, _scaled(a, b, output_axis(bench.b.whole_model.graph.node[place_b])), b


def rounded_biases(bench: Bench) -> Iterator[tuple[int, int, Tensor]]:
    """(node of the candidate, 2, bias of the reference) where the candidate's bias is an integer of it.

    Its step is that of the input times that of the weights: a range too wide rounds the bias as well.
    """
    for place_a, place_b, _, _ in paired_weights(bench):
        node_a, node_b = bench.a.whole_model.graph.node[place_a], bench.b.whole_model.graph.node[place_b]
        if len(node_a.input) < 3 or len(node_b.input) < 3:
            continue
        a, made = bench.a.value(node_a.input[2]), bench.b.makers.get(node_b.input[2])
        if a is None or made is None or made.op_type != "DequantizeLinear":
            continue
        b, step = _dequantised(bench.b, made), bench.b.value(made.input[1])
        if b is not None and step is not None and b.shape == a.shape and (np.abs(a - b) <= HALF * np.abs(step)).all():
            yield place_b, 2, a


def _scaled(a: Tensor, b: Tensor, axis: int) -> Tensor:
    """`a` with one factor a channel, if it is with these factors, and only with them, that `b` is its rounding."""
    x, y = (np.moveaxis(np.asarray(t, np.float64), axis, 0).reshape(a.shape[axis], -1) for t in (a, b))
    lengths = np.maximum(np.linalg.norm(x, axis=1), np.finfo(np.float64).tiny)
    factors = (x * y).sum(1) / lengths**2
    away = np.linalg.norm(y - factors[:, None] * x, axis=1) / np.maximum(np.linalg.norm(y, axis=1), lengths * 1e-12)
    if (np.linalg.norm(y - x, axis=1) <= ROUNDING * lengths).any() or (away > ROUNDING).any():
        return a
    around = [1] * a.ndim
    around[axis] = -1
    scaled: Tensor = (a * factors.reshape(around)).astype(a.dtype)
    return scaled


def _linear(side: Side) -> Iterator[tuple[int, str, str, Tensor]]:
    for place, node in enumerate(side.whole_model.graph.node):
        if node.op_type in LINEAR and len(node.input) > 1:
            value, name = side.value(node.input[1]), node.input[1]
            made = side.makers.get(name)
            if value is None and made is not None and made.op_type == "DequantizeLinear":
                value, name = _dequantised(side, made), made.input[0]
            if value is not None and value.dtype.kind == "f" and value.ndim >= 2:
                yield place, name, node.op_type, value


def _dequantised(side: Side, node: onnx.NodeProto) -> Tensor | None:
    integers, scale = side.value(node.input[0]), side.value(node.input[1])
    if integers is None or scale is None:
        return None
    zero = side.value(node.input[2]) if len(node.input) > 2 else None
    zeros = (0,) if zero is None else tuple(zero.reshape(-1).tolist())
    axis = int(attribute(node, "axis", 1)) if scale.size > 1 else None
    return dequantised(integers, Quantization(tuple(scale.reshape(-1).tolist()), zeros, axis)).astype(np.float32)
