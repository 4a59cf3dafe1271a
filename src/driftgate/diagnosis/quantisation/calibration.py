"""Calibration with other feeds than those of operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.evidence_rules import implausible_feeds
from driftgate.diagnosis.quantisation.quantisers import can_change, fitted, magnitudes, range_of
from driftgate.diagnosis.quantisation.spreads import SPREAD_UNIT, mended
from driftgate.diagnosis.trials import Fact, explained, fact
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]

#: How many times larger or smaller nearly all of the calibration must be. Upwards no lighting or scene explains a
#: factor of three; downwards darkness explains much, so that only a change of units does.
LARGER, SMALLER = 3.0, 1 / 30
NEARLY_ALL = 0.9
CENTRED = 0.05  # share of such values from which on it is
NEGATIVE = -0.25  # of that size: a tensor that goes further below zero is centred


def find_calibration_feeds(bench: Bench) -> Iterator[Explanation]:
    """Calibration feeds are another multiple or normalisation of what is fed in operation."""
    if implausible_feeds(bench):
        return
    for name, factor in other_feeds(bench).items():
        facts: tuple[Fact, ...] = (("calibration against operation", factor, "times"),)
        if not can_change(bench):
            yield from fact("calibration-preprocess-mismatch", *facts, subjects=(name,), confirmed=False)
            continue
        tried = mended(bench, "calibration-preprocess-mismatch", "ranges of what is fed", fitted(bench))
        yield from explained(tried, subjects=(name,), facts=facts, unit=SPREAD_UNIT)


def other_feeds(bench: Bench) -> dict[str, float]:
    """Inputs whose calibration is not what is fed in operation: how many times larger it is, by name.

    Without calibration data, only those whose range has no room for what is fed below zero.
    """
    e = bench.evidence
    fed = e.feeds_b or e.feeds_a
    found = {}
    for name, calib in e.calib.items():
        value = fed.get(name)
        if value is None or calib.dtype.kind not in "fiu" or not calib.size or not value.size:
            continue
        size_c, size_f = (float(np.quantile(magnitudes(v), NEARLY_ALL)) for v in (calib, value))
        if not size_c or not size_f:
            continue
        factor = size_c / size_f
        if not SMALLER < factor < LARGER or _is_shifted(calib, value, size_c, size_f):
            found[name] = factor
    for tensor in bench.b.quantised:
        value = fed.get(tensor.source)
        if tensor.source in e.calib or tensor.low < 0 or value is None or not value.size:
            continue
        size = float(np.quantile(magnitudes(value), NEARLY_ALL))
        if size and float((value < NEGATIVE * size).mean()) > CENTRED:
            found[tensor.source] = range_of(tensor).threshold / size
    return found


def _is_shifted(calib: Tensor, fed: Tensor, size_c: float, size_f: float) -> bool:
    """Whether one is centred and the other has no negative number."""
    centred_c, centred_f = (float(v.min()) < NEGATIVE * size for v, size in ((calib, size_c), (fed, size_f)))
    return (centred_c and float(fed.min()) >= 0) or (centred_f and float(calib.min()) >= 0)
