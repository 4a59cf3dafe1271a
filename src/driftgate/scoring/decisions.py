"""Decisions: what each stage decided on each item, as flips are read from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import Array
from driftgate.domain.scores import ScoreRecords
from driftgate.errors import SampleError
from driftgate.messages.message import message


@dataclass(frozen=True, slots=True)
class Item:
    """Something decided upon: a row of a sample, an object of its labels, or an alarm."""

    sample: str
    number: int
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """`right` and `margins` have the shape (items, stages); a margin above zero is a safe decision."""

    items: tuple[Item, ...]
    right: NDArray[np.bool_]
    margins: Array


def in_order(stages: Sequence[ScoreRecords]) -> tuple[ScoreRecords, ...]:
    """The records of every stage with the samples sorted by id. Raises SampleError where they are others."""
    wanted = sorted(stages[0].samples)
    for records in stages[1:]:
        found = sorted(records.samples)
        if found != wanted:
            others = tuple(sorted(set(found) ^ set(wanted)))[:5]
            raise SampleError(
                message("score-other-samples", a=stages[0].stage, b=records.stage, samples=others or ("-",))
            )
    return tuple(by_id(records) for records in stages)


def by_id(records: ScoreRecords) -> ScoreRecords:
    """The same records with the samples sorted by id, so that no order of shards shows in a sum."""
    if list(records.samples) == sorted(records.samples):
        return records
    return records.with_rows(sorted(records.by_sample().items()))


def together(stages: Sequence[ScoreRecords], keys: Iterable[NDArray[np.float64]]) -> None:
    """Raise SampleError unless every stage's rows have the same keys: the labels were the same."""
    first, *others = keys
    for records, other in zip(stages[1:], others, strict=True):
        if not np.array_equal(first, other):
            raise SampleError(message("score-other-items", a=stages[0].stage, b=records.stage))
