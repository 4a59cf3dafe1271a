"""Points: every number of a graph once, under all its names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from driftgate.localisation.onnx_graph import Constants, read_graph
from driftgate.localisation.points import Point, consumers, read_points, read_routes, roots
from support.models import model, value

SCALE, ZERO = np.float32(0.1), np.int8(-128)
WEIGHT = np.ones((4, 3, 1, 1), np.float32)


def points_of(nodes: list[onnx.NodeProto], **initializers: object) -> tuple[Point, ...]:
    """The points of x (1, 3, 4, 4) and these nodes; `y` is the output."""
    made = model(
        nodes,
        [value("x", [1, 3, 4, 4])],
        [value("y", None)],
        initializers={name: np.asarray(array) for name, array in initializers.items()},
    )
    return read_points(read_graph(made, Constants(made, Path())))


def test_quantise_dequantise_and_identity_are_names_of_one_point() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Identity", ["r"], ["i"]),
        helper.make_node("QuantizeLinear", ["i", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Sigmoid", ["d"], ["y"]),
    ]
    _, relu, sigmoid = points_of(nodes, s=SCALE, z=ZERO)
    assert relu.names == ("r", "i", "q", "d")
    assert relu.tensor == "d"
    assert relu.quantizer is None
    assert relu.step == pytest.approx(0.1)
    assert relu.clip == pytest.approx((0.0, 25.5))
    assert sigmoid.sources == (relu.index,)


def test_integers_that_nothing_dequantises_are_tapped_as_integers() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("MaxPool", ["q"], ["y"], kernel_shape=[2, 2]),
    ]
    source, pooled = points_of(nodes, s=SCALE, z=ZERO)
    assert source.quantizer is not None
    assert source.tensor == "q"
    assert pooled.quantizer == source.quantizer  # the pool hands scale and zero point on


def test_views_have_the_number_of_their_root() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["t", "shape"], ["v"]),
        helper.make_node("Sigmoid", ["v"], ["y"]),
    ]
    points = points_of(nodes, shape=np.array([1, 48]))
    assert roots(points) == (0, 1, 1, 1, 4)
    assert consumers(points)[1] == (4,)


def test_batch_norm_and_constant_factors_vanish_in_what_is_linear_before_them() -> None:
    ones = np.ones(4, np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "ones", "ones", "ones", "ones"], ["b"]),
        helper.make_node("Mul", ["b", "two"], ["m"]),
        helper.make_node("Relu", ["m"], ["y"]),
    ]
    made = model(
        nodes,
        [value("x", [1, 3, 4, 4])],
        [value("y", None)],
        initializers={"w": WEIGHT, "ones": ones, "two": np.float32(2)},
    )
    graph = read_graph(made, Constants(made, Path()))
    points = read_points(graph)
    routes = read_routes(points, graph)
    ways = [{(route.tokens, route.sources) for route in told} for told in routes]
    assert (("Linear",), (0,)) in ways[1] & ways[2] & ways[3]
    assert (("Linear", "Relu"), (0,)) in ways[4]


def test_a_fused_activation_is_part_of_the_route() -> None:
    made = helper.make_node(
        "FusedConv",
        ["x", "w"],
        ["y"],
        domain="com.microsoft",
        activation="Clip",
        activation_params=[0.0, 6.0],
    )
    proto = model(
        [made],
        [value("x", [1, 3, 4, 4])],
        [value("y", None)],
        initializers={"w": WEIGHT},
        domains=["com.microsoft"],
    )
    graph = read_graph(proto, Constants(proto, Path()))
    points = read_points(graph)
    assert points[1].op == "Conv"
    assert read_routes(points, graph)[1][0].tokens == ("Linear", "Relu")


def test_features_lie_where_the_operator_puts_them() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Tanh", ["t"], ["h"]),
        helper.make_node("MatMul", ["h", "m"], ["y"]),
    ]
    points = points_of(nodes, w=WEIGHT, m=np.ones((4, 5), np.float32))
    assert [point.axis for point in points] == [None, 1, 1, 3, 3, -1]


def test_what_a_relu_or_clip_takes_off_is_not_heard() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Clip", ["c", "low", "high"], ["k"]),
        helper.make_node("Add", ["r", "k"], ["y"]),
    ]
    points = points_of(nodes, w=WEIGHT, low=np.float32(-1), high=np.float32(6))
    assert points[1].heard == (-1.0, float("inf"))
    assert points[2].heard == (float("-inf"), float("inf"))


def test_outer_tensors_of_a_branch_are_sources_of_its_if() -> None:
    branches = [
        helper.make_graph(
            [helper.make_node("Mul", ["r", "r"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)],
        )
        for name in ("then", "else")
    ]
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0),
        helper.make_node("Cast", ["top"], ["is"], to=TensorProto.BOOL),
        helper.make_node("If", ["is"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    points = points_of(nodes)
    (condition,) = [point for point in points if "is" in point.names]
    assert points[-1].op == "If"
    assert set(points[-1].sources) == {condition.index, 1}
