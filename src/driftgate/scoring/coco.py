"""COCO: the numbers that pycocotools, the maintained evaluation, gives the same records; extra `coco`."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from typing import Any

from driftgate.domain.scores import ScoreRecords
from driftgate.scoring.decisions import by_id
from driftgate.scoring.detection import BOX, FIELDS, FOUND

#: Where pycocotools keeps each score (COCOeval.stats).
POSITIONS = {"AP": 0, "AP50": 1, "AR100": 8}


def coco_numbers(records: ScoreRecords) -> Mapping[str, float]:
    """AP, AP50 and AR100 of detection records, each 0 … 1, or -1 where no image has an object.

    They equal those of the task's scorers to the last digit; these need no extra and can be resampled. Raises
    ImportError where pycocotools is not installed.
    """
    from pycocotools.coco import COCO  # type: ignore[import-untyped]
    from pycocotools.cocoeval import COCOeval  # type: ignore[import-untyped]

    records = by_id(records)
    objects: list[dict[str, Any]] = []
    detections: list[dict[str, Any]] = []
    for image, row in zip(records.owners.tolist(), records.values.tolist(), strict=True):
        values = dict(zip(FIELDS, row, strict=True))
        box = row[BOX]
        entry = {"image_id": image, "category_id": int(values["class"]), "bbox": box, "area": box[2] * box[3]}
        if values["kind"] == FOUND:
            detections.append({**entry, "score": values["score"]})
        else:
            objects.append({**entry, "id": len(objects) + 1, "iscrowd": int(values["crowd"])})
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "info": {},
            "images": [{"id": image} for image in range(len(records.samples))],
            "annotations": objects,
            "categories": [{"id": category} for category in sorted({entry["category_id"] for entry in objects})],
        }
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(detections) if detections else COCO(), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {name: float(evaluation.stats[position]) for name, position in POSITIONS.items()}
