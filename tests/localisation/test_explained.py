"""What a node's precision explains, and what is more than that."""

from __future__ import annotations

import numpy as np
import pytest

from driftgate.domain.measurements import Array, Moments
from driftgate.localisation.explained import FLOAT_NOISE, Explained, excess, explained
from driftgate.localisation.points import Point
from driftgate.localisation.rounding import Rounding, Term
from driftgate.numerics.moments import by_channel

STEP = 0.1


def measured(error: Array) -> Moments:
    """Moments by channel of a reference and what differs from it by the error (channels, values)."""
    reference = np.random.default_rng(0).normal(0, 1, error.shape)
    return by_channel(reference, reference + error, axis=0)


def rounded(step: float, shape: tuple[int, ...]) -> Array:
    """Errors of rounding to a step."""
    made: Array = np.random.default_rng(1).uniform(-step / 2, step / 2, shape)
    return made


def allowed(channels: int, step: float | None = STEP) -> Explained:
    point = Point(0, "y", ("y",), "Conv", "conv", step=step)
    return explained(point, power=np.ones(channels), rounding=None, source_power={}, given_noise=0.0)


def test_rounding_to_the_step_is_explained() -> None:
    whole, ratio = excess(measured(rounded(STEP, (8, 1000))), allowed(8))
    assert whole == pytest.approx(1.0, rel=0.1)
    assert ratio == pytest.approx(np.ones(8), rel=0.1)


def test_one_bad_channel_among_many_shows() -> None:
    error = rounded(STEP, (64, 100))
    error[17] *= 5
    whole, ratio = excess(measured(error), allowed(64))
    assert np.argmax(ratio) == 17
    assert whole == pytest.approx(5.0, rel=0.2)


def test_channels_of_few_values_have_more_room() -> None:
    room = allowed(4).room(np.array([1.0, 2.0, 3.0, 100.0]))
    assert list(room / room[3]) == pytest.approx([2.66, 1.53, 1.15, 1.0])


def test_floats_explain_their_own_noise_and_quiet_channels_that_of_the_tensor() -> None:
    point = Point(0, "y", ("y",), "Conv", "conv")
    power = np.array([1.0, 1.0, 0.0])
    made = explained(point, power=power, rounding=None, source_power={}, given_noise=0.0)
    assert made.each[0] == pytest.approx(FLOAT_NOISE**2, rel=0.1)
    assert 0 < made.each[2] < made.each[0] / 50


def test_no_error_is_no_excess_even_where_nothing_is_explained() -> None:
    nothing = Explained(np.zeros(3), np.zeros(3))
    assert excess(measured(np.zeros((3, 10))), nothing)[0] == 0.0
    assert excess(measured(np.ones((3, 10))), nothing)[0] == float("inf")


def test_what_only_the_candidate_has_not_finite_is_infinite_excess() -> None:
    reference = np.ones((2, 10))
    broken = reference.copy()
    broken[1, 3] = np.nan
    whole, ratio = excess(by_channel(reference, broken, axis=0), allowed(2))
    assert whole == float("inf")
    assert list(ratio) == [0.0, float("inf")]


def test_what_the_range_cuts_off_counts_beyond_what_calibration_may_cost() -> None:
    table = measured(rounded(STEP, (4, 1000)))
    explained_rms = STEP / np.sqrt(12)
    assert excess(table, allowed(4), (2 * explained_rms) ** 2)[0] < 2
    assert excess(table, allowed(4), (10 * explained_rms) ** 2)[0] > 3


def test_rounded_weights_weigh_as_much_as_the_inputs_of_their_group() -> None:
    term = Term(source=0, coefficient=np.full(4, 0.5), groups=2, channels=2)
    assert list(term.variance(np.array([1.0, 2.0, 10.0, 20.0]))) == [1.5, 1.5, 15.0, 15.0]


def test_where_channels_are_not_known_the_mean_is_taken() -> None:
    term = Term(source=0, coefficient=np.full(4, 0.5), groups=1, channels=8)
    assert list(term.variance(np.array([3.0]))) == [12.0] * 4


def test_terms_of_points_that_were_not_measured_explain_nothing() -> None:
    point = Point(0, "y", ("y",), "Mul", "mul")
    rounding = Rounding((Term(7, np.ones(1)),), gain=np.ones(1), flat=np.zeros(1))
    without = explained(point, power=np.ones(2), rounding=rounding, source_power={}, given_noise=0.0)
    with_it = explained(point, power=np.ones(2), rounding=rounding, source_power={7: np.full(2, 4.0)}, given_noise=0.0)
    assert list(without.drawn) == [0.0, 0.0]
    assert list(with_it.drawn) == [4.0, 4.0]
