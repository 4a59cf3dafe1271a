"""Resizing without antialiasing, and by area, as OpenCV does it: sums over few source pixels a target pixel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Numbers = NDArray[np.float64]
#: For each target position: the source positions it is made of, and their weights, both (target, taps).
Taps = tuple[NDArray[np.int64], Numbers]

CUBIC = -0.75  # the slope that OpenCV and PyTorch have; Pillow's antialiased bicubic has -0.5


class Filter(str, Enum):
    """What a pixel of the resized image is made of."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS = "lanczos"


def resampled(pixels: Pixels, height: int, width: int, filter: Filter) -> Pixels:
    """Pixels (h, w, channels) resized to (height, width, channels), rounded once at the end.

    BILINEAR and BICUBIC take 2 and 4 pixels a side however much smaller the image becomes, those beyond the edge
    being like those at the edge; AREA takes the mean of the area that a target pixel covers. No other filters.
    """
    taps = TAPS[filter]
    rows = _summed(pixels.astype(np.float64), taps(pixels.shape[0], height))
    both = _summed(rows.swapaxes(0, 1), taps(pixels.shape[1], width)).swapaxes(0, 1)
    return np.ascontiguousarray(np.clip(np.rint(both), 0, 255).astype(np.uint8))


def _summed(values: Numbers, taps: Taps) -> Numbers:
    positions, weights = taps
    total = np.zeros((len(positions), *values.shape[1:]))
    for position, weight in zip(positions.T, weights.T, strict=True):
        total += values[position] * weight[:, None, None]
    return total


def _bilinear(source: int, target: int) -> Taps:
    first, share = _split(source, target)
    return _at_edge(first[:, None] + np.array([0, 1]), source), np.stack([1 - share, share], 1)


def _bicubic(source: int, target: int) -> Taps:
    first, share = _split(source, target)
    distance = np.abs(share[:, None] - np.array([-1, 0, 1, 2]))
    near = ((CUBIC + 2) * distance - (CUBIC + 3)) * distance**2 + 1
    far = CUBIC * (((distance - 5) * distance + 8) * distance - 4)
    return _at_edge(first[:, None] + np.array([-1, 0, 1, 2]), source), np.where(distance <= 1, near, far)


def _area(source: int, target: int) -> Taps:
    edges = np.arange(target + 1) * source / target
    start, end = edges[:-1, None], edges[1:, None]
    positions = np.floor(start).astype(np.int64) + np.arange(-(-source // target) + 1)
    covered = np.minimum(end, positions + 1) - np.maximum(start, positions)
    return _at_edge(positions, source), np.maximum(covered, 0) * target / source


def _split(source: int, target: int) -> tuple[NDArray[np.int64], Numbers]:
    """The source pixel at or before each target pixel's middle, and how far behind it the middle is."""
    middle = (np.arange(target) + 0.5) * source / target - 0.5
    first = np.floor(middle)
    return first.astype(np.int64), middle - first


def _at_edge(positions: NDArray[np.int64], source: int) -> NDArray[np.int64]:
    return np.clip(positions, 0, source - 1)


TAPS: Mapping[Filter, Callable[[int, int], Taps]] = {
    Filter.BILINEAR: _bilinear,
    Filter.BICUBIC: _bicubic,
    Filter.AREA: _area,
}
