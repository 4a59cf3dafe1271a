"""Normalisation as it may have been meant: epsilon, axis, constants, groups of channels."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper

from driftgate.diagnosis.bench import Side
from driftgate.diagnosis.graphs.variants import Variant, varied
from driftgate.diagnosis.surgery import added_constant, attribute, copied, label, replaced, with_input, with_inputs

GROUPS = (1, 2, 4, 8, 16, 32, 64)
EPSILONS = (1e-3, 1e-5, 1e-6, 1e-2, 1e-4, 1e-7, 1e-8, 1e-12)


def vary_norm(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Another epsilon, axis, constant; groups of channels."""
    now = float(attribute(node, "epsilon", 1e-5))
    code = "norm-fusion-error"
    for epsilon in EPSILONS:
        if not math.isclose(epsilon, now, rel_tol=1e-3):
            found = varied(side, code, f"epsilon={epsilon:g}", place, epsilon=epsilon)
            yield Variant(
                code, found.transform, found.model, found.nodes, (("epsilon", epsilon, ""), ("its epsilon", now, ""))
            )
    if node.op_type == "LayerNormalization":
        for axis in (-1, -2, -3, 1):
            if axis != int(attribute(node, "axis", -1)):
                yield varied(side, code, f"axis={axis}", place, axis=axis)
    for number in (1, 2):
        held = side.value(node.input[number]) if len(node.input) > number else None
        if held is None:
            continue
        for name in side.constants.names() if side.constants is not None else ():
            other = side.value(name)
            if (
                other is not None
                and other.shape == held.shape
                and name != node.input[number]
                and other.dtype == held.dtype
            ):
                yield Variant(
                    code, "another constant", with_input(side.whole_model, place, number, other), (label(node),)
                )
        yield Variant(
            code,
            "gamma 1" if number == 1 else "beta 0",
            with_input(side.whole_model, place, number, np.full_like(held, 2 - number)),
            (label(node),),
        )
    if node.op_type == "InstanceNormalization":
        yield from _grouped(side, place, node)
        yield from _regrouped(side, place, node)
    if node.op_type == "LayerNormalization":
        yield from _turned(side, place, node)


def _grouped(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Instance normalisation as a normalisation over groups of channels; one group is a layer."""
    gamma = side.value(node.input[1])
    if gamma is None:
        return
    channels = gamma.size
    for groups in (g for g in range(1, channels) if channels % g == 0):
        model = copied(side.whole_model)
        name = f"driftgate.group.{place}.{groups}"
        ones, zeros = (added_constant(model, np.full(groups, v, np.float32)) for v in (1.0, 0.0))
        to = added_constant(model, np.array([0, groups, -1], np.int64))
        nodes = [
            helper.make_node("Shape", [node.input[0]], [f"{name}.shape"]),
            helper.make_node("Reshape", [node.input[0], to], [f"{name}.in"]),
            helper.make_node(
                "InstanceNormalization",
                [f"{name}.in", ones, zeros],
                [f"{name}.out"],
                epsilon=attribute(node, "epsilon", 1e-5),
            ),
            helper.make_node("Reshape", [f"{name}.out", f"{name}.shape"], [f"{name}.back"]),
        ]
        nodes += scaled_by_channel(node, f"{name}.back", name)
        yield Variant(
            "norm-semantics",
            f"{groups} groups",
            replaced(model, place, nodes),
            (label(node),),
            (("groups", float(groups), ""),),
        )


def _regrouped(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Groups that a Reshape before makes, in another number."""
    nodes = side.whole_model.graph.node
    before = next((n for n, other in enumerate(nodes) if node.input[0] in other.output), None)
    shape = side.value(nodes[before].input[1]) if before is not None and nodes[before].op_type == "Reshape" else None
    if before is None or shape is None or shape.size < 3:
        return
    for groups in (g for g in GROUPS if g != int(shape[1])):
        to = np.array([shape[0], groups, -1], np.int64)
        model = with_inputs(
            side.whole_model,
            [
                (before, 1, to),
                (place, 1, np.ones(groups, np.float32)),
                (place, 2, np.zeros(groups, np.float32)),
            ],
        )
        facts = (("groups", float(groups), ""), ("its groups", float(shape[1]), ""))
        yield Variant("norm-semantics", f"{groups} groups", model, (label(node),), facts)


def _turned(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """A layer normalised along the axis before the last one."""
    for order in ([0, 2, 1], [0, 1, 3, 2], [1, 0]):
        name = f"driftgate.turned.{place}"
        inner = onnx.NodeProto()
        inner.CopyFrom(node)
        inner.input[0], inner.output[0] = f"{name}.in", f"{name}.out"
        nodes = [
            helper.make_node("Transpose", [node.input[0]], [f"{name}.in"], perm=order),
            inner,
            helper.make_node("Transpose", [f"{name}.out"], [node.output[0]], perm=order),
        ]
        yield Variant(
            "norm-semantics", "along the axis before", replaced(side.whole_model, place, nodes), (label(node),)
        )


def scaled_by_channel(node: onnx.NodeProto, value: str, name: str) -> list[onnx.NodeProto]:
    """Nodes that give a value (samples, channels, …) the gamma and beta of a normalisation, as its output; a batch
    normalisation with mean 0 and variance 1 does that for any number of axes."""
    gamma, beta = node.input[1], node.input[2]
    zeros, ones = f"{name}.zeros", f"{name}.ones"
    return [
        helper.make_node("Sub", [gamma, gamma], [zeros]),
        helper.make_node("Exp", [zeros], [ones]),
        helper.make_node("BatchNormalization", [value, gamma, beta, zeros, ones], [node.output[0]], epsilon=0.0),
    ]
