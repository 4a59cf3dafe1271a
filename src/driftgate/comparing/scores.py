"""What became of scores: of every stage, and of what each link loses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from driftgate.comparing.changed import other_labels
from driftgate.comparing.pairing import SamplePairs
from driftgate.comparing.side import ROUNDING, beyond, interval, unless_drift
from driftgate.domain.comparisons import Change, Row, RowKind
from driftgate.domain.facts import Facts
from driftgate.domain.plan import ScoreSpec
from driftgate.domain.scores import ScoreRecords
from driftgate.errors import SampleError
from driftgate.judgement.scores import stage_records
from driftgate.messages.message import message
from driftgate.scoring.parameters import as_parameters
from driftgate.scoring.summary import Total, compare, summarise
from driftgate.scoring.tasks import HIGHER, scorer_of

SCORE, LOSS = "score", "score-loss"


def score_rows(base: Facts, head: Facts, pairs: SamplePairs) -> Iterator[Row]:
    """The score of every stage, and what each link loses of it."""
    known = {spec.name: spec for spec in base.plan.scores}
    for spec in head.plan.scores:
        old = known.get(spec.name)
        if old is None or (old.task, old.better) != (spec.task, spec.better):
            continue
        other_way = (old.post, old.params) != (spec.post, spec.params)
        other_truth = other_way or other_labels(spec, old, base, head, pairs)
        scored: dict[str, _Scored] = {}
        for stage in head.plan.stages:
            one = _scored(spec, stage, base, head, pairs)
            if one is not None:
                scored[stage] = one
                yield _score_row(spec, stage, one, base, head, other_truth=other_truth)
        if other_truth or not scorer_of(spec.task, spec.name, spec.better).judged:
            continue
        for link in head.plan.links:
            if link.reference in scored and link.candidate in scored:
                row = _loss_row(spec, link.name, scored[link.reference], scored[link.candidate])
                yield replace(row, change=unless_drift(row.change, base, head, link.reference, link.candidate))


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """One stage's records on the common samples, and what they come to."""

    base: ScoreRecords
    head: ScoreRecords
    base_total: Total
    head_total: Total


def _scored(spec: ScoreSpec, stage: str, base: Facts, head: Facts, pairs: SamplePairs) -> _Scored | None:
    if stage not in base.plan.stages or not pairs.names:
        return None
    old, new = stage_records(base, spec, stage), stage_records(head, spec, stage)
    if old is None or new is None:
        return None
    old, new = pairs.base_records(old), pairs.head_records(new)
    scorer, parameters = scorer_of(spec.task, spec.name, spec.better), as_parameters(spec.params)
    try:
        totals = summarise(scorer, old, parameters), summarise(scorer, new, parameters)
    except SampleError:
        return None
    return None if totals[0] is None or totals[1] is None else _Scored(old, new, totals[0], totals[1])


def _score_row(spec: ScoreSpec, stage: str, one: _Scored, base: Facts, head: Facts, *, other_truth: bool) -> Row:
    low = high = note = None
    scorer, old, new = scorer_of(spec.task, spec.name, spec.better), one.base_total, one.head_total
    worse_by = old.value - new.value if spec.better == HIGHER else new.value - old.value
    key = (stage, spec.name)
    row = Row(RowKind.SCORE, key, Change.UNKNOWN, SCORE, old.value, new.value, old.text, new.text, n=new.n)
    try:
        compared = compare(
            scorer,
            one.base,
            one.head,
            margin=0.0,
            parameters=as_parameters(spec.params),
            totals=(old, new),
        )
    except SampleError as error:
        return replace(row, note=error.problems[0])
    if other_truth:
        change, note = Change.UNKNOWN, message("compare-other-truth", score=spec.name)
    elif compared is None:
        change = Change.SAME if abs(worse_by) <= ROUNDING else Change.WORSE if worse_by > 0 else Change.BETTER
        note = message("compare-no-interval") if change is not Change.SAME else None
    else:
        scale = abs(old.value) or 1.0
        low, high = compared.interval.low * scale, compared.interval.high * scale
        same = abs(worse_by) <= ROUNDING and not compared.lost and not compared.won
        change = Change.SAME if same else beyond(low, high)
    return replace(row, change=unless_drift(change, base, head, stage), low=low, high=high, note=note)


def _loss_row(spec: ScoreSpec, link: str, before: _Scored, after: _Scored) -> Row:
    """What a link loses of a score, in the score's unit: now against then."""
    sign = 1.0 if spec.better == HIGHER else -1.0
    old = sign * (before.base_total.value - after.base_total.value)
    new = sign * (before.head_total.value - after.head_total.value)
    bounds = _loss_interval(spec, before, after, sign)
    if bounds is None:
        change = Change.SAME if abs(new - old) <= ROUNDING else Change.UNKNOWN
        note = None if change is Change.SAME else message("compare-no-interval")
    else:
        change, note = beyond(*bounds), None
    low, high = bounds or (None, None)
    texts = (f"{old + 0.0:.4g}", f"{new + 0.0:.4g}")
    return Row(RowKind.LOSS, (link, spec.name), change, LOSS, old, new, *texts, low, high, after.head_total.n, note)


def _loss_interval(spec: ScoreSpec, before: _Scored, after: _Scored, sign: float) -> tuple[float, float] | None:
    """Where the growth of the loss lies: item by item where the score counts right items, else by the resamples, which
    are the same ones everywhere."""
    scorer, parameters = scorer_of(spec.task, spec.name, spec.better), as_parameters(spec.params)
    if scorer.hits is not None:
        found = (scorer.hits(one, parameters) for one in (before.base, after.base, before.head, after.head))
        hits = [one for one in found if one is not None]
        if len(hits) < 4 or len({len(one) for one in hits}) > 1:
            return None
        old_ref, old_cand, new_ref, new_cand = (np.asarray(one, np.float64) for one in hits)
        growth = (new_ref - new_cand) - (old_ref - old_cand)
        if not growth.any():
            return 0.0, 0.0
        return interval(growth)
    draws = [total.draws for total in (before.base_total, after.base_total, before.head_total, after.head_total)]
    if any(one is None for one in draws):
        return None
    old_ref, old_cand, new_ref, new_cand = (np.asarray(one) for one in draws)
    growth = sign * ((new_ref - new_cand) - (old_ref - old_cand))
    low, high = np.percentile(growth, [2.5, 97.5])
    return float(low), float(high)
