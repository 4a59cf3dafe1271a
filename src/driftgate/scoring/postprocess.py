"""Post-processing: from a network's raw outputs to what a scorer takes, the same for every stage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import Array
from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.scoring.matching import overlaps


def softmax(scores: NDArray[Any], *, axis: int = -1) -> Array:
    """Probabilities of any shape, which add up to 1 along `axis`, from logits; NaN stays NaN."""
    logits = np.asarray(scores, dtype=np.float64)
    raised = np.exp(logits - logits.max(axis=axis, keepdims=True))
    probabilities: Array = raised / raised.sum(axis=axis, keepdims=True)
    return probabilities


def sigmoid(scores: NDArray[Any]) -> Array:
    """Probabilities of any shape, each for itself, from logits; NaN stays NaN."""
    logits = np.asarray(scores, dtype=np.float64)
    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1 / (1 + small), small / (1 + small))


def argmax(scores: NDArray[Any], *, axis: int = -1) -> NDArray[np.int64]:
    """The index of the largest score along `axis`, the first of equals. Raises SampleError where one is NaN."""
    values = np.asarray(scores)
    _check_finite(values)
    return np.asarray(values.argmax(axis=axis), dtype=np.int64)


def yolo(
    output: NDArray[Any],
    *,
    classes: int,
    objectness: bool = False,
    confidence: float = 0.001,
    overlap: float = 0.7,
    most: int = 300,
) -> Array:
    """Detections of shape (n, 6) from a decoded YOLO head: x1, y1, x2, y2 in input pixels, score, class.

    `output` has the shape (1, 4 + classes, N) or (1, N, 4 + classes), with or without the 1: the centre, width and
    height of each box in pixels of the input, then a probability for each class. With `objectness` there is one
    more probability in front of the classes (YOLOv5: 5 + classes), by which they are multiplied.
    Each box counts with its best class, the first of equals. What scores at least `confidence` goes through
    suppress; at most the `most` best are left, by falling score, equal ones in the order of the output.
    Raises SampleError where neither axis or both have that length, or where a number is not finite.
    """
    table = np.asarray(output, dtype=np.float64)
    width = 4 + int(objectness) + classes
    if table.ndim == 3 and len(table) == 1:
        table = table[0]
    if table.ndim != 2 or (table.shape[0] == width) == (table.shape[1] == width):
        raise SampleError(message("score-yolo-shape", shape=str(np.shape(output)), width=width))
    table = table.T if table.shape[0] == width else table
    _check_finite(table)
    scores = table[:, 4 + int(objectness) :]
    scores = scores * table[:, 4:5] if objectness else scores
    best = scores.argmax(1)
    score = scores[np.arange(len(scores)), best]
    kept = np.flatnonzero(score >= confidence)
    boxes = corners(table[kept, :4])
    chosen = suppress(boxes, score[kept], best[kept], overlap=overlap)[:most]
    return np.column_stack([boxes[chosen], score[kept][chosen], best[kept][chosen].astype(np.float64)])


def corners(boxes: Array) -> Array:
    """x1, y1, x2, y2 of boxes (n, 4) given as centre x, centre y, width, height; the unit stays."""
    half = boxes[:, 2:] / 2
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


def suppress(boxes: Array, scores: Array, classes: NDArray[np.int64], *, overlap: float) -> NDArray[np.int64]:
    """Non-maximum suppression within each class: the positions that stay, by falling score, then position.

    `boxes` has the shape (n, 4): x1, y1, x2, y2. A box goes where it overlaps a better one of its class that stays
    by more than `overlap` (intersection over union).
    """
    order = np.argsort(-scores, kind="stable")
    sizes = np.column_stack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])
    stays = np.zeros(len(boxes), dtype=bool)
    for category in np.unique(classes):
        left = order[classes[order] == category]
        while left.size:
            stays[left[0]] = True
            rest = left[1:]
            shared = overlaps(sizes[left[:1]], sizes[rest], np.zeros(len(rest), dtype=bool))[0]
            left = rest[shared <= overlap]
    return np.asarray(order[stays[order]])


def _check_finite(values: NDArray[Any]) -> None:
    broken = 0 if values.dtype.kind not in "fc" else int((~np.isfinite(values)).sum())
    if broken:
        raise SampleError(message("score-output-nonfinite", count=broken, total=values.size))
