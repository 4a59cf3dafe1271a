"""What rounded constants cost is told from the model alone, and is what it turns out to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from support.models import model, value
from support.nets import pictures
from support.trials import Array, investigated

SHAPE = (2, 8, 24, 24)
LEAST, MOST = 0.3, 1.9  # how far the error of one draw of roundings is from the expected one

random = np.random.default_rng(9)

#: Operator, its attributes, and the constant it reads second.
OPERATORS: Mapping[str, tuple[str, Mapping[str, Any], Array]] = {
    "convolution": ("Conv", {"pads": [1] * 4}, random.normal(0, 0.2, (16, 8, 3, 3))),
    "depthwise": ("Conv", {"pads": [1] * 4, "group": 8}, random.normal(0, 0.2, (8, 1, 3, 3))),
    "groups": ("Conv", {"group": 2}, random.normal(0, 0.2, (12, 4, 1, 1))),
    "transposed": ("ConvTranspose", {"strides": [2, 2]}, random.normal(0, 0.2, (8, 6, 2, 2))),
    "matrix": ("MatMul", {}, random.normal(0, 0.2, (24, 40))),
    "factor": ("Mul", {}, random.normal(0, 1.0, (8, 1, 1))),
    "divisor": ("Div", {}, random.uniform(1.0, 3.0, (8, 1, 1))),
    "summand": ("Add", {}, random.normal(0, 1.0, (8, 1, 1))),
    "subtrahend": ("Sub", {}, random.normal(0, 1.0, (8, 1, 1))),
    "slope": ("PRelu", {}, random.uniform(-0.5, 0.5, (8, 1, 1))),
    "gain": ("LayerNormalization", {}, random.normal(0, 1.0, (24,))),
}


def network(op: str, attributes: Mapping[str, Any], constant: str, before: Sequence[onnx.NodeProto]) -> list[Any]:
    return [*before, helper.make_node(op, ["x", constant], ["y"], name="the node", **attributes)]


@pytest.mark.parametrize("name", OPERATORS)
def test_of_one_operator(name: str, tmp_path: Path) -> None:
    op, attributes, number = OPERATORS[name]
    scale = np.float32(np.abs(number).max() / 15.0)  # coarse, so that nothing else is seen beside it
    integers = np.rint(number / scale).astype(np.int8)
    ends = [value("x", SHAPE)], [value("y", None)]
    reference = model(network(op, attributes, "c", ()), *ends, initializers={"c": number.astype(np.float32)})
    dequantise = helper.make_node("DequantizeLinear", ["i", "s"], ["d"])
    candidate = model(network(op, attributes, "d", [dequantise]), *ends, initializers={"i": integers, "s": scale})
    found = investigated(reference, candidate, pictures(9, SHAPE, 2), tmp_path)
    (node,) = found.nodes
    assert LEAST < node.excess < MOST


def test_integers_that_are_multiplied_make_each_others_rounding_larger(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["small"], name="small"),
        helper.make_node("Exp", ["x"], ["large"], name="large"),
        helper.make_node("Mul", ["small", "large"], ["y"], name="product"),
    ]
    ends = [value("x", SHAPE)], [value("y", None)]
    reference = model(nodes, *ends)
    steps = {"small": np.float32(0.05), "large": np.float32(0.02), "z": np.uint8(0), "out": np.float32(0.012)}
    candidate = model(
        [
            *nodes[:2],
            helper.make_node("QuantizeLinear", ["small", "small_step", "z"], ["a"]),
            helper.make_node("QuantizeLinear", ["large", "large_step", "z"], ["b"]),
            helper.make_node(
                "QLinearMul",
                ["a", "small_step", "z", "b", "large_step", "z", "out_step", "z"],
                ["q"],
                name="product",
                domain="com.microsoft",
            ),
            helper.make_node("DequantizeLinear", ["q", "out_step", "z"], ["y"]),
        ],
        *ends,
        initializers={"z": steps["z"], **{f"{name}_step": step for name, step in steps.items() if name != "z"}},
        domains=["com.microsoft"],
    )
    found = investigated(reference, candidate, pictures(9, SHAPE, 2), tmp_path)
    (product,) = [node for node in found.nodes if node.op == "Mul"]
    assert LEAST < product.excess < MOST
