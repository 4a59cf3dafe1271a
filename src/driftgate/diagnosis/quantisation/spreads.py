"""The error of quantised outputs: its unit, what is ordinary, and what a changed candidate leaves of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.quantisers import fitted
from driftgate.diagnosis.residuals import widest
from driftgate.domain.investigations import Trial, TrialResult
from driftgate.numerics.alignment import same_shape

Tensor = NDArray[Any]
Tensors = Mapping[str, Tensor]

ORDINARY = 0.15  # spread (16.5 dB) up to which rounding with good ranges may go
MOST = 0.6  # share of the power of the error that a cause must carry: some rounding always stays
NOISE = 0.05  # loss (26 dB) up to which nobody asks for a cause
AS_GOOD = 1.25  # times the error of the candidate with well chosen ranges that still is as good
SPREAD_UNIT = "of the standard deviation"


def loss(a: Tensors, b: Tensors | None) -> float:
    """Root mean square of the error against the standard deviation, of the worst output; inf where one is missing.

    `spread` asks for the worst channel; this asks for a whole output, which one narrow channel cannot decide.
    """
    found = 0.0
    for name, value in a.items():
        other = None if b is None or name not in b else same_shape(value, b[name])
        if other is None:
            return math.inf
        x, y = np.asarray(value, np.float64), np.asarray(other, np.float64)
        error = math.sqrt(float(((x - y) ** 2).mean())) / (float(x.std()) or float(np.abs(x).max(initial=0)) or 1.0)
        found = max(found, error if math.isfinite(error) else math.inf)
    return found


def outcome(bench: Bench, model: onnx.ModelProto) -> dict[str, Tensor] | None:
    """The outputs of another model of the candidate; None where it does not run."""
    return bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, model)


def fitted_outcome(bench: Bench) -> dict[str, Tensor] | None:
    """The outputs of the candidate with every range as wide as the values in operation are."""
    return bench.once(_fitted_outcome)


def _fitted_outcome(bench: Bench) -> dict[str, Tensor] | None:
    return outcome(bench, fitted(bench))


def spread_with(bench: Bench, model: onnx.ModelProto) -> float:
    """The spread that another model of the candidate leaves; inf where it does not run."""
    made = outcome(bench, model)
    return math.inf if made is None else widest(bench.outputs_a, made)


def mended(bench: Bench, code: str, transform: str, model: onnx.ModelProto) -> Trial:
    """A candidate without the suspected fault: confirmed where most of the error's power is gone, and what is left
    is ordinary, or no more than the same network has with all ranges chosen well.

    Measured on the worst channel or on whole outputs, whichever fell further.
    """
    made = outcome(bench, model)
    a, b = bench.outputs_a, bench.outputs_b
    pairs = [(measure(a, b), math.inf if made is None else measure(a, made), measure) for measure in (widest, loss)]
    before, after, measure = min(pairs, key=lambda pair: pair[1] / pair[0] if pair[0] else math.inf)
    fell = math.isfinite(after) and after**2 <= (1 - MOST) * before**2
    floor = ORDINARY
    if fell and after > floor and bench.b.quantised:
        floor = max(floor, AS_GOOD * measure(a, fitted_outcome(bench) or {}))
    fell = fell and after <= floor
    return Trial(code, transform, (), "", before, after, floor, TrialResult.CONFIRMED if fell else TrialResult.REFUTED)
