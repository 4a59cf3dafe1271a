"""Classification: one record a row, from which top-k, precision, recall, F1 and decisions are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import Array
from driftgate.domain.scores import ScoreRecords
from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.scoring.decisions import Decisions, Item, in_order, together
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.statistics import Fold

#: A row's label and the class it was given (-1 where a score is NaN); how many classes beat the label; by how much
#: the label beats the best other class, in the output's unit; of how many classes.
FIELDS = ("label", "predicted", "rank", "margin", "classes")


def rows(output: NDArray[Any], label: NDArray[Any], parameters: Parameters) -> Array:
    """Records of shape (rows, 5), see FIELDS.

    `output` holds scores of shape (rows, classes), or (classes,) for one row, between any axes of length 1;
    `label` the right class of each row, integers. Classes with the same score stand in the order of their index,
    as argmax takes them. A row with NaN is wrong, with rank = classes and margin nan. Raises SampleError where
    the shapes do not fit or a label is no class.
    """
    labels = _labels(label)
    scores = np.asarray(output, dtype=np.float64)
    full = tuple(length for length in scores.shape if length != 1)
    head = (len(labels),) if len(labels) > 1 else ()
    if not scores.size or full[: len(head)] != head or len(full) > len(head) + 1:
        raise SampleError(message("score-rows", shape=str(np.shape(output)), labels=len(labels)))
    scores = scores.reshape(len(labels), -1)
    classes = scores.shape[1]
    if ((labels < 0) | (labels >= classes)).any():
        stranger = labels[(labels < 0) | (labels >= classes)][0]
        raise SampleError(message("score-label", label=int(stranger), classes=classes))
    lost = np.isnan(scores).any(1)
    each = np.arange(len(labels))
    own = scores[each, labels]
    others = scores.copy()
    others[each, labels] = -np.inf
    ahead = (scores > own[:, None]) | ((scores == own[:, None]) & (np.arange(classes) < labels[:, None]))
    with np.errstate(invalid="ignore"):
        margin = own - others.max(1)
    return np.stack(
        [
            labels.astype(np.float64),
            np.where(lost, -1, scores.argmax(1)),
            np.where(lost, classes, ahead.sum(1)),
            np.where(lost, np.nan, margin),
            np.full(len(labels), float(classes)),
        ],
        axis=1,
    )


def _labels(label: NDArray[Any]) -> NDArray[np.int64]:
    labels = np.atleast_1d(np.asarray(label)).reshape(-1)
    if not labels.size or labels.dtype.kind not in "iu":
        raise SampleError(message("score-label-kind", dtype=str(labels.dtype), shape=str(np.shape(label))))
    return labels.astype(np.int64)


def among(top: int) -> Callable[[ScoreRecords, Parameters], NDArray[np.bool_] | None]:
    """Whether the label is among the best so many classes, one a row; None of records with no more classes."""

    def hits(records: ScoreRecords, parameters: Parameters) -> NDArray[np.bool_] | None:
        if "rank" not in records.columns:
            return _right_of_0_1(records) if top == 1 else None
        if top > 1 and (records.column("classes") <= top).any():
            return None
        return np.asarray(records.column("rank") < top)

    return hits


def _right_of_0_1(records: ScoreRecords) -> NDArray[np.bool_]:
    """Version 0.1 counted right rows and all rows a sample."""
    pairs = zip(records.column("correct").astype(int), records.column("total").astype(int), strict=True)
    return np.concatenate([np.arange(total) < correct for correct, total in pairs])


def tied(records: ScoreRecords, tolerance: float) -> NDArray[np.bool_]:
    """Rows whose label stands level with the best other class, give or take `tolerance` in the output's unit."""
    if "rank" not in records.columns:
        return np.zeros(int(records.column("total").sum()), dtype=bool)
    return np.asarray(np.abs(records.column("margin")) <= tolerance)


def mean_over_classes(
    measure: Callable[[Array, Array, Array], Array],
) -> Callable[[ScoreRecords, Parameters], Fold | None]:
    """The mean of a measure over the classes that occur as a label or as a prediction (macro average).

    `measure` gets the numbers of hits, of labels and of predictions by class.
    """

    def prepared(records: ScoreRecords, parameters: Parameters) -> Fold | None:
        if "rank" not in records.columns or not len(records.values):
            return None
        owners = records.owners
        labels, predicted = (records.column(name).astype(np.int64) for name in ("label", "predicted"))
        count = int(records.column("classes").max())
        known, hit = predicted >= 0, predicted == labels

        def value(weights: Array) -> float:
            weight = weights[owners]
            hits, wanted, given = (
                np.bincount(classes, weights=weight[chosen], minlength=count).astype(np.float64)
                for classes, chosen in ((labels[hit], hit), (labels, slice(None)), (predicted[known], known))
            )
            present = wanted + given > 0
            return float(measure(hits[present], wanted[present], given[present]).mean())

        return value

    return prepared


def precision(hits: Array, labels: Array, predictions: Array) -> Array:
    """Hits of all predictions of a class, 0 … 1; 0 where it was never predicted."""
    return _ratio(hits, predictions)


def recall(hits: Array, labels: Array, predictions: Array) -> Array:
    """Hits of all labels of a class, 0 … 1; 0 where it is no label."""
    return _ratio(hits, labels)


def f1(hits: Array, labels: Array, predictions: Array) -> Array:
    """Harmonic mean of precision and recall of a class, 0 … 1."""
    return _ratio(2 * hits, labels + predictions)


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def decisions(stages: Sequence[ScoreRecords], parameters: Parameters) -> Decisions:
    """Every row: right where top-1 hits, its margin that of FIELDS. Raises SampleError for other labels."""
    stages = in_order(stages)
    first = stages[0]
    if all("rank" in records.columns for records in stages):
        together(stages, [np.column_stack([records.owners, records.column("label")]) for records in stages])
        right = [records.column("rank") == 0 for records in stages]
    else:
        right = [records.column("correct") == records.column("total") for records in stages]
    numbers = (number for count in first.counts for number in range(count))
    owners = (first.samples[owner] for owner in first.owners)
    return Decisions(
        items=tuple(Item(sample, number, "row") for sample, number in zip(owners, numbers, strict=True)),
        right=np.stack(right, axis=1),
        margins=np.stack([records.column("margin") for records in stages], axis=1),
    )
