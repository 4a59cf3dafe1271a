"""Running sums of many pairs of float32 tensors, in single precision: thousands of tensors, where speed counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import DECADES, Array, Moments
from driftgate.numerics.moments import by_channel

Single = NDArray[np.float32]

BLOCK = 1 << 16  # numbers that are looked at together: a quarter of a megabyte
SMALL = 1 << 14  # tensors up to this size wait until they fill a block together
#: Numbers whose squares single precision can hold, summed up in a block; beyond, double precision is used.
TINY, HUGE = 1e-14, 1e15
#: Where less of the power than this is variance, single precision does not tell the variance.
TRUSTED = 1e-3

#: What is added up by channel: count, sums and squares of a and b, squares of the difference, what is not finite.
ADDED = 10
#: What is the largest of a key: difference, negated least and largest of a, of b.
LARGEST = 5


class _Raw(NamedTuple):
    """What is read off a block: by row the sums of a and b and of the squares of a, b and their difference; of each
    key the largest difference, negated least and largest of a, of b."""

    sums: Array
    largest: Array


class _Waiting(NamedTuple):
    """A pair that lies on the desk from `start`: so many rows of one length."""

    key: int
    start: int
    width: int
    length: int


class RunningSums:
    """Sums over pairs of tensors by `key`, one row a channel, over all that was added under that key.

    Sums are good to about 1e-5 of a channel's power (0.0001 dB); equal tensors give a difference of exactly 0.
    Least, largest and largest difference are those of the key, in each of its rows. What is not float32, not
    finite, very large, very small or nearly constant goes through `by_channel`. `sum_abs`, `max_at` and
    `over_decade` are not counted (NaN), `over_lsb` is None. A megabyte is held besides the sums, however many
    tensors there are.
    """

    def __init__(self) -> None:
        self._places: dict[int, slice] = {}
        self._added = np.zeros((ADDED, 64))
        self._largest: dict[int, Array] = {}
        self._used = 0
        self._waiting: dict[int, _Waiting] = {}
        self._filled = 0
        self._desk = np.empty((3, BLOCK), np.float32)

    def __contains__(self, key: int) -> bool:
        return key in self._places

    def add(self, key: int, a: NDArray[Any], b: NDArray[Any], *, axis: int | None) -> bool:
        """Two tensors of one shape, one row a channel along `axis` (a single row when None).

        False, and nothing is added, where this key has another number of channels.
        """
        before, width, after = _split(a.shape, axis)
        place = self._place(key, width)
        if place.stop - place.start != width:
            return False
        if not a.size:
            return True
        if a.dtype != np.float32 or b.dtype != np.float32:
            self._put_exactly(key, by_channel(a, b, axis=axis))
        elif a.size <= min(SMALL, BLOCK):
            self._lay(key, a.reshape(before, width, after), b.reshape(before, width, after))
        else:
            self._add_large(key, *(_rows(tensor.reshape(before, width, after)) for tensor in (a, b)))
        return True

    def moments(self, key: int) -> Moments:
        """The rows of one key. Raises KeyError."""
        self._flush()
        place = self._places[key]
        count, sum_a, sum_b, aa, bb, dd, lost_a, lost_b, same, broken = self._added[:, place]
        largest, *reach = self._largest[key] if count.any() else np.zeros(LARGEST)
        filled = count > 0
        largest, min_a, max_a, min_b, max_b = (
            np.where(filled, value, 0.0) for value in (largest, -reach[0], reach[1], -reach[2], reach[3])
        )
        still_a, still_b = min_a == max_a, min_b == max_b
        divisor = np.maximum(count, 1.0)
        mean_a, mean_b = sum_a / divisor, sum_b / divisor
        unknown = np.full(len(count), np.nan)
        return Moments(
            count=count.copy(),
            nonfinite_a=lost_a.copy(),
            nonfinite_b=lost_b.copy(),
            infinite_same=same.copy(),
            broken=broken.copy(),
            mean_a=np.where(still_a, min_a, mean_a),
            mean_b=np.where(still_b, min_b, mean_b),
            m2_a=np.where(still_a, 0.0, np.maximum(aa - sum_a * mean_a, 0.0)),
            m2_b=np.where(still_b, 0.0, np.maximum(bb - sum_b * mean_b, 0.0)),
            # (aa + bb - dd) / 2 is the sum of products, exactly aa where the two are equal
            co_ab=np.where(still_a | still_b, 0.0, (aa + bb - dd) / 2 - sum_a * mean_b),
            sum_dd=dd.copy(),
            sum_abs=unknown,
            max_abs=largest,
            max_at=unknown,
            min_a=min_a,
            max_a=max_a,
            min_b=min_b,
            max_b=max_b,
            over_decade=np.full((len(count), DECADES), np.nan),
            over_lsb=None,
        )

    def _place(self, key: int, width: int) -> slice:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = slice(self._used, self._used + width)
            self._largest[key] = np.full(LARGEST, -np.inf)
            self._used += width
            if self._used > self._added.shape[1]:
                self._added = np.concatenate([self._added, np.zeros((ADDED, self._used))], axis=1)
        return place

    def _lay(self, key: int, a: Single, b: Single) -> None:
        """Copy a pair to the desk, channels in front; a key lies there once."""
        if key in self._waiting or self._filled + a.size > BLOCK:
            self._flush()
        before, width, after = a.shape
        here = slice(self._filled, self._filled + a.size)
        for room, cube in zip(self._desk, (a, b), strict=False):
            np.copyto(room[here].reshape(width, before, after), cube.transpose(1, 0, 2))
        self._waiting[key] = _Waiting(key, self._filled, width, before * after)
        self._filled += a.size

    def _flush(self) -> None:
        """Put what waits on the desk to the sums."""
        if not self._waiting:
            return
        x, y, d = self._desk[:, : self._filled]
        waiting = list(self._waiting.values())
        starts = np.concatenate([entry.start + np.arange(entry.width) * entry.length for entry in waiting])
        with np.errstate(over="ignore", invalid="ignore"):
            raw = _of_segments(x, y, d, starts, np.array([entry.start for entry in waiting]))
            row = 0
            for number, entry in enumerate(waiting):
                here = _Raw(raw.sums[:, row : row + entry.width], raw.largest[:, number])
                row += entry.width
                if _is_fit(here, entry.width * entry.length):
                    self._put(entry.key, slice(0, entry.width), entry.length, here)
                    continue
                within = slice(entry.start, entry.start + entry.width * entry.length)
                rows_x, rows_y = (side[within].reshape(entry.width, -1) for side in (x, y))
                self._put_exactly(entry.key, by_channel(rows_x, rows_y, axis=0))
        self._waiting.clear()
        self._filled = 0

    def _add_large(self, key: int, x: Single, y: Single) -> None:
        """Rows that are looked at block by block."""
        width, length = x.shape
        long = min(length, BLOCK)
        wide = max(1, BLOCK // long)
        found = []
        with np.errstate(over="ignore", invalid="ignore"):
            for c in range(0, width, wide):
                here = slice(c, min(c + wide, width))
                raw = _of_rows(x[here, :long], y[here, :long], self._desk[2])
                for q in range(long, length, long):
                    more = _of_rows(x[here, q : q + long], y[here, q : q + long], self._desk[2])
                    raw = _Raw(raw.sums + more.sums, np.maximum(raw.largest, more.largest))
                found.append((here, raw))
            if all(_is_fit(raw, (here.stop - here.start) * length) for here, raw in found):
                for here, raw in found:
                    self._put(key, here, length, raw)
            else:
                self._put_exactly(key, by_channel(x, y, axis=0))

    def _put(self, key: int, rows: slice, count: int, raw: _Raw) -> None:
        place = self._places[key]
        here = slice(place.start + rows.start, place.start + rows.stop)
        self._added[0, here] += count
        self._added[1:6, here] += raw.sums
        np.maximum(self._largest[key], raw.largest, out=self._largest[key])

    def _put_exactly(self, key: int, table: Moments) -> None:
        """Rows that `by_channel` has computed; those in which nothing is finite change only what is counted."""
        m, n = table, table.count
        self._added[:, self._places[key]] += np.array(
            [
                *(n, n * m.mean_a, n * m.mean_b, m.m2_a + n * m.mean_a**2, m.m2_b + n * m.mean_b**2, m.sum_dd),
                *(m.nonfinite_a, m.nonfinite_b, m.infinite_same, m.broken),
            ]
        )
        reach = np.array([m.max_abs, -m.min_a, m.max_a, -m.min_b, m.max_b])
        largest = np.where(n > 0, reach, -np.inf).max(1, initial=-np.inf)
        np.maximum(self._largest[key], largest, out=self._largest[key])


def mean_square(value: NDArray[Any], axis: int | None) -> Array:
    """Mean square by channel, of the finite values; 0 where there are none."""
    cube = value.reshape(_split(value.shape, axis))
    if value.dtype == np.float32 and value.size:
        rows = _rows(cube)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = _products(rows, rows).astype(np.float64)
        if (np.isfinite(sums) & ((sums == 0) | (sums > TINY))).all():
            made: Array = sums / rows.shape[1]
            return made
    table = by_channel(value, value, axis=axis)
    return np.asarray(table.m2_a / np.maximum(table.count, 1.0) + table.mean_a**2)


def _split(shape: tuple[int, ...], axis: int | None) -> tuple[int, int, int]:
    """The lengths before, of and after the channel axis."""
    if axis is None:
        return 1, 1, math.prod(shape)
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _rows(cube: Single) -> Single:
    """One row a channel; a copy where a channel's numbers do not lie together."""
    made: Single = cube.transpose(1, 0, 2).reshape(cube.shape[1], cube.shape[0] * cube.shape[2])
    return made


def _of_rows(x: Single, y: Single, room: Single) -> _Raw:
    """Of rows of one length, all of one key; `room` is written over."""
    ones = _ones(BLOCK)[: x.shape[1]]
    d = room[: x.size].reshape(x.shape)
    np.subtract(x, y, out=d)
    sums = np.array([x @ ones, y @ ones, _products(x, x), _products(y, y), _products(d, d)], np.float64)
    np.abs(d, out=d)
    return _Raw(sums, np.array([d.max(), -x.min(), x.max(), -y.min(), y.max()], np.float64))


def _of_segments(x: Single, y: Single, room: Single, rows: NDArray[np.intp], keys: NDArray[np.intp]) -> _Raw:
    """Of stretches of several lengths, each from its start to the next one's; `room` is written over."""
    total, least, most = np.add.reduceat, np.minimum.reduceat, np.maximum.reduceat
    aa = total(np.multiply(x, x, out=room), rows)
    bb = total(np.multiply(y, y, out=room), rows)
    np.subtract(x, y, out=room)
    np.abs(room, out=room)
    farthest = most(room, keys)
    dd = total(np.multiply(room, room, out=room), rows)
    return _Raw(
        np.array([total(x, rows), total(y, rows), aa, bb, dd], np.float64),
        np.array([farthest, -least(x, keys), most(x, keys), -least(y, keys), most(y, keys)], np.float64),
    )


def _is_fit(raw: _Raw, count: int) -> bool:
    """Whether single precision tells the sums of a key; NaN and infinities fail every comparison."""
    farthest, *reach = raw.largest.tolist()
    most = max(map(abs, reach))
    if not (most < HUGE and (most >= TINY or most == 0) and (farthest >= TINY or farthest == 0)):
        return False
    sum_a, sum_b, aa, bb, _ = raw.sums.sum(1).tolist()
    return bool(
        (reach[0] == -reach[1] or aa - sum_a * sum_a / count >= TRUSTED * aa)
        and (reach[2] == -reach[3] or bb - sum_b * sum_b / count >= TRUSTED * bb)
    )


@lru_cache(maxsize=1)
def _ones(count: int) -> Single:
    return np.ones(count, np.float32)


def _by_einsum(x: Single, y: Single) -> Single:
    made: Single = np.einsum("ij,ij->i", x, y)
    return made


#: Sums of products row by row; numpy 1 has the slower way only.
_products: Callable[[Single, Single], Single] = getattr(np, "vecdot", _by_einsum)
