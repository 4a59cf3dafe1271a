"""A float ONNX network as the stand-in compiler sees it, and the one rewriting of it: equal in value, fewer nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
LINEAR = ("Conv", "Gemm", "MatMul")
#: Change places of values and nothing else.
SHAPING = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity")
#: Give integers of their input's scale.
PASSING = (*SHAPING, "MaxPool", "Relu")


@dataclass(frozen=True, slots=True)
class Graph:
    """A model with its constants as arrays, and who makes and reads each tensor."""

    model: onnx.ModelProto
    constants: Mapping[str, Array]
    readers: Mapping[str, tuple[onnx.NodeProto, ...]]
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def nodes(self) -> Sequence[onnx.NodeProto]:
        """In order."""
        return tuple(self.model.graph.node)

    @property
    def inputs(self) -> tuple[onnx.ValueInfoProto, ...]:
        """Without constants that old files list among them."""
        return tuple(value for value in self.model.graph.input if value.name not in self.constants)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return tuple(value.name for value in self.model.graph.output)

    def only_reader(self, name: str) -> onnx.NodeProto | None:
        """The one node that reads a tensor, which is no output."""
        readers = self.readers.get(name, ())
        return readers[0] if len(readers) == 1 and name not in self.outputs else None

    def active(self, node: onnx.NodeProto) -> tuple[str, ...]:
        """The inputs of a node that are no constants."""
        return tuple(name for name in node.input if name and name not in self.constants)


def graph_of(model: onnx.ModelProto) -> Graph:
    """What the rest wants to know of a model."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in dict.fromkeys(node.input):
            readers.setdefault(name, []).append(node)
    shapes = {
        value.name: tuple(length.dim_value for length in value.type.tensor_type.shape.dim)
        for value in (*inferred.input, *inferred.value_info, *inferred.output)
    }
    return Graph(model, constants, {name: tuple(found) for name, found in readers.items()}, shapes)


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that can be changed."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def original(model: onnx.ModelProto) -> onnx.ModelProto:
    """The user's model value for value; nodes without a name get one, constants stand among the initializers."""
    made = copied(model)
    kept = []
    for at, node in enumerate(made.graph.node):
        node.name = node.name or f"{node.op_type}_{at}"
        values = {attribute.name: attribute for attribute in node.attribute}
        if node.op_type == "Constant" and "value" in values:
            made.graph.initializer.append(
                numpy_helper.from_array(numpy_helper.to_array(values["value"].t), node.output[0])
            )
        else:
            kept.append(node)
    return rebuilt(made, kept)


def rebuilt(
    model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto], constants: Mapping[str, Array] | None = None
) -> onnx.ModelProto:
    """The model with other nodes, and constants in place of its own where they are given; unread ones are left out."""
    made = copied(model)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    held = {tensor.name: tensor for tensor in made.graph.initializer}
    held |= {
        name: numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in (constants or {}).items()
    }
    read = {name for node in made.graph.node for name in node.input}
    del made.graph.initializer[:]
    made.graph.initializer.extend(tensor for name, tensor in held.items() if name in read)
    return made


def optimised(model: onnx.ModelProto) -> onnx.ModelProto:
    """Equal in value: without Identity, batch normalisations and factors in the convolutions, products with their
    sums."""
    for rewrite in (_without_identities, _with_folded_factors, _with_gemms):
        model = rewrite(model)
    return model


def _without_identities(model: onnx.ModelProto) -> onnx.ModelProto:
    graph = graph_of(model)
    other: dict[str, str] = {}
    kept = []
    for node in graph.nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [other.get(name, name) for name in node.input]
        if node.op_type == "Identity" and node.output[0] not in graph.outputs:
            other[node.output[0]] = copy.input[0]
        else:
            kept.append(copy)
    return rebuilt(model, kept)


def _with_folded_factors(model: onnx.ModelProto) -> onnx.ModelProto:
    """A BatchNormalization, or a Mul by one number a channel, goes into the convolution in front of it."""
    graph = graph_of(model)
    constants = dict(graph.constants)
    kept: dict[int, onnx.NodeProto] = dict(enumerate(graph.nodes))
    places = {node.output[0]: at for at, node in kept.items()}
    for at, node in list(kept.items()):
        source = places.get(node.input[0]) if node.input else None
        if source is None or kept[source].op_type != "Conv" or not graph.only_reader(node.input[0]):
            continue
        conv = kept[source]
        if conv.input[1] not in constants or len(graph.readers.get(conv.input[1], ())) > 1:
            continue
        affine = _affine(node, graph, len(constants[conv.input[1]]))
        if affine is None:
            continue
        factor, shift = affine
        weight = constants[conv.input[1]]
        bias = constants[conv.input[2]] if len(conv.input) > 2 else np.zeros(len(weight), np.float32)
        folded = onnx.NodeProto()
        folded.CopyFrom(conv)
        names = [f"{conv.name}_weight", f"{conv.name}_bias"]
        folded.input[:] = [conv.input[0], *names]
        folded.output[:] = [node.output[0]]
        constants[names[0]] = (weight * factor.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.float32)
        constants[names[1]] = (bias * factor + shift).astype(np.float32)
        kept[source] = folded
        places[node.output[0]] = source
        del kept[at]
    return rebuilt(model, kept.values(), constants)


def _affine(node: onnx.NodeProto, graph: Graph, channels: int) -> tuple[Array, Array] | None:
    """Factor and shift of each channel; None for another operator."""
    if node.op_type == "BatchNormalization" and all(name in graph.constants for name in node.input[1:]):
        scale, shift, mean, variance = (graph.constants[name].astype(np.float64) for name in node.input[1:5])
        epsilon = next((attribute.f for attribute in node.attribute if attribute.name == "epsilon"), 1e-5)
        factor = scale / np.sqrt(variance + epsilon)
        return factor, shift - mean * factor
    if node.op_type == "Mul" and node.input[1] in graph.constants:
        value = graph.constants[node.input[1]].astype(np.float64)
        rank = len(graph.shapes.get(node.output[0], ()))
        if value.size == 1 or (
            value.size == channels and value.shape[:2] in ((1, channels), (channels, 1)) and rank > 2
        ):
            return np.broadcast_to(value.reshape(-1), (channels,)), np.zeros(channels)
    return None


def _with_gemms(model: onnx.ModelProto) -> onnx.ModelProto:
    """A MatMul of a matrix and the Add of a row of constants become one Gemm, under the product's name."""
    graph = graph_of(model)
    gone: set[str] = set()
    kept = []
    for node in graph.nodes:
        if node.name in gone:
            continue
        add = graph.only_reader(node.output[0]) if node.op_type == "MatMul" else None
        bias = bias_of(add, node.output[0], graph) if add is not None else ""
        flat = len(graph.shapes.get(node.input[0], ())) == 2 if node.input else False
        if add is None or not bias or not flat or node.input[1] not in graph.constants:
            kept.append(node)
            continue
        gone.add(add.name)
        kept.append(helper.make_node("Gemm", [*node.input, bias], add.output, name=node.name))
    return rebuilt(model, kept)


def bias_of(node: onnx.NodeProto, source: str, graph: Graph) -> str:
    """The constant that an Add gives to each channel behind a product; empty where it is no such Add."""
    if node.op_type != "Add":
        return ""
    other = [name for name in node.input if name != source]
    found = other[0] if len(other) == 1 else ""
    value = graph.constants.get(found)
    return found if value is not None and value.ndim <= 1 else ""
