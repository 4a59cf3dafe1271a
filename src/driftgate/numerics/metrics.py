"""Metrics: numbers derived from moments, never from tensors, so that a new one needs no new capture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from driftgate.domain.measurements import Array, Moments

BULK_LEAST = 16  # below this many values, taking one away says nothing


def cosine(m: Moments) -> Array:
    """Cosine of the angle between a and b, in -1 … 1; 1 when both are zero, 0 when one is.

    Blind to a common offset and to scale: never a verdict of its own.
    """
    dot = m.co_ab + m.count * m.mean_a * m.mean_b
    return _ratio(dot, _norm_a(m), _norm_b(m))


def centred_cosine(m: Moments) -> Array:
    """Pearson's correlation, in -1 … 1; 1 when both sides are constant, 0 when one is."""
    return _ratio(m.co_ab, np.sqrt(m.m2_a), np.sqrt(m.m2_b))


def bulk_cosine(m: Moments) -> Array:
    """Centred cosine without the one pair that lies farthest from the mean of a, in -1 … 1.

    One outlier of 10^4 makes unrelated tensors look alike; this looks at the rest. It assumes that the
    extremes of a and b belong together (where they do not, max-abs speaks). Below 16 values it is
    centred_cosine. Leave-one-out update of second moments (West 1979).
    """
    high = np.abs(m.max_a - m.mean_a) >= np.abs(m.min_a - m.mean_a)
    away_a = np.where(high, m.max_a, m.min_a) - m.mean_a
    away_b = np.where(high, m.max_b, m.min_b) - m.mean_b
    weight = m.count / np.maximum(m.count - 1, 1)
    m2_a = np.maximum(m.m2_a - weight * away_a**2, 0.0)
    m2_b = np.maximum(m.m2_b - weight * away_b**2, 0.0)
    # What is left is rounding noise where the extremes carried everything: then there is no bulk to judge.
    noise_a, noise_b = 1e-12 * m.m2_a, 1e-12 * m.m2_b
    m2_a, m2_b = np.where(m2_a <= noise_a, 0.0, m2_a), np.where(m2_b <= noise_b, 0.0, m2_b)
    bulk = _ratio(m.co_ab - weight * away_a * away_b, np.sqrt(m2_a), np.sqrt(m2_b))
    return np.where(m.count < BULK_LEAST, centred_cosine(m), bulk)


def norm_ratio(m: Moments) -> Array:
    """How many times longer the longer of a and b is than the other, ≥ 1; inf when one is zero."""
    a, b = _norm_a(m), _norm_b(m)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.maximum(a, b) / np.minimum(a, b)
    return np.where((a == 0) & (b == 0), 1.0, ratio)


def gain(m: Moments) -> Array:
    """Slope of the least-squares line b ≈ gain·a + offset; nan when a is constant."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope: Array = m.co_ab / m.m2_a
    return np.where(m.m2_a > 0, slope, np.nan)


def offset(m: Moments) -> Array:
    """Offset of the least-squares line b ≈ gain·a + offset, in the tensor's unit; nan when a is constant."""
    return m.mean_b - gain(m) * m.mean_a


def sqnr(m: Moments) -> Array:
    """Signal to noise ratio 10·log10(Σa²/Σ(a-b)²), in dB; inf when equal, -inf when a is zero and b is not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        decibel: Array = 10.0 * np.log10(_norm_a(m) ** 2 / m.sum_dd)
    return np.where(m.sum_dd == 0, np.inf, decibel)


def max_abs(m: Moments) -> Array:
    """Largest |a - b|, in the tensor's unit."""
    return m.max_abs


def mean_abs(m: Moments) -> Array:
    """Mean |a - b|, in the tensor's unit; 0 when nothing was compared."""
    return m.sum_abs / np.maximum(m.count, 1.0)


def range_of(m: Moments) -> Array:
    """Range of the reference, max(a) - min(a), in the tensor's unit."""
    with np.errstate(over="ignore"):
        return m.max_a - m.min_a


def peak(m: Moments) -> Array:
    """Largest magnitude on either side, in the tensor's unit."""
    highest: Array = np.maximum.reduce([np.abs(m.min_a), np.abs(m.max_a), np.abs(m.min_b), np.abs(m.max_b)])
    return highest


def range_error(m: Moments) -> Array:
    """Largest |a - b| as a share of the reference's range; 0 when equal, inf when the range is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Array = m.max_abs / range_of(m)
    error: Array = np.where(m.max_abs == 0, 0.0, share)
    return error


def dead(m: Moments) -> Array:
    """1.0 where the candidate is constant although the reference is not, else 0.0."""
    silent: Array = ((m.m2_b == 0) & (m.m2_a > 0) & (m.count > 1)).astype(np.float64)
    return silent


def unequal_share(m: Moments) -> Array:
    """Share of integers that differ, 0 … 1."""
    share: Array = m.over_decade[:, 1] / np.maximum(m.count, 1.0)
    return share


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the table of metrics; `better` is the side on which an agreeing pair lies."""

    name: str
    better: str
    unit: str
    compute: Callable[[Moments], Array]


METRICS = {
    metric.name: metric
    for metric in (
        Metric("cosine", "higher", "", cosine),
        Metric("centred-cosine", "higher", "", centred_cosine),
        Metric("bulk-cosine", "higher", "", bulk_cosine),
        Metric("norm-ratio", "lower", "", norm_ratio),
        Metric("max-abs", "lower", "", max_abs),
        Metric("mean-abs", "lower", "", mean_abs),
        Metric("range-error", "lower", "of the range", range_error),
        Metric("sqnr", "higher", "dB", sqnr),
    )
}


def _norm_a(m: Moments) -> Array:
    return np.sqrt(m.m2_a + m.count * m.mean_a**2)


def _norm_b(m: Moments) -> Array:
    return np.sqrt(m.m2_b + m.count * m.mean_b**2)


def _ratio(product: Array, length_a: Array, length_b: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.clip(product / length_a / length_b, -1.0, 1.0)
    both, one = (length_a == 0) & (length_b == 0), (length_a == 0) | (length_b == 0)
    return np.where(both, 1.0, np.where(one, 0.0, ratio))
