"""An error undone on one output of the candidate, and how close to the reference that must come."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.residuals import residual, spread
from driftgate.diagnosis.trials import SHARE, Fact, explained, trial
from driftgate.domain.investigations import Explanation, Trial

Tensor = NDArray[Any]

#: (numbers, spread of the worst channel, of the whole) that rounding and small faults of a candidate that is not known
#: may leave where its outputs were read wrongly throughout: only the right reading comes so close.
_STRUCTURE = ((64, 0.5, 0.25), (32, 0.25, 0.25), (5, 0.1, 0.1))
_LEAST_SPREAD = 0.5  # before, for that
BY_SPREAD = (("measure", "spread"),)
#: Rounding of a scale that was written with few digits, and half precision.
READ_FLOOR = 5e-3


def try_undone(
    bench: Bench,
    code: str,
    transform: str,
    name: str,
    undone: Tensor,
    *,
    facts: Sequence[Fact] = (),
    floor: float | None = None,
) -> Iterator[Explanation]:
    """The error undone on one output of the candidate; only what is confirmed on it counts."""
    least = max(FLOAT_FLOOR, READ_FLOOR if floor is None else floor)
    made = undone_trial(code, transform, (bench.outputs_a[name], bench.outputs_b[name]), undone, least, target=name)
    if made.result.value == "confirmed":
        yield from told(made, subjects=(name,), facts=facts)


def undone_trial(
    code: str,
    transform: str,
    pair: tuple[Tensor, Tensor],
    undone: Tensor,
    floor: float,
    *,
    target: str,
    wanted: Tensor | None = None,
) -> Trial:
    """An error without free parameters undone on the candidate of a pair: confirmed at the floor of the residual, or
    where nothing agreed before and all agrees but for small noise. `wanted`: what must be met if not the reference."""
    a, b = pair
    goal = a if wanted is None else wanted
    made = trial(code, transform, residual(a, b), residual(goal, undone), floor, target=target)
    if made.result.value == "confirmed":
        return made
    before, limit = spread(a, b), structure_floor(goal, undone)
    if before < _LEAST_SPREAD:
        return made
    other = trial(code, transform, before, spread(goal, undone), limit, target=target, params=BY_SPREAD)
    return other if other.result.value == "confirmed" else made


def told(made: Trial, *, subjects: Iterable[str] = (), facts: Iterable[Fact] = ()) -> tuple[Explanation, ...]:
    """What a trial of this module explains, in the unit that it was measured in."""
    unit = "of the standard deviation" if made.params == BY_SPREAD else SHARE
    return explained(made, subjects=subjects, facts=facts, unit=unit)


def structure_floor(a: Tensor, undone: Tensor) -> float:
    """The spread that may be left where an output was read wrongly throughout; 0 for few numbers."""
    if a.shape != undone.shape or not a.size:
        return 0.0
    x, y = np.asarray(a, np.float64), np.asarray(undone, np.float64)
    whole = math.sqrt(float(((x - y) ** 2).mean())) / (float(x.std()) or 1.0)
    return next((limit for least, limit, most in _STRUCTURE if a.size >= least and whole <= most), 0.0)


def lsb_floor(bench: Bench, name: str) -> float:
    """What rounding leaves on an output whose step is known, as a share of its range."""
    step = bench.step(name)
    a = np.asarray(bench.outputs_a[name], np.float64)
    span = float(np.ptp(a)) if a.size else 0.0
    return FLOAT_FLOOR if not step or not span else max(FLOAT_FLOOR, 2 * step / span)
