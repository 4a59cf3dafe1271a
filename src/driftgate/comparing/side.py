"""One version of a subject, and when a difference between two is more than noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


def is_drift(base: Facts, head: Facts, stages: Sequence[str]) -> bool:
    """The same artifacts, and an environment that is another one."""
    same = all(artifact_of(base, stage) and artifact_of(base, stage) == artifact_of(head, stage) for stage in stages)
    return same and any(environment_of(base, stage) != environment_of(head, stage) for stage in stages)


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
