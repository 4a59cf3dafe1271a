"""Measurements: the sums from which every metric derives, for one output of one link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DECADES = 10  # counts of |d| > 10^-k for k = 0 … 9
LSBS = 5  # counts of |d| > (k + 1/2) steps for k = 0 … 4


@dataclass(frozen=True, slots=True)
class Moments:
    """A table of centred sums over pairs of numbers (reference a, candidate b), one row a sample or channel.

    Every field is float64 of shape (n,), `over_decade` (n, 10), `over_lsb` (n, 5) or None where no step is
    known; where they were not counted they are NaN and None. Only pairs in which both numbers are finite enter
    the sums; `max_at` is the flat index of the largest difference within its own sample. Non-finite pairs are
    counted: `nonfinite_a` and `nonfinite_b` on each side, `infinite_same` where both are the same infinity,
    `broken` where only b is not finite.
    """

    count: Array
    nonfinite_a: Array
    nonfinite_b: Array
    infinite_same: Array
    broken: Array
    mean_a: Array
    mean_b: Array
    m2_a: Array
    m2_b: Array
    co_ab: Array
    sum_dd: Array
    sum_abs: Array
    max_abs: Array
    max_at: Array
    min_a: Array
    max_a: Array
    min_b: Array
    max_b: Array
    over_decade: Array
    over_lsb: Array | None

    def __len__(self) -> int:
        return len(self.count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Moments):
            return NotImplemented
        return all(
            np.array_equal(mine, yours, equal_nan=True) if mine is not None and yours is not None else mine is yours
            for mine, yours in ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        )

    def take(self, rows: NDArray[np.intp] | slice) -> Moments:
        """Some of the rows, in the order asked for."""
        columns: dict[str, Any] = {}
        for f in fields(self):
            column = getattr(self, f.name)
            columns[f.name] = None if column is None else column[rows]
        return Moments(**columns)


def concatenate(tables: Sequence[Moments]) -> Moments:
    """The rows of several tables, one after the other; LSB counts only where every table has them."""
    columns: dict[str, Any] = {}
    for f in fields(Moments):
        parts = [getattr(table, f.name) for table in tables]
        columns[f.name] = None if any(part is None for part in parts) else np.concatenate(parts)
    return Moments(**columns)


class Role(str, Enum):
    """Final outputs decide; nodes localise."""

    OUTPUT = "output"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Alignment:
    """What was done so that two tensors could be compared, and how they were found to belong together.

    `how` is name, map, signature, or for nodes structure or value. `shape` is that of the first compared
    sample, `axis` the channel axis where all samples have the same channels. `scaled` says on which sides
    integers were turned into numbers; `ties` counts tied top-k entries that were put into one order.
    """

    output_a: str
    output_b: str
    how: str
    shape: tuple[int, ...]
    axis: int | None = None
    dtype_a: str = "float32"
    dtype_b: str = "float32"
    permutation: tuple[int, ...] | None = None
    reshaped: bool = False
    scaled: tuple[str, ...] = ()
    ties: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """All that was measured of one output on one link.

    `rows` has one row a sample, in the order of `samples`; `channels` has one row for each block of
    `blocks` and channel, channels running fastest. Keys carry run ids, so one artifact on two machines is
    two measurements.
    """

    link: str
    output: str
    role: Role
    run_a: str
    run_b: str
    alignment: Alignment
    step: float | None
    samples: tuple[str, ...]
    rows: Moments
    blocks: tuple[int, ...] = ()
    channels: Moments | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What this is a measurement of."""
        return (self.link, self.role.value, self.output, self.run_a, self.run_b)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measurement):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in fields(self))
