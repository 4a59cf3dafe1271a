"""Moments of one pair of tensors, and how tables of them are folded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import DECADES, LSBS, Array, Moments

_DECADES: Array = np.power(10.0, -np.arange(DECADES, dtype=np.float64))
_LSBS: Array = np.arange(LSBS, dtype=np.float64) + 0.5


def by_channel(a: NDArray[Any], b: NDArray[Any], *, axis: int | None, step: float | None = None) -> Moments:
    """One row of moments a channel along `axis` (a single row when None) of two tensors of one shape.

    Integers, booleans and all float types are taken as float64; integers too large for it still count as
    different where they differ. `max_at` is the flat index in the whole tensor. Empty tensors give count 0.
    """
    shape = a.shape
    different = _differ_beyond_float64(a, b)
    x, y = _rows(a, axis), _rows(b, axis)
    with np.errstate(invalid="ignore", over="ignore"):
        finite_x, finite_y = np.isfinite(x), np.isfinite(y)
        ok = finite_x & finite_y
        same = ~finite_x & ~finite_y & (x == y)
        counts = ok.sum(1, dtype=np.float64)
        lost_x = (~finite_x).sum(1, dtype=np.float64)
        lost_y = (~finite_y).sum(1, dtype=np.float64)
        broken = (finite_x & ~finite_y).sum(1, dtype=np.float64)
        whole = bool(ok.all())
        if not whole:
            x, y = np.where(ok, x, 0.0), np.where(ok, y, 0.0)
        divisor = np.maximum(counts, 1.0)
        mean_x, mean_y = x.sum(1) / divisor, y.sum(1) / divisor
        d = np.abs(x - y)
        if different is not None:
            d = np.maximum(d, _rows(different, axis))
        u, v = x - mean_x[:, None], y - mean_y[:, None]
        if not whole:
            u, v = np.where(ok, u, 0.0), np.where(ok, v, 0.0)
        m2_x, m2_y = np.einsum("ij,ij->i", u, u), np.einsum("ij,ij->i", v, v)
        co = np.einsum("ij,ij->i", u, v)
        sum_dd = np.einsum("ij,ij->i", d, d)
    if d.shape[1]:
        where = d.argmax(1)
        largest = d[np.arange(len(d)), where]
        low_x, high_x = _extremes(x, ok, whole)
        low_y, high_y = _extremes(y, ok, whole)
    else:
        where = np.zeros(len(d), dtype=np.intp)
        largest = low_x = high_x = low_y = high_y = np.zeros(len(d))
    # The mean of equal numbers may be off by a rounding; they are constant all the same.
    still_x, still_y = low_x == high_x, low_y == high_y
    m2_x, m2_y = np.where(still_x, 0.0, m2_x), np.where(still_y, 0.0, m2_y)
    co = np.where(still_x | still_y, 0.0, co)
    return Moments(
        count=counts,
        nonfinite_a=lost_x,
        nonfinite_b=lost_y,
        infinite_same=same.sum(1, dtype=np.float64),
        broken=broken,
        mean_a=mean_x,
        mean_b=mean_y,
        m2_a=m2_x,
        m2_b=m2_y,
        co_ab=co,
        sum_dd=sum_dd,
        sum_abs=d.sum(1),
        max_abs=largest,
        max_at=_flat_index(where, shape, axis),
        min_a=low_x,
        max_a=high_x,
        min_b=low_y,
        max_b=high_y,
        over_decade=_counts_over(d, largest, _DECADES),
        over_lsb=None if step is None else _counts_over(d, largest, _LSBS * step),
    )


def fold(table: Moments, width: int = 1) -> Moments:
    """Fold a table of n·width rows, `width` running fastest, into `width` rows.

    Means and second moments are combined about the common mean, in row order, so that the same rows give
    the same bits however they were collected. Rows with count 0 change nothing.
    """

    def cube(column: Array) -> Array:
        return column.reshape(-1, width, *column.shape[1:])

    n = cube(table.count)
    total = n.sum(0)
    divisor = np.maximum(total, 1.0)
    mean_a, mean_b = ((n * cube(mean)).sum(0) / divisor for mean in (table.mean_a, table.mean_b))
    away_a, away_b = cube(table.mean_a) - mean_a, cube(table.mean_b) - mean_b
    worst = cube(table.max_abs).argmax(0)
    columns = np.arange(width)
    filled = n > 0
    low_a, high_a = _least(cube(table.min_a), filled), -_least(-cube(table.max_a), filled)
    low_b, high_b = _least(cube(table.min_b), filled), -_least(-cube(table.max_b), filled)
    moving_a, moving_b = low_a != high_a, low_b != high_b
    with np.errstate(invalid="ignore", over="ignore"):
        return Moments(
            count=total,
            nonfinite_a=cube(table.nonfinite_a).sum(0),
            nonfinite_b=cube(table.nonfinite_b).sum(0),
            infinite_same=cube(table.infinite_same).sum(0),
            broken=cube(table.broken).sum(0),
            mean_a=mean_a,
            mean_b=mean_b,
            m2_a=np.where(moving_a, (cube(table.m2_a) + n * away_a * away_a).sum(0), 0.0),
            m2_b=np.where(moving_b, (cube(table.m2_b) + n * away_b * away_b).sum(0), 0.0),
            co_ab=np.where(moving_a & moving_b, (cube(table.co_ab) + n * away_a * away_b).sum(0), 0.0),
            sum_dd=cube(table.sum_dd).sum(0),
            sum_abs=cube(table.sum_abs).sum(0),
            max_abs=cube(table.max_abs)[worst, columns],
            max_at=cube(table.max_at)[worst, columns],
            min_a=low_a,
            max_a=high_a,
            min_b=low_b,
            max_b=high_b,
            over_decade=cube(table.over_decade).sum(0),
            over_lsb=None if table.over_lsb is None else cube(table.over_lsb).sum(0),
        )


def empty(step: float | None = None) -> Moments:
    """One row of nothing."""
    nothing = np.zeros((0,), dtype=np.float32)
    return by_channel(nothing, nothing, axis=None, step=step)


def _rows(tensor: NDArray[Any], axis: int | None) -> Array:
    values = tensor.astype(np.float64)
    if axis is None:
        return values.reshape(1, -1)
    return np.ascontiguousarray(np.moveaxis(values, axis, 0)).reshape(tensor.shape[axis], -1)


def _differ_beyond_float64(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any] | None:
    """1 where two wide integers differ although float64 cannot tell them apart; None where that cannot be."""
    if not all(np.issubdtype(t.dtype, np.integer) and t.dtype.itemsize == 8 for t in (a, b)):
        return None
    different: Array = (a != b).astype(np.float64)
    return different


def _extremes(values: Array, ok: NDArray[np.bool_], whole: bool) -> tuple[Array, Array]:
    if whole:
        return values.min(1), values.max(1)
    some = ok.any(1)
    low = np.where(ok, values, np.inf).min(1)
    high = np.where(ok, values, -np.inf).max(1)
    return np.where(some, low, 0.0), np.where(some, high, 0.0)


def _least(values: Array, filled: NDArray[np.bool_]) -> Array:
    lowest: Array = np.where(filled, values, np.inf).min(0)
    return np.where(filled.any(0), lowest, 0.0)


def _counts_over(d: Array, largest: Array, thresholds: Array) -> Array:
    counts = np.zeros((len(d), len(thresholds)))
    for k, threshold in enumerate(thresholds):
        if (largest > threshold).any():
            counts[:, k] = (d > threshold).sum(1)
    return counts


def _flat_index(within: NDArray[np.intp], shape: tuple[int, ...], axis: int | None) -> Array:
    """From an index within each channel's row to the flat index in the whole tensor."""
    if axis is None:
        return within.astype(np.float64)
    rest = shape[:axis] + shape[axis + 1 :]
    size_after = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    if not int(np.prod(rest, dtype=np.int64)):
        return np.zeros(len(within))
    before, after = np.divmod(within, size_after)
    channel = np.arange(shape[axis])
    return ((before * shape[axis] + channel) * size_after + after).astype(np.float64)
