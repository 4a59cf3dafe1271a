"""Networks built by hand for the tests of localisation: sane random weights, real operators, small inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

IR_VERSION = 9
OPSET = 17

Array = NDArray[Any]
Feeds = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Network:
    """A model, and the feeds of the samples it is looked at with."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Feeds]


@dataclass(slots=True)
class Builder:
    """Nodes in the order they are called for; every call gives the name of its output."""

    seed: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    channels: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    random: np.random.Generator = field(init=False)

    def constant(self, value: Array | float | Sequence[int], name: str = "") -> str:
        """An initializer."""
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        told = name or f"const_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, told))
        return told

    def node(self, op: str, inputs: Sequence[str], name: str = "", *, outputs: int = 1, **attributes: Any) -> str:
        """One operator; the name of its first output, the others are called `<name>_1`, …"""
        told = name or f"{op.lower()}_{len(self.nodes)}"
        made = [told if number == 0 else f"{told}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), made, name=f"node:{told}", **attributes))
        if inputs and inputs[0] in self.channels:
            self.channels.setdefault(told, self.channels[inputs[0]])
        return told

    def conv(
        self, x: str, out: int, kernel: int = 3, *, stride: int = 1, groups: int = 1, bias: bool = True, name: str = ""
    ) -> str:
        """A convolution that keeps the size where the stride is 1."""
        come = self.channels[x]
        deviation = np.sqrt(2.0 / (come // groups * kernel * kernel))
        weight = self.random.normal(0, deviation, (out, come // groups, kernel, kernel)).astype(np.float32)
        weight *= self.random.uniform(0.6, 1.5, (out, 1, 1, 1)).astype(np.float32)
        inputs = [x, self.constant(weight)]
        if bias:
            inputs.append(self.constant(self.random.normal(0, 0.2, out)))
        pad = kernel // 2
        made = self.node(
            "Conv", inputs, name, kernel_shape=[kernel] * 2, strides=[stride] * 2, group=groups, pads=[pad] * 4
        )
        self.channels[made] = out
        return made

    def norm(self, x: str, *, gain: float = 1.0, epsilon: float = 1e-5) -> str:
        """A batch norm with the statistics of training."""
        count = self.channels[x]
        parameters = (
            self.random.uniform(0.7, 1.3, count) * gain,
            self.random.normal(0, 0.3, count),
            self.random.normal(0, 0.3, count),
            self.random.uniform(0.5, 2.0, count),
        )
        return self.node("BatchNormalization", [x, *(self.constant(p) for p in parameters)], epsilon=epsilon)

    def block(self, x: str, out: int, kernel: int = 3, activation: str = "Relu", **options: Any) -> str:
        """Convolution without bias, batch norm, activation."""
        return self.activation(self.norm(self.conv(x, out, kernel, bias=False, **options)), activation)

    def activation(self, x: str, kind: str) -> str:
        """One of the activations that networks have."""
        if kind == "Clip":
            return self.node("Clip", [x, self.constant(0.0), self.constant(6.0)])
        if kind == "SiLU":
            return self.node("Mul", [x, self.node("Sigmoid", [x])])
        if kind == "HardSwish":
            return self.node("Mul", [x, self.node("HardSigmoid", [x], alpha=1 / 6, beta=0.5)])
        if kind == "LeakyRelu":
            return self.node("LeakyRelu", [x], alpha=0.1)
        if kind == "PRelu":
            slope = self.random.uniform(0.05, 0.4, (self.channels[x], 1, 1))
            return self.node("PRelu", [x, self.constant(slope)])
        if kind == "Gelu":
            half = self.node("Erf", [self.node("Div", [x, self.constant(np.float32(np.sqrt(2)))])])
            return self.node(
                "Mul", [self.node("Mul", [x, self.node("Add", [half, self.constant(1.0)])]), self.constant(0.5)]
            )
        return self.node(kind, [x])

    def linear(self, x: str, come: int, out: int, name: str = "") -> str:
        """Tokens times a matrix, plus a bias."""
        weight = self.random.normal(0, 1 / np.sqrt(come), (come, out))
        product = self.node("MatMul", [x, self.constant(weight)])
        return self.node("Add", [product, self.constant(self.random.normal(0, 0.1, out))], name)

    def layer_norm(self, x: str, width: int) -> str:
        """The operator of opset 17."""
        gain, shift = self.random.uniform(0.6, 1.4, width), self.random.normal(0, 0.2, width)
        return self.node("LayerNormalization", [x, self.constant(gain), self.constant(shift)], axis=-1, epsilon=1e-5)

    def taken_apart_layer_norm(self, x: str, width: int) -> str:
        """The same as exporters of older opsets write it."""
        mean = self.node("ReduceMean", [x], axes=[-1])
        centred = self.node("Sub", [x, mean])
        variance = self.node("ReduceMean", [self.node("Pow", [centred, self.constant(2.0)])], axes=[-1])
        spread = self.node("Sqrt", [self.node("Add", [variance, self.constant(1e-5)])])
        scaled = self.node(
            "Mul", [self.node("Div", [centred, spread]), self.constant(self.random.uniform(0.6, 1.4, width))]
        )
        return self.node("Add", [scaled, self.constant(self.random.normal(0, 0.2, width))])

    def dense(self, x: str, come: int, out: int, name: str = "") -> str:
        """A Gemm with transposed weights."""
        weight = self.random.normal(0, 1 / np.sqrt(come), (out, come))
        return self.node(
            "Gemm", [x, self.constant(weight), self.constant(self.random.normal(0, 0.1, out))], name, transB=1
        )

    def model(self, inputs: Mapping[str, Sequence[int]], outputs: Sequence[str]) -> onnx.ModelProto:
        """The finished model; shapes of the outputs are inferred."""
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self.initializers,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        inferred = onnx.shape_inference.infer_shapes(made, strict_mode=True)
        onnx.checker.check_model(inferred)
        return inferred


def pictures(seed: int, shape: Sequence[int], count: int) -> Mapping[str, Feeds]:
    """Samples under `x`: smooth shapes with edges and some noise, in -1 … 1, as photographs are."""
    random = np.random.default_rng(seed)
    _, channels, height, width = shape
    rows, columns = np.mgrid[0:height, 0:width]
    made: dict[str, Feeds] = {}
    for number in range(count):
        images = np.zeros(shape)
        for picture in images:
            for _ in range(4):
                angle, period, phase = random.uniform(0, np.pi), random.uniform(6, 40), random.uniform(0, 6.3)
                wave = np.sin((np.cos(angle) * rows + np.sin(angle) * columns) * 2 * np.pi / period + phase)
                picture += random.normal(0, 0.4, (channels, 1, 1)) * wave
            top, left = random.integers(0, height // 2), random.integers(0, width // 2)
            picture[:, top : top + height // 3, left : left + width // 3] += random.normal(0, 0.8, (channels, 1, 1))
        images += random.normal(0, 0.05, shape)
        made[str(number)] = {"x": np.clip(images, -1, 1).astype(np.float32)}
    return made


def tokens(seed: int, shape: Sequence[int], count: int) -> Mapping[str, Feeds]:
    """Samples under `x`: rows that resemble their neighbours, as embedded words and patches do."""
    random = np.random.default_rng(seed)
    made: dict[str, Feeds] = {}
    for number in range(count):
        walk = random.normal(0, 1, shape)
        for place in range(1, shape[1]):
            walk[:, place] = 0.6 * walk[:, place - 1] + 0.8 * walk[:, place]
        made[str(number)] = {"x": walk.astype(np.float32)}
    return made


def residual() -> Network:
    """Convolutions with batch norm, depthwise ones, additions, pools; a classifier's head."""
    b = Builder(1)
    b.channels["x"] = 3
    x = b.block("x", 16)
    y = b.activation(b.norm(b.conv(x, 16, groups=16, bias=False)), "Clip")
    y = b.norm(b.conv(y, 16, 1, bias=False))
    x = b.node("Relu", [b.node("Add", [x, y])])
    x = b.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = b.block(x, 24, activation="LeakyRelu")
    x = b.node("AveragePool", [x], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], count_include_pad=1)
    y = b.block(x, 24, activation="PRelu")
    x = b.node("Sub", [b.conv(y, 24, 1), x])
    x = b.block(x, 32, stride=2)
    x = b.node("Flatten", [x])
    x = b.node("Relu", [b.dense(x, 32 * 64, 48)])
    b.node("Softmax", [b.dense(x, 48, 10, "logits")], "probability", axis=-1)
    return Network(
        "residual", b.model({"x": [4, 3, 32, 32]}, ["logits", "probability"]), pictures(1, (4, 3, 32, 32), 2)
    )


def mobile() -> Network:
    """Inverted residuals with hard swish and squeeze and excitation."""
    b = Builder(2)
    b.channels["x"] = 3
    x = b.block("x", 16, stride=2, activation="HardSwish")
    for out, stride, excited in ((16, 1, True), (24, 2, False), (24, 1, True), (32, 2, True)):
        y = b.block(x, 3 * b.channels[x], 1, activation="HardSwish")
        wide = b.channels[y]
        y = b.block(y, wide, stride=stride, groups=wide, activation="HardSwish" if excited else "Relu")
        if excited:
            s = b.node("GlobalAveragePool", [y])
            s = b.activation(b.conv(s, wide // 4, 1), "Relu")
            y = b.node("Mul", [y, b.node("HardSigmoid", [b.conv(s, wide, 1)], alpha=0.2, beta=0.5)])
        y = b.norm(b.conv(y, out, 1, bias=False))
        x = b.node("Add", [x, y]) if stride == 1 and out == b.channels[x] else y
    x = b.block(x, 64, 1, activation="HardSwish")
    x = b.node("Flatten", [b.node("GlobalAveragePool", [x])])
    b.dense(x, 64, 12, "logits")
    return Network("mobile", b.model({"x": [4, 3, 48, 48]}, ["logits"]), pictures(2, (4, 3, 48, 48), 2))


def unet() -> Network:
    """Two levels down and up again, with skips; one way up resizes, the other is a transposed convolution."""
    b = Builder(3)
    b.channels["x"] = 3
    first = b.block(b.block("x", 12), 12)
    second = b.block(b.node("MaxPool", [first], kernel_shape=[2, 2], strides=[2, 2]), 24)
    second = b.block(second, 24)
    deep = b.block(b.node("AveragePool", [second], kernel_shape=[2, 2], strides=[2, 2]), 32)
    deep = b.block(deep, 24)
    scales = b.constant(np.array([1, 1, 2, 2], np.float32))
    up = b.node("Resize", [deep, "", scales], mode="linear", coordinate_transformation_mode="half_pixel")
    x = b.node("Concat", [second, up], axis=1)
    b.channels[x] = 48
    x = b.block(x, 12)
    weight = b.random.normal(0, 0.3, (12, 12, 2, 2))
    bias = b.constant(b.random.normal(0, 0.1, 12))
    x = b.node("ConvTranspose", [x, b.constant(weight), bias], kernel_shape=[2, 2], strides=[2, 2])
    x = b.node("Concat", [x, first], axis=1)
    b.channels[x] = 24
    x = b.block(x, 12)
    b.node("Sigmoid", [b.conv(x, 2, 1)], "mask")
    return Network("unet", b.model({"x": [1, 3, 48, 48]}, ["mask"]), pictures(3, (1, 3, 48, 48), 2))


def detector() -> Network:
    """A backbone with SiLU, split blocks, pooling pyramid, two scales and a decoding head as YOLO has them."""
    b = Builder(4)
    b.channels["x"] = 3

    def split(x: str, name: str) -> str:
        wide = b.channels[x] // 2
        b.node("Split", [x, b.constant(np.array([wide, wide]))], name, outputs=2, axis=1)
        b.channels[name] = b.channels[f"{name}_1"] = wide
        y = b.block(b.block(f"{name}_1", wide, activation="SiLU"), wide, activation="SiLU")
        y = b.node("Add", [f"{name}_1", y])
        made = b.node("Concat", [name, f"{name}_1", y], axis=1)
        b.channels[made] = 3 * wide
        return b.block(made, 2 * wide, 1, activation="SiLU")

    x = b.block("x", 12, stride=2, activation="SiLU")
    fine = split(b.block(x, 16, stride=2, activation="SiLU"), "s")
    x = split(b.block(fine, 24, stride=2, activation="SiLU"), "t")
    x = b.block(x, 12, 1, activation="SiLU")
    pooled = [x]
    for _ in range(3):
        pooled.append(b.node("MaxPool", [pooled[-1]], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
    x = b.node("Concat", pooled, axis=1)
    b.channels[x] = 48
    coarse = b.block(x, 24, 1, activation="SiLU")
    scales = b.constant(np.array([1, 1, 2, 2], np.float32))
    up = b.node(
        "Resize",
        [coarse, "", scales],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    fine = b.node("Concat", [up, fine], axis=1)
    b.channels[fine] = 40
    fine = b.block(fine, 20, activation="SiLU")
    flat, bins, classes = [], 8, 5
    for level, side in ((fine, 16), (coarse, 8)):
        box = b.conv(b.block(level, 16, activation="SiLU"), 4 * bins, 1)
        score = b.conv(b.block(level, 16, activation="SiLU"), classes, 1)
        both = b.node("Concat", [box, score], axis=1)
        flat.append(b.node("Reshape", [both, b.constant(np.array([1, 4 * bins + classes, side * side]))]))
    x = b.node("Concat", flat, axis=2)
    b.node("Split", [x, b.constant(np.array([4 * bins, classes]))], "heads", outputs=2, axis=1)
    places = 16 * 16 + 8 * 8
    x = b.node("Reshape", ["heads", b.constant(np.array([1, 4, bins, places]))])
    x = b.node("Softmax", [b.node("Transpose", [x], perm=[0, 2, 1, 3])], axis=1)
    b.channels[x] = bins
    weight = b.constant(np.arange(bins, dtype=np.float32).reshape(1, bins, 1, 1))
    x = b.node("Conv", [x, weight])
    x = b.node("Reshape", [x, b.constant(np.array([1, 4, places]))])
    b.node("Split", [x, b.constant(np.array([2, 2]))], "sides", outputs=2, axis=1)
    anchors = np.concatenate(
        [np.stack(np.meshgrid(np.arange(n) + 0.5, np.arange(n) + 0.5)).reshape(2, -1) for n in (16, 8)], axis=1
    )[None]
    least = b.node("Sub", [b.constant(anchors), "sides"])
    most = b.node("Add", [b.constant(anchors), "sides_1"])
    centre = b.node("Div", [b.node("Add", [least, most]), b.constant(2.0)])
    size = b.node("Sub", [most, least])
    strides = np.concatenate([np.full(256, 4.0), np.full(64, 8.0)])[None, None]
    boxes = b.node("Mul", [b.node("Concat", [centre, size], axis=1), b.constant(strides)])
    b.node("Concat", [boxes, b.node("Sigmoid", ["heads_1"])], "detections", axis=1)
    return Network("detector", b.model({"x": [1, 3, 64, 64]}, ["detections"]), pictures(4, (1, 3, 64, 64), 2))


def transformer() -> Network:
    """Two blocks of attention; layer norm once as an operator and once taken apart, Gelu as exporters write it."""
    b = Builder(5)
    rows, width, heads = 32, 48, 4
    x = b.linear("x", width, width)
    for number in range(2):
        normed = b.layer_norm(x, width) if number == 0 else b.taken_apart_layer_norm(x, width)
        apart = b.constant(np.array([2, rows, heads, width // heads]))
        q, k, v = (b.node("Reshape", [b.linear(normed, width, width), apart]) for _ in range(3))
        q = b.node("Transpose", [q], perm=[0, 2, 1, 3])
        k = b.node("Transpose", [k], perm=[0, 2, 3, 1])
        v = b.node("Transpose", [v], perm=[0, 2, 1, 3])
        scores = b.node("Div", [b.node("MatMul", [q, k]), b.constant(np.float32(np.sqrt(width // heads)))])
        mixed = b.node("MatMul", [b.node("Softmax", [scores], axis=-1), v])
        mixed = b.node("Transpose", [mixed], perm=[0, 2, 1, 3])
        mixed = b.linear(b.node("Reshape", [mixed, b.constant(np.array([2, rows, width]))]), width, width)
        x = b.node("Add", [x, mixed])
        inner = b.activation(b.linear(b.layer_norm(x, width), width, 2 * width), "Gelu")
        x = b.node("Add", [x, b.linear(inner, 2 * width, width)])
    x = b.layer_norm(x, width)
    b.linear(b.node("ReduceMean", [x], axes=[1], keepdims=0), width, 10, "logits")
    return Network("transformer", b.model({"x": [2, rows, width]}, ["logits"]), tokens(5, (2, rows, width), 2))


def modern() -> Network:
    """Large depthwise kernels with layer norm over channels, as ConvNeXt has them, and group norm."""
    b = Builder(6)
    b.channels["x"] = 3
    width, side = 24, 16
    x = b.conv("x", width, 4 + 1, stride=2)
    for _ in range(2):
        y = b.conv(x, width, 7, groups=width)
        y = b.layer_norm(b.node("Transpose", [y], perm=[0, 2, 3, 1]), width)
        y = b.activation(b.linear(y, width, 3 * width), "Gelu")
        y = b.linear(y, 3 * width, width)
        y = b.node("Mul", [y, b.constant(b.random.uniform(0.5, 1.0, width))])
        x = b.node("Add", [x, b.node("Transpose", [y], perm=[0, 3, 1, 2])])
        b.channels[x] = width
    y = b.node("Reshape", [x, b.constant(np.array([2, 4, -1]))])
    y = b.node("InstanceNormalization", [y, b.constant(np.ones(4, np.float32)), b.constant(np.zeros(4, np.float32))])
    y = b.node("Reshape", [y, b.constant(np.array([2, width, side, side]))])
    y = b.node("Mul", [y, b.constant(b.random.uniform(0.6, 1.4, (width, 1, 1)))])
    y = b.node("Add", [y, b.constant(b.random.normal(0, 0.2, (width, 1, 1)))])
    b.channels[y] = width
    x = b.node("Add", [x, b.activation(b.conv(y, width, 3), "SiLU")])
    b.channels[x] = width
    b.node("Tanh", [b.conv(x, 3, 3)], "picture")
    return Network("modern", b.model({"x": [2, 3, 32, 32]}, ["picture"]), pictures(6, (2, 3, 32, 32), 2))


def branching() -> Network:
    """Convolutions around an If: both branches read tensors of the main graph."""
    b = Builder(8)
    b.channels["x"] = 3
    x = b.block("x", 12)
    mean = b.node("ReduceMean", [x], keepdims=0)
    bright = b.node("Greater", [mean, b.constant(np.float32(0.0))])
    branches = []
    for name, factor in (("then", 1.5), ("else", -0.5)):
        value = numpy_helper.from_array(np.float32(factor), f"{name}_factor")
        inside = [
            helper.make_node("Mul", [x, f"{name}_factor"], [f"{name}_scaled"], name=f"{name}:mul"),
            helper.make_node("Tanh", [f"{name}_scaled"], [f"{name}_out"], name=f"{name}:tanh"),
        ]
        out = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, [2, 12, 24, 24])
        branches.append(helper.make_graph(inside, name, [], [out], [value]))
    y = b.node("If", [bright], then_branch=branches[0], else_branch=branches[1])
    b.channels[y] = 12
    y = b.block(y, 12)
    x = b.node("Add", [x, y])
    b.node("Sigmoid", [b.conv(x, 2, 1)], "mask")
    return Network("branching", b.model({"x": [2, 3, 24, 24]}, ["mask"]), pictures(8, (2, 3, 24, 24), 2))


def resnet50() -> Network:
    """Sixteen bottlenecks as ResNet-50 has them, an eighth as wide, before batch norms are folded."""
    b = Builder(7)
    b.channels["x"] = 3
    x = b.block("x", 8, 7, stride=2)
    x = b.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for depth, (count, wide) in enumerate(((3, 8), (4, 16), (6, 32), (3, 64))):
        for number in range(count):
            stride = 2 if number == 0 and depth else 1
            y = b.block(b.block(x, wide, 1), wide, stride=stride)
            y = b.norm(b.conv(y, 4 * wide, 1, bias=False), gain=0.3)
            if number == 0:
                x = b.norm(b.conv(x, 4 * wide, 1, stride=stride, bias=False))
            x = b.node("Relu", [b.node("Add", [y, x])])
            b.channels[x] = 4 * wide
    x = b.node("Flatten", [b.node("GlobalAveragePool", [x])])
    b.dense(x, 256, 20, "logits")
    return Network("resnet50", b.model({"x": [1, 3, 64, 64]}, ["logits"]), pictures(7, (1, 3, 64, 64), 2))


BUILT: Mapping[str, Callable[[], Network]] = {
    build.__name__: build for build in (residual, mobile, unet, detector, transformer, modern)
}
