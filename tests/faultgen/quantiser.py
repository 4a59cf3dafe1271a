"""Makes the INT8 form of a network: symmetric Q/DQ pairs before the operators that compute, ranges by maximum."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from faultgen.planting import Array, Tensors
from faultgen.running import outputs_of, run

#: Operators whose inputs are quantised; of an addition only where both sides are activations.
_COMPUTING = ("Conv", "Gemm", "MatMul", "Add", "Concat", "GlobalAveragePool", "AveragePool", "Resize")
_MATRICES = ("Conv", "Gemm", "MatMul")
_TYPES: Mapping[int, Any] = {8: np.int8, 16: np.int16}
WEIGHT_FORMS = ("float", "fake", "integer")


def constants_of(model: onnx.ModelProto) -> dict[str, Array]:
    """The initializers by name."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that can be changed."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def points(model: onnx.ModelProto, *, outputs: bool = True) -> list[str]:
    """The activations that are quantised, in graph order, the model's outputs among them or not."""
    constant = constants_of(model)
    found: list[str] = []
    for node in model.graph.node:
        active = [name for name in node.input if name and name not in constant]
        if node.op_type == "Add" and len(active) < 2:
            continue
        if node.op_type in _COMPUTING:
            found += active if node.op_type != "Resize" else active[:1]
    found += outputs_of(model) if outputs else []
    return list(dict.fromkeys(found))


def ranges(model: onnx.ModelProto, feeds: Tensors, tensors: Sequence[str]) -> dict[str, float]:
    """The largest magnitude of each tensor over the calibration feeds."""
    made = run(model, feeds, [name for name in tensors if name not in feeds])
    return {name: max(float(np.abs({**made, **feeds}[name]).max()), 1e-6) for name in tensors}


def step_of(threshold: float, bits: int = 8) -> float:
    """The size of one level."""
    return float(threshold / (2 ** (bits - 1) - 1))


def rounded_weight(weight: Array, axis: int | None, bits: int = 8) -> tuple[Array, Array]:
    """Integer levels and their scales: one a channel on `axis`, a single one where that is None."""
    places = tuple(place for place in range(weight.ndim) if place != axis) if axis is not None else None
    limit = 2 ** (bits - 1) - 1
    scale = np.maximum(np.abs(weight).max(axis=places, keepdims=True), 1e-9) / limit
    return np.clip(np.rint(weight / scale), -limit, limit), scale.astype(np.float32)


def with_pairs(
    model: onnx.ModelProto, thresholds: Mapping[str, float], *, bits: Mapping[str, int] | int = 8
) -> onnx.ModelProto:
    """The model with a Q/DQ pair behind each named tensor; an output keeps its name behind the pair."""
    made = copied(model)
    outputs = set(outputs_of(model))
    nodes: list[onnx.NodeProto] = []
    reading = {name: f"{name}_dq" for name in thresholds if name not in outputs}
    reading |= {name: f"{name}_f" for name in thresholds if name in outputs}

    def pair(name: str) -> None:
        told = bits if isinstance(bits, int) else bits.get(name, 8)
        dtype = _TYPES[told]
        scale, zero = f"{name}_s", f"{name}_z"
        made.graph.initializer.append(numpy_helper.from_array(np.float32(step_of(thresholds[name], told)), scale))
        made.graph.initializer.append(numpy_helper.from_array(np.array(0, dtype), zero))
        source, target = (f"{name}_f", name) if name in outputs else (name, f"{name}_dq")
        nodes.append(helper.make_node("QuantizeLinear", [source, scale, zero], [f"{name}_q"], name=f"{name}_quantize"))
        nodes.append(
            helper.make_node("DequantizeLinear", [f"{name}_q", scale, zero], [target], name=f"{name}_dequantize")
        )

    for tensor in model.graph.input:
        if tensor.name in thresholds:
            pair(tensor.name)
    for node in model.graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [name if name in outputs else reading.get(name, name) for name in node.input]
        copy.output[:] = [f"{name}_f" if name in outputs and name in thresholds else name for name in node.output]
        nodes.append(copy)
        for name in node.output:
            if name in thresholds:
                pair(name)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    if 16 in ([bits] if isinstance(bits, int) else bits.values()):
        made.opset_import[0].version = max(21, made.opset_import[0].version)
        made.ir_version = max(10, made.ir_version)
    return made


def with_weights(
    model: onnx.ModelProto,
    form: str,
    *,
    per_channel: bool = True,
    bits: int = 8,
    skip: Collection[str] = (),
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The model with 8-bit weights, as floats or as integers behind a DequantizeLinear; and the integers by name."""
    made = copied(model)
    if form == "float":
        return made, {}
    constant, integers, new = constants_of(model), {}, dict[str, onnx.NodeProto]()
    for node in made.graph.node:
        name = node.input[1] if node.op_type in _MATRICES and len(node.input) > 1 else ""
        if name not in constant or name in skip or name in integers or constant[name].ndim < 2:
            continue
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        axis = 0 if node.op_type == "Conv" or transposed else constant[name].ndim - 1
        level, scale = rounded_weight(constant[name], axis if per_channel else None, bits)
        integers[name] = level.astype(np.int8)
        _replace(made, name, (level * scale).astype(np.float32))
        if form == "integer":
            _replace(made, name, level.astype(np.int8), f"{name}_int8")
            made.graph.initializer.append(
                numpy_helper.from_array(scale.reshape(-1) if per_channel else scale.reshape(()), f"{name}_scale")
            )
            attributes: dict[str, Any] = {"axis": axis} if per_channel else {}
            new[name] = helper.make_node(
                "DequantizeLinear", [f"{name}_int8", f"{name}_scale"], [name], name=f"{name}_dequantize", **attributes
            )
    nodes = [*new.values(), *made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made, integers


def _replace(model: onnx.ModelProto, name: str, value: Array, new: str = "") -> None:
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(numpy_helper.from_array(value, new or name))


def quantised(
    model: onnx.ModelProto, calib: Tensors, *, form: str = "float", outputs: bool = True, bits: int = 8
) -> tuple[onnx.ModelProto, dict[str, float]]:
    """The healthy way: ranges from the calibration feeds, weights a scale a channel; model and thresholds."""
    thresholds = ranges(model, calib, points(model, outputs=outputs))
    return with_pairs(with_weights(model, form)[0], thresholds, bits=bits), thresholds


def params(thresholds: Mapping[str, float], **more: object) -> dict[str, object]:
    """quant_params.json."""
    return {"method": "max", "bits": 8, "symmetric": True, "thresholds": dict(thresholds), **more}
