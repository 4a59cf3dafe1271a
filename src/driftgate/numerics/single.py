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
    """As `by_channel`, but sums within a block are good to about 1e-4 of their terms (0.0004 dB); blocks are put
    together in double precision.

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
        self._lengths = before, width, max(1, after)
        self._done = 0
        #: count, means, squares of a and b, their product, squares and magnitudes of the difference
        self._sums = np.zeros((8, width))
        #: largest difference and its place; least and negated largest of a and b
        self._largest = np.zeros((2, width))
        self._least = np.full((4, width), np.inf)
        self._rooms = np.empty((3, min(BLOCK, width * before * after)), np.float32)

    def add(self, x: Single, y: Single, channel: int, start: int) -> None:
        """One block of rows; `start` is the place of its first column in the rows. Raises _Unfit."""
        rows, length = x.shape
        here = slice(channel, channel + rows)
        least = np.array(
            [np.minimum.reduce(x, 1), -np.maximum.reduce(x, 1), np.minimum.reduce(y, 1), -np.maximum.reduce(y, 1)]
        )
        reach = float(np.abs(least).max())
        if not reach < MOST:  # NaN, too
            raise _Unfit
        ones = _ones(BLOCK)[:length]
        u, v, d = (room[: x.size].reshape(rows, length) for room in self._rooms)
        mean_x, uu = _centred(x, u, ones)
        if np.array_equal(least[:2], least[2:]) and np.array_equal(x, y):
            mean_y, vv, uv = mean_x, uu, uu
        else:
            mean_y, vv = _centred(y, v, ones)
            uv = _dot(u, v) - (u @ ones).astype(np.float64) * (v @ ones) / length
            np.subtract(x, y, out=d)
            self._add_difference(d, here, ones, start)
        if 0.0 < reach < LEAST:
            raise _Unfit
        self._merge(here, length, np.array([mean_x, mean_y]), np.array([uu, vv, uv]))
        np.minimum(self._least[:, here], least, out=self._least[:, here])

    def _add_difference(self, d: Single, here: slice, ones: Single, start: int) -> None:
        self._sums[6, here] += _dot(d, d)
        np.abs(d, out=d)
        self._sums[7, here] += d @ ones
        where = d.argmax(1)
        found = np.array([d[np.arange(len(d)), where], where + start])
        if found[0].max() < LEAST:
            raise _Unfit
        self._largest[:, here] = np.where(found[0] > self._largest[0, here], found, self._largest[:, here])

    def _merge(self, here: slice, length: int, means: Array, seconds: Array) -> None:
        """Means and second moments of so many more numbers, put to those that are there."""
        sums = self._sums[:, here]
        before = sums[0, 0]
        share = length / (before + length)
        away = means - sums[1:3]
        sums[3:6] += seconds + before * share * np.array([away[0] * away[0], away[1] * away[1], away[0] * away[1]])
        sums[1:3] += away * share
        sums[0] += length

    def moments(self) -> Moments:
        """As a table."""
        count, mean_a, mean_b, m2_a, m2_b, co, dd, magnitude = self._sums
        min_a, max_a, min_b, max_b = self._least * _SIGNS
        still_a, still_b = min_a == max_a, min_b == max_b
        nothing = np.zeros(len(count))
        _, width, length = self._lengths
        before, after = np.divmod(self._largest[1], length)
        return Moments(
            count=count,
            nonfinite_a=nothing,
            nonfinite_b=nothing,
            infinite_same=nothing,
            broken=nothing,
            mean_a=np.where(still_a, min_a, mean_a),
            mean_b=np.where(still_b, min_b, mean_b),
            m2_a=np.where(still_a, 0.0, m2_a),
            m2_b=np.where(still_b, 0.0, m2_b),
            co_ab=np.where(still_a | still_b, 0.0, co),
            sum_dd=dd,
            sum_abs=magnitude,
            max_abs=self._largest[0],
            max_at=np.asarray((before * width + np.arange(width)) * length + after, np.float64),
            min_a=min_a,
            max_a=max_a,
            min_b=min_b,
            max_b=max_b,
            over_decade=np.full((len(count), DECADES), np.nan),
            over_lsb=None,
        )


_SIGNS: Array = np.array([[1.0], [-1.0], [1.0], [-1.0]])


def _centred(x: Single, room: Single, ones: Single) -> tuple[Array, Array]:
    """Rows about their rounded means, written to `room`: the means, and the sums of squares about them."""
    rounded = (x @ ones) / np.float32(x.shape[1])
    np.subtract(x, rounded[:, None], out=room)
    left = (room @ ones).astype(np.float64)
    return rounded + left / x.shape[1], np.maximum(_dot(room, room) - left * left / x.shape[1], 0.0)


@lru_cache(maxsize=1)
def _ones(count: int) -> Single:
    return np.ones(count, np.float32)


def _by_einsum(x: Single, y: Single) -> Single:
    made: Single = np.einsum("ij,ij->i", x, y)
    return made


#: Sums of products row by row; numpy 1 has the slower way only.
_rows: Callable[[Single, Single], Single] = getattr(np, "vecdot", _by_einsum)


def _dot(x: Single, y: Single) -> Array:
    return _rows(x, y).astype(np.float64)
