"""Ranges that cut off real values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from driftgate.diagnosis.bench import INTEGER_FLOOR, Bench
from driftgate.diagnosis.evidence_rules import implausible_feeds
from driftgate.diagnosis.quantisation.parameters import contradicted
from driftgate.diagnosis.quantisation.quantisers import Range, can_change, fitted, known_name, known_ranges, refitted
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT, mended
from driftgate.diagnosis.residuals import spread, widest
from driftgate.diagnosis.surgery import Quantised
from driftgate.diagnosis.trials import explained, trial
from driftgate.domain.investigations import Explanation, Trial, TrialResult

CALIBRATION = "calibration-not-representative"
CLIPPED = 0.01  # share of values that a calibrated range may cut off

LEAST_KEPT = 16  # numbers that are not cut off


def find_clipping(bench: Bench) -> Iterator[Explanation]:
    """Real values lie beyond the calibrated ranges; ranges that hold them bring the outputs back."""
    if implausible_feeds(bench):
        return
    values = bench.values_a
    others = {known_name(bench, tensor) for tensor in contradicted(bench)}  # not the calibration's fault
    ranges = {name: held for name, held in known_ranges(bench).items() if name not in others}
    cut: dict[str, float] = {}
    for name, held in ranges.items():
        value = values.get(name)
        if value is not None and value.dtype.kind == "f" and value.size:
            cut[name] = held.clipped(value)
    over = {name: share for name, share in cut.items() if share > CLIPPED}
    if not over:
        return
    facts = tuple((f"clipped share of {name}", share, "") for name, share in list(over.items())[:6])
    code = _clipping_code(bench, over)
    tried = _widened(bench, code, cut) if can_change(bench) else _clipped_outputs(bench, code, ranges)
    yield from explained(tried, subjects=tuple(over), facts=facts, unit=SPREAD_UNIT)


def _widened(bench: Bench, code: str, cut: Mapping[str, float]) -> Trial:
    """The candidate with ranges that hold every real value; where that is not enough, with all as calibration on the
    real values would have set them."""

    def wider(tensor: Quantised, step: float) -> float | None:
        return step if cut.get(known_name(bench, tensor)) and step > tensor.step else None

    tried = mended(bench, code, "ranges of the real values", refitted(bench, wider))
    if tried.result is TrialResult.CONFIRMED or code != CALIBRATION:
        return tried
    return mended(bench, code, "all ranges from the real values", fitted(bench))


def _clipped_outputs(bench: Bench, code: str, ranges: Mapping[str, Range]) -> Trial:
    """The reference's outputs cut off as the candidate's are: what is left."""
    found = {}
    for name, a, _ in bench.pairs:
        held = ranges.get(name)
        found[name] = a if held is None else np.clip(a, held.low - held.step, held.high)
    after = widest({name: b for name, _, b in bench.pairs}, found)
    return trial(code, "ranges of the real values", bench.before_spread, after, ORDINARY)


def _clipping_code(bench: Bench, over: Mapping[str, float]) -> str:
    if set(over) <= set(bench.outputs_a):
        return "saturation"
    return CALIBRATION


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
