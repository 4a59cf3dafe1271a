"""Trials and what they explain: a cause is confirmed where undoing it takes the residual to the noise floor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftgate.domain.investigations import Explanation, Trial, TrialResult
from driftgate.messages.message import Param

if TYPE_CHECKING:
    from driftgate.diagnosis.bench import Bench

Fact = tuple[str, float, str]
FALL = 4.0  # how many times smaller the residual must become
PARTLY = 2.0
SHARE = "of the range"


Find = Callable[["Bench"], Iterable[Explanation]]


@dataclass(frozen=True, slots=True)
class Rule:
    """Causes that one function looks for. `turn` 0 reads facts, 1 computes on tensors, 2 runs models, 3 takes
    long or looks for kinds of causes: it is asked only where nothing that was confirmed before explains it all."""

    codes: tuple[str, ...]
    turn: int
    needs: Callable[[Bench], bool]
    find: Find


def trial(
    code: str,
    transform: str,
    before: float,
    after: float,
    floor: float,
    *,
    target: str = "",
    params: Iterable[tuple[str, Param]] = (),
) -> Trial:
    """An experiment that was made, with its result."""
    fell = after <= floor and (after == 0.0 or after * FALL <= before)
    result = TrialResult.CONFIRMED if fell else TrialResult.REFUTED
    return Trial(code, transform, tuple(params), target, before, after, floor, result)


def explained(
    made: Trial, *, subjects: Iterable[str] = (), facts: Iterable[Fact] = (), unit: str = SHARE
) -> tuple[Explanation, ...]:
    """What a trial explains: confirmed at the floor, suspected where the residual is halved, else nothing."""
    confirmed = made.result is TrialResult.CONFIRMED
    if not confirmed and not (math.isfinite(made.after) and made.after * PARTLY <= made.before):
        return ()
    share = 1.0 if math.isinf(made.before) or made.before == 0 else 1.0 - made.after / made.before
    numbers = (("before", made.before, unit), ("after", made.after, unit), ("floor", made.floor, unit))
    return (Explanation(made.code, confirmed, (*numbers, *facts), share, tuple(subjects), (made,)),)


def fact(
    code: str, *facts: Fact, subjects: Iterable[str] = (), confirmed: bool = True, share: float = 1.0
) -> tuple[Explanation, ...]:
    """What is read off without an experiment."""
    return (Explanation(code, confirmed, facts, share, tuple(subjects)),)
