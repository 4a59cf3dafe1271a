"""How much error a node's precision explains: rounding of its output, of its constants, of what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from driftgate.domain.measurements import Array, Moments
from driftgate.localisation.points import Point
from driftgate.localisation.rounding import Rounding

#: Relative error that float32 operators explain: sums in another order, a folded constant.
FLOAT_NOISE = 1e-5
#: A channel that hardly moves has the noise of the tensor it lies in, this much of it.
QUIET = 1e-1
UNIFORM = 12.0  # variance of rounding to a step of 1 is 1/12
#: Chance has more room where few draws are averaged: how much, as variance, for 1, 2 and 3 of them.
FEW = np.array([2.66, 1.53, 1.15])
#: A channel's constants are drawn once; their error shows alike in all its values.
DRAWN = 1.5
#: Calibration that cuts off outliers weighs them against rounding: the error may be so many times larger.
CALIBRATED = 1.25


@dataclass(frozen=True, slots=True)
class Explained:
    """Variance of a point's error by channel: `each` value has its own, `drawn` is common to a channel."""

    each: Array
    drawn: Array

    @property
    def whole(self) -> float:
        """Of the whole tensor."""
        return float(np.mean(self.each + self.drawn)) if len(self.each) else 0.0

    def room(self, count: Array) -> Array:
        """By channel, for channels of so many values."""
        few = np.minimum(np.maximum(count, 1.0).astype(np.int64) - 1, len(FEW))
        made: Array = self.each * np.append(FEW, 1.0)[few] + self.drawn * np.maximum(DRAWN, np.append(FEW, 1.0)[few])
        return made


def explained(
    point: Point,
    *,
    power: Array,
    rounding: Rounding | None,
    source_power: Mapping[int, Array],
    given_noise: float,
    noise: float = FLOAT_NOISE,
) -> Explained:
    """What a point's precision explains.

    `noise` is the relative error of its arithmetic, `power` the mean square of the reference by channel,
    `source_power` that of the points it is computed from by their channels, `given_noise` the variance of rounding
    what it was given.
    """
    quiet = QUIET**2 * float(power.mean()) if power.size else 0.0
    each = noise**2 * (power + quiet)
    drawn = np.zeros(len(power))
    if point.step is not None:
        each = each + point.step**2 / UNIFORM
    if rounding is None:
        return Explained(each + given_noise, drawn)
    each = each + _fitted(rounding.gain, len(power)) * given_noise
    for term in rounding.terms:
        if term.source in source_power:
            drawn = drawn + _fitted(term.variance(source_power[term.source]), len(power))
    return Explained(each, drawn + _fitted(rounding.flat, len(power)))


def excess(table: Moments, allowed: Explained, cut_off: float = 0.0) -> tuple[float, Array]:
    """How many times the error is what is explained: of the worse of tensor and channels, and by channel.

    `table` has one row a channel; `cut_off` is the mean square of what the tensor's range cuts off, of which
    calibration may cost some. Infinite where only the candidate is not finite.
    """
    count = np.maximum(table.count, 1.0)
    room = allowed.room(table.count)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = np.where(table.sum_dd == 0, 0.0, np.sqrt(table.sum_dd / count / room))
    ratio = np.where(table.broken > 0, np.inf, ratio)
    whole_error = float(table.sum_dd.sum() / max(1.0, float(table.count.sum())))
    whole = 0.0
    if table.broken.any():
        whole = float("inf")
    elif whole_error > 0:
        whole = float(np.sqrt(whole_error / allowed.whole)) if allowed.whole else float("inf")
    cut = float(np.sqrt(cut_off / allowed.whole)) / CALIBRATED if cut_off else 0.0
    return max(whole, cut, float(ratio.max()) if len(ratio) else 0.0), ratio


def _fitted(values: Array, count: int) -> Array:
    """By channel; the worst for all where it is not known which channel is which."""
    if len(values) in (1, count):
        return np.broadcast_to(values, (count,))
    return np.full(count, values.max() if len(values) else 0.0)
