"""Running sums in single precision against those in double, whatever the shapes; what they do not hold is handed
over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftgate.domain.measurements import Moments, concatenate
from driftgate.numerics import metrics, sums
from driftgate.numerics.moments import by_channel, fold
from driftgate.numerics.sums import RunningSums, mean_square

Tensor = NDArray[np.floating]
COUNTED = ("count", "nonfinite_a", "nonfinite_b", "infinite_same", "broken")
REACH = ("min_a", "max_a", "min_b", "max_b", "max_abs")


def summed(pairs: Iterable[tuple[Tensor, Tensor]], axis: int | None) -> Moments:
    running = RunningSums()
    for a, b in pairs:
        assert running.add(7, a, b, axis=axis)
    return running.moments(7)


def exactly(pairs: Iterable[tuple[Tensor, Tensor]], axis: int | None) -> Moments:
    tables = [by_channel(a, b, axis=axis) for a, b in pairs]
    return fold(concatenate(tables), len(tables[0]))


def assert_alike(quick: Moments, exact: Moments) -> None:
    for name in COUNTED:
        assert np.array_equal(getattr(quick, name), getattr(exact, name)), name
    whole, filled = fold(exact), exact.count > 0
    for name in REACH:
        # Squares of the same number: what is largest is told exactly but for the rounding of a difference.
        told = np.where(filled, getattr(whole, name), 0)
        np.testing.assert_allclose(getattr(quick, name), told, rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(quick.sum_dd, exact.sum_dd, rtol=1e-4)
    power = exact.m2_a + exact.count * exact.mean_a**2 + exact.m2_b + exact.count * exact.mean_b**2
    off = np.abs(quick.mean_a - exact.mean_a) * np.sqrt(exact.count)
    assert (off <= 1e-5 * np.sqrt(power.max(initial=0))).all()
    for name in ("m2_a", "m2_b", "co_ab"):
        away = np.abs(getattr(quick, name) - getattr(exact, name))
        assert (away <= 2e-5 * power).all(), name
    for name in ("m2_a", "m2_b", "co_ab"):
        told, known = getattr(fold(quick), name), getattr(whole, name)
        np.testing.assert_allclose(told, known, atol=1e-2 * np.sqrt(whole.m2_a * whole.m2_b).max(), rtol=1e-2)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a size that small tensors have several of, some larger than what waits on the desk."""
    monkeypatch.setattr(sums, "BLOCK", 64)
    monkeypatch.setattr(sums, "SMALL", 40)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        *[((1, 5, 7, 3), axis) for axis in (None, 0, 1, 2, 3, -1)],
        *[((4, 3, 100), axis) for axis in (None, 0, 1, 2)],
        *[((2, 3, 1000), 1), ((300, 2), 1), ((9,), 0), ((), None), ((2, 3, 5), 1)],
    ],
)
@pytest.mark.parametrize(("offset", "noise"), [(0, 1e-3), (0, 3.0), (1000, 1e-2), (-5, 0)])
def test_they_are_those_in_double_precision(
    shape: tuple[int, ...], axis: int | None, offset: float, noise: float
) -> None:
    random = np.random.default_rng(4)
    pairs = []
    for _ in range(3):
        a = np.asarray(random.normal(size=shape) + offset, np.float32)
        pairs.append((a, np.asarray(a + random.normal(size=shape) * noise, np.float32)))
    assert_alike(summed(pairs, axis), exactly(pairs, axis))


def test_many_keys_share_the_desk() -> None:
    random = np.random.default_rng(5)
    shapes = [(1, 4, 5), (1, 2, 3), (1, 7, 30), (1, 1, 1), (1, 3, 0), (1, 2, 6)]
    pairs = {
        key: [tuple(random.normal(size=(2, *shape)).astype(np.float32)) for _ in range(4)]
        for key, shape in enumerate(shapes)
    }
    running = RunningSums()
    for turn in range(4):
        for key, samples in pairs.items():
            running.add(key, *samples[turn], axis=1)
    for key, samples in pairs.items():
        assert_alike(running.moments(key), exactly(samples, 1))
    assert 99 not in running


@settings(deadline=None)
@given(hnp.arrays(np.float32, (3, 2, 11), elements=st.floats(width=32)), st.data())
def test_whatever_the_numbers_are(a: Tensor, data: st.DataObject) -> None:
    b = data.draw(hnp.arrays(np.float32, (3, 2, 11), elements=st.floats(width=32)))
    quick, exact = summed([(a, b)], 1), by_channel(a, b, axis=1)
    for name in COUNTED:
        assert np.array_equal(getattr(quick, name), getattr(exact, name)), name
    told, filled = fold(exact), exact.count > 0
    for name in REACH:
        np.testing.assert_allclose(getattr(quick, name), np.where(filled, getattr(told, name), 0), rtol=1e-6)


def test_equal_tensors_differ_by_nothing_and_correlate_fully() -> None:
    a = np.random.default_rng(1).normal(size=(1, 3, 500)).astype(np.float32)
    m = summed([(a, a.copy())], 1)
    assert (m.sum_dd == 0).all()
    assert (m.max_abs == 0).all()
    np.testing.assert_allclose(metrics.centred_cosine(m), 1, atol=1e-12)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.full((1, 2, 9), 1e20, np.float32), np.full((1, 2, 9), 2e20, np.float32)),
        (np.full((1, 2, 9), 1e-20, np.float32), np.full((1, 2, 9), 3e-20, np.float32)),
        (np.array([[[1, np.nan, np.inf]]], np.float32), np.array([[[1, 2, np.inf]]], np.float32)),
        (np.full((1, 1, 3), np.inf, np.float32), np.full((1, 1, 3), np.nan, np.float32)),
        (np.zeros((1, 2, 9), np.float64), np.ones((1, 2, 9), np.float64)),
        (np.zeros((1, 2, 0), np.float32), np.zeros((1, 2, 0), np.float32)),
    ],
)
def test_what_single_precision_does_not_hold_is_computed_in_double(a: Tensor, b: Tensor) -> None:
    assert_alike(summed([(a, b)], 1), by_channel(a, b, axis=1))


def test_another_number_of_channels_is_not_added() -> None:
    running = RunningSums()
    a = np.ones((1, 2, 9), np.float32)
    assert running.add(0, a, a, axis=1)
    assert not running.add(0, np.ones((1, 3, 9), np.float32), np.ones((1, 3, 9), np.float32), axis=1)
    assert running.moments(0).count.tolist() == [9, 9]


def test_what_is_not_counted_is_no_number() -> None:
    a = np.ones((1, 2, 9), np.float32)
    m = summed([(a, a + 1)], 1)
    assert np.isnan(m.over_decade).all()
    assert np.isnan(m.sum_abs).all()
    assert np.isnan(m.max_at).all()
    assert m.over_lsb is None


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_mean_squares_are_those_of_what_is_finite(kind: type, axis: int | None) -> None:
    value: Tensor = np.random.default_rng(3).normal(size=(2, 3, 50)).astype(kind)
    rows = value[None].reshape(1, -1) if axis is None else np.moveaxis(value, axis, 0).reshape(value.shape[axis], -1)
    np.testing.assert_allclose(mean_square(value, axis), (rows.astype(np.float64) ** 2).mean(1), rtol=1e-5)
    value.flat[0] = np.nan
    assert np.isfinite(mean_square(value, axis)).all()
    assert mean_square(value[:, :, :0], axis).max(initial=0) == 0


@pytest.mark.parametrize("shape", [(1, 70_000, 3), (2, 3, 70_000), (5, 300, 100)])
def test_blocks_in_double_precision_are_numpys_sums(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(9)
    a, b = random.normal(size=(2, *shape))
    m = by_channel(a, b, axis=1)
    rows_a, rows_b = (np.moveaxis(t, 1, 0).reshape(shape[1], -1) for t in (a, b))
    np.testing.assert_allclose(m.mean_a, rows_a.mean(1), atol=1e-13)
    np.testing.assert_allclose(m.m2_b, rows_b.var(1) * rows_b.shape[1], rtol=1e-11)
    np.testing.assert_allclose(m.sum_dd, ((rows_a - rows_b) ** 2).sum(1), rtol=1e-12)
    assert m.max_abs.tolist() == np.abs(rows_a - rows_b).max(1).tolist()
    assert np.abs(a - b).reshape(-1)[m.max_at.astype(int)].tolist() == m.max_abs.tolist()
    assert len(fields(m)) == 20
