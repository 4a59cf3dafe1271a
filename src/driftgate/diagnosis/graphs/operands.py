"""Products, differences and quotients as they may have been meant: operands exchanged, transposed, scaled."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper

from driftgate.diagnosis.bench import Side
from driftgate.diagnosis.graphs.variants import Variant, varied
from driftgate.diagnosis.surgery import attribute, copied, label, replaced, with_input


def vary_gemm(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """An operand transposed or not; no factor."""
    for name in ("transA", "transB"):
        now = int(attribute(node, name, 0))
        yield varied(side, "graph-fusion-error", f"{name}={1 - now}", place, **{name: 1 - now})
    for name in ("alpha", "beta"):
        if not math.isclose(float(attribute(node, name, 1.0)), 1.0):
            yield varied(side, "graph-fusion-error", f"{name}=1", place, **{name: 1.0})


def vary_operands(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """The first two operands exchanged."""
    model = copied(side.whole_model)
    changed = model.graph.node[place]
    if len(changed.input) >= 2:
        changed.input[0], changed.input[1] = changed.input[1], changed.input[0]
        yield Variant("graph-fusion-error", "operands exchanged", model, (label(node),))


def vary_matmul(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Operands exchanged, or one of them transposed."""
    yield from vary_operands(side, place, node)
    for number in (0, 1):
        value = side.value(node.input[number])
        if value is not None and value.ndim >= 2 and value.shape[-1] == value.shape[-2]:
            model = with_input(side.whole_model, place, number, np.ascontiguousarray(value.swapaxes(-1, -2)))
            yield Variant("graph-fusion-error", "operand transposed", model, (label(node),))
        elif value is None:
            for order in ([1, 0], [0, 2, 1], [0, 1, 3, 2]):
                model = copied(side.whole_model)
                name = f"driftgate.turned.{place}.{number}"
                changed = onnx.NodeProto()
                changed.CopyFrom(node)
                changed.input[number] = name
                turn = helper.make_node("Transpose", [node.input[number]], [name], perm=order)
                yield Variant(
                    "graph-fusion-error", "operand transposed", replaced(model, place, [turn, changed]), (label(node),)
                )
