"""Scores of stages from their records, and verdicts on what a link or the board costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Limit, LimitOrigin, Outcome, Score, Verdict
from driftgate.domain.plan import ScoreSpec
from driftgate.domain.scores import ScoreRecords
from driftgate.judgement.criteria import SCORE_DECLARED, SCORE_DROP
from driftgate.messages.message import message
from driftgate.scoring.scorer import SCORERS

ROUNDING = 1e-12


def stage_score(facts: Facts, spec: ScoreSpec, stage: str) -> Score | None:
    """A stage's score, or None where its records do not cover every planned sample."""
    records = _joined([r for r in facts.scores if r.stage == stage and r.score == spec.name])
    if records is None or set(records.samples) != set(facts.plan.samples.ids):
        return None
    total = SCORERS[spec.name].summarise(records)
    return Score(stage, spec.name, total.value, total.n, total.text)


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


def judge_drop(target: str, spec: ScoreSpec, *, reference: Score, candidate: Score, limit: Limit) -> Verdict:
    """Whether the candidate loses more of the reference's score than the limit, relative to the reference."""
    lost = reference.value - candidate.value if spec.better == "higher" else candidate.value - reference.value
    drop = lost / abs(reference.value) if reference.value else (0.0 if lost <= 0 else float("inf"))
    kept = drop <= limit.value + ROUNDING
    return Verdict(
        target=target,
        output=spec.name,
        outcome=Outcome.PASSED if kept else Outcome.FAILED,
        criterion=SCORE_DROP,
        value=drop,
        limit=limit.value,
        origin=limit.origin,
        notes=(message("score-change", reference=reference.text, candidate=candidate.text),),
    )


def _joined(parts: Sequence[ScoreRecords]) -> ScoreRecords | None:
    """One stage's records from several environments, where no sample was scored twice."""
    if not parts:
        return None
    samples = tuple(sample for part in parts for sample in part.samples)
    if len(set(samples)) != len(samples):
        return parts[0]
    return replace(parts[0], samples=samples, values=np.concatenate([part.values for part in parts]))
