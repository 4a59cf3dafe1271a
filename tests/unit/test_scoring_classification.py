"""Classification: every score is scikit-learn's to the last digit, whole or in shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import (  # type: ignore[import-untyped]
    accuracy_score,
    precision_recall_fscore_support,
    top_k_accuracy_score,
)

from driftgate.domain.scores import ScoreRecords
from driftgate.errors import SampleError
from driftgate.scoring.classification import FIELDS, rows
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.summary import summarise
from driftgate.scoring.tasks import TASKS
from support.scoring import in_shards, recorded, total_of


def guesses(seed: int, count: int, classes: int, *, rows_each: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scores that favour the right class, and classes of which the last ones hardly occur."""
    rng = np.random.default_rng(seed)
    labels = np.minimum(rng.geometric(0.3, (count, rows_each)) - 1, classes - 1)
    scores = rng.standard_normal((count, rows_each, classes)).astype(np.float32)
    np.put_along_axis(scores, labels[..., None], np.take_along_axis(scores, labels[..., None], 2) + 1.5, 2)
    return scores, labels


@pytest.mark.parametrize(("seed", "count", "classes", "rows_each"), [(0, 360, 10, 1), (1, 97, 40, 3), (2, 50, 7, 2)])
def test_scores_are_those_of_scikit_learn(seed: int, count: int, classes: int, rows_each: int) -> None:
    scores, labels = guesses(seed, count, classes, rows_each=rows_each)
    flat, wanted = scores.reshape(-1, classes), labels.reshape(-1)
    predicted = flat.argmax(1)
    precision, recall, f1, _ = precision_recall_fscore_support(wanted, predicted, average="macro", zero_division=0)
    judged = {
        "top1": accuracy_score(wanted, predicted),
        "top5": top_k_accuracy_score(wanted, flat, k=5, labels=np.arange(classes)),
        "precision": precision,
        "recall": recall,
        "F1": f1,
    }
    whole = recorded("classification", list(scores), list(labels))
    rng = np.random.default_rng(seed)
    for records in (whole, in_shards(whole, rng), in_shards(whole, rng)):
        assert {name: total_of(records, name).value for name in judged} == judged
    assert in_shards(whole, rng) == whole


def test_a_score_is_written_as_right_of_all() -> None:
    scores, labels = guesses(3, 360, 10)
    total = total_of(recorded("classification", list(scores), list(labels)), "top1")
    assert total.text == f"{int((scores[:, 0].argmax(1) == labels[:, 0]).sum())}/360"
    assert total.interval is not None
    assert total.interval.low < total.value < total.interval.high


def test_the_order_of_the_samples_does_not_show() -> None:
    scores, labels = guesses(4, 60, 12)
    records = recorded("classification", list(scores), list(labels))
    pairs = list(records.by_sample().items())
    other = records.with_rows(pairs[n] for n in np.random.default_rng(0).permutation(60))
    for name in ("top1", "F1"):
        a, b = total_of(records, name), total_of(other, name)
        assert (a.value, a.interval) == (b.value, b.interval)


def test_equal_scores_stand_in_the_order_of_their_classes() -> None:
    table = rows(np.array([[2.0, 5.0, 5.0, 1.0], [5.0, 5.0, 0.0, 0.0]]), np.array([2, 0]), Parameters())
    found = [dict(zip(FIELDS, row, strict=True)) for row in table.tolist()]
    assert (found[0]["predicted"], found[0]["rank"], found[0]["margin"]) == (1.0, 1.0, 0.0)
    assert (found[1]["predicted"], found[1]["rank"], found[1]["margin"]) == (0.0, 0.0, 0.0)


def test_a_row_with_nan_is_wrong_whatever_k_is() -> None:
    scores = np.array([[np.nan, 1, 2, 3, 4, 5, 6.0]])
    records = recorded("classification", [scores], [np.array([6])])
    assert [total_of(records, name).value for name in ("top1", "top5", "F1")] == [0.0, 0.0, 0.0]
    assert np.isnan(records.column("margin")).all()


def test_top5_of_five_classes_says_nothing() -> None:
    records = recorded("classification", [np.eye(5)[0]], [np.array([0])])
    assert summarise(TASKS["classification"].scorer("top5"), records) is None
    assert total_of(records, "top1").value == 1.0


@pytest.mark.parametrize("shape", [(7,), (1, 7), (1, 7, 1, 1), (1, 1, 1, 7)])
def test_a_single_row_may_come_between_axes_of_length_one(shape: tuple[int, ...]) -> None:
    assert rows(np.arange(7.0).reshape(shape), np.array([6]), Parameters())[0].tolist() == [6, 6, 0, 1, 7]


@pytest.mark.parametrize(
    ("shape", "label", "code"),
    [
        ((1, 3), [7], "score-label"),
        ((1, 3), [-1], "score-label"),
        ((3, 3), [0, 1], "score-rows"),
        ((2, 5), [0], "score-rows"),
        ((2, 3, 4), [0, 1], "score-rows"),
        ((0, 3), [0], "score-rows"),
        ((1, 3), [], "score-label-kind"),
        ((1, 3), [0.5], "score-label-kind"),
    ],
)
def test_what_does_not_fit_is_an_error(shape: tuple[int, ...], label: list[float], code: str) -> None:
    with pytest.raises(SampleError) as caught:
        rows(np.zeros(shape), np.array(label), Parameters())
    assert caught.value.problems[0].code == code
    assert str(caught.value)


def test_records_of_version_0_1_still_tell_top1_and_nothing_else() -> None:
    values = np.array([[1.0, 1.0, 0.5], [1.0, 2.0, -0.1], [0.0, 1.0, -2.0]])
    old = ScoreRecords("a", "a@1", "top1", ("correct", "total", "margin"), ("0", "1", "2"), values)
    totals = [summarise(scorer, old) for scorer in TASKS["classification"].scorers]
    assert totals[0] is not None
    assert (totals[0].text, totals[1:]) == ("2/4", [None] * 4)
