"""One version of a subject, and when a difference between two is more than noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from driftgate.comparing.changed import artifact_of, environment_of
from driftgate.domain.comparisons import Change
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Judgement
from driftgate.domain.measurements import Array

NORMAL = 1.96
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Side:
    """One version of one subject."""

    facts: Facts
    judgement: Judgement


def unless_drift(change: Change, base: Facts, head: Facts, *stages: str) -> Change:
    """The change, or drift where these stages' artifacts are the same and an environment is another one."""
    if change not in (Change.WORSE, Change.BETTER):
        return change
    same = all(artifact_of(base, stage) and artifact_of(base, stage) == artifact_of(head, stage) for stage in stages)
    elsewhere = any(environment_of(base, stage) != environment_of(head, stage) for stage in stages)
    return Change.DRIFT if same and elsewhere else change


def beyond(low: float, high: float) -> Change:
    """Whether an interval of a change, more of which is worse, leaves zero out."""
    if not math.isfinite(low + high):
        return Change.UNKNOWN
    return Change.WORSE if low > ROUNDING else Change.BETTER if high < -ROUNDING else Change.SAME


def interval(values: Array) -> tuple[float, float]:
    """Of the mean, by the normal distribution, with 95 % confidence."""
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    middle = float(values.mean())
    return middle - NORMAL * error, middle + NORMAL * error
