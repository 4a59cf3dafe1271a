"""Weights of linear operators, those of one side paired with those of the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench, Side
from driftgate.diagnosis.surgery import attribute

Tensor = NDArray[Any]

WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


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
    model = side.whole_model
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
        np.zeros((), np.float32)
        if zero is None
        else zero.astype(np.float32).reshape(around if zero.size > 1 else [1] * integers.ndim)
    )
    found: Tensor = ((integers.astype(np.float32) - offset) * scale.reshape(around)).astype(np.float32)
    return found
