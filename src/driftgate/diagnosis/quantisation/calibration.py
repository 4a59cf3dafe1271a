"""Calibration with other feeds than those of operation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.evidence_rules import implausible_feeds
from driftgate.diagnosis.quantisation.quantisers import can_change, magnitudes, reference_of
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT, spread_with
from driftgate.diagnosis.surgery import rescaled
from driftgate.diagnosis.trials import Fact, explained, fact, trial
from driftgate.domain.investigations import Explanation


def find_calibration_feeds(bench: Bench) -> Iterator[Explanation]:
    """Calibration feeds are another multiple or normalisation of what is fed in operation."""
    e = bench.evidence
    if implausible_feeds(bench):
        return
    for name, calib in e.calib.items():
        fed = (e.feeds_b or e.feeds_a).get(name)
        if fed is None or calib.dtype.kind not in "fiu" or not calib.size or not fed.size:
            continue
        bulk_c, bulk_f = (float(np.quantile(magnitudes(v), 0.95)) for v in (calib, fed))
        if not bulk_c or not bulk_f:
            continue
        factor = bulk_c / bulk_f
        centred_c, centred_f = (float(v.min()) < -0.25 * bulk for v, bulk in ((calib, bulk_c), (fed, bulk_f)))
        shifted = (centred_c and fed.min() >= 0) or (centred_f and calib.min() >= 0)
        if 1 / 30 < factor < 30 and not shifted:
            continue
        facts: tuple[Fact, ...] = (("calibration against operation", factor, "times"),)
        if not can_change(bench):
            yield from fact("calibration-preprocess-mismatch", *facts, subjects=(name,), confirmed=False)
            continue
        steps = {}
        for tensor in bench.b.quantised:
            value = reference_of(bench, tensor, bench.values_a)
            if value is not None:
                steps[tensor] = max(float(magnitudes(value).max(initial=0.0)), 1e-12) / max(tensor.high, 1)
        tried = trial(
            "calibration-preprocess-mismatch",
            "ranges of what is fed",
            bench.before_spread,
            spread_with(bench, rescaled(bench.b.whole_model, steps)),
            ORDINARY,
        )
        yield from explained(tried, subjects=(name,), facts=facts, unit=SPREAD_UNIT)
