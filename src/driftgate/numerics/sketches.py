"""Sketches: a few hundred numbers of a tensor from which its distance to another can be told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import Array

BUCKETS = 256
EQUAL_DB = 200.0
_PERIOD = 1 << 20  # values that have signs of their own; larger tensors use the signs again, some turned
_PART = 1 << 16  # values at a time, so that they stay in the cache; a multiple of the buckets


@dataclass(frozen=True, slots=True)
class Sketch:
    """`projection`: random signed sums, linear in the tensor, so that the length of the difference of two
    projections tells that of the difference of the tensors within ≈ 10 % (count sketch, Charikar 2002).
    `invariants`: least, largest, mean, mean magnitude, root mean square and mean of the positive part: the
    same however the axes are ordered."""

    shape: tuple[int, ...]
    projection: Array
    invariants: Array
    finite: bool

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@lru_cache(maxsize=1)
def _signs() -> NDArray[np.float32]:
    return np.random.default_rng(20240229).choice(np.array([-1.0, 1.0], np.float32), _PERIOD)


def sketch(tensor: NDArray[Any]) -> Sketch:
    """The sketch of one tensor of numbers; what is not finite counts as 0 and is noted."""
    flat = np.ascontiguousarray(tensor).reshape(-1).astype(np.float32, copy=False)
    if not len(flat):
        return Sketch(tensor.shape, np.zeros(BUCKETS), np.zeros(6), True)
    finite = bool(np.isfinite(flat.min()) and np.isfinite(flat.max()))
    if not finite:
        flat = np.nan_to_num(flat, nan=0.0, posinf=0.0, neginf=0.0)
    return Sketch(tensor.shape, *_looked_through(flat), finite)


def likeness(a: Sketch, b: Sketch) -> float:
    """Signal to noise ratio of b against a in dB, estimated; for tensors of one size in one order."""
    return _decibel(a.projection, b.projection)


def order_free_likeness(a: Sketch, b: Sketch) -> float:
    """How alike the invariants are, in dB: what is the same tensor in another axis order is far above 80."""
    return _decibel(a.invariants, b.invariants)


def _looked_through(flat: NDArray[np.float32]) -> tuple[Array, Array]:
    """Each value times a random sign, summed into the bucket of its place; and the invariants."""
    signs, ones = _signs(), _ones()
    sums = np.zeros(BUCKETS)
    total, magnitude, power = 0.0, 0.0, 0.0
    least, most = np.inf, -np.inf
    room = np.empty(min(len(flat), _PART), np.float32)
    for start in range(0, len(flat), _PART):
        part = flat[start : start + _PART]
        place = start % _PERIOD
        signed = np.multiply(part, signs[place : place + len(part)], out=room[: len(part)])
        whole = len(signed) // BUCKETS * BUCKETS
        # Each turn through the signs has a sign of its own, or what the turns have in common would add up.
        turned = -1.0 if (start // _PERIOD) * 0x9E3779B1 & 0x80000000 else 1.0
        sums += turned * np.add.reduce(signed[:whole].reshape(-1, BUCKETS), 0)
        sums[: len(signed) - whole] += turned * signed[whole:]
        total += float(part @ ones[: len(part)])
        power += float(part @ part)
        magnitude += float(np.abs(part, out=signed) @ ones[: len(part)])
        least, most = min(least, float(part.min())), max(most, float(part.max()))
    count = len(flat)
    mean, size = total / count, magnitude / count
    return sums, np.array([least, most, mean, size, np.sqrt(power / count), (mean + size) / 2])


@lru_cache(maxsize=1)
def _ones() -> NDArray[np.float32]:
    return np.ones(_PART, np.float32)


def _decibel(a: Array, b: Array) -> float:
    signal, noise = float(np.dot(a, a)), float(np.dot(a - b, a - b))
    if noise == 0.0:
        return EQUAL_DB
    return 10.0 * float(np.log10(signal / noise)) if signal > 0 else -EQUAL_DB
