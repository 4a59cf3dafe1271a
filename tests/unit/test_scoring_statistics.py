"""Statistics: intervals that cover what they promise, and losses that are certain or within noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar  # type: ignore[import-untyped]
from scipy.stats import binomtest  # type: ignore[import-untyped]

from driftgate.scoring.statistics import (
    SEED,
    TANGO,
    Z,
    bootstrap,
    compare_draws,
    compare_pairs,
    mcnemar,
    paired,
    paired_bounds,
    resampled,
    resamples,
    wilson,
)
from driftgate.scoring.summary import compare
from driftgate.scoring.tasks import TASKS
from support.scoring import recorded, scenes, total_of

SIZES = (50, 200, 360, 1000, 5000)
TRIALS = 20_000
#: Which share of the pairs that disagree is lost.
SPLITS = (0.5, 0.65, 0.8, 1.0)
FIRST_RESAMPLES = [[1, 1, 3, 0, 0], [2, 0, 1, 1, 1], [2, 2, 0, 1, 0]]


def covered(n: int, disagree: float, split: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Whether each simulated interval holds the true loss."""
    lost, won, _ = rng.multinomial(n, [disagree * split, disagree * (1 - split), 1 - disagree], TRIALS).T
    pairs, inverse = np.unique(np.stack([lost, won]), axis=1, return_inverse=True)
    low, high = paired_bounds(pairs[0], pairs[1], n)
    loss = disagree * (2 * split - 1)
    return np.asarray((low <= loss) & (loss <= high))[inverse.reshape(-1)]


@pytest.mark.parametrize("n", SIZES)
def test_the_interval_of_pairs_covers_what_it_promises(n: int) -> None:
    rng = np.random.default_rng(n)
    for expected in (0.5, 1, 2, 4, 5, 6, 7, 8, 10, 14, 20, 30, 60, 150):
        if expected > 0.5 * n:
            continue
        for split in SPLITS:
            share = covered(n, expected / n, split, rng).mean()
            assert share >= 0.93, (expected, split)
            assert share <= 0.975 or expected < 10, (expected, split)


@pytest.mark.parametrize("n", SIZES)
def test_the_interval_does_not_overcover_where_ten_pairs_disagree(n: int) -> None:
    """Among the simulated sets in which ten pairs or more disagree."""
    rng = np.random.default_rng(n + 1)
    for expected in (12, 16, 24):
        for split in SPLITS[:3]:
            disagree = expected / n
            lost, won, _ = rng.multinomial(n, [disagree * split, disagree * (1 - split), 1 - disagree], TRIALS).T
            chosen = lost + won >= 10
            low, high = paired_bounds(lost[chosen], won[chosen], n)
            loss = disagree * (2 * split - 1)
            assert ((low <= loss) & (loss <= high)).mean() <= 0.975, (expected, split)


@pytest.mark.parametrize(("lost", "won", "n"), [(12, 2, 100), (30, 18, 360), (11, 0, 50), (0, 10, 5000)])
def test_at_the_bounds_the_likelihood_says_what_the_quantile_says(lost: int, won: int, n: int) -> None:
    """The variance comes from maximising the likelihood under the bound, here by search instead of by formula."""
    for bound in (paired(lost, won, n).low, paired(lost, won, n).high):
        least = max(0.0, -bound)

        def unlikely(q: float, bound: float = bound) -> float:
            cells = (lost, q + bound), (won, q), (n - lost - won, 1 - 2 * q - bound)
            return -sum(count * math.log(max(p, 1e-300)) for count, p in cells)

        best = minimize_scalar(unlikely, bounds=(least, (1 - bound) / 2), method="bounded", options={"xatol": 1e-14}).x
        statistic = (lost - won - n * bound) / math.sqrt(n * (2 * best + bound - bound**2))
        assert abs(statistic) == pytest.approx(Z, rel=1e-4)


@pytest.mark.parametrize(("right", "n"), [(356, 360), (0, 50), (50, 50), (1, 3), (2500, 5000)])
def test_the_interval_of_a_proportion_is_wilsons(right: int, n: int) -> None:
    found, wanted = wilson(right, n), binomtest(right, n).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=1e-12)
    assert (found.method, found.seed) == ("wilson", None)


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (1, 0), (9, 2), (40, 61), (700, 650)])
def test_mcnemars_chance_is_exact(lost: int, won: int) -> None:
    wanted = binomtest(lost, lost + won).pvalue if lost + won else 1.0
    assert mcnemar(lost, won) == pytest.approx(wanted, rel=1e-9)


def test_nothing_measured_has_no_interval() -> None:
    assert math.isnan(wilson(0, 0).low)
    assert math.isnan(paired(0, 0, 0).high)


def decided(n: int, lost: int, won: int, *, right: int | None = None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Before and after: so many right ones lost and so many wrong ones won."""
    right = n - won if right is None else right
    before = np.arange(n) < right
    after = before.copy()
    after[:lost] = False
    after[right : right + won] = True
    return before, after


def test_a_loss_far_beyond_the_margin_is_certain() -> None:
    found = compare_pairs(*decided(360, 60, 2), margin=0.01)
    assert found.drop == pytest.approx(58 / 358)
    assert (found.certain, found.needed, found.lost, found.won) == (True, None, 60, 2)
    assert found.chance is not None
    assert found.chance < 1e-9


def test_no_loss_at_all_is_within_noise_where_the_samples_are_few() -> None:
    """At 360 samples even no disagreement leaves room for a loss of 1.1 %."""
    few, enough = (compare_pairs(*decided(n, 0, 0), margin=0.01) for n in (360, 5000))
    assert (few.drop, few.certain) == (0.0, False)
    assert (enough.drop, enough.certain, enough.needed) == (0.0, True, None)
    assert few.interval.high > 0.01 > enough.interval.high
    assert few.needed is not None
    assert compare_pairs(*decided(few.needed, 0, 0), margin=0.01).certain
    assert not compare_pairs(*decided(few.needed - 1, 0, 0), margin=0.01).certain


def test_how_many_samples_the_margin_would_need() -> None:
    found = compare_pairs(*decided(1000, 20, 15), margin=0.01)
    assert not found.certain
    assert found.needed is not None
    assert 3_000 < found.needed < 30_000
    factor = found.needed / 1000
    low, high = paired_bounds(20 * factor, 15 * factor, found.needed)
    assert high <= 0.01 * 985 / 1000 or low > 0.01 * 985 / 1000


def test_a_loss_at_the_margin_needs_more_samples_than_there_are() -> None:
    found = compare_pairs(*decided(1000, 12, 2, right=1000 - 2), margin=10 / 998)
    assert (found.certain, found.needed) == (False, None)


def test_a_margin_of_zero_is_kept_for_certain_where_nothing_differs() -> None:
    assert compare_pairs(*decided(50, 0, 0), margin=0.0).certain
    assert not compare_pairs(*decided(50, 1, 1), margin=0.0).certain
    assert not compare_pairs(*decided(50, 1, 0), margin=0.0).certain
    assert compare_pairs(*decided(50, 12, 0), margin=0.0).certain


def test_a_reference_that_scores_nothing_proves_nothing() -> None:
    found = compare_pairs(*decided(50, 0, 5, right=0), margin=0.01)
    assert (found.drop, found.certain, found.won) == (0.0, False, 5)


def test_resamples_are_the_same_for_ever() -> None:
    weights = resamples(5)
    assert weights.shape == (200, 5)
    assert (weights.sum(1) == 5).all()
    assert weights[:3].tolist() == FIRST_RESAMPLES
    assert np.array_equal(weights, resamples(5, SEED))
    assert not np.array_equal(weights, resamples(5, SEED + 1))


def test_resamples_draw_every_sample_as_often() -> None:
    totals = resamples(100).sum(0)
    assert 150 < totals.min() < 200 < totals.max() < 260


@pytest.mark.parametrize("n", [50, 200, 360])
def test_the_interval_of_resamples_covers_a_mean(n: int) -> None:
    rng = np.random.default_rng(n)
    weights = resamples(n)
    for values, mean in ((rng.standard_normal((3000, n)), 0.0), (rng.exponential(size=(3000, n)), 1.0)):
        draws = values @ weights.T / n
        bounds = [bootstrap(float(v.mean()), d, n) for v, d in zip(values, draws, strict=True)]
        share = np.mean([one.low <= mean <= one.high for one in bounds])
        assert 0.93 <= share <= 0.975


def test_an_interval_from_nan_is_nan() -> None:
    assert math.isnan(bootstrap(0.5, np.array([0.5, np.nan]), 10).low)


def test_ap_that_fell_a_lot_is_certain_and_one_that_fell_a_little_is_not() -> None:
    rng = np.random.default_rng(0)
    outputs, labels = scenes(rng, 120)
    blunt = [found[found[:, 4] > 0.6] for found in outputs]
    shaken = [found + rng.normal(0, 0.4, found.shape) * (np.arange(6) < 4) for found in outputs]
    scorer = TASKS["detection"].scorer("AP")
    a, b, c = (recorded("detection", side, labels) for side in (outputs, blunt, shaken))
    much, little, none = (compare(scorer, a, other, margin=0.01) for other in (b, c, a))
    assert much is not None
    assert little is not None
    assert none is not None
    assert much.certain
    assert much.drop == pytest.approx(1 - total_of(b, "AP").value / total_of(a, "AP").value)
    assert much.interval.low < much.drop < much.interval.high
    assert (much.interval.method, much.interval.seed, much.n) == ("bootstrap", SEED, 120)
    assert (little.certain, little.needed is None) == (False, False)
    assert (none.drop, none.certain, none.interval.method) == (0.0, False, TANGO)


def test_a_score_of_which_less_is_better_loses_by_rising() -> None:
    n = 200
    errors = np.abs(np.random.default_rng(1).standard_normal(n))

    def summed(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return float(values.mean()), resampled(lambda weights: float((weights * values).sum() / n), n)

    found = compare_draws(summed(errors), summed(errors * 1.5), n, margin=0.01, higher=False, bounded=False)
    assert found.drop == pytest.approx(0.5)
    assert found.certain
    assert found.interval.low > 0.01


def test_ties_of_the_reference_may_be_left_aside() -> None:
    """A row whose two best classes stand level may fall on either side; one that is clear may not."""
    labels = [np.array([1])] * 60
    clear, level = np.array([0.0, 2.0, 1.0]), np.array([0.0, 1.0, 1.0])
    a = recorded("classification", [level, *[clear] * 59], labels)
    b = recorded("classification", [level - [0, 1e-6, 0], *[clear] * 59], labels)
    c = recorded("classification", [level, clear[[1, 0, 2]], *[clear] * 58], labels)
    scorer = TASKS["classification"].scorer("top1")
    found = [
        compare(scorer, a, other, margin=0.0, tolerance=tolerance)
        for other, tolerance in ((b, None), (b, 0.0), (c, 0.0))
    ]
    assert [None if one is None else (one.lost, one.certain) for one in found] == [(1, False), (0, True), (1, False)]
