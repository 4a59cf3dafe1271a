"""Where a network is quantised and how far: points, their thresholds by calibration, and the fake-quantised form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from support.vendor.graph import LINEAR, PASSING, SHAPING, Array, Graph, bias_of, copied, rebuilt
from support.vendor.running import session

#: Largest integer of a symmetric 8-bit tensor.
LIMIT = 127
#: Functions that become look-up tables, whose results lie between 0 and 1 in steps of 1/255.
TABLES = ("Sigmoid",)
TABLE_STEP = 1 / 255
LEAST = 1e-6
DOMAIN = "horizon"


@dataclass(frozen=True, slots=True)
class Linear:
    """A product with its constant weight, the bias behind it and the Relu behind that; `result` is its last tensor."""

    node: onnx.NodeProto
    members: tuple[str, ...]
    weight: Array
    axis: int  # of the weight's output channels
    bias: Array | None
    rectified: bool
    result: str

    @property
    def step(self) -> Array:
        """The scale of each output channel of the weight."""
        places = tuple(place for place in range(self.weight.ndim) if place != self.axis)
        largest = np.maximum(np.abs(self.weight).max(axis=places), LEAST)
        step: Array = (largest / LIMIT).astype(np.float32)
        return step

    @property
    def levels(self) -> Array:
        """The weight as integers."""
        form = [-1 if place == self.axis else 1 for place in range(self.weight.ndim)]
        levels: Array = np.clip(np.rint(self.weight / self.step.reshape(form)), -LIMIT, LIMIT).astype(np.int8)
        return levels


@dataclass(frozen=True, slots=True)
class Plan:
    """A network and its quantisation: `thresholds` by tensor, `linears` by the name of their first node."""

    graph: Graph
    linears: Mapping[str, Linear]
    thresholds: Mapping[str, float]
    calibrated: bool = True
    members: Mapping[str, Linear] = field(default_factory=dict)

    def step(self, tensor: str) -> Array:
        """The scale of a tensor that is quantised at a point of its own."""
        return np.array(self.thresholds[tensor] / LIMIT, np.float32)

    def point(self, tensor: str) -> str | None:
        """The point whose integers a tensor has, its own or that of what was passed on; None where it is float."""
        producer = next((node for node in self.graph.nodes if tensor in node.output), None)
        while tensor not in self.thresholds and producer is not None and producer.op_type in PASSING:
            tensor = producer.input[0]
            producer = next((node for node in self.graph.nodes if tensor in node.output), None)
        return tensor if tensor in self.thresholds else None

    def is_tail(self, linear: Linear) -> bool:
        """Whether its result goes out as it is."""
        return linear.result not in self.thresholds


def planned(graph: Graph, samples: Sequence[Mapping[str, Array]]) -> Plan:
    """The points of a network, and their thresholds: the largest magnitudes over the samples, or 1 without any."""
    linears = {linear.node.name: linear for linear in _linears(graph)}
    members = {name: linear for linear in linears.values() for name in linear.members}
    points = list(dict.fromkeys(_points(graph, linears, members)))
    thresholds = _largest(graph, points, samples) if samples else dict.fromkeys(points, 1.0)
    return Plan(graph, linears, thresholds, bool(samples), members)


def _linears(graph: Graph) -> Iterator[Linear]:
    for node in graph.nodes:
        if node.op_type not in LINEAR or node.input[1] not in graph.constants:
            continue
        told = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        weight = graph.constants[node.input[1]]
        if node.op_type == "Gemm":
            if told.get("transA") or told.get("alpha", 1.0) != 1.0 or told.get("beta", 1.0) != 1.0:
                continue
            weight = weight.T if told.get("transB") else weight
        if node.op_type != "Conv" and weight.ndim != 2:
            continue
        bias = graph.constants.get(node.input[2]) if len(node.input) > 2 else None
        members, result = [node.name], node.output[0]
        following = graph.only_reader(result)
        if following is not None and node.op_type == "MatMul" and (name := bias_of(following, result, graph)):
            bias, result = graph.constants[name], following.output[0]
            members.append(following.name)
            following = graph.only_reader(result)
        rectified = following is not None and following.op_type == "Relu"
        if following is not None and rectified:
            members.append(following.name)
            result = following.output[0]
        axis = 0 if node.op_type == "Conv" else 1
        yield Linear(node, tuple(members), weight, axis, _row(bias, weight.shape[axis]), rectified, result)


def _row(bias: Array | None, channels: int) -> Array | None:
    return None if bias is None else np.broadcast_to(bias.reshape(-1), (channels,)).astype(np.float32)


def _points(graph: Graph, linears: Mapping[str, Linear], members: Mapping[str, Linear]) -> Iterator[str]:
    """The inputs, and what each operator gives, unless it only passes on or goes out as it is."""
    for value in graph.inputs:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            yield value.name
    for node in graph.nodes:
        if node.name in members:
            linear = members[node.name]
            if node.name == linear.members[-1] and (linear.rectified or not _goes_out(graph, linear.result)):
                yield linear.result
        elif node.op_type not in PASSING:
            yield from (name for name in node.output if name and graph.readers.get(name) and not _goes_out(graph, name))


def _goes_out(graph: Graph, tensor: str) -> bool:
    """Whether nothing but changes of shape stand between a tensor and an output."""
    readers = graph.readers.get(tensor, ())
    if tensor in graph.outputs:
        return not readers
    return len(readers) == 1 and readers[0].op_type in SHAPING and _goes_out(graph, readers[0].output[0])


def _largest(graph: Graph, points: Sequence[str], samples: Sequence[Mapping[str, Array]]) -> dict[str, float]:
    inner = [name for name in points if name not in samples[0]]
    largest = dict.fromkeys(points, LEAST)
    runner = session(tapped(graph.model, inner).SerializeToString())
    for sample in samples:
        made = dict(zip(inner, runner.run(inner, dict(sample)), strict=True)) if inner else {}
        for name in points:
            value = made[name] if name in made else sample[name]
            largest[name] = max(largest[name], float(np.abs(value).max()))
    return largest


def tapped(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """The model with these tensors among its outputs."""
    made = copied(model)
    held = {value.name for value in made.graph.output}
    made.graph.output.extend(
        helper.make_empty_tensor_value_info(name) for name in dict.fromkeys(names) if name not in held
    )
    return made


class FakeQuantiser:
    """Writes the network with a marker and a Q/DQ pair at each point, and its weights as integers."""

    def __init__(self, plan: Plan, *, tables: bool) -> None:
        self.plan, self.tables = plan, tables
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = dict(plan.graph.constants)
        self.reading: dict[str, str] = {}

    def model(self) -> onnx.ModelProto:
        """The calibrated network, or with `tables` that whose functions are look-up tables."""
        graph = self.plan.graph
        for value in graph.inputs:
            if value.name in self.plan.thresholds:
                self._marked(value.name, value.name)
        for node in graph.nodes:
            self._written(node)
        made = rebuilt(graph.model, self.nodes, self.constants)
        made.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        return made

    def _written(self, node: onnx.NodeProto) -> None:
        outputs = self.plan.graph.outputs
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [self.reading.get(name, name) for name in node.input]
        if node.name in self.plan.linears:
            copy.input[1] = self._weight(node, self.plan.linears[node.name])
        marked = [name for name in node.output if name in self.plan.thresholds]
        table = self.tables and node.op_type in TABLES
        copy.output[:] = [
            f"{name}_real" if name in outputs and (name in marked or table) else name for name in node.output
        ]
        self.nodes.append(copy)
        source = copy.output[0]
        if table:
            source = f"{node.output[0]}_table" if marked else node.output[0]
            self._pair(copy.output[0], source, np.float32(TABLE_STEP), np.uint8(0))
        for name in marked:
            self._marked(name, source)

    def _marked(self, name: str, source: str) -> None:
        """A marker and a pair; what reads the tensor reads what comes out of the pair."""
        is_output = name in self.plan.graph.outputs
        marker = f"{name}_HzCalibration"
        self.nodes.append(helper.make_node("HzCalibration", [source], [marker], name=marker, domain=DOMAIN))
        self.reading[name] = name if is_output else f"{name}_dequantised"
        self._pair(marker, self.reading[name], self.plan.step(name), np.int8(0))

    def _pair(self, source: str, target: str, step: Any, zero: Any) -> None:
        self.constants |= {f"{target}_step": np.asarray(step), f"{target}_zero": np.asarray(zero)}
        told = [f"{target}_step", f"{target}_zero"]
        name = f"{target}_QuantizeLinear"
        self.nodes.append(helper.make_node("QuantizeLinear", [source, *told], [f"{target}_integers"], name=name))
        name = f"{target}_DequantizeLinear"
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{target}_integers", *told], [target], name=name))

    def _weight(self, node: onnx.NodeProto, linear: Linear) -> str:
        """The weight behind a DequantizeLinear; a Gemm keeps the order of its own."""
        name = f"{node.name}_weight_dequantised"
        turned = self.plan.graph.constants[node.input[1]].shape != linear.weight.shape or _is_turned(node)
        levels, axis = (linear.levels.T, 1 - linear.axis) if turned else (linear.levels, linear.axis)
        self.constants |= {f"{node.name}_levels": levels, f"{node.name}_steps": linear.step}
        told = [f"{node.name}_levels", f"{node.name}_steps"]
        self.nodes.append(helper.make_node("DequantizeLinear", told, [name], name=f"{name}_node", axis=axis))
        return name


def _is_turned(node: onnx.NodeProto) -> bool:
    return any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
