"""Tasks: what is recorded of a sample, and the table of the scores that are folded from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import Array
from driftgate.domain.scores import ScoreRecords
from driftgate.scoring import classification, custom, detection, regression, segmentation
from driftgate.scoring.decisions import Decisions
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.statistics import Fold

HIGHER, LOWER = "higher", "lower"
OWN = "own"  # the task and the score of a user's own scorer


class Record(Protocol):
    """Notes one sample: the scored output and the label, of the shapes that the task documents."""

    def __call__(self, output: NDArray[Any], label: NDArray[Any], parameters: Parameters) -> Array: ...


@dataclass(frozen=True, slots=True)
class Scorer:
    """A score: its `name`, which side is `better`, and how it is folded.

    `fold` gives the score as a function of sample weights, `hits` says of each item whether it is right, for a
    score that is their share; one of the two. Either gives None where the records cannot tell. `judged`: the
    score that decides on the task; the others are shown. `bounded`: it lies in 0 … 1. `tied` says which items a
    tolerance of the scores could decide either way.
    """

    name: str
    fold: Callable[[ScoreRecords, Parameters], Fold | None] | None = None
    hits: Callable[[ScoreRecords, Parameters], NDArray[np.bool_] | None] | None = None
    better: str = HIGHER
    judged: bool = False
    bounded: bool = True
    tied: Callable[[ScoreRecords, float], NDArray[np.bool_]] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """The `fields` of the records of a task, how one sample is recorded, and the scores.

    `decisions` reads from the records of several stages what each decided; None where a task decides nothing.
    """

    name: str
    fields: tuple[str, ...]
    record: Record
    scorers: tuple[Scorer, ...]
    decisions: Callable[[Sequence[ScoreRecords], Parameters], Decisions] | None = None

    def scorer(self, name: str) -> Scorer:
        """The score of that name; KeyError if the task has none."""
        for scorer in self.scorers:
            if scorer.name == name:
                return scorer
        raise KeyError(name)


TASKS = {
    task.name: task
    for task in (
        Task(
            "classification",
            classification.FIELDS,
            classification.rows,
            (
                Scorer("top1", hits=classification.among(1), judged=True, tied=classification.tied),
                Scorer("top5", hits=classification.among(5)),
                Scorer("precision", classification.mean_over_classes(classification.precision)),
                Scorer("recall", classification.mean_over_classes(classification.recall)),
                Scorer("F1", classification.mean_over_classes(classification.f1)),
            ),
            classification.decisions,
        ),
        Task(
            "detection",
            detection.FIELDS,
            detection.rows,
            (
                Scorer("AP", detection.average_precision(slice(None)), judged=True),
                Scorer("AP50", detection.average_precision(slice(0, 1))),
                Scorer("AR100", detection.average_recall),
                Scorer("precision", detection.precision),
                Scorer("recall", detection.recall),
            ),
            detection.decisions,
        ),
        Task(
            "segmentation",
            segmentation.FIELDS,
            segmentation.rows,
            (
                Scorer("mIoU", segmentation.mean_overlap, judged=True),
                Scorer("pixel-accuracy", segmentation.pixel_accuracy),
            ),
        ),
        Task(
            "regression",
            regression.FIELDS,
            regression.rows,
            (
                Scorer("MAE", regression.mean_absolute, better=LOWER, judged=True, bounded=False),
                Scorer("RMSE", regression.root_mean_square, better=LOWER, bounded=False),
            ),
        ),
    )
}


def own_scorer(name: str, *, better: str) -> Scorer:
    """The scorer of a user's own numbers, one for each sample (custom.rows) or one for all (custom.whole)."""
    return Scorer(name, custom.mean, better=better, judged=True, bounded=False)


def scorer_of(task: str, name: str, better: str) -> Scorer:
    """The scorer of a planned score. Raises KeyError for one that no task has."""
    return own_scorer(name, better=better) if task == OWN else TASKS[task].scorer(name)
