"""Moments of one pair of tensors, and how tables of them are folded."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import DECADES, LSBS, Array, Moments, concatenate

_DECADES: Array = np.power(10.0, -np.arange(DECADES, dtype=np.float64))
_LSBS: Array = np.arange(LSBS, dtype=np.float64) + 0.5
BLOCK = 1 << 16  # numbers of a tensor that are looked at together: as float32 they are 256 KiB
LONG_ROW = 512  # from here on, counting row by row is faster


def by_channel(a: NDArray[Any], b: NDArray[Any], *, axis: int | None, step: float | None = None) -> Moments:
    """One row of moments a channel along `axis` (a single row when None) of two tensors of one shape.

    Integers, booleans and all float types are taken as float64; integers too large for it still count as
    different where they differ. `max_at` is the flat index in the whole tensor. Empty tensors give count 0.
    Large tensors are taken block by block, so that what is computed with stays in the processor's cache.
    """
    before, width, after = _split(a.shape, axis)
    cube_a, cube_b = a.reshape(before, width, after), b.reshape(before, width, after)
    long = max(1, min(after, BLOCK))
    wide = max(1, min(width, BLOCK // long))
    deep = max(1, min(before, BLOCK // (long * wide)))
    thresholds = _DECADES if step is None else np.concatenate([_DECADES, _LSBS * step])
    desk = _Desk(long * wide * deep)
    parts: list[Moments] = []
    for c in range(0, max(width, 1), wide):
        tables = [
            _of_block(cube_a, cube_b, (p, c, q), (deep, wide, long), desk, thresholds)
            for p in range(0, max(before, 1), deep)
            for q in range(0, max(after, 1), long)
        ]
        parts.append(tables[0] if len(tables) == 1 else fold(concatenate(tables), len(tables[0])))
    return parts[0] if len(parts) == 1 else concatenate(parts)


class _Desk:
    """Room for one block of both tensors and of their difference, used for block after block."""

    def __init__(self, size: int) -> None:
        self._rooms = tuple(np.empty(size) for _ in range(3))

    def laid(self, block: NDArray[Any], room: int) -> Array:
        """A block as float64, one row a channel, in room 0 or 1."""
        depth, width, length = block.shape
        target = self._rooms[room][: block.size].reshape(width, depth, length)
        np.copyto(target, block.transpose(1, 0, 2), casting="unsafe")
        return target.reshape(width, depth * length)

    def free(self, shape: tuple[int, ...]) -> Array:
        """What lies in room 2, to be written over."""
        return self._rooms[2][: math.prod(shape)].reshape(shape)


def _of_block(
    a: NDArray[Any],
    b: NDArray[Any],
    start: tuple[int, int, int],
    size: tuple[int, int, int],
    desk: _Desk,
    thresholds: Array,
) -> Moments:
    """The moments of one block, one row a channel; `max_at` is the place in the whole tensor."""
    place = tuple(slice(begin, begin + extent) for begin, extent in zip(start, size, strict=True))
    block_a, block_b = a[place], b[place]
    x = desk.laid(block_a, 0)
    length = x.shape[1]
    if not x.size:
        return _zeros(len(x), len(thresholds))
    low_x, high_x = x.min(1), x.max(1)
    if block_a.dtype == block_b.dtype and np.array_equal(block_a, block_b) and np.isfinite(low_x + high_x).all():
        return _of_equal(
            x,
            low_x,
            high_x,
            at=_flat_index(np.zeros(len(x), np.intp), start, block_a.shape, a.shape),
            thresholds=len(thresholds),
        )
    y, d = desk.laid(block_b, 1), desk.free(x.shape)
    low_y, high_y = y.min(1), y.max(1)
    counts = np.full(len(x), float(length))
    lost_x, lost_y, same, broken = (np.zeros(len(x)) for _ in range(4))
    with np.errstate(invalid="ignore", over="ignore"):
        # A sum is finite only if all its terms are; that one of large numbers is not costs time, no more.
        if not np.isfinite(low_x + high_x + low_y + high_y).all():
            finite_x, finite_y = np.isfinite(x), np.isfinite(y)
            ok = finite_x & finite_y
            same = (~finite_x & ~finite_y & (x == y)).sum(1, dtype=np.float64)
            counts = ok.sum(1, dtype=np.float64)
            lost_x = (~finite_x).sum(1, dtype=np.float64)
            lost_y = (~finite_y).sum(1, dtype=np.float64)
            broken = (finite_x & ~finite_y).sum(1, dtype=np.float64)
            low_x, high_x, low_y, high_y = (*_extremes(x, ok), *_extremes(y, ok))
        divisor = np.maximum(counts, 1.0)
        whole = bool((counts == length).all())
        if not whole:
            x[~ok] = y[~ok] = 0.0
        mean_x, mean_y = x.sum(1) / divisor, y.sum(1) / divisor
        np.subtract(x, y, out=d)
        np.abs(d, out=d)
        if _is_wide(a) and _is_wide(b):
            # 1 where two wide integers differ although float64 cannot tell them apart
            np.maximum(d, (block_a != block_b).transpose(1, 0, 2).reshape(d.shape), out=d)
        np.subtract(x, mean_x[:, None], out=x)
        np.subtract(y, mean_y[:, None], out=y)
        if not whole:
            x[~ok] = y[~ok] = 0.0
        m2_x, m2_y = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)
        co = np.einsum("ij,ij->i", x, y)
        sum_dd = np.einsum("ij,ij->i", d, d)
    where = d.argmax(1)
    largest = d[np.arange(len(d)), where]
    # The mean of equal numbers may be off by a rounding; they are constant all the same.
    still_x, still_y = low_x == high_x, low_y == high_y
    counted = _counts_over(d, largest, thresholds)
    return Moments(
        count=counts,
        nonfinite_a=lost_x,
        nonfinite_b=lost_y,
        infinite_same=same,
        broken=broken,
        mean_a=mean_x,
        mean_b=mean_y,
        m2_a=np.where(still_x, 0.0, m2_x),
        m2_b=np.where(still_y, 0.0, m2_y),
        co_ab=np.where(still_x | still_y, 0.0, co),
        sum_dd=sum_dd,
        sum_abs=d.sum(1),
        max_abs=largest,
        max_at=_flat_index(where, start, block_a.shape, a.shape),
        min_a=low_x,
        max_a=high_x,
        min_b=low_y,
        max_b=high_y,
        over_decade=counted[:, :DECADES],
        over_lsb=counted[:, DECADES:] if len(thresholds) > DECADES else None,
    )


def _split(shape: tuple[int, ...], axis: int | None) -> tuple[int, int, int]:
    """The lengths before, of and after the channel axis."""
    if axis is None:
        return 1, 1, math.prod(shape)
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


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


def _of_equal(x: Array, low: Array, high: Array, *, at: Array, thresholds: int) -> Moments:
    """The moments of finite rows and of the same rows once more."""
    mean = x.sum(1) / x.shape[1]
    np.subtract(x, mean[:, None], out=x)
    m2 = np.where(low == high, 0.0, np.einsum("ij,ij->i", x, x))
    return replace(
        _zeros(len(x), thresholds),
        count=np.full(len(x), float(x.shape[1])),
        mean_a=mean,
        mean_b=mean,
        m2_a=m2,
        m2_b=m2,
        co_ab=m2,
        max_at=at,
        min_a=low,
        max_a=high,
        min_b=low,
        max_b=high,
    )


def _zeros(width: int, thresholds: int) -> Moments:
    """Rows of nothing."""
    names = (f.name for f in fields(Moments) if f.name not in ("over_decade", "over_lsb"))
    return Moments(
        **dict.fromkeys(names, np.zeros(width)),
        over_decade=np.zeros((width, DECADES)),
        over_lsb=np.zeros((width, LSBS)) if thresholds > DECADES else None,
    )


def _is_wide(tensor: NDArray[Any]) -> bool:
    return tensor.dtype.kind in "iu" and tensor.dtype.itemsize == 8


def _extremes(values: Array, ok: NDArray[np.bool_]) -> tuple[Array, Array]:
    some = ok.any(1)
    low = np.where(ok, values, np.inf).min(1)
    high = np.where(ok, values, -np.inf).max(1)
    return np.where(some, low, 0.0), np.where(some, high, 0.0)


def _least(values: Array, filled: NDArray[np.bool_]) -> Array:
    lowest: Array = np.where(filled, values, np.inf).min(0)
    return np.where(filled.any(0), lowest, 0.0)


def _counts_over(d: Array, largest: Array, thresholds: Array) -> Array:
    """How many differences of each row exceed each threshold."""
    counts = np.zeros((len(d), len(thresholds)))
    over = np.empty(d.shape, np.bool_)
    most = largest.max(initial=0.0)
    for k, threshold in enumerate(thresholds):
        if most > threshold:
            np.greater(d, threshold, out=over)
            if d.shape[1] >= LONG_ROW:
                counts[:, k] = [np.count_nonzero(row) for row in over]
            else:
                counts[:, k] = over.sum(1)
    return counts


def _flat_index(
    within: NDArray[np.intp], start: tuple[int, int, int], block: tuple[int, ...], whole: tuple[int, ...]
) -> Array:
    """From an index within each channel's row of a block to the flat index in the whole tensor."""
    before, after = np.divmod(within, block[2])
    channel = start[1] + np.arange(block[1])
    flat: Array = ((start[0] + before) * whole[1] + channel) * float(whole[2]) + (start[2] + after)
    return flat
