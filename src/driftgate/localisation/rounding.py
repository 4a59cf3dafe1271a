"""Quantised constants of operators: how much error their rounding gives the output, by channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

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
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_ELEMENTWISE = frozenset({"Add", "Sub", "Mul", "Div", "PRelu"})


@dataclass(frozen=True, slots=True)
class Rounding:
    """By output channel, or one number for all: `coefficient` times the mean square of the inputs that a
    channel reads, summed over the channels of its group (`groups` of them, 0: each channel reads its own),
    plus `flat`, is the variance that rounded constants give; `gain` is that for input noise of variance 1.
    `channels` of the input make up one group."""

    source: int
    groups: int
    channels: int
    coefficient: Array
    gain: Array
    flat: Array

    def noise(self, source_power: Array) -> Array:
        """The variance that rounded weights give, of the input's mean square by channel."""
        if self.groups == 0:
            fits = len(self.coefficient) == 1 or len(source_power) in (1, len(self.coefficient))
            return self.coefficient * (source_power if fits else source_power.mean())
        if len(source_power) != self.groups * self.channels:
            return self.coefficient * source_power.mean() * self.channels
        by_group = source_power.reshape(self.groups, -1).sum(1)
        return self.coefficient * np.repeat(by_group, len(self.coefficient) // self.groups)


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


def read_rounding(model: onnx.ModelProto, points: Sequence[Point], constants: Constants) -> Mapping[int, Rounding]:
    """By point, what rounding its operator's constants costs; only points whose operator has quantised ones."""
    owner = {name: point.index for point in points for name in point.names}
    maker = {name: node for node in model.graph.node for name in node.output}
    root = roots(points)
    found: dict[int, Rounding] = {}
    for node in model.graph.node:
        kind = RENAMED.get(node.op_type, node.op_type)
        reading = _linear if kind in LINEAR else _elementwise if kind in _ELEMENTWISE else None
        point = owner.get(node.output[0]) if node.output else None
        if reading is None or point is None:
            continue
        told = reading(node, lambda name: _constant(name, maker, constants), constants)
        source = None if told is None else owner.get(told[0])
        if told is not None and source is not None:
            found[point] = Rounding(root[source], *told[1])
    return found


_Parts = tuple[str, tuple[int, int, Array, Array, Array]]
_Look = Callable[[str], "_Constant | None"]


def _linear(node: onnx.NodeProto, look: _Look, constants: Constants) -> _Parts | None:
    if node.op_type in _PLACES:
        weight = _integers([node.input[place] for place in _PLACES[node.op_type]], constants)
    else:
        weight = look(node.input[1]) if len(node.input) > 1 else None
    if weight is None or weight.integers.ndim < 2:
        return None
    groups = next((a.i for a in node.attribute if a.name == "group"), 1)
    convolves = RENAMED.get(node.op_type, node.op_type) in _CONVOLUTIONS
    if node.op_type == "ConvTranspose":
        # Weights are (in, out of a group, …): an output value sees each tap of its stride once.
        if groups > 1:
            return None
        parts = np.moveaxis(weight.integers, 1, 0).reshape(weight.integers.shape[1], -1)
        strides = next((list(a.ints) for a in node.attribute if a.name == "strides"), [])
        taps = max(1.0, float(np.prod(weight.integers.shape[2:]) / np.prod(strides or [1])))
        channels = weight.integers.shape[0]
    else:
        axis = _output_axis(node)
        parts = np.moveaxis(weight.integers, axis, 0).reshape(weight.integers.shape[axis], -1)
        taps = float(np.prod(weight.integers.shape[2:])) if convolves else 1.0
        channels = int(parts.shape[1] / taps)
    scales = np.broadcast_to(weight.scales if weight.scales.size in (1, len(parts)) else weight.scales.max(), len(parts))
    bias = look(node.input[2]) if len(node.input) > 2 and node.op_type not in _PLACES else None
    flat = np.zeros(1) if bias is None else bias.scales**2 / UNIFORM
    gain = scales**2 * (parts**2).sum(1)
    return str(node.input[0]), (int(groups), channels, scales**2 / UNIFORM * taps, gain, flat)


def _elementwise(node: onnx.NodeProto, look: _Look, constants: Constants) -> _Parts | None:
    for place in (1, 0):
        held = look(node.input[place])
        if held is None:
            continue
        numbers, variance = held.numbers.reshape(-1), held.scales.max() ** 2 / UNIFORM
        one, none = np.ones(1), np.zeros(1)
        other = str(node.input[1 - place])
        if node.op_type in ("Add", "Sub"):
            return other, (0, 1, none, one, np.array([variance]))
        if node.op_type in ("Mul", "PRelu"):
            return other, (0, 1, np.array([variance]), numbers**2 if node.op_type == "Mul" else one, none)
        if place == 1:
            square = np.maximum(numbers**2, np.finfo(np.float32).tiny)
            return other, (0, 1, variance / square**2, 1 / square, none)
    return None


def _constant(name: str, maker: Mapping[str, onnx.NodeProto], constants: Constants) -> _Constant | None:
    """What a dequantiser of a constant gives, seen through operators that hand it on."""
    made = maker.get(name)
    while made is not None and made.op_type in ("Identity", "Reshape"):
        made = maker.get(made.input[0])
    return _integers(list(made.input), constants) if made is not None and made.op_type == "DequantizeLinear" else None


def _integers(names: Sequence[str], constants: Constants) -> _Constant | None:
    """Of integers, scale and zero point by name."""
    values, scale = constants.value(names[0]), constants.value(names[1])
    zero = constants.value(names[2]) if len(names) > 2 and names[2] else None
    if values is None or scale is None or values.dtype.kind not in "iu":
        return None
    integers = values.astype(np.float64)
    if zero is not None and zero.size == 1:
        integers = integers - float(zero.reshape(-1)[0])
    return _Constant(integers, np.asarray(scale, np.float64).reshape(-1))


def _output_axis(node: onnx.NodeProto) -> int:
    if node.op_type in ("MatMul", "QLinearMatMul", "FusedMatMul"):
        return -1
    if node.op_type in ("Gemm", "QGemm", "FusedGemm"):
        return 0 if next((a.i for a in node.attribute if a.name == "transB"), 0) else 1
    return 0
