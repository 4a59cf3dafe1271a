"""The fixed-point network: integer products, an int32 or a float tail, preprocessing in front, IO nodes on or off."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from support.vendor.files import TensorTold
from support.vendor.graph import PASSING, SHAPING, Array, rebuilt
from support.vendor.preprocessing import InputSettings, preprocessed
from support.vendor.quantising import TABLE_STEP, TABLES, Linear, Plan

#: Marches whose high-precision tail is an int32 accumulator behind which a Dequantize stands (toolchain facts §9).
INTEGER_TAILS = ("nash-e", "nash-m")
ONNX_TYPES = {"U8": TensorProto.UINT8, "S8": TensorProto.INT8, "S32": TensorProto.INT32, "F32": TensorProto.FLOAT}
QUANTIZE, DEQUANTIZE = "Quantize", "Dequantize"


@dataclass(frozen=True, slots=True)
class Integers:
    """A tensor of integers: its name in the new graph, its type, and its scales along an axis."""

    name: str
    dtype: str
    scales: Array
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """The model, its tensors in order, the edge nodes as (node, type, tensor); integers and floats inside by tensor."""

    model: onnx.ModelProto
    inputs: tuple[TensorTold, ...]
    outputs: tuple[TensorTold, ...]
    removable: tuple[tuple[str, str, str], ...]
    whole: Mapping[str, Integers]
    real: Mapping[str, str]


def fixed_point(
    plan: Plan,
    march: str,
    *,
    settings: Mapping[str, InputSettings] | None = None,
    removed: Collection[str] = (),
) -> FixedPoint:
    """The network in integers; `removed` are the inputs and outputs without their Quantize and Dequantize."""
    return _Writer(plan, march, settings or {}, removed).written()


class _Writer:
    def __init__(self, plan: Plan, march: str, settings: Mapping[str, InputSettings], removed: Collection[str]) -> None:
        self.plan, self.settings, self.removed = plan, settings, removed
        self.has_integer_tail = march in INTEGER_TAILS
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = dict(plan.graph.constants)
        self.whole: dict[str, Integers] = {}
        self.real: dict[str, str] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self.told: list[TensorTold] = []
        self.removable: list[tuple[str, str, str]] = []

    def written(self) -> FixedPoint:
        graph = self.plan.graph
        for value in graph.inputs:
            self._input(value)
        for node in graph.nodes:
            self._node(node)
        outputs = tuple(self._output(name) for name in graph.outputs)
        made = rebuilt(graph.model, self.nodes, self.constants)
        del made.graph.input[:], made.graph.output[:]
        made.graph.input.extend(self.inputs)
        made.graph.output.extend(
            helper.make_tensor_value_info(tensor.name, ONNX_TYPES[tensor.dtype], tensor.shape) for tensor in outputs
        )
        return FixedPoint(made, tuple(self.told), outputs, tuple(self.removable), self.whole, self.real)

    def _do(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [output], name=f"{output}_{operator}", **attributes))
        return output

    def _hold(self, name: str, value: Any) -> str:
        self.constants[name] = np.asarray(value)
        return name

    def _input(self, value: onnx.ValueInfoProto) -> None:
        name = value.name
        shape = self.plan.graph.shapes[name]
        picture = preprocessed(self.settings, name, shape)
        if picture is not None:
            self.inputs += picture.inputs
            self.told += [TensorTold(one.name, _shape(one), "U8") for one in picture.inputs]
            self.nodes += picture.nodes
            self.constants |= picture.constants
            self._quantise(name, picture.made)
            return
        if name in self.plan.thresholds and name not in self.removed:
            self.removable.append((f"{name}_HzCalibration", QUANTIZE, name))
        if name in self.removed and name in self.plan.thresholds:
            step = self.plan.step(name)
            self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT8, shape))
            self.told.append(TensorTold(name, shape, "S8", (float(step),), (0,)))
            self.whole[name] = Integers(name, "S8", step.reshape(1))
            return
        self.inputs.append(value)
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        self.told.append(TensorTold(name, shape, {"float32": "F32", "int32": "S32"}.get(kind.name, "S64")))
        self.real[name] = name
        if name in self.plan.thresholds:
            self._quantise(name, name)

    def _quantise(self, name: str, source: str) -> None:
        """Integers of the tensor's own point."""
        step = self.plan.step(name)
        told = [self._hold(f"{name}_step", step), self._hold(f"{name}_zero", np.int8(0))]
        made = self._do("QuantizeLinear", [source, *told], f"{name}_integers")
        self.whole[name] = Integers(made, "S8", step.reshape(1))
        self.real.pop(name, None)

    def _real(self, name: str) -> str:
        """The tensor as floats, dequantised once."""
        if name in self.plan.graph.constants or name in self.real:
            return self.real.get(name, name)
        self.real[name] = self._dequantised(name, self.whole[name], f"{name}_real")
        return self.real[name]

    def _dequantised(self, name: str, held: Integers, target: str) -> str:
        if held.dtype == "S32":
            form = [1] * len(self.plan.graph.shapes[name])
            if held.axis is not None:
                form[held.axis] = held.scales.size
            cast = self._do("Cast", [held.name], f"{target}_cast", to=TensorProto.FLOAT)
            return self._do("Mul", [cast, self._hold(f"{target}_scales", held.scales.reshape(form))], target)
        zero = self._hold(f"{target}_zero", np.uint8(0) if held.dtype == "U8" else np.int8(0))
        return self._do("DequantizeLinear", [held.name, self._hold(f"{target}_step", held.scales[0]), zero], target)

    def _node(self, node: onnx.NodeProto) -> None:
        linear = self.plan.members.get(node.name)
        if linear is not None:
            if node.name == linear.node.name:
                self._linear(linear)
            return
        source = node.input[0] if node.input else ""
        held = self.whole.get(source)
        if held is not None and node.op_type in PASSING and len(node.output) == 1:
            axis = _followed(self.plan, node, held)
            if axis is not False:
                made = f"{node.output[0]}_integers"
                self._copied(node, [held.name, *node.input[1:]], [made])
                self.whole[node.output[0]] = Integers(made, held.dtype, held.scales, axis)
                return
        if node.op_type in TABLES:
            self._table(node)
            return
        outputs = [f"{name}_float" for name in node.output]
        self._copied(node, [self._real(name) for name in node.input], outputs)
        for name, made in zip(node.output, outputs, strict=True):
            self.real[name] = made
            if name in self.plan.thresholds:
                self._quantise(name, made)

    def _copied(self, node: onnx.NodeProto, inputs: list[str], outputs: list[str]) -> None:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:], copy.output[:] = inputs, outputs
        self.nodes.append(copy)

    def _table(self, node: onnx.NodeProto) -> None:
        """A function by its look-up table: 256 results in steps of 1/255."""
        name = node.output[0]
        self._copied(node, [self._real(node.input[0])], [f"{name}_function"])
        told = [self._hold(f"{name}_table_step", np.float32(TABLE_STEP)), self._hold(f"{name}_table_zero", np.uint8(0))]
        made = self._do("QuantizeLinear", [f"{name}_function", *told], f"{name}_table")
        self.whole[name] = Integers(made, "U8", np.array([TABLE_STEP], np.float32))
        if name in self.plan.thresholds:
            self._quantise(name, self._real(name))

    def _linear(self, linear: Linear) -> None:
        if self.plan.is_tail(linear):
            if self.has_integer_tail:
                self.whole[linear.result] = self._accumulated(linear)
            else:
                self._float_tail(linear)
        elif linear.node.op_type == "Conv":
            self._convolved(linear)
        else:
            held = self._accumulated(linear)
            real = self._dequantised(linear.result, held, f"{linear.result}_sum")
            real = self._do("Relu", [real], f"{linear.result}_rectified") if linear.rectified else real
            self._quantise(linear.result, real)

    def _bias(self, linear: Linear, scales: Array) -> Array:
        bias = np.zeros(scales.size) if linear.bias is None else linear.bias.astype(np.float64)
        return np.clip(np.rint(bias / scales), -(2**31), 2**31 - 1).astype(np.int32)

    def _accumulated(self, linear: Linear) -> Integers:
        """The int32 sums with their bias; a scale for each channel."""
        name, node = linear.result, linear.node
        source = self.whole[node.input[0]]
        scales = (source.scales[0] * linear.step).astype(np.float32)
        weight = self._hold(f"{node.name}_levels", linear.levels)
        zero = self._hold(f"{name}_input_zero", np.uint8(0) if source.dtype == "U8" else np.int8(0))
        if node.op_type == "Conv":
            attributes = _attributes(node)
            products = self._do("ConvInteger", [source.name, weight, zero], f"{name}_products", **attributes)
        else:
            products = self._do("MatMulInteger", [source.name, weight, zero], f"{name}_products")
        rank = len(self.plan.graph.shapes[node.output[0]])
        axis = 1 if node.op_type == "Conv" else rank - 1
        form = [-1 if place == axis else 1 for place in range(rank)]
        bias = self._hold(f"{node.name}_bias", self._bias(linear, scales).reshape(form))
        return Integers(self._do("Add", [products, bias], f"{name}_sums"), "S32", scales, axis)

    def _convolved(self, linear: Linear) -> None:
        """A convolution whose sums are brought to the scale of the next point at once."""
        name, node = linear.result, linear.node
        source = self.whole[node.input[0]]
        step = self.plan.step(name)
        scales = (source.scales[0] * linear.step).astype(np.float32)
        zero = np.uint8(0) if source.dtype == "U8" else np.int8(0)
        told = [
            source.name,
            self._hold(f"{name}_input_step", source.scales[0]),
            self._hold(f"{name}_input_zero", zero),
            self._hold(f"{node.name}_levels", linear.levels),
            self._hold(f"{node.name}_steps", linear.step),
            self._hold(f"{node.name}_zeros", np.zeros(scales.size, np.int8)),
            self._hold(f"{name}_step", step),
            self._hold(f"{name}_zero", np.int8(0)),
            self._hold(f"{node.name}_bias", self._bias(linear, scales)),
        ]
        made = self._do("QLinearConv", told, f"{name}_sums", **_attributes(node))
        made = self._do("Relu", [made], f"{name}_integers") if linear.rectified else made
        self.whole[name] = Integers(made, "S8", step.reshape(1))

    def _float_tail(self, linear: Linear) -> None:
        node = linear.node
        told = [self._hold(f"{node.name}_levels", linear.levels), self._hold(f"{node.name}_steps", linear.step)]
        weight = self._do("DequantizeLinear", told, f"{node.name}_weight_real", axis=linear.axis)
        operator = "Conv" if node.op_type == "Conv" else "MatMul"
        inputs = [self._real(node.input[0]), weight]
        attributes = _attributes(node) if operator == "Conv" else {}
        has_bias = linear.bias is not None
        if operator == "Conv" and linear.bias is not None:
            inputs.append(self._hold(f"{node.name}_bias", linear.bias))
        made = self._do(operator, inputs, f"{linear.result}_product", **attributes)
        if operator == "MatMul" and has_bias:
            made = self._do("Add", [made, self._hold(f"{node.name}_bias", linear.bias)], f"{linear.result}_sum")
        self.real[linear.result] = made

    def _output(self, name: str) -> TensorTold:
        shape, held = self.plan.graph.shapes[name], self.whole.get(name)
        if held is None:
            self._do("Identity", [self.real[name]], name)
            return TensorTold(name, shape, "F32")
        if name not in self.removed:
            self.removable.append((self._origin(name), DEQUANTIZE, name))
            self._dequantised(name, held, name)
            return TensorTold(name, shape, "F32")
        self._do("Identity", [held.name], name)
        scales = tuple(float(scale) for scale in held.scales)
        return TensorTold(name, shape, held.dtype, scales, (0,) * len(scales), held.axis if len(scales) > 1 else None)

    def _origin(self, name: str) -> str:
        """The node that computed what only changed its shape since."""
        producers = {output: node for node in self.plan.graph.nodes for output in node.output}
        node = producers[name]
        while node.op_type in SHAPING and node.input[0] in producers:
            node = producers[node.input[0]]
        linear = self.plan.members.get(node.name)
        return linear.node.name if linear is not None else node.name


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(length.dim_value for length in value.type.tensor_type.shape.dim)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _followed(plan: Plan, node: onnx.NodeProto, held: Integers) -> int | bool | None:
    """Where the channels of the scales stand behind a change of shape; False where they are lost."""
    if held.axis is None:
        return None
    if node.op_type == "Transpose":
        perm = list(_attributes(node)["perm"])
        return int(perm.index(held.axis))
    before, after = plan.graph.shapes[node.input[0]], plan.graph.shapes[node.output[0]]
    return next(_places(before, after, held.axis), False)


def _places(before: tuple[int, ...], after: tuple[int, ...], axis: int) -> Iterator[int]:
    ahead = int(np.prod(before[:axis], dtype=np.int64))
    for place, length in enumerate(after):
        if length == before[axis] and int(np.prod(after[:place], dtype=np.int64)) == ahead:
            yield place
