"""Criteria: what a limit is put on, and how far a difference may go before it is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import Array, Moments
from driftgate.numerics import metrics

EPSILON = float(np.finfo(np.float32).eps)
DECIMALS_ULPS = 4  # a few ulp of large values lie above any fixed number of decimals
RANGE_FLOOR = 1e-6  # of the tensor's peak: float32 noise in a channel that hardly moves
CHANNEL_LEAST = 32  # fewer values than this do not show a channel's range


@dataclass(frozen=True, slots=True)
class Scale:
    """What a criterion may hold a difference against: the whole tensor's range and peak, and its step."""

    range: float
    peak: float
    step: float | None


Value = Callable[[Moments, Scale], Array]
Allowed = Callable[[Moments, Scale, float], Array]


@dataclass(frozen=True, slots=True)
class Criterion:
    """A row of the table. `value` and `allowed` have one number a row of the moments, in one unit."""

    name: str
    better: str  # the side of the limit that is in order: "lower" or "higher"
    per_channel: bool
    value: Value
    allowed: Allowed

    def broken(self, value: Array, allowed: Array) -> NDArray[np.bool_]:
        """True where the limit is broken; NaN never passes."""
        kept = value <= allowed if self.better == "lower" else value >= allowed
        return ~kept

    def severity(self, value: Array, allowed: Array) -> Array:
        """How bad, for finding the worst: grows with the excess; NaN is the worst."""
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = value / allowed if self.better == "lower" else 1.0 + allowed - value
            excess = np.where((value == 0) & (allowed == 0), 0.0, excess)
        return np.where(np.isnan(value), np.inf, excess)


def _as_limit(moments: Moments, scale: Scale, limit: float) -> Array:
    return np.full(len(moments), limit)


def _channel_range(m: Moments, scale: Scale) -> Array:
    own = metrics.range_of(m)
    fallback = scale.range if scale.range > 0 else scale.peak
    return np.where((m.count >= CHANNEL_LEAST) & (own > 0), own, fallback)


def _range_value(m: Moments, scale: Scale) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        share = m.max_abs / _channel_range(m, scale)
    return np.where(m.max_abs == 0, 0.0, share)


def _range_allowed(m: Moments, scale: Scale, limit: float) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        floor = RANGE_FLOOR * scale.peak / _channel_range(m, scale)
    allowed: Array = np.fmax(np.full(len(m), limit), floor)
    return allowed


def _ulp_value(m: Moments, scale: Scale) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        ulps = m.max_abs / (EPSILON * metrics.peak(m))
    return np.where(m.max_abs == 0, 0.0, ulps)


def _decimals_allowed(m: Moments, scale: Scale, limit: float) -> Array:
    allowed: Array = np.maximum(10.0**-limit, DECIMALS_ULPS * EPSILON * metrics.peak(m))
    return allowed


def _lsb_value(m: Moments, scale: Scale) -> Array:
    return np.round(m.max_abs / scale.step, 2) if scale.step else np.full(len(m), np.nan)


def _of(metric: Callable[[Moments], Array]) -> Value:
    return lambda moments, scale: metric(moments)


CRITERIA = {
    criterion.name: criterion
    for criterion in (
        Criterion("ulp", "lower", True, _ulp_value, _as_limit),
        Criterion("range", "lower", True, _range_value, _range_allowed),
        Criterion("decimals", "lower", True, _of(metrics.max_abs), _decimals_allowed),
        Criterion("integers", "lower", False, _of(metrics.unequal_share), _as_limit),
        Criterion("lsb", "lower", False, _lsb_value, _as_limit),
        Criterion("cosine", "higher", False, _of(metrics.cosine), _as_limit),
        Criterion("centred-cosine", "higher", False, _of(metrics.centred_cosine), _as_limit),
        Criterion("bulk-cosine", "higher", False, _of(metrics.bulk_cosine), _as_limit),
        Criterion("norm-ratio", "lower", False, _of(metrics.norm_ratio), _as_limit),
        Criterion("max-abs", "lower", False, _of(metrics.max_abs), _as_limit),
        Criterion("sqnr", "higher", False, _of(metrics.sqnr), _as_limit),
        Criterion("dead-channels", "lower", True, _of(metrics.dead), _as_limit),
    )
}

#: Criteria on scores instead of tensors; they may stand in a policy beside the others.
SCORE_DROP = "score-drop"
SCORE_DECLARED = "score-declared"
#: Criteria on what a board says of speed and memory → the side of the limit that is in order. Relative ones are held
#: against a declared number.
LATENCY, FPS, MEMORY = "latency-ms", "fps", "memory-mib"
LATENCY_RISE, FPS_DROP = "latency-rise", "fps-drop"
PERFORMANCE = {LATENCY: "lower", FPS: "higher", LATENCY_RISE: "lower", FPS_DROP: "lower", MEMORY: "lower"}
LIMIT_NAMES = (*CRITERIA, SCORE_DROP, *PERFORMANCE)
