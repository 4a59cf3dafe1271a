"""Flips: which decisions changed on the way, and which segment took the margin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftgate.domain.scores import Flip
from driftgate.errors import SampleError
from driftgate.scoring.detection import count
from driftgate.scoring.flips import Step, erosion
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.summary import flips
from driftgate.scoring.tasks import TASKS
from support.scoring import recorded

STEPS = (Step("pytorch", 1), Step("onnx", 1), Step("optimized_float", 2), Step("calibrated", 3))
OBJECT = (10.0, 10.0, 20.0, 20.0, 0.0, 0.0)


def detected(*scores: float, at: float = 10.0) -> NDArray[Any]:
    """One box on the object for each score, or elsewhere."""
    return np.array([[at, at, at + 20, at + 20, score, 0] for score in scores]).reshape(-1, 6)


def found(stages: list[list[NDArray[Any]]], labels: list[NDArray[Any]]) -> tuple[Flip, ...]:
    records = [
        recorded("detection", outputs, labels, stage=step.stage) for outputs, step in zip(stages, STEPS, strict=False)
    ]
    return flips(TASKS["detection"], records, STEPS[: len(stages)], Parameters(confidence=0.25))


def test_a_miss_after_int8_that_began_in_the_first_segment() -> None:
    """0.281, 0.267, 0.243 under 0.25: TP, TP, FN, and 37 % of the margin went in segment 1."""
    rng = np.random.default_rng(0)
    others = [rng.uniform(0.5, 0.9) for _ in range(29)]
    labels = [np.array([OBJECT])] * 30
    along = [(0.281, 0.267, 0.267, 0.243), *((s, s - 0.003, s - 0.003, s - 0.01) for s in others)]
    stages = [[detected(scores[n]) for scores in along] for n in range(4)]
    (flip,) = found(stages, labels)

    assert (flip.sample, flip.item, flip.kind, flip.lost) == ("0000", 0, "object", True)
    assert flip.calls == ("TP", "TP", "TP", "FN")
    assert [margin for _, margin in flip.margins] == pytest.approx([0.031, 0.017, 0.017, -0.007])
    assert dict(flip.eroded) == pytest.approx({1: 0.368, 2: 0.0, 3: 0.632}, abs=0.001)
    assert dict(erosion([flip])) == pytest.approx({1: 0.37, 2: 0.0, 3: 0.63}, abs=0.01)

    records = [recorded("detection", outputs, labels) for outputs in stages]
    counts = [count(one, Parameters(confidence=0.25)) for one in records]
    assert [(c.found, c.alarms, c.missed) for c in counts] == [(30, 0, 0)] * 3 + [(29, 0, 1)]


def test_the_erosion_of_a_set_weighs_each_item_by_its_loss() -> None:
    labels = [np.array([OBJECT])] * 2
    along = [(0.30, 0.25, 0.25, 0.20), (0.60, 0.60, 0.60, 0.10)]
    stages = [[detected(scores[n]) for scores in along] for n in range(4)]
    lost = found(stages, labels)
    assert [flip.sample for flip in lost] == ["0001", "0000"]
    assert dict(erosion(lost)) == pytest.approx({1: 0.05 / 0.6, 2: 0.0, 3: 0.55 / 0.6})
    assert sum(share for _, share in erosion(lost)) == pytest.approx(1)


def test_an_alarm_is_followed_through_the_stages() -> None:
    """A box that moves a little and creeps over the threshold; another that vanishes."""
    labels = [np.array([OBJECT])]
    stages = [
        [np.concatenate([detected(0.9), detected(0.2, at=100), detected(0.6, at=300)])],
        [np.concatenate([detected(0.9), detected(0.24, at=101)])],
        [np.concatenate([detected(0.9), detected(0.26, at=102)])],
    ]
    lost, won = found(stages, labels)
    assert (lost.kind, lost.lost, lost.calls) == ("alarm", True, ("TN", "TN", "FP"))
    assert [margin for _, margin in lost.margins] == pytest.approx([0.05, 0.01, -0.01])
    assert dict(lost.eroded) == pytest.approx({1: 0.04 / 0.06, 2: 0.02 / 0.06})
    assert (won.kind, won.lost, won.calls, won.eroded) == ("alarm", False, ("FP", "TN", "TN"), ())


def test_doubles_of_one_alarm_are_followed_one_by_one() -> None:
    labels = [np.empty((0, 6))]
    stages = [[detected(0.9, 0.3, at=100)], [detected(0.9, 0.2, at=100)]]
    (won,) = found(stages, labels)
    assert [margin for _, margin in won.margins] == pytest.approx([-0.05, 0.05])


def test_rows_of_a_classifier_flip_with_their_margin_in_logits() -> None:
    labels = [np.array([1])] * 3
    a = [np.array([0.0, 4.0, 1.0]), np.array([0.0, 2.0, 1.0]), np.array([3.0, 2.0, 1.0])]
    b = [np.array([0.0, 4.0, 1.0]), np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0])]
    stages = [recorded("classification", side, labels) for side in (a, b)]
    lost, won = flips(TASKS["classification"], stages, (STEPS[0], STEPS[3]))
    assert (lost.sample, lost.calls, lost.margins) == (
        "0001",
        ("right", "wrong"),
        (("pytorch", 1.0), ("calibrated", -1.0)),
    )
    assert lost.eroded == ((3, 1.0),)
    assert (won.sample, won.lost) == ("0002", False)


def test_a_margin_that_is_not_known_erodes_nothing() -> None:
    stages = [recorded("classification", [np.array([0.0, s])], [np.array([1])]) for s in (1.0, np.nan)]
    (flip,) = flips(TASKS["classification"], stages, (STEPS[0], STEPS[3]))
    assert (flip.lost, flip.eroded) == (True, ())
    assert erosion([flip]) == ()


def test_a_task_without_decisions_has_no_flips() -> None:
    records = recorded("regression", [np.ones(2)], [np.zeros(2)])
    assert flips(TASKS["regression"], (records, records), STEPS[:2]) == ()


def test_stages_that_saw_other_samples_or_labels_cannot_be_compared() -> None:
    one = recorded("classification", [np.eye(3)[0]] * 2, [np.array([0]), np.array([1])])
    fewer = one.with_rows(list(one.by_sample().items())[:1])
    other = recorded("classification", [np.eye(3)[0]] * 2, [np.array([0]), np.array([2])])
    for stages, code in (((one, fewer), "score-other-samples"), ((one, other), "score-other-items")):
        with pytest.raises(SampleError) as caught:
            flips(TASKS["classification"], stages, STEPS[:2])
        assert caught.value.problems[0].code == code
