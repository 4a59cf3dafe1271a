"""Softmax as it may have been meant: along another axis, or along one and all behind it."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import helper

from driftgate.diagnosis.bench import Side
from driftgate.diagnosis.graphs.variants import Variant
from driftgate.diagnosis.surgery import copied, label, opset, replaced, with_attributes


def vary_softmax(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Every axis, alone or with all behind it."""
    for axis in (1, -1, 2, 3, 0):
        yield from _softmaxes(side, place, node, axis, whole=False)
        yield from _softmaxes(side, place, node, axis, whole=True)


def _softmaxes(side: Side, place: int, node: onnx.NodeProto, axis: int, *, whole: bool) -> Iterator[Variant]:
    """A softmax along one axis, or along one and all behind it, whatever the opset is."""
    model = copied(side.whole_model)
    name = f"driftgate.{place}.{axis}.{int(whole)}"
    shape, flat, bent = f"{name}.shape", f"{name}.flat", f"{name}.bent"
    if whole:
        nodes = [
            helper.make_node("Shape", [node.input[0]], [shape]),
            helper.make_node("Flatten", [node.input[0]], [flat], axis=axis),
            helper.make_node(node.op_type, [flat], [bent], axis=-1 if opset(model) >= 13 else 1),
            helper.make_node("Reshape", [bent, shape], [node.output[0]]),
        ]
        model = replaced(model, place, nodes)
    elif opset(model) >= 13 or axis == -1:
        model = with_attributes(model, (place,), axis=axis)
    else:
        nodes = _softmax_by_hand(model, node, axis, name)
        model = replaced(model, place, nodes)
    told = f"axis {axis}" + (" and all behind" if whole else "")
    yield Variant("softmax-axis", told, model, (label(node),), (("axis", float(axis), ""),))


def _softmax_by_hand(model: onnx.ModelProto, node: onnx.NodeProto, axis: int, name: str) -> list[onnx.NodeProto]:
    x = node.input[0]
    top, centred, raised, total = (f"{name}.{part}" for part in ("top", "centred", "raised", "total"))
    result = [helper.make_node("Div", [raised, total], [node.output[0]])]
    if node.op_type == "LogSoftmax":
        logarithm = f"{name}.logarithm"
        result = [
            helper.make_node("Log", [total], [logarithm]),
            helper.make_node("Sub", [centred, logarithm], [node.output[0]]),
        ]
    return [
        helper.make_node("ReduceMax", [x], [top], axes=[axis], keepdims=1),
        helper.make_node("Sub", [x, top], [centred]),
        helper.make_node("Exp", [centred], [raised]),
        helper.make_node("ReduceSum", [raised], [total], axes=[axis], keepdims=1),
        *result,
    ]
