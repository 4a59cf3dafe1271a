"""Builds an ONNX graph node by node, and knows the shape of every tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from faultgen.planting import Array, Random

IR_VERSION = 8

#: How tensors are called: by operator and number, as PyTorch's exporter does, or by bare numbers.
STYLES = ("short", "torch", "number")


class Graph:
    """Nodes in the order they are called for. `shape` holds shapes without the sample axis."""

    def __init__(self, random: Random, *, opset: int, style: str, batch: int | str) -> None:
        self.random = random
        self.opset = opset
        self.batch = batch
        self.shape: dict[str, tuple[int, ...]] = {}
        self.inputs: list[str] = []
        self._style = style
        self._count = 0
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, Array] = {}

    def jump(self, far: int = 100) -> None:
        """Go on naming at the next multiple of `far`, as if more nodes had been made."""
        self._count = (self._count // far + 1) * far

    def take(self, name: str, shape: Sequence[int]) -> str:
        """An input."""
        self.inputs.append(name)
        self.shape[name] = tuple(shape)
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """An initializer."""
        self._count += 1
        name = f"onnx::Const_{self._count}" if self._style == "torch" else f"w{self._count}"
        self._constants[name] = np.asarray(value, dtype)
        self.shape[name] = self._constants[name].shape[1:]
        return name

    def value(self, name: str) -> Array:
        """What an initializer holds."""
        return self._constants[name]

    def op(
        self,
        kind: str,
        inputs: Sequence[str],
        shape: Sequence[int] | None = None,
        *,
        name: str = "",
        outputs: int = 1,
        **attributes: Any,
    ) -> str:
        """One operator, and its first output; without `shape` that has the shape of the first input."""
        self._count += 1
        number = self._count
        told = name or {
            "short": f"{kind.lower()[:4]}{number}",
            "torch": f"/{kind.lower()}_{number}/{kind}_output_0",
            "number": str(100 + number),
        }.get(self._style, f"t{number}")
        node_name = f"/{kind.lower()}_{number}/{kind}" if self._style == "torch" else f"{kind}_{number}"
        made = [told, *(f"{told}_{place}" for place in range(1, outputs))]
        self._nodes.append(helper.make_node(kind, list(inputs), made, name=node_name, **attributes))
        self.shape[told] = self.shape[inputs[0]] if shape is None else tuple(shape)
        return told

    def rename(self, old: str, new: str) -> str:
        """Give a tensor another name wherever it stands."""
        for node in self._nodes:
            node.input[:] = [new if name == old else name for name in node.input]
            node.output[:] = [new if name == old else name for name in node.output]
        self.shape[new] = self.shape.pop(old)
        return new

    def conv(
        self,
        x: str,
        out: int,
        kernel: int = 3,
        *,
        stride: int = 1,
        groups: int = 1,
        bias: bool = True,
        gain: float = 1.0,
    ) -> str:
        """A convolution that keeps height and width where the stride is 1."""
        come, height, width = self.shape[x]
        deviation = gain * np.sqrt(2.0 / (come // groups * kernel * kernel))
        weight = self.random.normal(0, deviation, (out, come // groups, kernel, kernel))
        weight = weight * self.random.uniform(0.6, 1.5, (out, 1, 1, 1))
        inputs = [x, self.constant(weight)]
        if bias:
            inputs.append(self.constant(self.random.normal(0, 0.2, out)))
        pad = kernel // 2
        size = tuple((side + 2 * pad - kernel) // stride + 1 for side in (height, width))
        shared: dict[str, Any] = {
            "kernel_shape": [kernel] * 2,
            "strides": [stride] * 2,
            "pads": [pad] * 4,
            "group": groups,
        }
        return self.op("Conv", inputs, (out, *size), **shared)

    def norm(self, x: str) -> str:
        """A batch norm with the statistics of a training."""
        count = self.shape[x][0]
        parameters = (
            self.random.uniform(0.6, 1.4, count),
            self.random.normal(0, 0.3, count),
            self.random.normal(0, 0.3, count),
            self.random.uniform(0.4, 2.0, count),
        )
        return self.op("BatchNormalization", [x, *(self.constant(value) for value in parameters)], epsilon=1e-5)

    def act(self, x: str, kind: str) -> str:
        """An activation."""
        if kind == "Clip":
            return self.op("Clip", [x, self.constant(0.0), self.constant(6.0)])
        if kind == "SiLU":
            return self.op("Mul", [x, self.op("Sigmoid", [x])])
        if kind == "Gelu":
            inner = self.op("Erf", [self.op("Div", [x, self.constant(np.sqrt(2.0))])])
            shifted = self.op("Add", [inner, self.constant(1.0)])
            return self.op("Mul", [self.op("Mul", [x, shifted]), self.constant(0.5)])
        attributes: dict[str, Mapping[str, Any]] = {"LeakyRelu": {"alpha": 0.1}}
        return self.op(kind, [x], **attributes.get(kind, {}))

    def block(self, x: str, out: int, kind: str, *, kernel: int = 3, stride: int = 1, groups: int = 1) -> str:
        """Convolution, batch norm, activation."""
        return self.act(self.norm(self.conv(x, out, kernel, stride=stride, groups=groups, bias=False)), kind)

    def dense(self, x: str, out: int, *, gain: float = 1.0) -> str:
        """A Gemm on (samples, features)."""
        (come,) = self.shape[x]
        weight = self.random.normal(0, gain * np.sqrt(1.5 / come), (out, come))
        bias = self.random.normal(0, 0.1, out)
        return self.op("Gemm", [x, self.constant(weight), self.constant(bias)], (out,), transB=1)

    def linear(self, x: str, out: int) -> str:
        """A matrix on the last axis, plus a bias."""
        come = self.shape[x][-1]
        weight = self.random.normal(0, 1 / np.sqrt(come), (come, out))
        product = self.op("MatMul", [x, self.constant(weight)], (*self.shape[x][:-1], out))
        return self.op("Add", [product, self.constant(self.random.normal(0, 0.1, out))])

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        """The same numbers of a sample in another shape."""
        return self.op("Reshape", [x, self.constant([0, *shape], np.int64)], shape)

    def swap(self, x: str, *order: int) -> str:
        """A transpose; `order` counts without the sample axis, from 0."""
        shape = self.shape[x]
        return self.op("Transpose", [x], [shape[place] for place in order], perm=[0, *(place + 1 for place in order)])

    def mean(self, x: str, axis: int, *, keep: bool = False) -> str:
        """The mean over one axis, counted with the sample axis; the operator changed its form in opset 18."""
        shape = [
            size for place, size in enumerate(self.shape[x]) if keep or place + 1 != axis % (len(self.shape[x]) + 1)
        ]
        if keep:
            shape[axis % (len(shape) + 1) - 1] = 1
        if self.opset >= 18:
            return self.op("ReduceMean", [x, self.constant([axis], np.int64)], shape, keepdims=int(keep))
        return self.op("ReduceMean", [x], shape, axes=[axis], keepdims=int(keep))

    def model(self, outputs: Sequence[str], *, inferred: bool = True) -> onnx.ModelProto:
        """The finished model."""

        def told(name: str) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, [self.batch, *self.shape[name]])

        used = {name for node in self._nodes for name in node.input}
        graph = helper.make_graph(
            self._nodes,
            "net",
            [told(name) for name in self.inputs],
            [told(name) for name in outputs],
            [numpy_helper.from_array(value, name) for name, value in self._constants.items() if name in used],
        )
        domains = sorted({node.domain for node in self._nodes if node.domain})
        sets = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        made = helper.make_model(graph, opset_imports=sets, ir_version=IR_VERSION)
        if inferred and not domains:
            onnx.checker.check_model(made)
        return made
