"""Summaries: a score with its interval from the records of one stage, and its loss between two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from driftgate.domain.measurements import Array
from driftgate.domain.scores import Comparison, Flip, Interval, ScoreRecords
from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.scoring.custom import whole_value
from driftgate.scoring.decisions import by_id, in_order
from driftgate.scoring.flips import Step, find_flips
from driftgate.scoring.parameters import Parameters
from driftgate.scoring.statistics import bootstrap, compare_draws, compare_pairs, resampled, wilson
from driftgate.scoring.tasks import HIGHER, Scorer, Task


@dataclass(frozen=True, slots=True, eq=False)
class Total:
    """A score over all records: its value over `n` items, as people write it, and how sure it is.

    `interval` is None of one number for the whole set. `draws`: the score in each resample of the samples, from
    which a loss is judged; None where the score is a share of items that are right.
    """

    value: float
    n: int
    text: str
    interval: Interval | None
    draws: Array | None = None


def summarise(scorer: Scorer, records: ScoreRecords, parameters: Parameters | None = None) -> Total | None:
    """The score of these records, whatever the order of their samples; None where they cannot tell it.

    Top-5 of five classes, AP where no image has an object, or no sample at all. Raises SampleError for one number
    for the whole set that was made from another one.
    """
    parameters = parameters or Parameters()
    records = by_id(records)
    if not records.samples:
        return None
    number = whole_value(records)
    if number is not None:
        return Total(number, len(records.samples), _written(scorer, number), None)
    if scorer.hits is not None:
        hits = scorer.hits(records, parameters)
        if hits is None or not hits.size:
            return None
        right, n = int(hits.sum()), len(hits)
        return Total(right / n, n, f"{right}/{n}", wilson(right, n))
    fold = None if scorer.fold is None else scorer.fold(records, parameters)
    if fold is None:
        return None
    n = len(records.samples)
    value, draws = fold(np.ones(n)), resampled(fold, n)
    interval = bootstrap(value, draws, n)
    if scorer.bounded:
        interval = replace(interval, low=max(interval.low, 0.0), high=min(interval.high, 1.0))
    return Total(value, n, _written(scorer, value), interval, draws)


def compare(
    scorer: Scorer,
    reference: ScoreRecords,
    candidate: ScoreRecords,
    *,
    margin: float,
    parameters: Parameters | None = None,
    totals: tuple[Total, Total] | None = None,
    tolerance: float | None = None,
) -> Comparison | None:
    """What the candidate loses of the reference's score, against a margin given as a share of it.

    Pairs decide where the score is a share of right items, else resamples of both over the same samples. None where
    there is no interval: one number for the whole set, or records that cannot tell. `totals`, if summed up already,
    spare the resamples. With a `tolerance`, in the unit of the scores, items that it ties at the reference count as
    unchanged, as exact and equivalent links want it. Raises SampleError where the two were made from other samples or
    labels.
    """
    parameters = parameters or Parameters()
    reference, candidate = in_order((reference, candidate))
    if scorer.hits is not None:
        before, after = scorer.hits(reference, parameters), scorer.hits(candidate, parameters)
        if before is None or after is None or not before.size:
            return None
        if reference.counts != candidate.counts:
            raise SampleError(message("score-other-items", a=reference.stage, b=candidate.stage))
        if tolerance is not None and scorer.tied is not None:
            after = np.where(scorer.tied(reference, tolerance), before, after)
        return compare_pairs(before, after, margin=margin)
    old, new = totals or (summarise(scorer, one, parameters) for one in (reference, candidate))
    if old is None or new is None or old.draws is None or new.draws is None:
        return None
    return compare_draws(
        (old.value, old.draws),
        (new.value, new.draws),
        old.n,
        margin=margin,
        higher=scorer.better == HIGHER,
        bounded=scorer.bounded,
    )


def flips(
    task: Task, stages: Sequence[ScoreRecords], steps: Sequence[Step], parameters: Parameters | None = None
) -> tuple[Flip, ...]:
    """The items that the last of these stages decides in another way than the first, see find_flips.

    `steps` go with `stages`, in the order of the chain. Raises SampleError where stages were scored on other samples
    or labels.
    """
    if task.decisions is None or len(stages) < 2 or not stages[0].samples:
        return ()
    return find_flips(task.decisions(stages, parameters or Parameters()), steps)


def _written(scorer: Scorer, value: float) -> str:
    return f"{value:.4f}" if scorer.bounded else f"{value:.6g}"
