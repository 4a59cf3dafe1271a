"""Post-processing: softmax, argmax, and YOLO boxes in every documented shape, equal ones in a fixed order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftgate.errors import SampleError
from driftgate.scoring.postprocess import argmax, corners, sigmoid, softmax, suppress, yolo


def head(seed: int, boxes: int = 200, classes: int = 5) -> NDArray[Any]:
    """A decoded head (boxes, 4 + classes) with heaps of boxes around a few places."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(50, 600, (8, 2))[rng.integers(0, 8, boxes)]
    sizes = rng.uniform(40, 90, (boxes, 2))
    scores = np.round(rng.random((boxes, classes)) ** 4, 2)
    return np.column_stack([places + rng.normal(0, 6, (boxes, 2)), sizes, scores])


def plainly(table: NDArray[Any], *, confidence: float, overlap: float, most: int) -> list[list[float]]:
    """The same, written out box by box."""
    candidates = []
    for index, (x, y, w, h, *scores) in enumerate(table.tolist()):
        best = max(range(len(scores)), key=lambda c: (scores[c], -c))
        if scores[best] >= confidence:
            candidates.append((-scores[best], index, best, (x - w / 2, y - h / 2, x + w / 2, y + h / 2)))
    kept: list[tuple[float, int, int, tuple[float, ...]]] = []
    for one in sorted(candidates):
        if all(other[2] != one[2] or iou(other[3], one[3]) <= overlap for other in kept):
            kept.append(one)
    return [[*box, -score, float(best)] for score, _, best, box in kept[:most]]


def iou(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    inside = max(width, 0) * max(height, 0)
    return inside / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inside)


@pytest.mark.parametrize("seed", range(4))
def test_yolo_boxes_are_what_the_rule_says(seed: int) -> None:
    table = head(seed)
    found = yolo(table.T[None], classes=5, confidence=0.2, overlap=0.5, most=30)
    assert 5 < len(found) <= 30
    assert np.allclose(found, plainly(table, confidence=0.2, overlap=0.5, most=30), rtol=0, atol=1e-9)


def test_every_documented_shape_gives_the_same_boxes() -> None:
    table = head(9).astype(np.float32)
    wanted = yolo(table[None], classes=5, confidence=0.2)
    for output in (table, table.T, table.T[None]):
        assert np.array_equal(yolo(output, classes=5, confidence=0.2), wanted)


def test_objectness_multiplies_the_classes() -> None:
    table = head(10)
    objectness = np.random.default_rng(0).random((len(table), 1))
    with_it = np.concatenate([table[:, :4], objectness, table[:, 4:]], axis=1)
    without = np.concatenate([table[:, :4], table[:, 4:] * objectness], axis=1)
    found = yolo(with_it[None], classes=5, objectness=True, confidence=0.1)
    assert np.array_equal(found, yolo(without[None], classes=5, confidence=0.1))


def test_equal_scores_stay_in_the_order_of_the_output() -> None:
    table = np.array(
        [[100, 100, 20, 20, 0.5], [200, 100, 20, 20, 0.5], [101, 100, 20, 20, 0.5], [300, 100, 20, 20, 0.6]]
    )
    found = yolo(table[None], classes=1)
    assert found[:, 0].tolist() == [290.0, 90.0, 190.0]


def test_boxes_of_different_classes_do_not_suppress_each_other() -> None:
    box = np.array([[0, 0, 10, 10.0]] * 3)
    assert suppress(box, np.array([0.5, 0.9, 0.7]), np.array([0, 1, 0]), overlap=0.5).tolist() == [1, 2]


def test_nothing_above_the_confidence_is_no_box() -> None:
    assert yolo(np.zeros((1, 9, 20)), classes=5).shape == (0, 6)


@pytest.mark.parametrize(("shape", "classes"), [((1, 84, 8400), 79), ((1, 9, 9), 5), ((2, 9, 20), 5), ((180,), 5)])
def test_a_head_of_another_shape_is_an_error_not_a_guess(shape: tuple[int, ...], classes: int) -> None:
    with pytest.raises(SampleError) as caught:
        yolo(np.zeros(shape), classes=classes)
    assert caught.value.problems[0].code == "score-yolo-shape"


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_number_that_is_not_finite_never_vanishes(broken: float) -> None:
    table = head(11)
    table[3, 6] = broken
    for call in (lambda: yolo(table[None], classes=5), lambda: argmax(table)):
        with pytest.raises(SampleError) as caught:
            call()
        assert "1 of" in str(caught.value)


def test_softmax_and_sigmoid_hold_for_large_logits() -> None:
    logits = np.array([[1000.0, 999.0], [-1000.0, -1000.0]])
    assert softmax(logits)[0] == pytest.approx([0.7310585786, 0.2689414214])
    assert softmax(logits, axis=0)[:, 0].tolist() == [1.0, 0.0]
    assert sigmoid(np.array([-1000.0, 0.0, 1.0, 1000.0])) == pytest.approx([0.0, 0.5, 0.7310585786, 1.0])


def test_argmax_takes_the_first_of_equals() -> None:
    assert argmax(np.array([[1, 3, 3], [2, 1, 2]])).tolist() == [1, 0]


def test_corners_are_half_a_size_from_the_centre() -> None:
    assert corners(np.array([[10.0, 20.0, 4.0, 6.0]])).tolist() == [[8.0, 17.0, 12.0, 23.0]]
