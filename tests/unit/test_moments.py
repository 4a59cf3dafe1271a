"""Moments against straightforward numpy, whatever the tensors are and however they are cut."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftgate.domain.measurements import Moments, concatenate
from driftgate.numerics import metrics
from driftgate.numerics.moments import by_channel, fold

DTYPES = st.sampled_from([np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    dtype = draw(DTYPES)
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=4, max_side=6))
    numbers = st.floats(-1e4, 1e4, width=16) if np.issubdtype(dtype, np.floating) else hnp.from_dtype(np.dtype(dtype))
    return draw(hnp.arrays(dtype, shape, elements=numbers)), draw(hnp.arrays(dtype, shape, elements=numbers))


@given(pairs())
def test_sums_are_those_of_numpy(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    a, b = (t.astype(np.float64).reshape(-1) for t in pair)
    m = by_channel(*pair, axis=None)
    assert m.count[0] == a.size
    np.testing.assert_allclose(m.mean_a[0], a.mean(), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(m.m2_b[0], ((b - b.mean()) ** 2).sum(), rtol=1e-9, atol=1e-6 * (1 + abs(b).max()))
    assert m.max_abs[0] == abs(a - b).max() or pair[0].dtype.itemsize == 8
    assert abs(a - b)[int(m.max_at[0])] == abs(a - b).max() or pair[0].dtype.itemsize == 8
    assert (m.min_a[0], m.max_b[0]) == (a.min(), b.max())
    assert m.over_decade[0].tolist() == [float((abs(a - b) > 10.0**-k).sum()) for k in range(10)] or (
        pair[0].dtype.itemsize == 8
    )


@given(pairs(), st.data())
def test_channels_fold_to_the_whole(pair: tuple[NDArray[Any], NDArray[Any]], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, pair[0].ndim - 1))
    folded, whole = fold(by_channel(*pair, axis=axis, step=0.5)), by_channel(*pair, axis=None, step=0.5)
    assert folded.count == whole.count
    for name in ("mean_a", "m2_a", "m2_b", "co_ab", "sum_dd", "sum_abs", "max_abs", "min_a", "max_b"):
        mine, theirs = getattr(folded, name), getattr(whole, name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-6 * (1 + abs(whole.m2_a[0]) + whole.m2_b[0]))
    assert folded.over_lsb is not None
    assert whole.over_lsb is not None
    assert folded.over_lsb.tolist() == whole.over_lsb.tolist()
    where = np.unravel_index(int(folded.max_at[0]), pair[0].shape)
    assert abs(float(pair[0][where]) - float(pair[1][where])) == pytest.approx(float(folded.max_abs[0]), abs=1.0)


@given(st.lists(pairs(), min_size=1, max_size=6))
def test_the_order_of_folding_is_the_order_of_rows(samples: list[tuple[NDArray[Any], NDArray[Any]]]) -> None:
    rows = [by_channel(a, b, axis=None) for a, b in samples]
    assert fold(concatenate(rows)) == fold(concatenate(rows))
    np.testing.assert_allclose(
        fold(concatenate(rows)).m2_a,
        by_channel(
            *(np.concatenate([s[n].reshape(-1).astype(np.float64) for s in samples]) for n in (0, 1)), axis=None
        ).m2_a,
        rtol=1e-9,
        atol=1e-3,
    )


@given(pairs(), st.floats(0.1, 10.0))
def test_metrics_keep_their_ranges(pair: tuple[NDArray[Any], NDArray[Any]], gain: float) -> None:
    m = by_channel(*pair, axis=1)
    for metric in (metrics.cosine, metrics.centred_cosine, metrics.bulk_cosine):
        assert (np.abs(metric(m)) <= 1.0).all()
    assert (metrics.norm_ratio(m) >= 1.0).all()
    scaled = by_channel(pair[0].astype(np.float64), pair[0].astype(np.float64) * gain, axis=None)
    assert metrics.centred_cosine(scaled)[0] == pytest.approx(1.0, abs=1e-6)


@given(hnp.arrays(np.float32, (3, 4), elements=st.floats(width=32, allow_nan=True, allow_infinity=True)))
def test_whatever_is_not_finite_is_counted_and_left_out(b: NDArray[np.float32]) -> None:
    a = np.ones_like(b)
    m = fold(by_channel(a, b, axis=1))
    assert m.count[0] + m.broken[0] == b.size
    assert m.nonfinite_b[0] == (~np.isfinite(b)).sum()
    sums: list[NDArray[Any]] = [m.mean_b, m.m2_b, m.sum_dd, m.max_abs]
    assert all(np.isfinite(column).all() for column in sums if np.abs(np.nan_to_num(b)).max() < 1e18)


def test_a_small_signal_on_a_large_offset_keeps_its_correlation() -> None:
    """Sums of float32 blocks give a centred cosine of 0.026 here; the truth is nearly 0."""
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal((2, 64, 64)) * 1e-2 + 1000).astype(np.float32)
    m = by_channel(a, b, axis=None)
    truth = np.corrcoef(a.reshape(-1).astype(np.float64), b.reshape(-1).astype(np.float64))[0, 1]
    assert metrics.centred_cosine(m)[0] == pytest.approx(truth, abs=1e-9)
    assert metrics.cosine(m)[0] > 0.999999


def test_wide_integers_that_float64_cannot_tell_apart_still_differ() -> None:
    a = np.array([[2**60, 5]], np.int64)
    m = by_channel(a, a + np.array([[1, 0]]), axis=None)
    assert (m.max_abs[0], m.max_at[0]) == (1.0, 0.0)


def test_max_at_points_into_the_whole_tensor() -> None:
    a = np.zeros((2, 3, 4, 5), np.float32)
    b = a.copy()
    b[1, 2, 3, 4] = -7.0
    m = by_channel(a, b, axis=1)
    assert [int(n) for n in np.unravel_index(int(m.max_at[2]), a.shape)] == [1, 2, 3, 4]


def test_an_empty_tensor_has_no_pairs() -> None:
    m: Moments = by_channel(np.zeros((1, 3, 0)), np.zeros((1, 3, 0)), axis=1)
    assert fold(m).count[0] == 0
