"""Custom: what a user's own scorer says, a number for each sample or one for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftgate.domain.measurements import Array
from driftgate.domain.scores import ScoreRecords
from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.statistics import Fold

#: A number for each sample, of which the score is the mean.
FIELDS = ("value",)

#: One number for the whole set, noted with every sample of it, and how many samples it was made from.
WHOLE_FIELDS = ("whole", "of")


def rows(value: float) -> Array:
    """One record, shape (1, 1). Raises SampleError where the user's number is not finite."""
    if not np.isfinite(value):
        raise SampleError(message("score-own-nonfinite", value=str(value)))
    return np.array([[float(value)]])


def whole(stage: str, run: str, score: str, *, samples: Sequence[str], value: float) -> ScoreRecords:
    """The records of one number over all samples. Raises SampleError where it is not finite."""
    rows(value)
    table = np.tile([[float(value), float(len(samples))]], (len(samples), 1))
    return ScoreRecords(stage, run, score, WHOLE_FIELDS, tuple(samples), table)


def mean(records: ScoreRecords, parameters: Parameters) -> Fold | None:
    """The mean of the user's numbers; None where there is one for the whole set."""
    if records.columns != FIELDS:
        return None
    values = records.column("value")
    return lambda weights: float((weights * values).sum() / weights.sum())


def whole_value(records: ScoreRecords) -> float | None:
    """The user's one number; None of numbers for each sample.

    Raises SampleError where it was made from another set than these samples, as shards would.
    """
    if records.columns != WHOLE_FIELDS:
        return None
    values, count = records.column("whole"), len(records.samples)
    if not count or (values != values[0]).any() or (records.column("of") != count).any():
        made = tuple(sorted({str(int(of)) for of in records.column("of")}))
        raise SampleError(message("score-whole-shards", stage=records.stage, count=count, made=made or ("-",)))
    return float(values[0])
