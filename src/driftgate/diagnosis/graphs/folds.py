"""Batch normalisation folded into the convolution before it: rightly, or how not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR
from driftgate.diagnosis.graphs.twins import Twin
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.surgery import attribute
from driftgate.diagnosis.trials import Fact
from driftgate.localisation.points import LINEAR
from driftgate.localisation.rounding import output_axis

Tensor = NDArray[Any]
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Norm:
    """A batch normalisation behind a linear operator, all in float64; the vectors have one number a channel."""

    weight: Array
    bias: Array
    gain: Array
    shift: Array
    mean: Array
    variance: Array
    epsilon: float
    axis: int
    groups: int

    def scaled(self, factor: Array, axis: int | None = None) -> Array:
        """The weights times one factor a channel.

        A grouped ConvTranspose holds its output channels as (input channels, output channels of one group, …):
        each group of input channels has factors of its own.
        """
        at = self.axis if axis is None else axis
        around = [1] * self.weight.ndim
        if self.groups > 1 and axis is None and self.axis == 1 and self.weight.ndim > 2:
            each = factor.reshape(self.groups, -1).repeat(self.weight.shape[0] // self.groups, 0)
            return self.weight * each.reshape(*each.shape, *around[2:])
        around[at] = -1
        return self.weight * factor.reshape(around)

    @property
    def factor(self) -> Array:
        """What the weights of each channel are multiplied with."""
        return self.gain / np.sqrt(self.variance + self.epsilon)


def read_norm(twin: Twin, place: int) -> tuple[int, Norm] | None:
    """The place of the linear operator before a batch normalisation, with all that is folded; None otherwise."""
    node = twin.node(place)
    before = twin.maker.get(twin.through(node.input[0])) if node.op_type == "BatchNormalization" else None
    if before is None or twin.node(before).op_type not in LINEAR:
        return None
    linear = twin.node(before)
    held = [twin.constant(name) for name in (linear.input[1], *node.input[1:5])]
    bias = twin.constant(linear.input[2]) if len(linear.input) > 2 else np.zeros(1, np.float32)
    if bias is None or any(value is None for value in held):
        return None
    weight, gain, shift, mean, variance = (np.asarray(value, np.float64) for value in held)
    axis, groups = output_axis(linear), int(attribute(linear, "group", 1))
    channels = weight.shape[axis] * (groups if linear.op_type == "ConvTranspose" else 1)
    if channels != gain.size:
        return None
    vectors = (np.asarray(bias, np.float64), gain, shift, mean, variance)
    return before, Norm(weight, *vectors, float(attribute(node, "epsilon", 1e-5)), axis, groups)


def folds_rightly(a: Twin, place_a: int, b: Twin, place_b: int) -> int | None:
    """The place of the reference's linear operator, where the candidate has it with the norm folded into it."""
    found = read_norm(a, place_a)
    node = b.node(place_b)
    if found is None or a.node(found[0]).op_type != node.op_type:
        return None
    weight = b.constant(node.input[1])
    bias = b.constant(node.input[2]) if len(node.input) > 2 else np.zeros(found[1].gain.size, np.float32)
    norm = found[1]
    if weight is None or bias is None:
        return None
    right = (norm.scaled(norm.factor), (norm.bias - norm.mean) * norm.factor + norm.shift)
    return found[0] if max(residual(right[0], weight), residual(right[1], bias)) <= FLOAT_FLOOR else None


def weights_of(norm: Norm) -> Mapping[str, Array]:
    """Weights as they come of folding in every way."""
    made = {
        "rightly": norm.scaled(norm.factor),
        "not at all": norm.weight,
        "without the square root": norm.scaled(norm.gain / (norm.variance + norm.epsilon)),
        "without the gain": norm.scaled(norm.factor / norm.gain),
        "without the variance": norm.scaled(norm.gain),
    }
    for axis in range(min(norm.weight.ndim, 2)):
        if axis != norm.axis and norm.weight.shape[axis] == norm.gain.size:
            made[f"along axis {axis}"] = norm.scaled(norm.factor, axis)
    for epsilon in (0.0, 1e-3, 1e-5, 1e-6, 1e-12):
        made[f"with epsilon {epsilon:g}"] = norm.scaled(norm.gain / np.sqrt(norm.variance + epsilon))
    return made


def biases_of(norm: Norm) -> Mapping[str, Array]:
    """Biases as they come of folding in every way."""
    rooted, square = norm.factor, norm.gain / (norm.variance + norm.epsilon)
    plain = norm.factor / norm.gain
    right = (norm.bias - norm.mean) * rooted + norm.shift
    return {
        "rightly": right,
        "without the square root": (norm.bias - norm.mean) * square + norm.shift,
        "without the gain": (norm.bias - norm.mean) * plain + norm.shift,
        "without the mean": norm.bias * rooted + norm.shift,
        "without the shift": (norm.bias - norm.mean) * rooted,
        "without the bias": norm.shift - norm.mean * rooted,
        "with the bias unscaled": norm.bias - norm.mean * rooted + norm.shift,
        "not at all": np.broadcast_to(norm.bias, right.shape),
        "as zero": np.zeros_like(right),
    }


def ways(norm: Norm, weight: Tensor, bias: Tensor | None) -> Iterator[Fact]:
    """How the candidate's weights and bias were folded, where it is one of the known ways."""
    held = np.zeros(norm.gain.size, np.float32) if bias is None else bias
    for what, made, value in (("weights", weights_of(norm), weight), ("bias", biases_of(norm), held)):
        errors = {way: residual(one, value) for way, one in made.items()}
        way = min(errors, key=lambda one: errors[one])
        if errors[way] <= FLOAT_FLOOR:
            yield (f"{what} folded {way}", errors[way], "of the range")
