"""Detection: AP, AP50 and AR100 are pycocotools' to the last digit; counts and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftgate.errors import SampleError
from driftgate.scoring import coco
from driftgate.scoring.detection import count, rows
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.summary import summarise
from driftgate.scoring.tasks import TASKS
from support.scoring import coco_numbers, in_shards, recorded, scenes, total_of

NAMES = ("AP", "AP50", "AR100")


@pytest.mark.parametrize(
    ("seed", "classes", "scale"), [(0, 4, 1.0), (1, 1, 1.0), (2, 12, 0.1), (3, 3, 1 / 3), (4, 2, 7.7)]
)
def test_ap_and_ar_are_those_of_the_coco_tool(seed: int, classes: int, scale: float) -> None:
    outputs, labels = scenes(np.random.default_rng(seed), 60, classes=classes, scale=scale)
    records = recorded("detection", outputs, labels)
    wanted = coco_numbers(outputs, labels)
    assert {name: total_of(records, name).value for name in NAMES} == wanted
    assert coco.coco_numbers(records) == wanted


def test_more_than_a_hundred_detections_of_a_class_and_boxes_without_measure_count_as_in_the_coco_tool() -> None:
    rng = np.random.default_rng(5)
    outputs, labels = scenes(rng, 12, classes=2)
    crowd = np.column_stack([rng.uniform(0, 300, (260, 2)), rng.uniform(300, 500, (260, 2)), rng.random((260, 2))])
    crowd[:, 5] = 0
    huge = np.array([[0, 0, 2e5, 2e5, 0.99, 1], [50, 50, 20, 90, 0.98, 1]])
    outputs = [np.concatenate([found, crowd, huge]) for found in outputs]
    records = recorded("detection", outputs, labels)
    assert {name: total_of(records, name).value for name in NAMES} == coco_numbers(outputs, labels)


def test_shards_of_any_size_and_order_give_the_same_numbers_and_intervals() -> None:
    rng = np.random.default_rng(6)
    records = recorded("detection", *scenes(rng, 40))
    for _ in range(4):
        merged = in_shards(records, rng)
        assert merged == records
        shuffled = records.with_rows([list(records.by_sample().items())[n] for n in rng.permutation(40)])
        for name in ("AP", "AR100", "precision", "recall"):
            wanted, found = total_of(records, name), total_of(shuffled, name)
            assert (found.value, found.interval, found.text) == (wanted.value, wanted.interval, wanted.text)


def test_a_resample_is_the_score_of_the_images_drawn() -> None:
    """AP with weights equals the tool's AP over a set in which images stand as often as they were drawn.

    No two images have equal scores here: their order would depend on where an image stands.
    """
    rng = np.random.default_rng(7)
    outputs, labels = scenes(rng, 20, classes=2)
    for found in outputs:
        found[:, 4] = rng.random(len(found))
    records = recorded("detection", outputs, labels)
    drawn = np.random.default_rng(8).integers(0, 20, 20)
    weights = np.bincount(drawn, minlength=20).astype(np.float64)
    wanted = coco_numbers([outputs[n] for n in drawn], [labels[n] for n in drawn])
    for name in NAMES:
        scorer = TASKS["detection"].scorer(name)
        assert scorer.fold is not None
        fold = scorer.fold(records, Parameters())
        assert fold is not None
        assert fold(weights) == pytest.approx(wanted[name], rel=1e-12)


def boxes(*table: tuple[float, ...]) -> NDArray[Any]:
    return np.array(table, dtype=np.float64)


OBJECTS = boxes((10, 10, 20, 20, 0, 0), (60, 60, 20, 20, 1, 0), (200, 200, 50, 50, 0, 1))


def test_counts_at_the_deployed_confidence() -> None:
    found = boxes(
        (10, 10, 30, 30, 0.9, 0),  # the first object
        (11, 11, 31, 31, 0.8, 0),  # the same once more: a false alarm
        (60, 60, 80, 80, 0.2, 1),  # the second, below the confidence: missed
        (100, 100, 120, 120, 0.7, 1),  # nothing is there
        (210, 210, 230, 230, 0.6, 0),  # part of a crowd counts nowhere
    )
    counts = count(recorded("detection", [found], [OBJECTS]), Parameters(confidence=0.25))
    assert (counts.found, counts.alarms, counts.missed) == (1, 2, 1)
    lower = count(recorded("detection", [found], [OBJECTS]), Parameters(confidence=0.1))
    assert (lower.found, lower.alarms, lower.missed) == (2, 2, 0)


def test_precision_and_recall_are_at_the_deployed_confidence() -> None:
    found = boxes((10, 10, 30, 30, 0.9, 0), (60, 60, 80, 80, 0.2, 1), (100, 100, 120, 120, 0.7, 1))
    records = recorded("detection", [found, found], [OBJECTS, OBJECTS])
    assert total_of(records, "precision").value == 0.5
    assert total_of(records, "recall").value == 0.5
    assert total_of(records, "recall", Parameters(confidence=0.1)).value == 1.0


@pytest.mark.parametrize("nothing", [np.empty((0, 6)), np.empty((1, 0, 6)), np.array([])])
def test_no_detections_score_zero(nothing: NDArray[Any]) -> None:
    records = recorded("detection", [nothing, nothing], [OBJECTS, OBJECTS])
    assert [total_of(records, name).value for name in (*NAMES, "precision", "recall")] == [0.0] * 5


def test_an_image_without_objects_keeps_its_place_and_its_false_alarms() -> None:
    found = boxes((10, 10, 30, 30, 0.9, 0))
    records = recorded("detection", [found, found, np.empty((0, 6))], [OBJECTS, np.empty((0, 6)), np.empty((0, 6))])
    assert records.samples == ("0000", "0001", "0002")
    assert records.counts == (4, 1, 0)
    assert total_of(records, "precision").value == 0.5
    assert total_of(records, "AP").n == 3


def test_without_any_object_there_is_no_score() -> None:
    records = recorded("detection", [boxes((10, 10, 30, 30, 0.9, 0))], [np.empty((0, 6))])
    assert [summarise(scorer, records) for scorer in TASKS["detection"].scorers] == [None] * 5


@pytest.mark.parametrize(
    ("output", "label", "code"),
    [
        (np.zeros((1, 84, 8400)), OBJECTS, "score-boxes"),
        (np.zeros((3, 5)), OBJECTS, "score-boxes"),
        (np.zeros((3, 6)), np.zeros((2, 4)), "score-boxes"),
        (boxes((0, 0, 5, 5, np.nan, 0)), OBJECTS, "score-boxes-nonfinite"),
        (boxes((0, 0, np.inf, 5, 0.5, 0)), OBJECTS, "score-boxes-nonfinite"),
        (boxes((0, 0, 5, 5, 0.5, 0.5)), OBJECTS, "score-box-class"),
        (np.zeros((0, 6)), boxes((0, 0, 5, 5, -1, 0)), "score-box-class"),
        (np.zeros((0, 6)), boxes((0, 0, -5, 5, 1, 0)), "score-box"),
    ],
)
def test_what_is_no_detection_is_an_error(output: NDArray[Any], label: NDArray[Any], code: str) -> None:
    with pytest.raises(SampleError) as caught:
        rows(output, label, Parameters())
    assert caught.value.problems[0].code == code
    assert str(caught.value)
