"""Rounding that is no fault."""

from __future__ import annotations

from collections.abc import Iterator

from driftgate.diagnosis.bench import INTEGER_FLOOR, Bench
from driftgate.diagnosis.quantisation.clipping import CLIPPED
from driftgate.diagnosis.quantisation.quantisers import can_change, is_its_own, known_ranges
from driftgate.diagnosis.quantisation.spreads import NOISE, ORDINARY, SPREAD_UNIT, fitted_outcome, loss
from driftgate.diagnosis.trials import Fact, fact
from driftgate.domain.investigations import Explanation

LOST = 0.5  # spread from which on a channel is not just noisy
LIKE = 1.5  # times the error with well chosen ranges that ordinary rounding may have


def find_rounding_noise(bench: Bench) -> Iterator[Explanation]:
    """No channel is lost, and the error is small, or what rounding with ranges that hold the values gives."""
    if bench.before == 0 or bench.before_spread > LOST or (bench.b.runs and not is_its_own(bench)):
        return
    whole = loss(bench.outputs_a, bench.outputs_b)
    worst = 0.0
    for name, held in known_ranges(bench).items():
        value = bench.values_a.get(name)
        if value is not None and value.dtype.kind == "f" and value.size:
            worst = max(worst, held.clipped(value))
    if whole > INTEGER_FLOOR or (whole > NOISE and (worst > CLIPPED or bench.before_spread > ORDINARY)):
        return
    best = loss(bench.outputs_a, fitted_outcome(bench)) if whole > NOISE and can_change(bench) else whole
    if whole > LIKE * best:
        return
    facts: tuple[Fact, ...] = (
        ("error", bench.before_spread, SPREAD_UNIT),
        ("error of whole outputs", whole, SPREAD_UNIT),
        ("error with well chosen ranges", best, SPREAD_UNIT),
        ("limit", ORDINARY, SPREAD_UNIT),
        ("largest clipped share", worst, ""),
    )
    yield from fact("quantization-noise", *facts, confirmed=True)
