"""Score records made from outputs and labels, cut into shards and united again, and COCO's own numbers for them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools.coco import COCO  # type: ignore[import-untyped]
from pycocotools.cocoeval import COCOeval  # type: ignore[import-untyped]

from driftgate.domain.chain import LinkKind
from driftgate.domain.facts import Facts, merge
from driftgate.domain.scores import ScoreRecords
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.summary import Total, summarise
from driftgate.scoring.tasks import TASKS
from support.judging import a_plan

Arrays = Sequence[NDArray[Any]]


def recorded(
    task: str, outputs: Arrays, labels: Arrays, *, stage: str = "a", parameters: Parameters | None = None
) -> ScoreRecords:
    """The records of one stage, one sample for each output, with the ids 0000, 0001, …"""
    empty = ScoreRecords(stage, f"{stage}@1", task, TASKS[task].fields, (), np.empty((0, len(TASKS[task].fields))))
    rows = [
        (f"{n:04}", TASKS[task].record(output, label, parameters or Parameters()))
        for n, (output, label) in enumerate(zip(outputs, labels, strict=True))
    ]
    return empty.with_rows(rows)


def in_shards(records: ScoreRecords, rng: np.random.Generator) -> ScoreRecords:
    """The same records dealt out to shards of any size, in any order, and merged."""
    rows = records.by_sample()
    order = rng.permutation(len(rows))
    cuts = np.sort(rng.choice(len(rows) + 1, size=rng.integers(0, 6)))
    plan = a_plan(LinkKind.LOSSY, len(rows))
    names = list(rows)
    shards = [
        Facts(plan, scores=(records.with_rows((names[n], rows[names[n]]) for n in part),))
        for part in np.split(order, cuts)
        if len(part)
    ]
    return merge(shards).scores[0]


def total_of(records: ScoreRecords, name: str, parameters: Parameters | None = None) -> Total:
    """A score that must be there."""
    total = summarise(TASKS[records.score].scorer(name), records, parameters)
    assert total is not None
    return total


def scenes(
    rng: np.random.Generator, count: int, *, classes: int = 4, scale: float = 1.0, crowds: bool = True
) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """Detections (n, 6) and labels (m, 6) of images: shifted boxes, doubles, wrong classes, misses, equal scores."""
    outputs, labels = [], []
    for _ in range(count):
        objects = int(rng.integers(0, 9))
        corner, size = rng.integers(0, 400, (objects, 2)) * scale, rng.integers(8, 120, (objects, 2)) * scale
        category = rng.integers(0, classes, objects)
        crowd = (rng.random(objects) < 0.12) & crowds
        labels.append(np.column_stack([corner, size, category, crowd]).astype(np.float64))
        picked = rng.integers(0, objects, int(rng.integers(0, 3 * objects + 1))) if objects else np.array([], int)
        shift = rng.normal(0, 0.12, (len(picked), 4)) * np.column_stack([size[picked], size[picked]])
        boxes = np.column_stack([corner[picked], size[picked]]) + np.where(rng.random((len(picked), 1)) < 0.2, 0, shift)
        strays = np.column_stack([rng.uniform(0, 400, (3, 2)), rng.uniform(5, 90, (3, 2))])
        boxes = np.abs(np.concatenate([boxes, strays]))
        guess = np.concatenate([category[picked], rng.integers(0, classes, 3)])
        guess = np.where(rng.random(len(guess)) < 0.1, rng.integers(0, classes, len(guess)), guess)
        scores = np.round(rng.random(len(guess)), 2)
        outputs.append(np.column_stack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:], scores, guess]))
    return outputs, labels


def coco_numbers(outputs: Arrays, labels: Arrays) -> Mapping[str, float]:
    """AP, AP50 and AR100 by pycocotools."""
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for image, (found, objects) in enumerate(zip(outputs, labels, strict=True)):
        for x, y, width, height, category, crowd in objects.tolist():
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": int(category),
                    "bbox": [x, y, width, height],
                    "area": width * height,
                    "iscrowd": int(crowd),
                }
            )
        for x1, y1, x2, y2, score, category in found.tolist():
            box = [x1, y1, x2 - x1, y2 - y1]
            results.append({"image_id": image, "category_id": int(category), "bbox": box, "score": score})
    categories = sorted({int(c) for table in labels for c in table[:, 4]} | {int(r["category_id"]) for r in results})
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "info": {},
            "images": [{"id": image} for image in range(len(outputs))],
            "annotations": annotations,
            "categories": [{"id": category} for category in categories],
        }
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(results) if results else COCO(), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {name: float(evaluation.stats[n]) for name, n in (("AP", 0), ("AP50", 1), ("AR100", 8))}
