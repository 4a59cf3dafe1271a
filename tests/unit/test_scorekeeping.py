"""Scores from end to end: tasks, post-processing of one's own, scorers of one's own, certainty and advice."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.metrics import accuracy_score  # type: ignore[import-untyped,unused-ignore]

from driftgate.backends.functions import CalledFunction, Function, open_function
from driftgate.domain.judgement import Policy, Uncertainty
from driftgate.judgement.judge import judge
from driftgate.storage.document import read_results
from support.commandline import call

COUNT = 40


def project(folder: Path, score: dict[str, object], stages: dict[str, np.ndarray], **more: object) -> Path:
    """Recordings of the stages' output `y`, and a configuration that scores them."""
    folder.mkdir(exist_ok=True)
    for stage, values in stages.items():
        np.savez(folder / f"{stage}.npz", y=values)
    np.savez(folder / "raw.npz", x=np.arange(COUNT, dtype=np.float32)[:, None])
    subject = {
        "artifacts": {stage: f"{stage}.npz" for stage in stages},
        "samples": {"raw": "raw.npz"},
        "score": score,
        **more,
    }
    (folder / "driftgate.yaml").write_text(yaml.safe_dump({"version": 1, "subjects": {"net": subject}}))
    return folder


def check(folder: Path) -> tuple[int, dict[str, str], Path]:
    out = folder / "out"
    answer = call("check", "-c", str(folder / "driftgate.yaml"), "--out", str(out))
    scores = read_results(out).judgements if (out / "results.json").exists() else None
    texts = {f"{s.stage} {s.name}": s.text for s in scores[0].scores} if scores else {}
    return answer.code, texts, out


def classes(right: int, margin: float = 1.0) -> np.ndarray:
    """Scores of two classes: the first `right` samples have class 1 in front by `margin`."""
    values = np.repeat(np.linspace(0, 1e-9, COUNT, dtype=np.float32)[:, None], 2, axis=1)
    values[:right, 1] += margin
    values[right:, 0] += margin
    return values


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    np.savez(tmp_path / "labels.npz", labels=np.ones(COUNT, np.int64))
    return tmp_path


CLASSIFICATION: dict[str, object] = {"task": "classification", "labels": "labels.npz"}


def test_every_number_has_its_interval_and_its_certainty(labelled: Path) -> None:
    project(labelled, CLASSIFICATION, {"optimized_float": classes(40), "calibrated": classes(20)})
    code, texts, out = check(labelled)
    assert (code, texts) == (1, {"optimized_float top1": "40/40", "calibrated top1": "20/40"})
    (judgement,) = read_results(out).judgements or ()
    drop = next(v for c in judgement.checks for v in c.verdicts if v.criterion == "score-drop")
    assert (drop.certainty, drop.value) == ("certain", 0.5)
    score = judgement.scores[0]
    assert score.interval is not None
    assert score.interval.low < 1.0 <= score.interval.high


def test_a_loss_within_the_noise_warns_or_fails_as_the_policy_says(labelled: Path) -> None:
    project(labelled, CLASSIFICATION, {"optimized_float": classes(40), "calibrated": classes(40, 0.9)})
    code, _, out = check(labelled)
    assert code == 0
    (facts,) = read_results(out).facts
    warned, failed = (judge(facts, Policy(uncertainty=u)) for u in (Uncertainty.WARN, Uncertainty.FAIL))
    assert (warned.outcome, failed.outcome) == ("passed", "failed")
    reasons = {v.reason.code for c in failed.checks for v in c.verdicts if v.reason}
    assert "score-unsure" in reasons


def test_the_segment_that_cost_the_score_is_named_with_its_flips_and_advice(labelled: Path) -> None:
    stages = {"pytorch": classes(40), "onnx": classes(40), "optimized_float": classes(40), "calibrated": classes(30)}
    project(labelled, CLASSIFICATION, stages)
    _, _, out = check(labelled)
    (judgement,) = read_results(out).judgements or ()
    assert [(loss.segment, loss.loss) for loss in judgement.losses if loss.loss] == [(3, 0.25)]
    assert judgement.flip_count == 10
    assert judgement.flips[0].calls == ("right", "right", "right", "wrong")
    assert [said.code for said in judgement.advice] == ["advice-calibration", "advice-qat-may"]


def test_advice_is_stronger_once_calibration_was_tuned(labelled: Path) -> None:
    stages = {"optimized_float": classes(40), "calibrated": classes(30)}
    project(labelled, CLASSIFICATION, stages, **{"calibration-tuned": True})
    _, _, out = check(labelled)
    (judgement,) = read_results(out).judgements or ()
    assert judgement.advice[-1].code == "advice-qat-tuned"


def test_no_qat_where_the_export_lost_the_score(labelled: Path) -> None:
    project(labelled, CLASSIFICATION, {"pytorch": classes(40), "onnx": classes(30)})
    _, _, out = check(labelled)
    (judgement,) = read_results(out).judgements or ()
    assert [said.code for said in judgement.advice] == ["advice-export", "advice-no-qat"]


def test_a_post_processing_of_ones_own_serves_all_stages(labelled: Path) -> None:
    (labelled / "post.py").write_text(
        "import numpy as np\ndef decode(outputs):\n    print('noise on stdout')\n    return outputs['y'][:, ::-1]\n"
    )
    project(
        labelled, {**CLASSIFICATION, "postprocess": "post:decode"}, {"onnx": classes(0), "optimized_float": classes(0)}
    )
    assert check(labelled)[:2] == (0, {"onnx top1": "40/40", "optimized_float top1": "40/40"})


def test_a_sample_on_which_it_raises_is_an_error_and_the_rest_go_on(labelled: Path) -> None:
    (labelled / "post.py").write_text(
        "def decode(outputs):\n"
        "    if outputs['y'][0, 0] > 4:\n"
        "        raise ValueError('no boxes here')\n"
        "    return outputs['y']\n"
    )
    values = classes(40)
    values[7] = (5, 9)
    project(labelled, {**CLASSIFICATION, "postprocess": "post:decode"}, {"onnx": values, "optimized_float": values})
    code, texts, out = check(labelled)
    assert (code, texts) == (2, {})
    (facts,) = read_results(out).facts
    assert {(p.reason.code, dict(p.reason.params)["sample"]) for p in facts.problems} == {("score-sample", "0007")}
    assert {len(records.samples) for records in facts.scores} == {COUNT - 1}


def test_scorers_of_ones_own_per_sample_and_for_the_whole_set(labelled: Path) -> None:
    np.savez(labelled / "truth.npz", labels=np.ones((COUNT, 1), np.float64))
    (labelled / "metric.py").write_text(
        "seen = []\n"
        "def score(outputs, label):\n"
        "    seen.append(float(outputs['y'][0, 1]))\n"
        "    return float(abs(outputs['y'][0, 1] - label.reshape(-1)[0]))\n"
        "def total():\n"
        "    return sum(seen) / len(seen)\n"
    )
    own: dict[str, object] = {"task": "own", "labels": "truth.npz", "scorer": "metric:score", "better": "lower"}
    stages = {"onnx": classes(30), "optimized_float": classes(30)}
    project(labelled, own, stages)
    assert check(labelled)[1] == {"onnx own": "0.25", "optimized_float own": "0.25"}
    project(labelled, {**own, "whole": "metric:total", "better": "higher"}, stages)
    assert check(labelled)[1] == {"onnx own": "0.75", "optimized_float own": "0.75"}


@pytest.mark.parametrize(
    ("score", "said"),
    [
        ({"task": "own", "labels": "labels.npz"}, "scorer"),
        ({"task": "classification", "labels": "labels.npz", "baseline": {"AP": 0.3}}, "has no score AP"),
        ({"task": "classification", "labels": "labels.npz", "postprocess": "yolo"}, "number of classes"),
        ({"task": "classification", "labels": "labels.npz", "postprocess": "post:absent"}, "cannot be imported"),
    ],
)
def test_settings_that_cannot_be_meant_are_told(labelled: Path, score: dict[str, object], said: str) -> None:
    project(labelled, score, {"onnx": classes(40), "optimized_float": classes(40)})
    answer = call("check", "-c", str(labelled / "driftgate.yaml"), "--out", str(labelled / "out"))
    assert answer.code == 2
    assert said in " ".join((answer.out + answer.err).split())


def test_a_function_that_cannot_be_opened_is_tried_once_a_stage(
    labelled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = []

    def counted(function: Function, stage: str) -> AbstractContextManager[CalledFunction]:
        stages.append(stage)
        return open_function(function, stage)

    monkeypatch.setattr("driftgate.scorekeeping.open_function", counted)
    score: dict[str, object] = {"task": "classification", "labels": "labels.npz", "postprocess": "post:absent"}
    project(labelled, score, {"onnx": classes(40), "optimized_float": classes(40)})
    assert call("check", "-c", str(labelled / "driftgate.yaml"), "--out", str(labelled / "out")).code == 2
    assert stages == ["onnx", "optimized_float"]


@pytest.mark.parametrize(
    ("fault", "board"),
    [(None, 356), ("board-padding", 275), ("board-channels", 78), ("board-scale", 356)],
)
def test_the_demos_scores_are_those_of_scikit_learn(tmp_path: Path, fault: str | None, board: int) -> None:
    call("demo", "--out", str(tmp_path), *(("--fault", fault) if fault else ()))
    results = read_results(tmp_path)
    (judgement,), (facts,) = results.judgements or (), results.facts
    for records in facts.scores:
        theirs = accuracy_score(records.column("label"), records.column("predicted"), normalize=False)
        ours = next(score for score in judgement.scores if score.stage == records.stage)
        assert (ours.text, ours.value) == (f"{int(theirs)}/360", theirs / 360)
    scores = {score.stage: score.text for score in judgement.scores}
    assert scores.pop("hbm") == f"{board}/360"
    assert set(scores.values()) == {"356/360"}


def test_bad_cases_and_the_worst_flips_are_kept_as_recordings(labelled: Path) -> None:
    stages = {"optimized_float": classes(40), "calibrated": classes(30)}
    project(labelled, CLASSIFICATION, stages, badcases=["0003"])
    _, _, out = check(labelled)
    (facts,) = read_results(out).facts
    kept = sorted({recording.sample for recording in facts.recordings})
    assert "0003" in kept
    assert len(kept) == 5
    for recording in facts.recordings:
        with np.load(out / "recordings" / recording.stage / f"{recording.sample}.npz") as written:
            np.testing.assert_array_equal(written["y"][0], stages[recording.stage][int(recording.sample)])


def test_a_bad_case_that_is_no_sample_is_told(labelled: Path) -> None:
    project(labelled, CLASSIFICATION, {"onnx": classes(40), "optimized_float": classes(40)}, badcases=["rain_017"])
    assert check(labelled)[0] == 2


def test_a_healthy_run_keeps_nothing(labelled: Path) -> None:
    project(labelled, CLASSIFICATION, {"onnx": classes(40), "optimized_float": classes(40)})
    _, _, out = check(labelled)
    assert not (out / "recordings").exists()
