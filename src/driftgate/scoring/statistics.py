"""Statistics: how sure a score is, and whether a loss is more than the noise of so few samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from driftgate.domain.measurements import Array
from driftgate.domain.scores import Comparison, Interval

#: A score as a function of how often each sample counts: float64 of shape (samples,).
Fold = Callable[[Array], float]

WILSON, TANGO, BOOTSTRAP = "wilson", "tango", "bootstrap"
RESAMPLES = 200
SEED = 20
Z = 1.959963984540054  # 97.5 % quantile of the normal distribution
#: With 1 … 9 pairs that disagree the score interval of 95 % covers down to 92.8 %; one of 96 % covers ≥ 93.4 %.
FEW_PAIRS, Z_FEW_PAIRS = 10, 2.05
ROUNDING = 1e-12
MOST_NEEDED = 10**9
_BISECTIONS = 60


def wilson(right: int, n: int) -> Interval:
    """Score interval of a proportion `right` of `n`, within 0 … 1 (Wilson 1927); nan where n is 0."""
    if n == 0:
        return Interval(math.nan, math.nan, WILSON)
    share, spread = right / n, Z * Z / n
    centre = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    low, high = (0.0 if right == 0 else centre - half), (1.0 if right == n else centre + half)
    return Interval(low, high, WILSON)


def paired(lost: int, won: int, n: int) -> Interval:
    """Score interval of the loss (lost - won) / n over n pairs, in -1 … 1; more is worse; nan where n is 0."""
    if n == 0:
        return Interval(math.nan, math.nan, TANGO)
    low, high = paired_bounds(lost, won, n)
    return Interval(float(low), float(high), TANGO)


def paired_bounds(lost: ArrayLike, won: ArrayLike, n: ArrayLike) -> tuple[Array, Array]:
    """Bounds of the loss for arrays of counts, which need not be whole.

    Tango's score interval for the difference of paired proportions (Tango 1998), by bisection. Over simulated
    pairs it covers 93.4 … 100 %, and at most 96.7 % where 10 pairs or more are expected to disagree.
    """
    b, c, n = np.broadcast_arrays(*(np.asarray(counts, dtype=np.float64) for counts in (lost, won, n)))
    quantile = np.where((b + c > 0) & (b + c < FEW_PAIRS), Z_FEW_PAIRS, Z)
    estimate = (b - c) / n
    bounds = []
    for outer in (-1.0, 1.0):
        inside, outside = estimate.copy(), np.full_like(estimate, outer)
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            within = np.abs(_tango_statistic(middle, b, c, n)) <= quantile
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
        bounds.append(outside)
    return bounds[0], bounds[1]


def _tango_statistic(loss: Array, b: Array, c: Array, n: Array) -> Array:
    """How many standard errors the counts lie from a true loss, its variance estimated under that loss."""
    linear = (2 * n - b + c) * loss - b - c
    won = (np.sqrt(np.maximum(linear**2 + 8 * n * c * loss * (1 - loss), 0)) - linear) / (4 * n)
    variance = np.maximum(n * (2 * won + loss * (1 - loss)), 0)
    away = b - c - n * loss
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(away == 0, 0.0, away / np.sqrt(variance))


def mcnemar(lost: int, won: int) -> float:
    """Probability of so unequal a split or a more unequal one where losing is as likely as winning, exact."""
    pairs = lost + won
    tail = sum(math.comb(pairs, k) for k in range(min(lost, won) + 1))
    return float(min(Fraction(1), Fraction(2 * tail, 2**pairs)))


def resamples(n: int, seed: int = SEED) -> Array:
    """How often each of n samples is drawn in each resample, shape (200, n).

    Drawn from the raw stream of PCG64, which no version of numpy may change; the same n and seed give the same
    draws, so the resamples of two stages are paired.
    """
    raw = np.random.PCG64(seed).random_raw(RESAMPLES * n)
    drawn = ((raw >> np.uint64(11)) * 2.0**-53 * n).astype(np.int64).reshape(RESAMPLES, n)
    return np.stack([np.bincount(row, minlength=n) for row in drawn]).astype(np.float64)


def resampled(fold: Fold, n: int, seed: int = SEED) -> Array:
    """The score in each resample of n samples, shape (200,)."""
    return np.array([fold(weights) for weights in resamples(n, seed)])


def bootstrap(estimate: float, draws: Array, n: int, seed: int = SEED) -> Interval:
    """Interval from the score in each resample of n samples; nan where one of them is.

    Percentiles (k / 201 of the ordered resamples) about the mean of the resamples, laid about the estimate: images
    drawn twice raise an AP by themselves. Widened by what percentiles lack for small n, √(n/(n-1)) · t / z
    (Hesterberg 2015).
    """
    if n < 2 or not np.isfinite(draws).all():
        return Interval(math.nan, math.nan, BOOTSTRAP, seed)
    low, high = np.quantile(draws, (0.025, 0.975), method="weibull")
    wider = math.sqrt(n / (n - 1)) * (1 + (Z * Z + 1) / (4 * (n - 1)))
    mean = draws.mean()
    return Interval(float(estimate + (low - mean) * wider), float(estimate + (high - mean) * wider), BOOTSTRAP, seed)


def compare_pairs(before: NDArray[np.bool_], after: NDArray[np.bool_], *, margin: float) -> Comparison:
    """The loss of right items against a margin; both arrays say of each item whether it is right.

    Loss, interval and margin are shares of the reference's score. A margin of 0 is kept for certain where no pair
    disagrees.
    """
    n, right = len(before), int(before.sum())
    lost, won = int((before & ~after).sum()), int((after & ~before).sum())
    chance = mcnemar(lost, won)
    if right == 0:
        nothing = _against_nothing(-won, n, margin, Interval(math.nan, math.nan, TANGO))
        return replace(nothing, lost=lost, won=won, chance=chance)
    share = right / n
    bounds = paired(lost, won, n)
    drop, interval = (lost - won) / right, Interval(bounds.low / share, bounds.high / share, TANGO)
    certain = is_certain(drop, interval, margin, same=lost + won == 0)
    needed = None if certain else needed_pairs(lost, won, n, margin=margin * share)
    return Comparison(drop, interval, margin, n, certain, needed, lost, won, chance)


def compare_draws(
    before: tuple[float, Array], after: tuple[float, Array], n: int, *, margin: float, higher: bool, bounded: bool
) -> Comparison:
    """The loss of a score, given as its value and that in each resample of n samples, against a margin.

    Loss, interval and margin are shares of the reference's score. `higher` says that more is better; a bounded
    score lies in 0 … 1. Where not one resample differs, a bounded score has the interval of pairs that all agree.
    """
    (reference, old), (candidate, new) = before, after
    sign = 1.0 if higher else -1.0
    loss, losses = sign * (reference - candidate), sign * (old - new)
    interval = bootstrap(loss, losses, n)
    scale = abs(reference)
    if scale == 0:
        return _against_nothing(loss, n, margin, Interval(math.nan, math.nan, BOOTSTRAP, SEED))
    same = bool(loss == 0 and (losses == 0).all())
    if same and bounded:
        interval = paired(0, 0, n)
    interval = Interval(interval.low / scale, interval.high / scale, interval.method, interval.seed)
    certain = is_certain(loss / scale, interval, margin, same=same)
    needed = None if certain else needed_samples(loss / scale, interval, n, margin=margin)
    return Comparison(loss / scale, interval, margin, n, certain, needed)


def _against_nothing(loss: float, n: int, margin: float, interval: Interval) -> Comparison:
    """A reference that scores 0 has nothing to lose, and no share of it can be told."""
    return Comparison(math.inf if loss > 0 else 0.0, interval, margin, n, certain=False, needed=None)


def is_certain(drop: float, interval: Interval, margin: float, *, same: bool) -> bool:
    """Whether the interval lies on one side of the margin. `same`: nothing differs, which keeps a margin of 0."""
    if not math.isfinite(drop) or not math.isfinite(interval.low + interval.high):
        return False
    return interval.high <= margin + ROUNDING or interval.low > margin + ROUNDING or (same and margin <= ROUNDING)


def needed_pairs(lost: int, won: int, n: int, *, margin: float) -> int | None:
    """How many pairs, with the same shares lost and won, would lie on one side of the margin; None: no number would."""
    below = n
    sizes = np.unique(np.geomspace(n + 1, MOST_NEEDED, 257).astype(np.int64))
    while True:
        low, high = paired_bounds(lost * (sizes / n), won * (sizes / n), sizes)
        apart = (high <= margin) | (low > margin)
        if not apart.any():
            return None
        first = int(apart.argmax())
        below, enough = int(sizes[first - 1]) if first else below, int(sizes[first])
        if enough - below <= 1:
            return enough
        sizes = np.unique(np.linspace(below + 1, enough, 257).astype(np.int64))


def needed_samples(drop: float, interval: Interval, n: int, *, margin: float) -> int | None:
    """The same for resamples, whose interval narrows as 1/√n; None where the loss is the margin."""
    room = abs(margin - drop)
    width = interval.high - drop if drop <= margin else drop - interval.low
    if not math.isfinite(width) or room <= ROUNDING:
        return None
    needed = math.ceil(n * (width / room) ** 2) + 1
    return needed if needed <= MOST_NEEDED else None
