"""Top-1 of a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.scores import ScoreRecords
from driftgate.errors import SampleError
from driftgate.messages.message import message

COLUMNS = ("correct", "total", "margin")


def record(output: NDArray[Any], label: NDArray[Any]) -> tuple[float, ...]:
    """How many rows of one sample are right, how many there are, and the smallest margin.

    `output` holds scores of shape (rows, classes) or (classes,), further axes of length 1 are dropped;
    `label` the right class of each row. The margin is the score of the right class less the best other one,
    in the output's unit. A row with NaN is wrong, with margin nan. Raises SampleError where the numbers of
    rows and labels differ or a label is no class.
    """
    labels = np.atleast_1d(np.asarray(label)).astype(np.int64).reshape(-1)
    scores = np.asarray(output, dtype=np.float64)
    scores = scores.reshape(len(labels), -1) if scores.size and scores.size % len(labels) == 0 else scores
    if scores.ndim != 2 or len(scores) != len(labels):
        raise SampleError(message("score-rows", shape=str(np.shape(output)), labels=len(labels)))
    classes = scores.shape[1]
    if ((labels < 0) | (labels >= classes)).any():
        raise SampleError(message("score-label", label=int(labels.max()), classes=classes))
    rows = np.arange(len(labels))
    lost = np.isnan(scores).any(1)
    right = scores[rows, labels]
    others = scores.copy()
    others[rows, labels] = -np.inf
    with np.errstate(invalid="ignore"):
        margins = right - others.max(1)
    correct = (np.where(np.isnan(scores), -np.inf, scores).argmax(1) == labels) & ~lost
    return float(correct.sum()), float(len(labels)), float("nan") if lost.any() else float(margins.min())


def counts(records: ScoreRecords) -> tuple[int, int]:
    """Right rows and all rows over all samples."""
    return int(records.column("correct").sum()), int(records.column("total").sum())
