"""Normalisation as it may have been meant: epsilon, axis, constants, groups of channels."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper

from driftgate.diagnosis.bench import Side
from driftgate.diagnosis.graphs.variants import Variant, varied
from driftgate.diagnosis.surgery import added_constant, attribute, copied, label, replaced, with_input

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
        nodes += scaled_by_channel(model, node, f"{name}.back", name)
        yield Variant(
            "norm-semantics",
            f"{groups} groups",
            replaced(model, place, nodes),
            (label(node),),
            (("groups", float(groups), ""),),
        )


def scaled_by_channel(model: onnx.ModelProto, node: onnx.NodeProto, value: str, name: str) -> list[onnx.NodeProto]:
    """Nodes that give a value the gamma and beta of a normalisation, as its output."""
    around = added_constant(model, np.array([1, -1, 1, 1], np.int64))
    return [
        helper.make_node("Reshape", [node.input[1], around], [f"{name}.gamma"]),
        helper.make_node("Reshape", [node.input[2], around], [f"{name}.beta"]),
        helper.make_node("Mul", [value, f"{name}.gamma"], [f"{name}.scaled"]),
        helper.make_node("Add", [f"{name}.scaled", f"{name}.beta"], [node.output[0]]),
    ]
