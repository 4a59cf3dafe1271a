"""Moments in single precision against those in double, whatever the shapes; what they do not hold is handed over."""

from __future__ import annotations

from dataclasses import fields

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftgate.domain.measurements import Moments
from driftgate.numerics import metrics, single
from driftgate.numerics.moments import by_channel
from driftgate.numerics.single import quick_by_channel

Tensor = NDArray[np.float32]
EXACT = ("count", "nonfinite_a", "nonfinite_b", "infinite_same", "broken", "min_a", "max_a", "min_b", "max_b")
SUMS = ("m2_a", "m2_b", "sum_dd", "sum_abs", "max_abs")


def assert_alike(quick: Moments, exact: Moments) -> None:
    for name in EXACT:
        assert np.array_equal(getattr(quick, name), getattr(exact, name)), name
    for name in SUMS:
        np.testing.assert_allclose(getattr(quick, name), getattr(exact, name), rtol=1e-4, err_msg=name)
    reach = np.maximum(np.abs(exact.max_a), np.abs(exact.min_a))
    np.testing.assert_allclose(quick.mean_a, exact.mean_a, atol=1e-5 * reach.max(initial=1e-30))
    np.testing.assert_allclose(quick.co_ab, exact.co_ab, atol=1e-4 * np.sqrt(exact.m2_a * exact.m2_b).max(initial=0))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a size that small tensors have several of."""
    monkeypatch.setattr(single, "BLOCK", 64)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        *[((1, 5, 7, 3), axis) for axis in (None, 0, 1, 2, 3, -1)],
        *[((4, 3, 100), axis) for axis in (None, 0, 1, 2)],
        *[((2, 3, 1000), 1), ((300, 2), 1), ((9,), 0), ((), None)],
    ],
)
@pytest.mark.parametrize(("offset", "noise"), [(0, 1e-3), (0, 3.0), (1000, 1e-2), (-5, 0)])
def test_they_are_those_in_double_precision(
    shape: tuple[int, ...], axis: int | None, offset: float, noise: float
) -> None:
    random = np.random.default_rng(4)
    a = np.asarray(random.normal(size=shape) + offset, np.float32)
    b = np.asarray(a + random.normal(size=shape) * noise, np.float32)
    assert_alike(quick_by_channel(a, b, axis=axis), by_channel(a, b, axis=axis))


@settings(deadline=None)
@given(hnp.arrays(np.float32, (3, 2, 11), elements=st.floats(width=32)), st.data())
def test_whatever_the_numbers_are(a: Tensor, data: st.DataObject) -> None:
    b = data.draw(hnp.arrays(np.float32, (3, 2, 11), elements=st.floats(width=32)))
    quick, exact = quick_by_channel(a, b, axis=1), by_channel(a, b, axis=1)
    for name in EXACT:
        assert np.array_equal(getattr(quick, name), getattr(exact, name)), name
    np.testing.assert_allclose(quick.max_abs, exact.max_abs, rtol=1e-6)


def test_the_largest_difference_is_found_in_its_place() -> None:
    a = np.random.default_rng(1).normal(size=(2, 3, 90)).astype(np.float32)
    b = a.copy()
    b[1, 2, 71] += 5
    m = quick_by_channel(a, b, axis=1)
    assert [int(n) for n in np.unravel_index(int(m.max_at[2]), a.shape)] == [1, 2, 71]


def test_equal_tensors_differ_by_nothing_and_correlate_fully() -> None:
    a = np.random.default_rng(1).normal(size=(1, 3, 500)).astype(np.float32)
    m = quick_by_channel(a, a.copy(), axis=1)
    assert (m.sum_dd == 0).all()
    assert (m.max_abs == 0).all()
    np.testing.assert_allclose(metrics.centred_cosine(m), 1, atol=1e-12)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.full((1, 2, 9), 1e20, np.float32), np.full((1, 2, 9), 2e20, np.float32)),
        (np.full((1, 2, 9), 1e-20, np.float32), np.full((1, 2, 9), 3e-20, np.float32)),
        (np.array([[[1, np.nan, np.inf]]], np.float32), np.array([[[1, 2, np.inf]]], np.float32)),
        (np.zeros((1, 2, 9), np.float64), np.ones((1, 2, 9), np.float64)),
        (np.zeros((1, 2, 0), np.float32), np.zeros((1, 2, 0), np.float32)),
    ],
)
def test_what_single_precision_does_not_hold_is_computed_in_double(
    a: NDArray[np.floating], b: NDArray[np.floating]
) -> None:
    assert quick_by_channel(a, b, axis=1) == by_channel(a, b, axis=1)


def test_what_is_not_counted_is_no_number() -> None:
    a = np.ones((1, 2, 9), np.float32)
    m = quick_by_channel(a, a + 1, axis=1, step=0.5)
    assert np.isnan(m.over_decade).all()
    assert m.over_lsb is None


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
