"""Detection: records of an image's detections and objects, from which AP, AR, counts and decisions are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import Array
from driftgate.domain.scores import ScoreRecords
from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.scoring.decisions import Decisions, Item, in_order, together
from driftgate.scoring.matching import OVERLAPS, match, overlaps
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.statistics import Fold

#: What post-processing gives, one row a detection: corners in pixels of the input, score, index of the class.
DETECTION = ("x1", "y1", "x2", "y2", "score", "class")

#: What the labels give, one row an object: the box as COCO has it, index of the class, 1 where it is a crowd.
OBJECT = ("x", "y", "width", "height", "class", "crowd")

#: `kind`: FOUND is a detection, LABEL an object. `score`: of an object, that of the detection which found it at an
#: overlap of 0.5, 0 where none did. `matched` and `crowd`: bit n is set where the detection found an object, or a
#: crowd, at OVERLAPS[n]; of an object `crowd` is 1 where it is one. `item`: the object's position in the labels, or
#: that of the object found at 0.5, else -1. The box in pixels.
FIELDS = ("kind", "class", "score", "matched", "crowd", "item", "x", "y", "width", "height")
FOUND, LABEL = 0.0, 1.0
BOX = slice(FIELDS.index("x"), None)
_SCORE, _CLASS = FIELDS.index("score"), FIELDS.index("class")

#: As many detections of a class as COCO looks at in one image.
MOST = 100
#: Boxes of another area are no false alarms to COCO's AP.
LARGEST = 1e5**2
#: As COCO writes them.
RECALLS = np.linspace(0.0, 1.0, 101)


def rows(output: NDArray[Any], label: NDArray[Any], parameters: Parameters) -> Array:
    """Records of shape (detections + objects, 10), see FIELDS; an image may have neither.

    `output` has the shape (detections, 6) or (1, detections, 6), see DETECTION, and `label` (objects, 6) or
    (objects, 5) without crowds, see OBJECT. The 100 best detections of each class are kept, in the order of
    their scores and, where these are equal, of the output. Raises SampleError: another shape, a number that is
    not finite, a class that is no index, a side below zero in the labels.
    """
    found = _table(output, (len(DETECTION),), "output")
    objects = _table(label, (len(OBJECT) - 1, len(OBJECT)), "labels")
    if objects.shape[1] < len(OBJECT):
        objects = np.column_stack([objects, np.zeros(len(objects))])
    _check_classes(found[:, 5], "output")
    _check_classes(objects[:, 4], "labels")
    if (objects[:, 2:4] < 0).any():
        raise SampleError(message("score-box", boxes=int((objects[:, 2:4] < 0).any(1).sum())))
    boxes = np.column_stack([found[:, :2], found[:, 2:4] - found[:, :2]])
    crowd = objects[:, 5] != 0
    scores = np.zeros(len(objects))
    tables = []
    for category in np.unique(np.concatenate([found[:, 5], objects[:, 4]])):
        here = np.flatnonzero(found[:, 5] == category)
        here = here[np.argsort(-found[here, 4], kind="stable")][:MOST]
        wanted = np.flatnonzero(objects[:, 4] == category)
        took = match(overlaps(boxes[here], objects[wanted, :4], crowd[wanted]), crowd[wanted])
        items = np.append(wanted, -1)[took]
        crowds = (took >= 0) & np.append(crowd[wanted], False)[took]
        scores[items[0, items[0] >= 0]] = found[here[items[0] >= 0], 4]
        tables.append(_rows(FOUND, category, found[here, 4], _bits(took >= 0), _bits(crowds), items[0], boxes[here]))
    tables.append(_rows(LABEL, objects[:, 4], scores, 0.0, crowd, np.arange(len(objects)), objects[:, :4]))
    return np.concatenate(tables)


def _rows(kind: float, *columns: Array | NDArray[np.generic] | float) -> Array:
    *single, boxes = columns
    count = len(np.asarray(boxes))
    filled = [np.broadcast_to(np.asarray(column, dtype=np.float64), count) for column in (kind, *single)]
    return np.column_stack([*filled, np.asarray(boxes)])


def _bits(set_at: NDArray[np.bool_]) -> Array:
    return np.asarray((2.0 ** np.arange(len(OVERLAPS))) @ set_at)


def _has_bit(bits: Array) -> NDArray[np.bool_]:
    """Which bits are set, shape (10, rows)."""
    return np.asarray((bits.astype(np.int64) >> np.arange(len(OVERLAPS))[:, None]) & 1 == 1)


def _table(given: NDArray[Any], widths: tuple[int, ...], of: str) -> Array:
    table = np.asarray(given, dtype=np.float64)
    if table.size == 0:
        return np.empty((0, widths[-1]))
    if table.ndim == 3 and len(table) == 1:
        table = table[0]
    if table.ndim != 2 or table.shape[1] not in widths:
        wanted = tuple(f"(n, {width})" for width in widths)
        raise SampleError(message("score-boxes", of=of, shape=str(np.shape(given)), wanted=wanted))
    broken = int((~np.isfinite(table)).any(1).sum())
    if broken:
        raise SampleError(message("score-boxes-nonfinite", of=of, rows=broken, count=len(table)))
    return table


def _check_classes(classes: Array, of: str) -> None:
    strange = classes[(classes < 0) | (classes != np.floor(classes))]
    if strange.size:
        raise SampleError(message("score-box-class", of=of, found=float(strange[0])))


@dataclass(frozen=True, slots=True, eq=False)
class _Class:
    """The detections of one class by falling score: whose they are, and whether right or wrong at each overlap."""

    owners: NDArray[np.int64]
    right: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    objects: NDArray[np.int64]


def _classes(records: ScoreRecords) -> tuple[_Class, ...]:
    """Every class that the labels have objects of, crowds aside, in the order of their index."""
    kind, category, owners = records.column("kind"), records.column("class"), records.owners
    real = (kind == LABEL) & (records.column("crowd") == 0)
    area = records.column("width") * records.column("height")
    classes = []
    for index in np.unique(category[real]):
        here = np.flatnonzero((kind == FOUND) & (category == index))
        here = here[np.argsort(-records.column("score")[here], kind="stable")]
        matched = _has_bit(records.column("matched")[here])
        ignored = _has_bit(records.column("crowd")[here])
        outside = (area[here] < 0) | (area[here] > LARGEST)
        classes.append(
            _Class(owners[here], matched & ~ignored, ~matched & ~outside, owners[real & (category == index)])
        )
    return tuple(classes)


def average_precision(levels: slice) -> Callable[[ScoreRecords, Parameters], Fold | None]:
    """COCO's average precision, 0 … 1, over these of OVERLAPS, all areas and at most 100 detections a class.

    The precision at 101 recalls, each the best at that recall or a higher one, averaged over overlaps, recalls
    and classes that have objects (pycocotools, COCOeval.accumulate); None where no image has an object.
    """

    def prepared(records: ScoreRecords, parameters: Parameters) -> Fold | None:
        classes = _classes(records)

        def value(weights: Array) -> float:
            tables = []
            for one in classes:
                objects = weights[one.objects].sum()
                if objects:
                    weight = weights[one.owners]
                    right = np.cumsum(one.right[levels] * weight, axis=1)
                    wrong = np.cumsum(one.wrong[levels] * weight, axis=1)
                    tables.append(_precisions(right, wrong, objects))
            # In COCO's order of summation: overlap, recall, class.
            return float(np.stack(tables, axis=2).reshape(-1).mean()) if tables else float("nan")

        return value if classes else None

    return prepared


def _precisions(right: Array, wrong: Array, objects: float) -> Array:
    """Precision at each of RECALLS, shape (overlaps, 101)."""
    precision = right / (wrong + right + np.spacing(1))
    best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    best = np.column_stack([best, np.zeros(len(best))])
    places = [np.searchsorted(recall, RECALLS, side="left") for recall in right / objects]
    return np.take_along_axis(best, np.stack(places), axis=1)


def average_recall(records: ScoreRecords, parameters: Parameters) -> Fold | None:
    """COCO's average recall, 0 … 1, with at most 100 detections a class, over OVERLAPS and classes with objects."""
    classes = _classes(records)
    images = len(records.samples)
    found = [
        np.stack([np.bincount(one.owners, weights=right, minlength=images) for right in one.right]) for one in classes
    ]
    objects = [np.bincount(one.objects, minlength=images) for one in classes]

    def value(weights: Array) -> float:
        totals = [float(weights @ wanted) for wanted in objects]
        shares = [hits @ weights / total for hits, total in zip(found, totals, strict=True) if total]
        return float(np.stack(shares, axis=1).reshape(-1).mean()) if shares else float("nan")

    return value if classes else None


@dataclass(frozen=True, slots=True)
class Counts:
    """Objects found (TP), false alarms (FP) and objects missed (FN) at the deployed confidence."""

    found: int
    alarms: int
    missed: int


def count(records: ScoreRecords, parameters: Parameters) -> Counts:
    """The counts over all images at `parameters.confidence` and an overlap of 0.5, crowds aside."""
    found, alarms, objects = (int(part.sum()) for part in _counts(records, parameters))
    return Counts(found, alarms, objects - found)


def _counts(records: ScoreRecords, parameters: Parameters) -> tuple[Array, Array, Array]:
    """Found, false alarms and objects of each image.

    Detections take objects by falling score, so leaving out those below the confidence changes no match.
    """
    kind, owners, images = records.column("kind"), records.owners, len(records.samples)
    matched, crowd = _has_bit(records.column("matched"))[0], _has_bit(records.column("crowd"))[0]
    deployed = (kind == FOUND) & (records.column("score") >= parameters.confidence)
    real = (kind == LABEL) & (records.column("crowd") == 0)
    chosen = (deployed & matched & ~crowd, deployed & ~matched, real)
    found, alarms, objects = (np.bincount(owners[rows], minlength=images).astype(np.float64) for rows in chosen)
    return found, alarms, objects


def precision(records: ScoreRecords, parameters: Parameters) -> Fold | None:
    """Objects found of all detections, 0 … 1, at the deployed confidence; 0 where nothing was detected."""
    found, alarms, objects = _counts(records, parameters)
    return _share(found, found + alarms) if objects.any() else None


def recall(records: ScoreRecords, parameters: Parameters) -> Fold | None:
    """Objects found of all objects, 0 … 1, at the deployed confidence; None where no image has one."""
    found, _, objects = _counts(records, parameters)
    return _share(found, objects) if objects.any() else None


def _share(part: Array, whole: Array) -> Fold:
    def value(weights: Array) -> float:
        total = float(weights @ whole)
        return float(weights @ part) / total if total else 0.0

    return value


def decisions(stages: Sequence[ScoreRecords], parameters: Parameters) -> Decisions:
    """Every object, crowds aside, and every false alarm of the first and the last stage.

    An object is right where it was found at the deployed confidence, its margin the score less the confidence. An
    alarm is right where its score stays below; its margin is the confidence less the score. A score of 0 stands
    where nothing was detected: post-processing must keep what lies well below the confidence. An alarm is
    followed through the stages by class and an overlap of 0.5. Raises SampleError for other labels.
    """
    stages = in_order(stages)
    labels = [_labels(records) for records in stages]
    together(stages, [table[:, [0, 1, 2]] for table in labels])
    items = [Item(stages[0].samples[int(owner)], int(number), "object") for owner, number, *_ in labels[0]]
    margins = [np.stack([table[:, 3] for table in labels], axis=1) - parameters.confidence]
    right = [margins[0] >= 0]
    tables = [records.by_sample() for records in stages]
    for sample in stages[0].samples:
        scores = _alarms([table[sample] for table in tables], parameters.confidence)
        items.extend(Item(sample, number, "alarm") for number in range(len(scores)))
        margins.append(parameters.confidence - scores)
        right.append(scores < parameters.confidence)
    return Decisions(tuple(items), np.concatenate(right), np.concatenate(margins))


def _labels(records: ScoreRecords) -> Array:
    """Owner, position, class and score of every object but crowds, in their order."""
    real = (records.column("kind") == LABEL) & (records.column("crowd") == 0)
    parts = (records.column("item"), records.column("class"), records.column("score"))
    return np.column_stack([records.owners[real], *(part[real] for part in parts)])


def _alarms(tables: Sequence[Array], confidence: float) -> Array:
    """The score at each stage of the false alarms of one image, 0 where there is none: shape (alarms, stages)."""
    pools = [_unmatched(table) for table in tables]
    free = [np.ones(len(pool), dtype=bool) for pool in pools]
    followed = []
    for anchor in (0, len(pools) - 1):
        for index in np.flatnonzero(pools[anchor][:, _SCORE] >= confidence):
            if free[anchor][index]:
                alarm = pools[anchor][index]
                free[anchor][index] = False
                followed.append(
                    [
                        alarm[_SCORE] if stage == anchor else _follow(alarm, pool, free[stage])
                        for stage, pool in enumerate(pools)
                    ]
                )
    return np.array(followed, dtype=np.float64).reshape(-1, len(tables))


def _unmatched(table: Array) -> Array:
    """The detections of an image that found neither object nor crowd at 0.5, by falling score."""
    bits = table[:, FIELDS.index("matched")].astype(np.int64)
    rows = table[(table[:, FIELDS.index("kind")] == FOUND) & (bits & 1 == 0)]
    return np.asarray(rows[np.argsort(-rows[:, _SCORE], kind="stable")])


def _follow(alarm: Array, pool: Array, free: NDArray[np.bool_]) -> float:
    """The score of the free detection of the same class that overlaps most, which is free no more; 0 if none does."""
    same = np.flatnonzero(free & (pool[:, _CLASS] == alarm[_CLASS]))
    if not same.size:
        return 0.0
    overlap = overlaps(alarm[None, BOX], pool[same, BOX], np.zeros(len(same), dtype=bool))[0]
    best = int(overlap.argmax())
    if overlap[best] < OVERLAPS[0]:
        return 0.0
    free[same[best]] = False
    return float(pool[same[best], _SCORE])
