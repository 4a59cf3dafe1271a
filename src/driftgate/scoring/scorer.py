"""What a scorer is, and the table of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from driftgate.domain.scores import ScoreRecords
from driftgate.scoring import classification


@dataclass(frozen=True, slots=True)
class Total:
    """A score over all records: its value, over how many items, and how people write it."""

    value: float
    n: int
    text: str


class Record(Protocol):
    """Notes one sample: the scored output of any shape the task documents, and the sample's label."""

    def __call__(self, output: NDArray[Any], label: NDArray[Any]) -> tuple[float, ...]: ...


@dataclass(frozen=True, slots=True)
class Scorer:
    """A row of the table: `name` of the score, its `columns` a sample, how to record and to sum up."""

    name: str
    task: str
    better: str
    columns: tuple[str, ...]
    record: Record
    summarise: Callable[[ScoreRecords], Total]


def _top1(records: ScoreRecords) -> Total:
    correct, total = classification.counts(records)
    return Total(correct / total if total else 0.0, total, f"{correct}/{total}")


SCORERS = {
    scorer.name: scorer
    for scorer in (Scorer("top1", "classification", "higher", classification.COLUMNS, classification.record, _top1),)
}
