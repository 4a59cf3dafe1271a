"""MTCNN's ONet from PyTorch to INT8: a sound chain, as its users would check it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sklearn.metrics import (  # type: ignore[import-untyped,unused-ignore]
    accuracy_score,
    precision_recall_fscore_support,
)

from driftgate.scoring.summary import summarise
from driftgate.scoring.tasks import TASKS
from driftgate.storage.document import read_results
from support.field import mtcnn
from support.field.run import Checked, check

CONFIG = """
version: 1
defaults: {{threads: 1}}
subjects:
  onet:
    artifacts:
      pytorch: {{backend: torch, python: [{python}], load: "onet_loader:load", weights: onet.pt, search-path: [.]}}
      onnx: onet.onnx
      optimized_float: onet_optimized.onnx
      calibrated: onet_calibrated.onnx
      ptq: onet_ptq.onnx
    outputs: {{box: output.0, landmarks: output.1, probability: output.2}}
    samples: {{raw: faces.npz}}
    score: {{task: classification, labels: labels.npz, output: probability, baseline: {{top1: {declared}}}}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onet")
    mtcnn.build(folder)
    return folder


@pytest.fixture(scope="module")
def checked(project: Path) -> Checked:
    return check(project, CONFIG.format(python=sys.executable, declared="200/200"))


def test_a_sound_chain_passes_in_every_row_asked_for(checked: Checked) -> None:
    assert checked.outcomes == {
        "baseline": "passed",
        "pytorch-onnx": "passed",
        "onnx-optimized": "passed",
        "float-int8": "passed",
        "bc-hbm": "skipped",
        "board": "skipped",
    }, checked.printed
    assert checked.code == 0


def test_every_stage_recognises_all_two_hundred_images(checked: Checked) -> None:
    assert checked.scores == dict.fromkeys(("pytorch", "onnx", "optimized_float", "calibrated", "ptq"), "200/200")


def test_the_network_ran_in_the_interpreter_that_has_torch(checked: Checked) -> None:
    run = checked.run_of("pytorch")
    assert (run["backend"], run["outcome"], run["samples_done"]) == ("torch", "passed", 200)
    (environment,) = [e for e in checked.facts["environments"] if "torch" in dict(e["versions"])]
    assert dict(environment["versions"])["torch"].startswith("2.13.0")


def test_a_baseline_that_was_declared_too_high_fails_the_first_row(project: Path) -> None:
    checked = check(project, CONFIG.format(python=sys.executable, declared="1.01"))
    assert checked.outcomes["baseline"] == "failed", checked.printed
    assert checked.code == 1


def test_scores_of_every_stage_are_those_of_scikit_learn(checked: Checked, project: Path) -> None:
    """Accuracy, macro precision, recall and F1 of the recorded decisions, to the last digit."""
    results = read_results(project / "out")
    (facts,) = results.facts
    ours = {scorer.name: scorer for scorer in TASKS["classification"].scorers}
    for records in facts.scores:
        truth, given = records.column("label"), records.column("predicted")
        theirs = precision_recall_fscore_support(truth, given, average="macro", zero_division=0)
        totals = {name: summarise(ours[name], records) for name in ("top1", "precision", "recall", "F1")}
        values = [total.value for total in totals.values() if total is not None]
        assert values == [accuracy_score(truth, given), *theirs[:3]]
