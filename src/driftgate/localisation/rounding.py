"""Quantised constants of operators: how much error their rounding gives the output, by channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from driftgate.domain.graphs import Graph
from driftgate.domain.measurements import Array
from driftgate.localisation.onnx_graph import Constants
from driftgate.localisation.points import LINEAR, RENAMED, Point, roots

UNIFORM = 12.0  # variance of rounding to a step of 1 is 1/12
#: Integer operators: places of weights, scale and zero point.
_PLACES: Mapping[str, tuple[int, int, int]] = {
    "QLinearConv": (3, 4, 5),
    "QLinearMatMul": (3, 4, 5),
    "QGemm": (3, 4, 5),
}


@dataclass(frozen=True, slots=True)
class Term:
    """Variance by output channel: `coefficient` times the mean square of what a channel reads of `source`, summed
    over the channels of its group. `groups` of so many `channels`; no groups: each channel reads its own."""

    source: int
    coefficient: Array
    groups: int = 0
    channels: int = 1

    def variance(self, power: Array) -> Array:
        """Of the source's mean square by channel."""
        read: Array | float
        if self.groups == 0:
            fits = len(self.coefficient) == 1 or len(power) in (1, len(self.coefficient))
            read = power if fits else float(power.mean())
        elif len(power) == self.groups * self.channels:
            by_group = power.reshape(self.groups, -1).sum(1)
            read = np.repeat(by_group, len(self.coefficient) // self.groups)
        else:
            read = float(power.mean()) * self.channels
        made: Array = self.coefficient * read
        return made


@dataclass(frozen=True, slots=True)
class Rounding:
    """What rounded constants give an output, by channel or one number for all: the `terms`, and `flat`. `gain` is
    the variance that input noise of variance 1 gives; 0 where terms tell it."""

    terms: tuple[Term, ...]
    gain: Array
    flat: Array


@dataclass(frozen=True, slots=True)
class _Constant:
    """Integers without their zero point, and the scales by channel."""

    integers: Array
    scales: Array

    @property
    def numbers(self) -> Array:
        """What they stand for, where there is one scale."""
        made: Array = self.integers * float(self.scales.max())
        return made

    @property
    def variance(self) -> float:
        """Of rounding them."""
        return float(self.scales.max()) ** 2 / UNIFORM


def read_rounding(
    model: onnx.ModelProto, graph: Graph, points: Sequence[Point], constants: Constants
) -> Mapping[int, Rounding]:
    """By point, what rounding its operator's constants and integer factors costs; only points of which that is
    told."""
    owner = {name: point.index for point in points for name in point.names}
    maker = {name: node for node in model.graph.node for name in node.output}
    desk = _Desk(graph, points, owner, roots(points), maker, constants)
    found: dict[int, Rounding] = {}
    for node in model.graph.node:
        reading = _READERS.get(RENAMED.get(node.op_type, node.op_type))
        point = owner.get(node.output[0]) if node.output else None
        told = reading(node, desk) if reading is not None and point is not None else None
        if point is not None and told is not None:
            found[point] = told
    return found


@dataclass(frozen=True, slots=True)
class _Desk:
    """What constants and points are looked up in."""

    graph: Graph
    points: Sequence[Point]
    owner: Mapping[str, int]
    root: Sequence[int]
    maker: Mapping[str, onnx.NodeProto]
    constants: Constants

    def source(self, name: str) -> int | None:
        """The point whose number a tensor is."""
        index = self.owner.get(name)
        return None if index is None else self.root[index]

    def constant(self, name: str) -> _Constant | None:
        """What a dequantiser of a constant gives, seen through operators that hand it on."""
        made = self.maker.get(name)
        while made is not None and made.op_type in ("Identity", "Reshape"):
            made = self.maker.get(made.input[0])
        if made is None or made.op_type != "DequantizeLinear":
            return None
        return self.integers(list(made.input))

    def integers(self, names: Sequence[str]) -> _Constant | None:
        """Of integers, scale and zero point by name."""
        values, scale = self.constants.value(names[0]), self.constants.value(names[1])
        zero = self.constants.value(names[2]) if len(names) > 2 and names[2] else None
        if values is None or scale is None or values.dtype.kind not in "iu":
            return None
        integers = values.astype(np.float64)
        if zero is not None and zero.size == 1:
            integers = integers - float(zero.reshape(-1)[0])
        return _Constant(integers, np.asarray(scale, np.float64).reshape(-1))

    def step(self, name: str) -> float | None:
        """The step of a tensor of integers that stand for numbers."""
        told = self.graph.quantizers.get(name)
        return None if told is None else told.step


def _linear(node: onnx.NodeProto, desk: _Desk) -> Rounding | None:
    source = desk.source(node.input[0])
    if node.op_type in _PLACES:
        weight = desk.integers([node.input[place] for place in _PLACES[node.op_type]])
    else:
        weight = desk.constant(node.input[1]) if len(node.input) > 1 else None
    if weight is None or weight.integers.ndim < 2 or source is None:
        return None
    groups = next((a.i for a in node.attribute if a.name == "group"), 1)
    if node.op_type == "ConvTranspose":
        if groups > 1:
            return None
        # Weights are (in, out, …): an output value sees each tap of its stride once.
        parts = np.moveaxis(weight.integers, 1, 0).reshape(weight.integers.shape[1], -1)
        strides = next((list(a.ints) for a in node.attribute if a.name == "strides"), [])
        taps = max(1.0, float(np.prod(weight.integers.shape[2:]) / np.prod(strides or [1])))
        channels = weight.integers.shape[0]
    else:
        axis = output_axis(node)
        parts = np.moveaxis(weight.integers, axis, 0).reshape(weight.integers.shape[axis], -1)
        convolves = RENAMED.get(node.op_type, node.op_type) == "Conv"
        taps = float(np.prod(weight.integers.shape[2:])) if convolves else 1.0
        channels = int(parts.shape[1] / taps)
    known = weight.scales.size in (1, len(parts))
    scales = np.broadcast_to(weight.scales if known else weight.scales.max(), len(parts))
    bias = desk.constant(node.input[2]) if len(node.input) > 2 and node.op_type not in _PLACES else None
    return Rounding(
        terms=(Term(source, scales**2 / UNIFORM * taps, int(groups), channels),),
        gain=scales**2 * (parts**2).sum(1),
        flat=np.zeros(1) if bias is None else bias.scales**2 / UNIFORM,
    )


def _sum(node: onnx.NodeProto, desk: _Desk) -> Rounding | None:
    held = next((held for name in node.input if (held := desk.constant(name)) is not None), None)
    return None if held is None else Rounding((), np.ones(1), np.array([held.variance]))


def _product(node: onnx.NodeProto, desk: _Desk) -> Rounding | None:
    """Of a number and a constant, or of two integers, each of which makes the other's rounding larger."""
    for place in (0, 1):
        held, source = desk.constant(node.input[place]), desk.source(node.input[1 - place])
        if held is not None and source is not None:
            square = held.numbers.reshape(-1) ** 2
            return Rounding((Term(source, np.array([held.variance])),), square, np.zeros(1))
    places = (0, 3) if node.op_type == "QLinearMul" else (0, 1)
    pair = [(desk.source(node.input[place]), desk.step(node.input[place])) for place in places]
    terms = tuple(
        Term(source, np.array([step**2 / UNIFORM]))
        for (source, _), (_, step) in zip(pair, reversed(pair), strict=True)
        if source is not None and step is not None
    )
    return Rounding(terms, np.zeros(1), np.zeros(1)) if terms and node.op_type == "QLinearMul" else None


def _quotient(node: onnx.NodeProto, desk: _Desk) -> Rounding | None:
    held, source = desk.constant(node.input[1]), desk.source(node.input[0])
    if held is None or source is None:
        return None
    square = np.maximum(held.numbers.reshape(-1) ** 2, np.finfo(np.float32).tiny)
    return Rounding((Term(source, held.variance / square**2),), 1 / square, np.zeros(1))


def _slope(node: onnx.NodeProto, desk: _Desk) -> Rounding | None:
    held, source = desk.constant(node.input[1]), desk.source(node.input[0])
    if held is None or source is None:
        return None
    return Rounding((Term(source, np.array([held.variance])),), np.ones(1), np.zeros(1))


def _normalised(node: onnx.NodeProto, desk: _Desk) -> Rounding | None:
    """Gain and shift of numbers whose mean square is 1."""
    found = [held for name in node.input[1:] if (held := desk.constant(name)) is not None]
    return Rounding((), np.ones(1), np.array([sum(held.variance for held in found)])) if found else None


_READERS: Mapping[str, Callable[[onnx.NodeProto, _Desk], Rounding | None]] = {
    **dict.fromkeys(LINEAR, _linear),
    "Add": _sum,
    "Sub": _sum,
    "Mul": _product,
    "Div": _quotient,
    "PRelu": _slope,
    "LayerNormalization": _normalised,
    "InstanceNormalization": _normalised,
    "GroupNormalization": _normalised,
}


def output_axis(node: onnx.NodeProto) -> int:
    """The axis of a linear operator's weights along which its output channels lie."""
    op = RENAMED.get(node.op_type, node.op_type)
    if op == "Gemm":
        return 0 if next((a.i for a in node.attribute if a.name == "transB"), 0) else 1
    return {"Conv": 0, "ConvTranspose": 1}.get(op, -1)
