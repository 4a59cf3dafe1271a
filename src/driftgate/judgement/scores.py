"""Scores of stages from their records, and verdicts on what a link or the board costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Certainty, Limit, LimitOrigin, Outcome, Score, Uncertainty, Verdict
from driftgate.domain.plan import ScoreSpec
from driftgate.domain.scores import Comparison, ScoreRecords, concatenate
from driftgate.judgement.criteria import SCORE_DECLARED, SCORE_DROP
from driftgate.messages.message import Message, message
from driftgate.scoring.parameters import as_parameters
from driftgate.scoring.summary import Total, compare, summarise
from driftgate.scoring.tasks import scorer_of

ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A stage's score with the records it was folded from."""

    score: Score
    records: ScoreRecords
    total: Total


def stage_score(facts: Facts, spec: ScoreSpec, stage: str) -> Scored | None:
    """A stage's score, or None where its records do not cover every planned sample."""
    records = stage_records(facts, spec, stage)
    if records is None:
        return None
    total = summarise(scorer_of(spec.task, spec.name, spec.better), records, as_parameters(spec.params))
    if total is None:
        return None
    return Scored(Score(stage, spec.name, total.value, total.n, total.text, total.interval), records, total)


def stage_records(facts: Facts, spec: ScoreSpec, stage: str) -> ScoreRecords | None:
    """What a scorer noted of every planned sample of a stage; None where a sample is missing."""
    # Version 0.1 recorded by score, not by task.
    records = _joined([r for r in facts.scores if r.stage == stage and r.score in (spec.task, spec.name)])
    if records is None or set(records.samples) != set(facts.plan.samples.ids):
        return None
    return records


def declared_value(written: str) -> tuple[float, float]:
    """A declared score as a number and by how much rounding may have raised it.

    `356/360` is exact; `0.9889` and `98.89%` may have been rounded up in their last digit.
    """
    if "/" in written:
        return float(Fraction(written)), 0.0
    percent = written.endswith("%")
    digits = written.rstrip("%").strip()
    decimals = len(digits.partition(".")[2])
    unit = 0.01 if percent else 1.0
    return float(digits) * unit, 0.5 * 10.0**-decimals * unit


def judge_declared(slug: str, spec: ScoreSpec, score: Score) -> Verdict:
    """Whether a stage reaches the declared score; a written number counts as rounded."""
    value, slack = declared_value(spec.declared or "")
    reached = score.value >= value - slack - ROUNDING if spec.better == "higher" else score.value <= value + slack
    return Verdict(
        target=slug,
        output=spec.name,
        outcome=Outcome.PASSED if reached else Outcome.FAILED,
        criterion=SCORE_DECLARED,
        value=score.value,
        limit=value,
        origin=LimitOrigin.CONFIG,
    )


def judge_drop(
    target: str,
    spec: ScoreSpec,
    *,
    reference: Scored,
    candidate: Scored,
    limit: Limit,
    uncertainty: Uncertainty,
    tolerance: float | None = None,
) -> Verdict:
    """Whether the candidate loses more of the reference's score than the limit, relative to the reference.

    The loss itself decides; whether the samples suffice to tell it from the limit is its certainty, and the
    policy decides whether a loss within the noise fails. `tolerance` sets aside decisions that lie as close.
    """
    scorer = scorer_of(spec.task, spec.name, spec.better)
    compared = compare(
        scorer,
        reference.records,
        candidate.records,
        margin=limit.value,
        parameters=as_parameters(spec.params),
        totals=(reference.total, candidate.total),
        tolerance=tolerance,
    )
    before, after = reference.score, candidate.score
    notes = [message("score-change", reference=before.text, candidate=after.text)]
    if compared is None:
        lost = before.value - after.value if spec.better == "higher" else after.value - before.value
        drop = lost / abs(before.value) if before.value else (0.0 if lost <= 0 else float("inf"))
        certainty = None
    else:
        drop = compared.drop
        certainty = Certainty.CERTAIN if compared.certain else Certainty.WITHIN_NOISE
        notes.append(_certainty(compared))
    kept = drop <= limit.value + ROUNDING
    unsure = certainty is Certainty.WITHIN_NOISE and uncertainty is Uncertainty.FAIL
    return Verdict(
        target=target,
        output=spec.name,
        outcome=Outcome.PASSED if kept and not unsure else Outcome.FAILED,
        criterion=SCORE_DROP,
        value=drop,
        limit=limit.value,
        origin=limit.origin,
        reason=message("score-unsure", n=compared.n) if kept and unsure and compared is not None else None,
        notes=tuple(notes),
        certainty=certainty,
    )


def _certainty(compared: Comparison) -> Message:
    if compared.margin == 0 and compared.lost == compared.won == 0:
        return message("score-unchanged", n=compared.n)
    low, high = (f"{100 * value:.3g}" for value in (compared.interval.low, compared.interval.high))
    if compared.certain:
        return message("score-certain", n=compared.n, low=low, high=high)
    if compared.needed is None:
        return message("score-noise", n=compared.n, low=low, high=high)
    return message("score-noise-needs", n=compared.n, low=low, high=high, needed=compared.needed)


def _joined(parts: Sequence[ScoreRecords]) -> ScoreRecords | None:
    """One stage's records from several environments, where no sample was scored twice."""
    if not parts:
        return None
    samples = tuple(sample for part in parts for sample in part.samples)
    if len(set(samples)) != len(samples):
        return parts[0]
    return concatenate(parts)
