"""The demo's four ONNX files: as exported, folded, calibrated (QDQ) and int8; standard operators only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from driftgate.demo.network import (
    BRANCH,
    CLASSES,
    CONV1,
    CONV4,
    DW2,
    EPSILON,
    FC,
    FLAT,
    INPUT,
    JOINED,
    LOGITS,
    POOLED,
    PW3,
    RELU1,
    RELU4,
    SIDE,
    SUM,
    Affine,
    Floats,
    Layer,
)
from driftgate.demo.quantize import Quantized

OPSET = 19  # the first whose QuantizeLinear and DequantizeLinear onnx's own evaluator knows
IR_VERSION = 9

Attribute = int | float | Sequence[int]


class Graph:
    """Nodes and constants, in the order they are added."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        """Keep a constant once; returns its name."""
        self._constants.setdefault(name, numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def node(self, name: str, operator: str, inputs: Sequence[str], output: str, **attributes: Attribute) -> str:
        """Add a node with one output; returns that output's name."""
        node = helper.make_node(operator, inputs, [output], name=name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self._nodes.append(node)
        return output

    def serialized(self) -> bytes:
        """The checked model, from images (n, 1, 8, 8) to logits (n, 10), as the bytes of its file."""
        graph = helper.make_graph(
            self._nodes,
            self.name,
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", 1, SIDE, SIDE])],
            [helper.make_tensor_value_info(LOGITS, TensorProto.FLOAT, ["n", CLASSES])],
            list(self._constants.values()),
        )
        model = helper.make_model(
            graph,
            producer_name="driftgate demo",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )
        onnx.checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString(deterministic=True)
        return content


def exported(weights: Mapping[str, Floats]) -> bytes:
    """The float network as PyTorch would export it."""
    graph = Graph("digits")

    def constants(module: str, *parts: str) -> list[str]:
        return [graph.constant(f"{module}.{part}", weights[f"{module}.{part}"]) for part in parts]

    def convolution(layer: Layer, source: str) -> str:
        convolved = _convolution(graph, layer, [source, *constants(layer.name, "weight", "bias")], layer.convolved)
        statistics = constants(layer.norm, "weight", "bias", "running_mean", "running_var")
        name = f"/{layer.norm}/BatchNormalization"
        return graph.node(name, "BatchNormalization", [convolved, *statistics], layer.normalised, epsilon=EPSILON)

    flat = _body(graph, convolution, lambda tensor: tensor)
    graph.node("/fc/Gemm", "Gemm", [flat, *constants("fc", "weight", "bias")], LOGITS, transB=1)
    return graph.serialized()


def optimized(layers: Mapping[str, Affine]) -> bytes:
    """The float network with batch normalisation folded; a convolution takes the folded node's output name."""
    graph = Graph("digits_optimized_float")

    def constants(layer: Layer) -> list[str]:
        part = layers[layer.name]
        return [
            graph.constant(f"{layer.name}.weight", _gemm_or_conv(layer, part.weight)),
            graph.constant(f"{layer.name}.bias", part.bias),
        ]

    def convolution(layer: Layer, source: str) -> str:
        return _convolution(graph, layer, [source, *constants(layer)], layer.normalised)

    flat = _body(graph, convolution, lambda tensor: tensor)
    graph.node("/fc/Gemm", "Gemm", [flat, *constants(FC)], LOGITS, transB=1)
    return graph.serialized()


def calibrated(quantized: Quantized) -> bytes:
    """The QDQ network: float arithmetic on values rounded to their int8 steps."""
    graph = Graph("digits_calibrated")

    def rounded(source: str, tensor: str, output: str) -> str:
        scale = _scale(graph, quantized, tensor)
        integers = f"{tensor}_QuantizeLinear_Output"
        graph.node(f"{tensor}_QuantizeLinear", "QuantizeLinear", [source, *scale], integers)
        return graph.node(f"{tensor}_DequantizeLinear", "DequantizeLinear", [integers, *scale], output)

    def dequantized(layer: Layer, part: str, integers: NDArray[np.generic], steps: Floats) -> str:
        name = f"{layer.name}.{part}"
        inputs = [
            graph.constant(f"{name}_quantized", integers),
            graph.constant(f"{name}_scale", steps),
            graph.constant(f"{name}_zero_point", np.zeros(len(steps), integers.dtype)),
        ]
        return graph.node(
            f"{name}_DequantizeLinear", "DequantizeLinear", inputs, f"{name}_DequantizeLinear_Output", axis=0
        )

    def constants(layer: Layer) -> list[str]:
        part = quantized.layers[layer.name]
        bias_steps = quantized.scales[layer.source].step * part.steps
        return [
            dequantized(layer, "weight", _gemm_or_conv(layer, part.weight), part.steps),
            dequantized(layer, "bias", part.bias, bias_steps),
        ]

    def convolution(layer: Layer, source: str) -> str:
        return _convolution(graph, layer, [source, *constants(layer)], layer.normalised)

    flat = _body(graph, convolution, lambda tensor: rounded(tensor, tensor, f"{tensor}_DequantizeLinear_Output"))
    total = graph.node("/fc/Gemm", "Gemm", [flat, *constants(FC)], "/fc/Gemm_output_0", transB=1)
    rounded(total, LOGITS, LOGITS)
    return graph.serialized()


def integer(quantized: Quantized) -> bytes:
    """The int8 network: QLinearConv, and the residual sum in float between two scales."""
    graph = Graph("digits_ptq")

    def scale(tensor: str) -> list[str]:
        return _scale(graph, quantized, tensor)

    def convolution(layer: Layer, target: str) -> None:
        part = quantized.layers[layer.name]
        weight = [
            graph.constant(f"{layer.name}.weight_quantized", part.weight),
            graph.constant(f"{layer.name}.weight_scale", part.steps),
            graph.constant(f"{layer.name}.weight_zero_point", np.zeros(len(part.steps), np.int8)),
        ]
        bias = graph.constant(f"{layer.name}.bias_quantized", part.bias)
        inputs = [_q(layer.source), *scale(layer.source), *weight, *scale(layer.target), bias]
        _convolution(graph, layer, inputs, target, operator="QLinearConv")

    def dequantize(tensor: str, output: str) -> str:
        return graph.node(f"{tensor}_DequantizeLinear", "DequantizeLinear", [_q(tensor), *scale(tensor)], output)

    def quantize(tensor: str) -> None:
        graph.node(f"{tensor}_QuantizeLinear", "QuantizeLinear", [tensor, *scale(tensor)], _q(tensor))

    quantize(INPUT)
    for layer in (CONV1, DW2, PW3):
        convolution(layer, _q(layer.target))
    addends = [dequantize(tensor, f"{tensor}_DequantizeLinear_Output") for tensor in (BRANCH, RELU1)]
    graph.node("/relu3/Relu", "Relu", [graph.node("/Add", "Add", addends, SUM)], JOINED)
    quantize(JOINED)
    convolution(CONV4, _q(RELU4))
    graph.node("/pool/MaxPool", "MaxPool", [_q(RELU4)], _q(POOLED), kernel_shape=[2, 2], strides=[2, 2])
    convolution(FC, "/fc/Conv_output_0_quantized")
    graph.node("/Flatten", "Flatten", ["/fc/Conv_output_0_quantized"], _q(LOGITS), axis=1)
    dequantize(LOGITS, LOGITS)
    return graph.serialized()


def _body(graph: Graph, convolution: Callable[[Layer, str], str], settled: Callable[[str], str]) -> str:
    """Everything up to the flattened features; `settled` is asked for what to read in place of a tensor."""

    def activated(layer: Layer, source: str) -> str:
        output = convolution(layer, source)
        if layer.relu:
            output = graph.node(f"/{layer.relu}/Relu", "Relu", [output], layer.target)
        return settled(output)

    stem = activated(CONV1, settled(INPUT))
    branch = activated(PW3, activated(DW2, stem))
    total = graph.node("/Add", "Add", [branch, stem], SUM)
    joined = settled(graph.node("/relu3/Relu", "Relu", [total], JOINED))
    features = activated(CONV4, joined)
    pooled = settled(graph.node("/pool/MaxPool", "MaxPool", [features], POOLED, kernel_shape=[2, 2], strides=[2, 2]))
    return graph.node("/Flatten", "Flatten", [pooled], FLAT, axis=1)


def _convolution(graph: Graph, layer: Layer, inputs: Sequence[str], output: str, *, operator: str = "Conv") -> str:
    return graph.node(
        f"/{layer.name}/Conv",
        operator,
        inputs,
        output,
        kernel_shape=[layer.kernel] * 2,
        pads=[layer.padding] * 4,
        strides=[layer.stride] * 2,
        group=layer.groups,
    )


def _gemm_or_conv(layer: Layer, weight: NDArray[np.generic]) -> NDArray[np.generic]:
    return weight.reshape(len(weight), -1) if layer is FC else weight


def _scale(graph: Graph, quantized: Quantized, tensor: str) -> list[str]:
    scale = quantized.scales[tensor]
    owner = RELU4 if tensor == POOLED else tensor
    return [
        graph.constant(f"{owner}_scale", np.array(scale.step, np.float32)),
        graph.constant(f"{owner}_zero_point", np.array(scale.zero_point, np.int8)),
    ]


def _q(tensor: str) -> str:
    return f"{tensor}_quantized"
