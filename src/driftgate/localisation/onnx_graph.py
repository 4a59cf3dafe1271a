"""An ONNX model as a graph: what is constant, what is quantised, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from driftgate.domain.graphs import Graph, Node, Quantizer
from driftgate.domain.tensors import Quantization

#: Operators whose outputs differ although their inputs do not.
RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
)
#: Operators on integers that hand the numbers on, so that scale and zero point are those of their first input.
KEEPING = frozenset(
    {
        *(
            "Identity",
            "Reshape",
            "Flatten",
            "Transpose",
            "Squeeze",
            "Unsqueeze",
            "MaxPool",
            "Slice",
            "Gather",
            "Expand",
        ),
        *("Split", "Pad", "Resize", "DepthToSpace", "SpaceToDepth", "Tile", "Clip", "Max", "Min"),
    }
)
SCALAR_LIMIT = 1
#: Floats that numpy has.
FLOATS = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.DOUBLE: "float64",
    onnx.TensorProto.FLOAT16: "float16",
}


class Constants:
    """The values of a model's constants: initializers, Constant nodes, and what is computed of them alone."""

    def __init__(self, model: onnx.ModelProto, folder: Path) -> None:
        self._tensors: dict[str, onnx.TensorProto] = {t.name: t for t in model.graph.initializer}
        self._folder = str(folder)
        for node in model.graph.node:
            if node.op_type == "Constant" and node.output:
                tensor = _constant_tensor(node)
                if tensor is not None:
                    self._tensors[node.output[0]] = tensor

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a constant; KeyError if there is none of that name."""
        return tuple(self._tensors[name].dims)

    def value(self, name: str) -> NDArray[Any] | None:
        """Its value, external data included; None where it is no constant of the file."""
        tensor = self._tensors.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor, self._folder)

    def names(self) -> Iterable[str]:
        """All names."""
        return self._tensors.keys()


def read_graph(model: onnx.ModelProto, constants: Constants) -> Graph:
    """The main graph; sub-graphs are inside their node, their outer references are among its inputs."""
    graph = model.graph
    shapes: dict[str, tuple[int, ...]] = {name: constants.shape(name) for name in constants.names()}
    nodes: list[Node] = []
    for number, proto in enumerate(graph.node):
        if proto.op_type == "Constant":
            continue
        inputs = (*proto.input, *outer_references(proto))
        outputs = tuple(name for name in proto.output if name)
        if proto.op_type not in RANDOM and inputs and all(not name or name in shapes for name in inputs):
            shapes.update(dict.fromkeys(outputs, ()))
        nodes.append(Node(proto.name or f"#{number}", proto.op_type, tuple(inputs), outputs, _attributes(proto)))
    scalars = {
        name: float(value.reshape(-1)[0])
        for name in constants.names()
        if int(np.prod(constants.shape(name), dtype=np.int64)) == SCALAR_LIMIT
        and (value := constants.value(name)) is not None
        and value.dtype.kind in "fiu"
    }
    inputs = tuple(value.name for value in graph.input if value.name not in shapes)
    return Graph(
        nodes=tuple(nodes),
        inputs=inputs,
        outputs=tuple(value.name for value in graph.output),
        constants=shapes,
        quantizers=_quantizers(nodes, constants),
        scalars=scalars,
        casts={
            proto.output[0]: FLOATS[attribute.i]
            for proto in graph.node
            if proto.op_type == "Cast"
            for attribute in proto.attribute
            if attribute.name == "to" and attribute.i in FLOATS
        },
        handed={name: node.inputs[0] for node in nodes if node.inputs for name in node.outputs},
    )


def _constant_tensor(node: onnx.NodeProto) -> onnx.TensorProto | None:
    for attribute in node.attribute:
        if attribute.name == "value":
            found: onnx.TensorProto = attribute.t
            return found
        if attribute.name in ("value_float", "value_int"):
            value = onnx.helper.get_attribute_value(attribute)
            return numpy_helper.from_array(np.array(value, np.float32 if attribute.name == "value_float" else np.int64))
        if attribute.name in ("value_floats", "value_ints"):
            values = list(onnx.helper.get_attribute_value(attribute))
            return numpy_helper.from_array(
                np.array(values, np.float32 if attribute.name == "value_floats" else np.int64)
            )
    return None


def _attributes(node: onnx.NodeProto) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted(
            (attribute.name, str(onnx.helper.get_attribute_value(attribute)))
            for attribute in node.attribute
            if attribute.type
            in (
                onnx.AttributeProto.INT,
                onnx.AttributeProto.INTS,
                onnx.AttributeProto.FLOAT,
                onnx.AttributeProto.FLOATS,
                onnx.AttributeProto.STRING,
            )
        )
    )


def outer_references(node: onnx.NodeProto) -> tuple[str, ...]:
    """Tensors of the main graph that the sub-graphs of a node read."""
    read: list[str] = []
    for attribute in node.attribute:
        for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
            own = {value.name for value in (*graph.input, *graph.initializer)}
            for inner in graph.node:
                read.extend(name for name in (*inner.input, *outer_references(inner)) if name and name not in own)
                own.update(inner.output)
            read.extend(value.name for value in graph.output if value.name not in own)
    return tuple(name for name in dict.fromkeys(read) if name not in node.input)


def _quantizers(nodes: Iterable[Node], constants: Constants) -> Mapping[str, Quantizer]:
    found: dict[str, Quantizer] = {}
    for node in nodes:
        told = _own_quantizer(node, constants)
        if told is not None:
            found[node.outputs[0]] = told
        elif node.op in KEEPING and node.inputs and node.inputs[0] in found:
            if node.op == "Transpose" and found[node.inputs[0]].quantization.axis is not None:
                continue
            found.update(dict.fromkeys(node.outputs, found[node.inputs[0]]))
    return found


def _own_quantizer(node: Node, constants: Constants) -> Quantizer | None:
    """Scale and zero point that an operator gives its integer output: they are its last two such inputs."""
    if node.op == "QuantizeLinear":
        pair = (node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else "")
    elif node.op == "QLinearConv" or node.op == "QLinearMatMul":
        pair = (node.inputs[6], node.inputs[7])
    elif node.op == "QGemm" and len(node.inputs) >= 9:
        pair = (node.inputs[7], node.inputs[8])
    elif node.op == "QLinearConcat":
        pair = (node.inputs[0], node.inputs[1])
    elif node.op in ("QLinearAdd", "QLinearMul") and len(node.inputs) >= 7:
        pair = (node.inputs[6], node.inputs[7] if len(node.inputs) > 7 else "")
    elif node.op.startswith("QLinear") and len(node.inputs) >= 4:
        pair = (node.inputs[3], node.inputs[4] if len(node.inputs) > 4 else "")
    else:
        return None
    scale = constants.value(pair[0])
    zero = constants.value(pair[1]) if pair[1] else np.zeros(1, np.uint8)
    if scale is None or zero is None:
        return None
    axis = dict(node.attributes).get("axis", "1")
    scales = tuple(float(value) for value in scale.reshape(-1))
    limits = np.iinfo(zero.dtype)
    return Quantizer(
        Quantization(
            scales=scales,
            zero_points=tuple(int(value) for value in zero.reshape(-1)),
            axis=int(axis) if len(scales) > 1 else None,
        ),
        low=int(limits.min),
        high=int(limits.max),
    )
