"""Tiny ONNX models, built in the test that needs them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 9

Array = NDArray[Any]

#: y = relu(x @ WEIGHT) + BIAS, with the tap h = x @ WEIGHT.
WEIGHT = np.array([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]], np.float32)
BIAS = np.array([0.125, -0.5], np.float32)


def hidden(x: Array) -> Array:
    """What the tap of the tiny network must give."""
    made: Array = (x @ WEIGHT).astype(np.float32)
    return made


def answer(x: Array) -> Array:
    """What the tiny network must give."""
    made: Array = np.maximum(hidden(x), 0) + BIAS
    return made


def value(name: str, shape: Sequence[int | str | None] | None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """An input or output."""
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    *,
    initializers: dict[str, Array] | None = None,
    domains: Sequence[str] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    opset: int = OPSET,
) -> onnx.ModelProto:
    """A model of these parts; `domains` are further operator sets, in version 1."""
    tensors = [numpy_helper.from_array(array, name) for name, array in (initializers or {}).items()]
    return helper.make_model(
        helper.make_graph(list(nodes), "tiny", list(inputs), list(outputs), tensors),
        opset_imports=[helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)],
        ir_version=IR_VERSION,
        functions=list(functions),
    )


def tiny(rows: int | str = 1) -> onnx.ModelProto:
    """x (rows, 3) → h → y (rows, 2)."""
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["h"], name="product"),
        helper.make_node("Relu", ["h"], ["r"], name="rectified"),
        helper.make_node("Add", ["r", "bias"], ["y"], name="sum"),
    ]
    return model(nodes, [value("x", [rows, 3])], [value("y", [rows, 2])], initializers={"weight": WEIGHT, "bias": BIAS})


def one_node(operator: str, *, domain: str = "", name: str = "the_node", **attributes: Any) -> onnx.ModelProto:
    """x (1, 3) → one operator → y."""
    node = helper.make_node(operator, ["x"], ["y"], name=name, domain=domain, **attributes)
    return model([node], [value("x", [1, 3])], [value("y", None)], domains=[domain] if domain else [])


def accumulator(rows: int | None = 1) -> onnx.ModelProto:
    """x (1, 2), state (rows, 2), gain () → y = (x + state) * gain, next_state = x + state."""
    nodes = [
        helper.make_node("Add", ["x", "state"], ["next_state"]),
        helper.make_node("Mul", ["next_state", "gain"], ["y"]),
    ]
    inputs = [value("x", [1, 2]), value("state", [rows, 2]), value("gain", [])]
    return model(nodes, inputs, [value("y", [rows, 2]), value("next_state", [rows, 2])])


def save(proto: onnx.ModelProto, path: Path, *, external: str = "") -> Path:
    """Write the model, its weights into the file `external` beside it if one is named."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if external:
        onnx.save(proto, str(path), save_as_external_data=True, location=external, size_threshold=0)
    else:
        onnx.save(proto, str(path))
    return path
