"""PP-OCR's text direction classifier from a Paddle export to INT8, with and without labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.field import ppocr
from support.field.run import check

CONFIG = """
version: 1
defaults: {{threads: 1}}
subjects:
  cls:
    artifacts: {{onnx: cls.onnx, optimized_float: cls_optimized.onnx, {lossy}}}
    samples: {{raw: strips.npz}}
    {score}
"""
INT8 = "calibrated: cls_calibrated.onnx, ptq: cls_ptq.onnx"
LABELLED = 'score: {task: classification, labels: labels.npz, output: "save_infer_model/scale_0.tmp_1"}'


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cls")
    ppocr.build(folder)
    return folder


def test_with_labels_every_stage_reads_the_direction_of_all_strips(project: Path) -> None:
    checked = check(project, CONFIG.format(lossy=INT8, score=LABELLED))
    assert checked.outcomes == {
        "baseline": "skipped",
        "pytorch-onnx": "skipped",
        "onnx-optimized": "passed",
        "float-int8": "passed",
        "bc-hbm": "skipped",
        "board": "skipped",
    }, checked.printed
    assert checked.scores == dict.fromkeys(("onnx", "optimized_float", "calibrated", "ptq"), "86/86")
    assert checked.code == 0


def test_without_labels_the_quantised_form_is_judged_by_its_numbers(project: Path) -> None:
    checked = check(project, CONFIG.format(lossy=INT8, score=""))
    assert checked.scores == {}
    assert (checked.outcomes["onnx-optimized"], checked.outcomes["float-int8"]) == ("passed", "passed"), checked.printed
    assert checked.code == 0


@pytest.mark.parametrize("score", [LABELLED, ""], ids=["labels", "no labels"])
def test_calibration_with_pixels_that_were_not_normalised_fails_at_int8(project: Path, score: str) -> None:
    checked = check(project, CONFIG.format(lossy="calibrated: cls_miscalibrated.onnx", score=score))
    assert (checked.outcomes["onnx-optimized"], checked.outcomes["float-int8"]) == ("passed", "failed"), checked.printed
    assert checked.judgement["first_failure"] == "float-int8"
    assert checked.code == 1
