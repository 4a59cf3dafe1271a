"""Score records: what a scorer noted of each sample, and the values that are folded from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import Array

#: What a wrong and a right decision on an item of each kind is called.
CALLS = {"row": ("wrong", "right"), "object": ("FN", "TP"), "alarm": ("FP", "TN")}


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRecords:
    """One stage's records for one task: `values` is float64 of shape (rows, columns).

    The rows lie in the order of `samples`; `rows` says how many each sample has, None that each has one.
    """

    stage: str
    run: str
    score: str
    columns: tuple[str, ...]
    samples: tuple[str, ...]
    values: Array
    rows: tuple[int, ...] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What these are records of."""
        return (self.stage, self.run, self.score)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many rows each sample has."""
        return (1,) * len(self.samples) if self.rows is None else self.rows

    @property
    def owners(self) -> NDArray[np.int64]:
        """The position in `samples` of the sample that each row belongs to."""
        return np.repeat(np.arange(len(self.samples)), self.counts)

    def column(self, name: str) -> Array:
        """The values of one column, one a row."""
        column: Array = self.values[:, self.columns.index(name)]
        return column

    def by_sample(self) -> dict[str, Array]:
        """The rows of each sample."""
        ends = np.cumsum(self.counts)
        pairs = zip(self.samples, self.counts, ends, strict=True)
        return {sample: self.values[end - count : end] for sample, count, end in pairs}

    def with_rows(self, rows: Iterable[tuple[str, Array]]) -> ScoreRecords:
        """The same records with these rows of these samples, in this order."""
        samples, tables = [], []
        for sample, table in rows:
            samples.append(sample)
            tables.append(table)
        counts = tuple(len(table) for table in tables)
        values = np.concatenate(tables) if tables else np.empty((0, len(self.columns)))
        each_one = all(count == 1 for count in counts)
        return replace(self, samples=tuple(samples), values=values, rows=None if each_one else counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreRecords):
            return NotImplemented
        same = all(getattr(self, f.name) == getattr(other, f.name) for f in fields(self) if f.name != "values")
        return same and np.array_equal(self.values, other.values, equal_nan=True)


def concatenate(parts: Sequence[ScoreRecords]) -> ScoreRecords:
    """The records of several parts that have no sample in common, as one."""
    return parts[0].with_rows(row for part in parts for row in part.by_sample().items())


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a number lies with 95 % confidence; `seed` of the resamples, None where nothing was drawn."""

    low: float
    high: float
    method: str
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a candidate loses against a reference, as a share of the reference's score; more is worse.

    `certain`: the whole interval lies on one side of `margin`, else the loss is within noise at `n`.
    `needed`: at how many items a loss like this one would be certain, None where it is so or never would be.
    `lost` and `won`: items that were right and are wrong, and the reverse; `chance`: McNemar's exact probability
    of so unequal a split; all three None where the score has no right and wrong.
    """

    drop: float
    interval: Interval
    margin: float
    n: int
    certain: bool
    needed: int | None
    lost: int | None = None
    won: int | None = None
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class Flip:
    """An item whose decision at the last stage is another than at the first.

    `kind` is row (of a classifier), object (of the labels, found or not) or alarm (a detection of no object);
    `item` counts within its sample and kind. `right` and `margins` go by stage; a margin is above zero where
    the decision is safe, in the unit of the scores. `eroded`: the share of the lost margin by segment, which
    add up to 1; empty where the item was not lost or the margin is not known.
    """

    sample: str
    item: int
    kind: str
    right: tuple[bool, ...]
    margins: tuple[tuple[str, float], ...]
    eroded: tuple[tuple[int, float], ...] = ()

    @property
    def lost(self) -> bool:
        """Right at the first stage and wrong at the last."""
        return self.right[0] and not self.right[-1]

    @property
    def loss(self) -> float:
        """By how much the margin fell from the first stage to the last."""
        return self.margins[0][1] - self.margins[-1][1]

    @property
    def calls(self) -> tuple[str, ...]:
        """The decision at each stage: TP or FN of an object, FP or TN of an alarm, right or wrong of a row."""
        return tuple(CALLS[self.kind][right] for right in self.right)
