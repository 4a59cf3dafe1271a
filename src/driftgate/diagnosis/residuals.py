"""How far a candidate is from its reference in one number, per channel, so that a trial has a before and an after."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.numerics.alignment import channel_axis, same_shape

Tensor = NDArray[Any]
Array = NDArray[np.float64]

LEAST_SPAN = 1e-3  # of the tensor's range: a channel that is narrower is measured against this
MOST_LEVELS = 1 << 16
FEW = 16  # a channel with fewer values has no spread of its own


def residual(a: Tensor, b: Tensor) -> float:
    """Largest |a - b| as a share of its channel's range, of the worst channel; 0 when equal.

    inf where shapes differ or a number is finite on one side only; numbers that are the same infinity or NaN on
    both sides do not count. Channels with fewer than 16 values are taken
    together. A constant tensor is measured against its magnitude.
    """
    parts = _by_channel(a, b)
    if parts is None:
        return math.inf
    x, y = parts
    if not x.size:
        return math.inf
    if x.shape[1] < FEW:
        x, y = x.reshape(1, -1), y.reshape(1, -1)
    whole = _span(x.reshape(1, -1))[0]
    if not np.isfinite(whole):
        return math.inf
    least = LEAST_SPAN * whole if whole else max(float(np.abs(x[np.isfinite(x)]).max(initial=0.0)), 1e-12)
    spans = np.maximum(_span(x), least)
    worst = _difference(x, y).max(1)
    return float((worst / spans).max())


def spread(a: Tensor, b: Tensor) -> float:
    """Root mean square of a - b against the standard deviation of a, of the worst channel (0.1 is 20 dB).

    Channels with fewer than 16 values are taken together. inf as in `residual`.
    """
    parts = _by_channel(a, b)
    if parts is None or not parts[0].size:
        return math.inf
    x, y = parts
    if x.shape[1] < FEW:
        x, y = x.reshape(1, -1), y.reshape(1, -1)
    if not np.isfinite(x).all() or not np.isfinite(y).all():
        return residual(a, b)
    total = float(x.std()) or float(np.abs(x).max()) or 1e-12
    signals = np.maximum(x.std(1), LEAST_SPAN * total)
    noises = np.sqrt(np.mean((x - y) ** 2, 1))
    return float((noises / signals).max())


def worst(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> float:
    """The largest residual of all outputs of `a`; inf where `b` lacks one, or there is none."""
    return max((residual(a[name], b[name]) if name in b else math.inf for name in a), default=math.inf)


def widest(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> float:
    """The largest spread of all outputs of `a`; inf where `b` lacks one, or there is none."""
    return max((spread(a[name], b[name]) if name in b else math.inf for name in a), default=math.inf)


def by_channel(tensor: Tensor) -> Array:
    """One row a channel, float64; one row in all where there is no axis of channels."""
    axis = channel_axis(tensor.shape)
    values = np.asarray(tensor, np.float64)
    return values.reshape(1, -1) if axis is None else np.moveaxis(values, axis, 0).reshape(tensor.shape[axis], -1)


def lattice(value: Tensor) -> float | None:
    """The step of a tensor that lies on one, estimated: the smallest gap, if all values are multiples of it."""
    numbers = np.unique(np.asarray(value, np.float64))
    if not 2 <= len(numbers) <= MOST_LEVELS or not np.isfinite(numbers).all():
        return None
    gaps = np.diff(numbers)
    step = float(gaps[gaps > 1e-6 * float(np.abs(numbers).max())].min(initial=np.inf))
    if not np.isfinite(step):
        return None
    largest = float(np.abs(numbers).max()) / step
    if not 1 <= largest <= MOST_LEVELS:
        return None
    step *= largest / float(np.rint(largest))
    return step if np.allclose(numbers / step, np.rint(numbers / step), atol=2e-2) else None


def is_rounded(value: Tensor) -> bool:
    """Whether weights lie on few steps: one for all, or one for each first index."""
    if lattice(value) is not None:
        return True
    rows = value.reshape(len(value), -1) if value.ndim > 1 else value.reshape(1, -1)
    return rows.shape[1] >= 8 and len(rows) > 1 and all(lattice(row) is not None or np.ptp(row) == 0 for row in rows)


def _by_channel(a: Tensor, b: Tensor) -> tuple[Array, Array] | None:
    other = same_shape(a, b)
    if other is None:
        return None
    return by_channel(a), by_channel(other)


def _span(rows: Array) -> Array:
    finite = np.isfinite(rows)
    high = np.where(finite, rows, -np.inf).max(1)
    low = np.where(finite, rows, np.inf).min(1)
    with np.errstate(invalid="ignore"):
        return np.where(finite.any(1), high - low, 0.0)


def _difference(x: Array, y: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(x - y)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    return np.where(same, 0.0, np.where(np.isfinite(gap), gap, np.inf))
