"""The experiment of feeding both sides the same: what a difference of their inputs explains."""

from __future__ import annotations

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.residuals import widest
from driftgate.diagnosis.trials import trial
from driftgate.domain.investigations import Trial, TrialResult

ROUNDING = 0.15  # spread that a candidate of integers may keep when it is fed as the reference is
UNRELATED, RELATED = 0.5, 0.25  # spreads before and after where the candidate's own noise is not known


def rounding_floor(bench: Bench) -> float:
    """What may be left of a difference of inputs: noise, and of a candidate of integers its rounding."""
    return max(bench.floor, ROUNDING) if bench.fixed_point else bench.floor


def fed_alike(
    bench: Bench, code: str, transform: str, *, target: str = "", least: float = 10 * FLOAT_FLOOR
) -> Trial | None:
    """The candidate's model with the reference's feeds, or the reference's with the candidate's; None where neither
    runs. Where rounding hides how much the inputs do, that is measured on the reference's model alone: `least`."""
    e, floor = bench.evidence, rounding_floor(bench)
    theirs = bench.run(bench.b, e.feeds_a)
    if theirs is None:
        return _without_candidate(bench, code, transform, target)
    after = bench.distance(bench.outputs_a, theirs)
    made = trial(code, transform, bench.start, after, floor, target=target)
    if made.result is TrialResult.CONFIRMED or after > floor or not bench.fixed_point:
        return made
    ours = bench.run(bench.a, e.feeds_b)
    if ours is None or bench.rerun_a is None:
        return made
    before, after = (bench.distance(bench.outputs_a, found) for found in (ours, bench.rerun_a))
    alone = trial(code, f"{transform} of the reference", before, after, FLOAT_FLOOR, target=target)
    return alone if before > least and alone.result is TrialResult.CONFIRMED else made


def _without_candidate(bench: Bench, code: str, transform: str, target: str) -> Trial | None:
    found = bench.run(bench.a, bench.evidence.feeds_b)
    if found is None:
        return None
    after = bench.distance(found, bench.outputs_b)
    made = trial(code, transform, bench.start, after, bench.floor, target=target)
    if made.result is TrialResult.CONFIRMED or bench.before_spread < UNRELATED:
        return made
    related = trial(code, transform, bench.before_spread, widest(found, bench.outputs_b), RELATED, target=target)
    return related if related.result is TrialResult.CONFIRMED else made
