"""Ranges that a few values stretch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.quantisers import can_change, known_thresholds, magnitudes, reference_names
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT, spread_with
from driftgate.diagnosis.surgery import rescaled
from driftgate.diagnosis.trials import explained, fact, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]

STRETCHED = 8.0  # times that a range may be wider than what nearly all values need
BULK = 0.999


def find_outliers(bench: Bench) -> Iterator[Explanation]:
    """A few values, or a constant, stretch a range; the range of nearly all brings the outputs back."""
    calibrated = bench.calibrated() if bench.evidence.calib and bench.a.runs else {}
    stretched: dict[str, float] = {}
    bulks: dict[str, float] = {}
    for name, (threshold, _) in known_thresholds(bench).items():
        calib, real = calibrated.get(name), bench.values_a.get(name)
        value = calib if real is None else real
        if value is None or value.dtype.kind != "f" or not value.size:
            continue
        bulk = _bulk(value)
        if calib is not None and bulk > 0 and _usual(calib) >= STRETCHED * bulk:
            continue  # all of the calibration is like that, not a few values
        if bulk > 0 and threshold / bulk >= STRETCHED:
            stretched[name] = threshold / bulk
            bulks[name] = bulk
    if not stretched:
        return
    facts = tuple(
        (f"range of {name} against nearly all values", ratio, "times") for name, ratio in list(stretched.items())[:6]
    )
    if not can_change(bench):
        yield from fact("outlier-range", *facts, subjects=tuple(stretched), confirmed=False)
        return
    steps = {}
    for tensor in bench.b.quantised:
        known = next((n for n in reference_names(bench, tensor) if n in bulks), None)
        if known is not None:
            steps[tensor] = bulks[known] / max(tensor.high, 1)
    tried = trial(
        "outlier-range",
        "ranges of nearly all values",
        bench.before_spread,
        spread_with(bench, rescaled(bench.b.whole_model, steps)),
        ORDINARY,
    )
    yield from explained(tried, subjects=tuple(stretched), facts=facts, unit=SPREAD_UNIT)


def _bulk(value: Tensor) -> float:
    """The magnitude below a gap in the upper half of the values, or below which 99.9 % of them lie."""
    sorted_ = np.sort(magnitudes(value))
    if not sorted_.size:
        return 0.0
    found = float(np.quantile(sorted_, BULK))
    upper = sorted_[len(sorted_) // 3 :]
    with np.errstate(divide="ignore", invalid="ignore"):
        jumps = np.where(upper[:-1] > 0, upper[1:] / upper[:-1], 1.0)
    place = int(jumps.argmax()) if jumps.size else 0
    if jumps.size and jumps[place] >= STRETCHED and upper[place] > 1e-3 * float(np.median(sorted_) or 1.0):
        found = min(found, float(upper[place]))
    return found


def _usual(value: Tensor) -> float:
    """The magnitude that 90 % of the values stay below."""
    found = magnitudes(value)
    return float(np.quantile(found, 0.9)) if found.size else 0.0
