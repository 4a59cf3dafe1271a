"""Networks for measuring: one of ResNet-50's shape with random weights, and what is made of a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[np.float32]

STAGES = ((3, 64, 256, 1), (4, 128, 512, 2), (6, 256, 1024, 2), (3, 512, 2048, 2))  # blocks, inner, outer, stride
CLASSES = 1000
OPSET, IR_VERSION = 17, 9


@dataclass
class _Builder:
    """Nodes and weights as they are added; weights keep the size of what flows through them."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401 - as ONNX takes them
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def weight(self, *shape: int, scale: float = 1.0, around: float = 0.0) -> str:
        name = f"weight_{len(self.weights)}"
        values = (self.rng.standard_normal(shape) * scale + around).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def convolution(self, source: str, fed: int, made: int, *, kernel: int = 1, stride: int = 1) -> str:
        """A convolution and its batch normalisation."""
        weight = self.weight(made, fed, kernel, kernel, scale=float(np.sqrt(2 / (fed * kernel * kernel))))
        folded = self.add("Conv", source, weight, strides=[stride] * 2, pads=[kernel // 2] * 4)
        gain, shift = self.weight(made, scale=0.05, around=1.0), self.weight(made, scale=0.1)
        mean = self.weight(made, scale=0.1)
        self.weights.append(numpy_helper.from_array(np.ones(made, np.float32), f"variance_{len(self.weights)}"))
        return self.add("BatchNormalization", folded, gain, shift, mean, self.weights[-1].name)


def residual_network(path: Path, *, side: int = 224) -> Path:
    """Write a network of ResNet-50's shape: feed `image` (1, 3, side, side), output (1, 1000)."""
    build = _Builder(np.random.default_rng(50))
    at = build.add("Relu", build.convolution("image", 3, 64, kernel=7, stride=2))
    at = build.add("MaxPool", at, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    fed = 64
    for blocks, inner, outer, first_stride in STAGES:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            side_way = build.convolution(at, fed, outer, stride=stride) if block == 0 else at
            way = build.add("Relu", build.convolution(at, fed, inner))
            way = build.add("Relu", build.convolution(way, inner, inner, kernel=3, stride=stride))
            way = build.convolution(way, inner, outer)
            half = build.weight(1, scale=0.0, around=0.7)
            at = build.add("Relu", build.add("Mul", build.add("Add", way, side_way), half))
            fed = outer
    pooled = build.add("Flatten", build.add("GlobalAveragePool", at))
    logits = build.add("Gemm", pooled, build.weight(fed, CLASSES, scale=0.02), build.weight(CLASSES, scale=0.1))
    graph = helper.make_graph(
        build.nodes,
        "residual",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, side, side])],
        [helper.make_tensor_value_info(logits, TensorProto.FLOAT, [1, CLASSES])],
        build.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.save(model, str(path))
    return path


def optimised(source: Path, target: Path, level: str = "basic") -> Path:
    """Write the graph that ONNX Runtime runs at that level."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_ENABLE_{level.upper()}")
    options.optimized_model_filepath = str(target)
    ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    return target
