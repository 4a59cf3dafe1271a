"""Segmentation: records of an image's pixels by class, from which mIoU and pixel accuracy are read."""

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

#: A class that an image has: its pixels in the labels, in the prediction, and in both.
FIELDS = ("class", "labelled", "predicted", "both")

#: A class map with more classes than this is no class map.
MOST_CLASSES = 4096


def rows(output: NDArray[Any], label: NDArray[Any], parameters: Parameters) -> Array:
    """Records of shape (classes of this image, 4), see FIELDS, by rising class; pixels that are not scored count
    nowhere.

    `label` holds the class of each pixel, integers of shape (height, width); `output` the same, as integers, or
    scores of shape (classes, height, width) or (height, width, classes), of which the largest is taken, the first
    of equals; both between any axes of length 1. A pixel with NaN has no class and so is wrong. Raises SampleError
    where the shapes do not fit, or a class is none.
    """
    wanted = _squeezed(np.asarray(label))
    if wanted.dtype.kind not in "iu" or not wanted.size:
        raise SampleError(message("score-label-kind", dtype=str(wanted.dtype), shape=str(np.shape(label))))
    predicted, classes = _class_map(_squeezed(np.asarray(output)), wanted.shape, given=str(np.shape(output)))
    scored = wanted != parameters.ignored
    labels, found = wanted[scored].astype(np.int64), predicted[scored]
    for values, lowest in ((labels, 0), (found, -1)):
        strange = values[(values < lowest) | (values >= classes)]
        if strange.size:
            raise SampleError(message("score-label", label=int(strange[0]), classes=classes))
    known = found >= 0
    size = int(max(labels.max(initial=0), found.max(initial=0))) + 1
    table = np.stack(
        [
            np.arange(size),
            np.bincount(labels, minlength=size),
            np.bincount(found[known], minlength=size),
            np.bincount(labels[labels == found], minlength=size),
        ],
        axis=1,
    ).astype(np.float64)
    return np.asarray(table[table[:, 1] + table[:, 2] > 0])


def _squeezed(array: NDArray[Any]) -> NDArray[Any]:
    return array.reshape([length for length in array.shape if length != 1])


def _class_map(output: NDArray[Any], shape: tuple[int, ...], *, given: str) -> tuple[NDArray[np.int64], int]:
    """The class of each pixel, -1 where a score is NaN, and how many classes there may be."""
    if output.shape == shape and output.dtype.kind in "iu":
        return output.astype(np.int64), MOST_CLASSES
    if output.shape[1:] == shape:
        scores = np.moveaxis(output, 0, -1)
    elif output.shape[:-1] == shape:
        scores = output
    else:
        raise SampleError(message("score-pixels", shape=given, labels=str(shape)))
    lost = np.isnan(scores).any(-1) if scores.dtype.kind == "f" else np.zeros(shape, dtype=bool)
    return np.where(lost, -1, scores.argmax(-1)), scores.shape[-1]


def mean_overlap(records: ScoreRecords, parameters: Parameters) -> Fold | None:
    """mIoU, 0 … 1: intersection over union of each class over all images, averaged over the classes that occur."""
    if not len(records.values):
        return None
    owners, classes = records.owners, records.column("class").astype(np.int64)
    labelled, predicted, both = (records.column(name) for name in FIELDS[1:])

    def value(weights: Array) -> float:
        weight = weights[owners]
        inside = np.bincount(classes, weights=weight * both)
        whole = np.bincount(classes, weights=weight * (labelled + predicted - both))
        present = whole > 0
        return float((inside[present] / whole[present]).mean()) if present.any() else float("nan")

    return value


def pixel_accuracy(records: ScoreRecords, parameters: Parameters) -> Fold | None:
    """Pixels whose class is right, of all pixels scored, 0 … 1."""
    owners, count = records.owners, len(records.samples)
    right, all_of_them = (
        np.bincount(owners, weights=records.column(name), minlength=count) for name in ("both", "labelled")
    )

    def value(weights: Array) -> float:
        total = float(weights @ all_of_them)
        return float(weights @ right) / total if total else float("nan")

    return value if all_of_them.any() else None
