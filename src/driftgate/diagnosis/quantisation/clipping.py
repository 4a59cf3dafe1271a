"""Ranges that cut off real values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from driftgate.diagnosis.bench import INTEGER_FLOOR, Bench
from driftgate.diagnosis.evidence_rules import implausible_feeds
from driftgate.diagnosis.quantisation.quantisers import can_change, known_thresholds, magnitudes, reference_of
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT, spread_with
from driftgate.diagnosis.residuals import spread, widest
from driftgate.diagnosis.surgery import rescaled
from driftgate.diagnosis.trials import explained, trial
from driftgate.domain.investigations import Explanation

CLIPPED = 0.01  # share of values that a calibrated range may cut off

LEAST_KEPT = 16  # numbers that are not cut off


def find_clipping(bench: Bench) -> Iterator[Explanation]:
    """Real values lie beyond the calibrated ranges; ranges that hold them bring the outputs back."""
    if implausible_feeds(bench):
        return
    values = bench.values_a
    cut: dict[str, float] = {}
    for name, (threshold, step) in known_thresholds(bench).items():
        value = values.get(name)
        if value is not None and value.dtype.kind == "f" and value.size:
            cut[name] = float((magnitudes(value) > threshold + step).mean())
    over = {name: share for name, share in cut.items() if share > CLIPPED}
    if not over:
        return
    facts = tuple((f"clipped share of {name}", share, "") for name, share in list(over.items())[:6])
    code = _clipping_code(bench, over)
    after, floor = math.inf, ORDINARY
    if can_change(bench):
        steps = {}
        for tensor in bench.b.quantised:
            value = reference_of(bench, tensor, values)
            if value is not None:
                steps[tensor] = max(float(magnitudes(value).max(initial=0.0)), 1e-12) / max(tensor.high, 1)
        after = spread_with(bench, rescaled(bench.b.whole_model, steps))
    else:
        after = _clipped_outputs(bench)
    tried = trial(code, "ranges of the real values", bench.before_spread, after, floor)
    yield from explained(tried, subjects=tuple(over), facts=facts, unit=SPREAD_UNIT)


def _clipped_outputs(bench: Bench) -> float:
    """The reference's outputs cut off as the candidate's are: what is left."""
    found = {}
    thresholds = known_thresholds(bench)
    for name, a, b in bench.pairs:
        if name in thresholds:
            limit, step = thresholds[name]
            found[name] = np.clip(a, -limit - step, limit)
        else:
            found[name] = a
        del b
    return widest({n: b for n, _, b in bench.pairs}, found)


def _clipping_code(bench: Bench, over: Mapping[str, float]) -> str:
    if set(over) <= set(bench.outputs_a):
        return "saturation"
    return "calibration-not-representative"


def find_output_saturation(bench: Bench) -> Iterator[Explanation]:
    """Without known ranges: the candidate is the reference, cut off at the candidate's own extremes."""
    if bench.evidence.quant is not None or bench.b.quantised:
        return
    for name, a, b in bench.pairs:
        if a.shape != b.shape or a.dtype.kind != "f" or not np.isfinite(np.asarray(b, np.float64)).all():
            continue
        low, high = float(b.min()), float(b.max())
        x = np.asarray(a, np.float64)
        share = float(((x > high) | (x < low)).mean())
        # The limits are read off the candidate: two numbers always fit, so that many more must.
        if share <= CLIPPED / 4 or low == high or (1 - share) * x.size < LEAST_KEPT:
            continue
        tried = trial(
            "saturation",
            "cut off",
            spread(a, b),
            spread(np.asarray(b, np.float64), np.clip(x, low, high)),
            INTEGER_FLOOR / 2,
            target=name,
        )
        if tried.result.value == "confirmed":
            yield from explained(
                tried, subjects=(name,), facts=(("clipped share", share, ""), ("limit", high, "")), unit=SPREAD_UNIT
            )
