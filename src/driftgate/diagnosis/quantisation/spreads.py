"""The error of quantised outputs: its unit, what is ordinary, and what a changed candidate leaves of it."""

from __future__ import annotations

import math

import onnx

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.residuals import widest

ORDINARY = 0.15  # spread (16.5 dB) up to which rounding with good ranges may go
SPREAD_UNIT = "of the standard deviation"


def spread_with(bench: Bench, model: onnx.ModelProto) -> float:
    """The spread that another model of the candidate leaves; inf where it does not run."""
    made = bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, model)
    return math.inf if made is None else widest(bench.outputs_a, made)
