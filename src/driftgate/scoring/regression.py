"""Regression: records of each sample's errors, from which MAE and RMSE are read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import Array
from driftgate.domain.scores import ScoreRecords
from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.statistics import Fold

#: Sums over a sample's numbers: of |output - label|, of its square, and of how many there are.
FIELDS = ("absolute", "squared", "count")


def rows(output: NDArray[Any], label: NDArray[Any], parameters: Parameters) -> Array:
    """One record, shape (1, 3), see FIELDS, in the output's unit.

    `output` and `label` have the same shape but for axes of length 1. A number that is not finite makes the score
    nan, which reaches no limit. Raises SampleError where the shapes differ or the label is not finite.
    """
    found, wanted = np.asarray(output, dtype=np.float64), np.asarray(label, dtype=np.float64)
    shapes = [[length for length in array.shape if length != 1] for array in (found, wanted)]
    if shapes[0] != shapes[1] or not wanted.size:
        raise SampleError(message("score-values", shape=str(found.shape), labels=str(wanted.shape)))
    if not np.isfinite(wanted).all():
        raise SampleError(message("score-label-nonfinite", count=int((~np.isfinite(wanted)).sum())))
    off = np.abs(found.reshape(-1) - wanted.reshape(-1))
    if not np.isfinite(off).all():
        return np.array([[np.nan, np.nan, float(off.size)]])
    return np.array([[off.sum(), (off**2).sum(), float(off.size)]])


def mean_absolute(records: ScoreRecords, parameters: Parameters) -> Fold:
    """MAE, ≥ 0: the mean of |output - label| over all numbers, in their unit."""
    return _mean(records, "absolute")


def root_mean_square(records: ScoreRecords, parameters: Parameters) -> Fold:
    """RMSE, ≥ 0: the root of the mean of (output - label)² over all numbers, in their unit."""
    mean = _mean(records, "squared")
    return lambda weights: float(np.sqrt(mean(weights)))


def _mean(records: ScoreRecords, column: str) -> Fold:
    sums, counts = records.column(column), records.column("count")
    return lambda weights: float((weights * sums).sum() / (weights * counts).sum())
