"""Moments of float32 tensors computed in single precision: for thousands of tensors, where speed is what counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import DECADES, Array, Moments
from driftgate.numerics.moments import by_channel

Single = NDArray[np.float32]

BLOCK = 1 << 17  # numbers that are looked at together: half a megabyte
#: Numbers whose squares single precision can hold, summed up in a block; beyond, double precision is used.
LEAST, MOST = 1e-14, 1e15


def quick_by_channel(a: NDArray[Any], b: NDArray[Any], *, axis: int | None, step: float | None = None) -> Moments:
    """As `by_channel`, but sums within a block are good to about 1e-6 of their terms; blocks are put together in
    double precision.

    Equal tensors give a difference of exactly 0. `over_decade` is not counted (NaN) and `over_lsb` None. What is
    not float32, not finite, very large or very small is handed to `by_channel`, which counts.
    """
    sums = None
    if a.dtype == np.float32 and b.dtype == np.float32 and a.size:
        sums = _sums(cast(Single, a), cast(Single, b), axis)
    return by_channel(a, b, axis=axis, step=step) if sums is None else sums.moments()


class _Unfit(Exception):
    """Single precision cannot hold what these numbers give."""


def _sums(a: Single, b: Single, axis: int | None) -> _Sums | None:
    """The sums of all blocks; None where single precision does not do."""
    shape = a.shape
    if axis is None:
        before, width, after = 1, 1, a.size
    else:
        axis %= len(shape)
        before, width, after = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    cube_a, cube_b = a.reshape(before, width, after), b.reshape(before, width, after)
    if before > 1 and after < BLOCK:
        # One copy with the channels in front is cheaper than many short rows.
        cube_a, cube_b = (cube.transpose(1, 0, 2).reshape(1, width, -1) for cube in (cube_a, cube_b))
    sums = _Sums(width, before, after)
    length = cube_a.shape[2]
    long = min(length, BLOCK)
    wide = max(1, BLOCK // long)
    try:
        for p in range(len(cube_a)):
            for c in range(0, width, wide):
                for q in range(0, length, long):
                    place = (p, slice(c, c + wide), slice(q, q + long))
                    sums.add(cube_a[place], cube_b[place], c, p * length + q)
    except _Unfit:
        return None
    return sums


class _Sums:
    """Running sums by channel, about running means."""

    def __init__(self, width: int, before: int, after: int) -> None:
        self._lengths = before, width, after
        self._count, self._mean_a, self._mean_b, self._m2_a, self._m2_b, self._co, self._dd, self._abs = (
            np.zeros(width) for _ in range(8)
        )
        self._largest = np.full(width, -1.0)
        self._at = np.zeros(width)
        self._min_a, self._min_b = np.full(width, np.inf), np.full(width, np.inf)
        self._max_a, self._max_b = np.full(width, -np.inf), np.full(width, -np.inf)
        self._u, self._v, self._d = np.empty((3, min(BLOCK, width * before * after)), np.float32)

    def add(self, x: Single, y: Single, channel: int, start: int) -> None:
        """One block of rows; `start` is the place of its first column in the rows. Raises _Unfit."""
        rows, length = x.shape
        here = slice(channel, channel + rows)
        low_x, high_x = np.minimum.reduce(x, 1), np.maximum.reduce(x, 1)
        low_y, high_y = np.minimum.reduce(y, 1), np.maximum.reduce(y, 1)
        reach = float(np.abs((low_x, high_x, low_y, high_y)).max())
        if not reach < MOST:  # NaN, too
            raise _Unfit
        ones = _ones()[:length]
        equal = bool((low_x == low_y).all()) and bool((high_x == high_y).all()) and np.array_equal(x, y)
        u = self._u[: x.size].reshape(rows, length)
        mean_x, uu, su = _centred(x, u, ones)
        if equal:
            mean_y, vv, uv, sv = mean_x, uu, uu, su
        else:
            v, d = (room[: x.size].reshape(rows, length) for room in (self._v, self._d))
            mean_y, vv, sv = _centred(y, v, ones)
            uv = _dot(u, v)
            np.subtract(x, y, out=d)
            self._add_difference(d, here, ones, start)
        if reach < LEAST and reach:
            raise _Unfit
        self._merge(
            here,
            length,
            (mean_x + su / length, mean_y + sv / length),
            (uu - su * su / length, vv - sv * sv / length, uv - su * sv / length),
        )
        np.minimum(self._min_a[here], low_x, out=self._min_a[here])
        np.minimum(self._min_b[here], low_y, out=self._min_b[here])
        np.maximum(self._max_a[here], high_x, out=self._max_a[here])
        np.maximum(self._max_b[here], high_y, out=self._max_b[here])

    def _add_difference(self, d: Single, here: slice, ones: Single, start: int) -> None:
        self._dd[here] += _dot(d, d)
        np.abs(d, out=d)
        self._abs[here] += d @ ones
        where = d.argmax(1)
        largest = d[np.arange(len(d)), where].astype(np.float64)
        if largest.max() < LEAST:
            raise _Unfit
        more = largest > self._largest[here]
        self._at[here] = np.where(more, where + start, self._at[here])
        self._largest[here] = np.where(more, largest, self._largest[here])

    def _merge(self, here: slice, length: int, means: tuple[Array, Array], seconds: tuple[Array, Array, Array]) -> None:
        before = self._count[here]
        if not before[0]:
            self._mean_a[here], self._mean_b[here] = means
            self._m2_a[here], self._m2_b[here] = np.maximum(seconds[:2], 0.0)
            self._co[here] = seconds[2]
            self._count[here] = length
            return
        share = length / (before + length)
        away_a, away_b = means[0] - self._mean_a[here], means[1] - self._mean_b[here]
        weight = before * share
        self._m2_a[here] += np.maximum(seconds[0], 0.0) + weight * away_a * away_a
        self._m2_b[here] += np.maximum(seconds[1], 0.0) + weight * away_b * away_b
        self._co[here] += seconds[2] + weight * away_a * away_b
        self._mean_a[here] += away_a * share
        self._mean_b[here] += away_b * share
        self._count[here] += length

    def moments(self) -> Moments:
        """As a table."""
        width = len(self._count)
        nothing = np.zeros(width)
        still_a, still_b = self._min_a == self._max_a, self._min_b == self._max_b
        before, after = np.divmod(self._at, self._lengths[2])
        return Moments(
            count=self._count,
            nonfinite_a=nothing,
            nonfinite_b=nothing,
            infinite_same=nothing,
            broken=nothing,
            mean_a=np.where(still_a, self._min_a, self._mean_a),
            mean_b=np.where(still_b, self._min_b, self._mean_b),
            m2_a=np.where(still_a, 0.0, self._m2_a),
            m2_b=np.where(still_b, 0.0, self._m2_b),
            co_ab=np.where(still_a | still_b, 0.0, self._co),
            sum_dd=self._dd,
            sum_abs=self._abs,
            max_abs=np.maximum(self._largest, 0.0),
            max_at=(before * self._lengths[1] + np.arange(width)) * float(self._lengths[2]) + after,
            min_a=self._min_a,
            max_a=self._max_a,
            min_b=self._min_b,
            max_b=self._max_b,
            over_decade=np.full((width, DECADES), np.nan),
            over_lsb=None,
        )


def _centred(x: Single, room: Single, ones: Single) -> tuple[Array, Array, Array]:
    """Rows about their rounded means, written to `room`: the means, and sums of squares and of what is left."""
    mean = (x @ ones) / np.float32(x.shape[1])
    np.subtract(x, mean[:, None], out=room)
    return mean.astype(np.float64), _dot(room, room), (room @ ones).astype(np.float64)


@lru_cache(maxsize=1)
def _ones() -> Single:
    return np.ones(BLOCK, np.float32)


def _by_einsum(x: Single, y: Single) -> Single:
    made: Single = np.einsum("ij,ij->i", x, y)
    return made


#: Sums of products row by row; numpy 1 has the slower way only.
_rows: Callable[[Single, Single], Single] = getattr(np, "vecdot", _by_einsum)


def _dot(x: Single, y: Single) -> Array:
    return _rows(x, y).astype(np.float64)
