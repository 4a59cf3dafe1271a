"""The numbers of a run that its branch's history keeps: scores of stages, errors of links, the board's speed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from driftgate.comparing.boards import SPEEDS, performances
from driftgate.comparing.links import RELATIVE_ERROR, outputs_of, whole_error
from driftgate.comparing.pairing import joined_by_samples
from driftgate.comparing.scores import SCORE
from driftgate.domain.comparisons import RowKind
from driftgate.domain.digest import digest
from driftgate.domain.facts import Facts
from driftgate.domain.history import Level
from driftgate.domain.judgement import Judgement
from driftgate.domain.results import Results
from driftgate.scoring.tasks import HIGHER

LOWER = "lower"
SHOWN_DIGEST = 12


def levels(results: Results) -> Iterator[Level]:
    """Every number of every subject that was judged."""
    judged = {one.key: one for one in results.judgements or ()}
    for facts in results.facts:
        if facts.plan.key in judged:
            samples = digest(tuple(sorted(facts.plan.samples.digests)))
            yield from _scores(facts, judged[facts.plan.key], samples)
            yield from _errors(facts, samples[:SHOWN_DIGEST])
            yield from _speeds(facts)


def _scores(facts: Facts, judgement: Judgement, samples: str) -> Iterator[Level]:
    specs = {spec.name: spec for spec in facts.plan.scores}
    for score in judgement.scores:
        spec = specs.get(score.name)
        if spec is not None and math.isfinite(score.value):
            basis = digest((samples, spec.task, spec.labels, spec.post, spec.params))[:SHOWN_DIGEST]
            key = (score.stage, score.name)
            yield Level(*facts.plan.key, RowKind.SCORE, key, SCORE, spec.better, score.value, basis)


def _errors(facts: Facts, basis: str) -> Iterator[Level]:
    for link in facts.plan.links:
        for output, parts in outputs_of(facts, link.name).items():
            whole = joined_by_samples(parts)
            if whole is None or not len(whole.rows) or whole.rows.broken.any():
                continue
            error = whole_error(whole.rows)
            if math.isfinite(error):
                yield Level(*facts.plan.key, RowKind.LINK, (link.name, output), RELATIVE_ERROR, LOWER, error, basis)


def _speeds(facts: Facts) -> Iterator[Level]:
    for key, told in performances(facts):
        for criterion, read, is_more_better in SPEEDS:
            spread = read(told)
            if spread is not None and spread.is_sound:
                better = HIGHER if is_more_better else LOWER
                yield Level(*facts.plan.key, RowKind.SPEED, key, criterion, better, spread.middle)
