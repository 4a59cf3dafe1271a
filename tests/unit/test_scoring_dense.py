"""Segmentation, regression and the user's own scores: scikit-learn's numbers, shards, and what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import (  # type: ignore[import-untyped]
    accuracy_score,
    jaccard_score,
    mean_absolute_error,
    root_mean_squared_error,
)

from driftgate.domain.scores import ScoreRecords
from driftgate.errors import SampleError
from driftgate.scoring import custom, regression, segmentation
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.summary import compare, summarise
from driftgate.scoring.tasks import own_scorer
from support.scoring import in_shards, recorded, total_of


def pictures(seed: int, count: int = 12, classes: int = 6) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scores (count, classes, 9, 11) and labels (count, 9, 11), a tenth of which is not scored."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes - 1, (count, 9, 11))
    scores = rng.standard_normal((count, classes, 9, 11))
    np.put_along_axis(scores, labels[:, None], np.take_along_axis(scores, labels[:, None], 1) + 1.0, 1)
    return scores, np.where(rng.random(labels.shape) < 0.1, 255, labels)


def test_miou_and_pixel_accuracy_are_those_of_scikit_learn() -> None:
    scores, labels = pictures(0)
    scored = labels != 255
    truth, found = labels[scored], scores.argmax(1)[scored]
    whole = recorded("segmentation", list(scores), list(labels))
    for records in (whole, in_shards(whole, np.random.default_rng(0))):
        assert total_of(records, "mIoU").value == jaccard_score(truth, found, average="macro")
        assert total_of(records, "pixel-accuracy").value == accuracy_score(truth, found)


def test_a_class_map_and_scores_with_the_classes_last_are_the_same_picture() -> None:
    scores, labels = pictures(1, count=1)
    wanted = segmentation.rows(scores, labels, Parameters())
    for output in (scores.argmax(1), np.moveaxis(scores, 1, -1), scores.argmax(1)[:, None].astype(np.uint8)):
        assert np.array_equal(segmentation.rows(output, labels[0], Parameters()), wanted)


def test_a_pixel_with_nan_is_wrong() -> None:
    scores = np.zeros((2, 2, 2))
    scores[0, 0, 0] = np.nan
    records = recorded("segmentation", [scores], [np.zeros((2, 2), int)])
    assert total_of(records, "pixel-accuracy").value == 0.75


@pytest.mark.parametrize(
    ("output", "label", "code"),
    [
        (np.zeros((3, 4, 5)), np.zeros((5, 4), int), "score-pixels"),
        (np.zeros((3, 4, 5)), np.full((4, 5), 3), "score-label"),
        (np.zeros((3, 4, 5)), np.zeros((4, 5)), "score-label-kind"),
        (np.full((4, 5), -2), np.zeros((4, 5), int), "score-label"),
    ],
)
def test_pictures_that_do_not_fit_are_an_error(output: NDArray[Any], label: NDArray[Any], code: str) -> None:
    with pytest.raises(SampleError) as caught:
        segmentation.rows(output, label, Parameters())
    assert caught.value.problems[0].code == code


def test_mae_and_rmse_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    wanted = rng.standard_normal(301)
    found = wanted + rng.standard_normal(301) * 0.1
    whole = recorded("regression", list(found[:, None]), list(wanted[:, None]))
    for records in (whole, in_shards(whole, rng)):
        assert total_of(records, "MAE").value == mean_absolute_error(wanted, found)
        assert total_of(records, "RMSE").value == root_mean_squared_error(wanted, found)


def test_samples_of_several_numbers_count_by_number() -> None:
    rng = np.random.default_rng(3)
    labels = [rng.standard_normal((1, length)) for length in rng.integers(1, 9, 40)]
    outputs = [label[0] + rng.standard_normal(label.size) for label in labels]
    records = recorded("regression", outputs, labels)
    flat = [np.concatenate([array.reshape(-1) for array in side]) for side in (labels, outputs)]
    assert total_of(records, "MAE").value == pytest.approx(mean_absolute_error(*flat), rel=1e-14)
    assert total_of(records, "RMSE").value == pytest.approx(root_mean_squared_error(*flat), rel=1e-14)


def test_a_number_that_is_nan_makes_the_score_nan() -> None:
    records = recorded("regression", [np.array([np.nan, 1.0]), np.array([1.0, 1.0])], [np.ones(2), np.ones(2)])
    assert np.isnan(total_of(records, "MAE").value)


@pytest.mark.parametrize(
    ("output", "label", "code"),
    [
        (np.zeros((2, 3)), np.zeros((3, 2)), "score-values"),
        (np.zeros(0), np.zeros(0), "score-values"),
        (np.zeros(2), np.array([0, np.nan]), "score-label-nonfinite"),
    ],
)
def test_numbers_that_do_not_fit_are_an_error(output: NDArray[Any], label: NDArray[Any], code: str) -> None:
    with pytest.raises(SampleError) as caught:
        regression.rows(output, label, Parameters())
    assert caught.value.problems[0].code == code


def own(values: list[float]) -> ScoreRecords:
    """The user's numbers, one a sample."""
    empty = ScoreRecords("a", "a@1", "WER", custom.FIELDS, (), np.empty((0, 1)))
    return empty.with_rows((f"{n:04}", custom.rows(value)) for n, value in enumerate(values))


def test_a_users_numbers_are_averaged() -> None:
    values = np.random.default_rng(4).random(77).tolist()
    total = summarise(own_scorer("WER", better="lower"), own(values))
    assert total is not None
    assert total.value == np.mean(values)
    assert total.interval is not None


def test_a_users_number_for_the_whole_set_has_neither_shards_nor_an_interval() -> None:
    scorer = own_scorer("WER", better="lower")
    records = custom.whole("a", "a@1", "WER", samples=("0000", "0001", "0002"), value=0.25)
    total = summarise(scorer, records)
    assert total is not None
    assert (total.value, total.n, total.text, total.interval) == (0.25, 3, "0.25", None)
    assert compare(scorer, records, records, margin=0.01) is None

    half = custom.whole("a", "a@1", "WER", samples=("0003",), value=0.25)
    shards = records.with_rows([*records.by_sample().items(), *half.by_sample().items()])
    for part in (shards, records.with_rows(list(records.by_sample().items())[:2])):
        with pytest.raises(SampleError) as caught:
            summarise(scorer, part)
        assert caught.value.problems[0].code == "score-whole-shards"


def test_a_users_number_must_be_finite() -> None:
    with pytest.raises(SampleError) as caught:
        custom.rows(float("nan"))
    assert "nan" in str(caught.value)
