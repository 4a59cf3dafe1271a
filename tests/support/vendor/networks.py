"""A small network of pictures for builds with the stand-in toolchain, and data of the kind it eats."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
SIZE, CLASSES = 32, 10
#: What pixels are normalised with, in the order of the training colours.
MEAN = (123.675, 116.28, 103.53)
SCALE = (0.01712475, 0.017507, 0.01742919)


def small_network(*, classes: int = CLASSES, size: int = SIZE, seed: int = 0, sigmoid: bool = False) -> onnx.ModelProto:
    """x (1, 3, size, size) → conv, factor, relu, pool, conv, relu, mean, product, sum (, sigmoid) → y (1, classes)."""
    random = np.random.default_rng(seed)

    def weight(*shape: int, fan: int) -> Array:
        values: Array = (random.normal(size=shape) / np.sqrt(fan)).astype(np.float32)
        return values

    constants = {
        "weight1": weight(8, 3, 3, 3, fan=27),
        "bias1": weight(8, fan=8),
        "factor": np.full((1, 8, 1, 1), 1.5, np.float32),
        "weight2": weight(8, 8, 3, 3, fan=72),
        "bias2": weight(8, fan=8),
        "weight3": weight(8, classes, fan=8),
        "bias3": weight(classes, fan=8),
    }
    scores = "scores" if sigmoid else "y"
    nodes = [
        helper.make_node("Conv", ["x", "weight1", "bias1"], ["c1"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["c1", "factor"], ["m1"], name="gain"),
        helper.make_node("Relu", ["m1"], ["r1"], name="relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "weight2", "bias2"], ["c2"], name="conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["g"], name="mean"),
        helper.make_node("Flatten", ["g"], ["f"], name="flat"),
        helper.make_node("MatMul", ["f", "weight3"], ["h"], name="head"),
        helper.make_node("Add", ["h", "bias3"], [scores], name="shift"),
        *([helper.make_node("Sigmoid", [scores], ["y"], name="squash")] if sigmoid else []),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, classes])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def pixels(count: int, *, size: int = SIZE, seed: int = 1) -> Array:
    """Pictures (count, size, size, 3) of 8-bit pixels: ramps of colour with something on them."""
    random = np.random.default_rng(seed)
    ramp = np.linspace(0, 1, size)
    corners = random.uniform(0, 255, (count, 2, 2, 3))
    rows = corners[:, 0, None] * (1 - ramp[:, None, None]) + corners[:, 1, None] * ramp[:, None, None]
    smooth = rows[:, :, 0, None] * (1 - ramp[:, None]) + rows[:, :, 1, None] * ramp[:, None]
    return np.clip(np.rint(smooth + random.normal(0, 12, smooth.shape)), 0, 255).astype(np.uint8)


def normalised(pictures: Array) -> Array:
    """The same as the float network eats them, (count, 3, size, size)."""
    floats: Array = ((pictures - np.array(MEAN)) * np.array(SCALE)).astype(np.float32).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(floats)
