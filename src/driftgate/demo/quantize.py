"""From float to INT8: ranges seen on calibration images, scales of activations and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftgate.demo.arithmetic import convolve, max_pool
from driftgate.demo.network import (
    BRANCH,
    CONV1,
    CONV4,
    DW2,
    FC,
    INPUT,
    JOINED,
    LAYERS,
    LOGITS,
    POOLED,
    PW3,
    RELU1,
    RELU2,
    RELU4,
    Affine,
    Floats,
    Layer,
)

Int8s = NDArray[np.int8]
Int32s = NDArray[np.int32]

LOWEST, HIGHEST = -128, 127
WEIGHT_LIMIT = 127

#: Tensors with a range of their own; the pooled tensor shares that of its source.
CALIBRATED = (INPUT, RELU1, RELU2, BRANCH, JOINED, RELU4, LOGITS)


@dataclass(frozen=True, slots=True)
class Scale:
    """How an activation's int8 stands for a number: value = (integer - zero_point) * step."""

    step: np.float32
    zero_point: int


@dataclass(frozen=True, slots=True, eq=False)
class IntegerAffine:
    """A layer in integers: weight with one step a channel and no zero point, bias in steps of input times weight."""

    weight: Int8s
    steps: Floats
    bias: Int32s


@dataclass(frozen=True, slots=True)
class Quantized:
    """The network in integers: a scale for every activation by tensor name, integers for every layer by its name."""

    scales: Mapping[str, Scale]
    layers: Mapping[str, IntegerAffine]


def quantize(layers: Mapping[str, Affine], calibration: Floats) -> Quantized:
    """Asymmetric activations by the smallest and largest value seen, symmetric weights channel by channel."""
    tensors = forward(layers, calibration)
    scales = {name: scale_of(tensors[name]) for name in CALIBRATED}
    scales[POOLED] = scales[RELU4]
    return Quantized(scales, {layer.name: _integers(layers[layer.name], scales[layer.source]) for layer in LAYERS})


def forward(layers: Mapping[str, Affine], images: Floats) -> dict[str, NDArray[np.float64]]:
    """Every tensor that calibration looks at, in double precision, so that ranges do not depend on the processor."""

    def affine(layer: Layer) -> NDArray[np.float64]:
        part = layers[layer.name]
        product = convolve(tensors[layer.source], part.weight.astype(np.float64), layer)
        return product + part.bias[:, None, None]

    tensors = {INPUT: images.astype(np.float64)}
    tensors[RELU1] = np.maximum(affine(CONV1), 0)
    tensors[RELU2] = np.maximum(affine(DW2), 0)
    tensors[BRANCH] = affine(PW3)
    tensors[JOINED] = np.maximum(tensors[BRANCH] + tensors[RELU1], 0)
    tensors[RELU4] = np.maximum(affine(CONV4), 0)
    tensors[POOLED] = max_pool(tensors[RELU4])
    tensors[LOGITS] = affine(FC)
    return tensors


def scale_of(values: NDArray[np.float64]) -> Scale:
    """The scale whose 256 steps span the values; zero is always one of them."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    step = np.float32((high - low) / (HIGHEST - LOWEST))
    return Scale(step, int(np.clip(np.rint(LOWEST - low / float(step)), LOWEST, HIGHEST)))


def _integers(layer: Affine, source: Scale) -> IntegerAffine:
    steps = (np.abs(layer.weight).max(axis=(1, 2, 3)) / WEIGHT_LIMIT).astype(np.float32)
    weight = np.clip(np.rint(layer.weight / steps[:, None, None, None]), -WEIGHT_LIMIT, WEIGHT_LIMIT)
    bias = np.rint(layer.bias / (float(source.step) * steps.astype(np.float64)))
    return IntegerAffine(weight.astype(np.int8), steps, bias.astype(np.int32))
