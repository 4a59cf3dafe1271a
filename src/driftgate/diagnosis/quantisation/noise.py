"""Rounding that is no fault."""

from __future__ import annotations

from collections.abc import Iterator

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.clipping import CLIPPED
from driftgate.diagnosis.quantisation.quantisers import known_thresholds, magnitudes
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT
from driftgate.diagnosis.trials import Fact, fact
from driftgate.domain.investigations import Explanation


def find_rounding_noise(bench: Bench) -> Iterator[Explanation]:
    """Ranges hold the values, no channel is lost, and the error is what rounding gives."""
    if bench.before_spread > ORDINARY or bench.before == 0:
        return
    facts: tuple[Fact, ...] = (("error", bench.before_spread, SPREAD_UNIT), ("limit", ORDINARY, SPREAD_UNIT))
    worst = 0.0
    for name, (threshold, step) in known_thresholds(bench).items():
        value = bench.values_a.get(name)
        if value is not None and value.dtype.kind == "f" and value.size:
            worst = max(worst, float((magnitudes(value) > threshold + step).mean()))
    if worst > CLIPPED:
        return
    yield from fact("quantization-noise", *facts, ("largest clipped share", worst, ""), confirmed=True)
