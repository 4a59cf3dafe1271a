"""A detection that dies slowly: 0.281 in PyTorch, 0.267 in ONNX, 0.243 in INT8, under a confidence of 0.25."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from driftgate.domain.judgement import Judgement
from driftgate.storage.document import read_results
from support.commandline import call

COUNT = 30
SIDE = 64
BOX = (20.0, 24.0, 16.0, 12.0)  # x, y, w, h in pixels of the image
SCORES = {"pytorch": 0.281, "onnx": 0.267, "optimized_float": 0.267, "calibrated": 0.243}


def head(score: float) -> np.ndarray:
    """A YOLO-like output, (1, 4 + 2 classes, 8): one box on the object, seven of nothing."""
    output = np.zeros((1, 6, 8), np.float32)
    x, y, w, h = BOX
    output[0, :4, 0] = (x + w / 2, y + h / 2, w, h)
    output[0, :4, 1:] = 4.0
    output[0, 5, 0] = score
    return output


@pytest.fixture(scope="module")
def judgement(tmp_path_factory: pytest.TempPathFactory) -> Judgement:
    folder = tmp_path_factory.mktemp("detection")
    coco = {
        "images": [{"id": n, "file_name": f"{n:04}.jpg", "width": SIDE, "height": SIDE} for n in range(COUNT)],
        "categories": [{"id": 7, "name": "car"}, {"id": 9, "name": "rider"}],
        "annotations": [
            {"id": n, "image_id": n, "category_id": 9, "bbox": list(BOX), "area": BOX[2] * BOX[3], "iscrowd": 0}
            for n in range(COUNT)
        ],
    }
    (folder / "labels.json").write_text(json.dumps(coco))
    np.savez(folder / "raw.npz", images=np.zeros((COUNT, 1), np.float32))
    for stage, score in SCORES.items():
        # A third of the objects are near the threshold, the others are safe.
        stacked = [head(score if n % 3 == 0 else 0.9) for n in range(COUNT)]
        np.savez(folder / f"{stage}.npz", y=np.concatenate(stacked))
    subject = {
        "artifacts": {stage: f"{stage}.npz" for stage in SCORES},
        "samples": {"raw": "raw.npz"},
        "score": {
            "task": "detection",
            "labels": "labels.json",
            "postprocess": {"ready": "yolo", "classes": 2},
            "confidence": 0.25,
            "baseline": {"AP": "1.0", "recall": "1.0"},
        },
    }
    (folder / "driftgate.yaml").write_text(yaml.safe_dump({"version": 1, "subjects": {"net": subject}}))
    call("check", "-c", str(folder / "driftgate.yaml"), "--out", str(folder / "out"))
    (found,) = read_results(folder / "out").judgements or ()
    return found


def test_every_stage_is_scored_by_the_same_post_processing(judgement: Judgement) -> None:
    values = {(score.stage, score.name): score.text for score in judgement.scores}
    assert values["pytorch", "AP"] == values["calibrated", "AP"] == "1.0000"
    assert values["onnx", "recall"] == "1.0000"
    assert values["calibrated", "recall"] == "0.6667"


def test_the_object_is_found_found_and_missed(judgement: Judgement) -> None:
    assert judgement.flip_count == COUNT // 3
    flip = judgement.flips[0]
    assert flip.calls == ("TP", "TP", "TP", "FN")
    assert [round(margin, 3) for _, margin in flip.margins] == [0.031, 0.017, 0.017, -0.007]


def test_segment_one_took_its_share_of_the_margin(judgement: Judgement) -> None:
    shares = {loss.segment: loss.eroded for loss in judgement.losses if loss.score == "AP"}
    assert shares[1] == pytest.approx(0.37, abs=0.01)
    assert shares[3] == pytest.approx(0.63, abs=0.01)
