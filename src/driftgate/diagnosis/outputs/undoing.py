"""An error undone on one output of the candidate, and how close to the reference that must come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.trials import Fact, explained, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]

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
    a = bench.outputs_a[name]
    before, after = residual(a, bench.outputs_b[name]), residual(a, undone)
    least = max(FLOAT_FLOOR, READ_FLOOR if floor is None else floor)
    made = trial(code, transform, before, after, least, target=name)
    if made.result.value == "confirmed":
        yield from explained(made, subjects=(name,), facts=facts)


def lsb_floor(bench: Bench, name: str) -> float:
    """What rounding leaves on an output whose step is known, as a share of its range."""
    step = bench.step(name)
    a = np.asarray(bench.outputs_a[name], np.float64)
    span = float(np.ptp(a)) if a.size else 0.0
    return FLOAT_FLOOR if not step or not span else max(FLOAT_FLOOR, 2 * step / span)
