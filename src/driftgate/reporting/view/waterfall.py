"""How a score falls from stage to stage, with its intervals, and what each segment costs of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Judgement, Score, SegmentLoss
from driftgate.escaping.characters import one_line, shortened
from driftgate.messages.text import number

STAGE, TEXT = 24, 16  # characters that there is room for


@dataclass(frozen=True, slots=True)
class Level:
    """The score at one stage, as it is written, with the bounds of its interval; `segment` is 0 where the stage is
    of no known chain."""

    stage: str
    segment: int
    value: float
    text: str
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """What one segment costs, and its share of the lost margins, which is empty where none was lost."""

    segment: int
    reference: str
    candidate: str
    loss: str
    eroded: str


@dataclass(frozen=True, slots=True)
class Waterfall:
    """One score along the stages, of which the higher is the better one unless `is_lower_better`."""

    score: str
    is_lower_better: bool
    levels: tuple[Level, ...]
    segments: tuple[SegmentLine, ...]


def waterfalls(judgement: Judgement, facts: Facts | None) -> tuple[Waterfall, ...]:
    """One of each score that at least two stages have as a finite number."""
    segments = {stage.name: stage.segment for stage in facts.plan.chain.stages} if facts is not None else {}
    lower = {spec.name for spec in facts.plan.scores if spec.better == "lower"} if facts is not None else set()
    named: dict[str, list[Level]] = {}
    for score in judgement.scores:
        if math.isfinite(score.value):
            named.setdefault(score.name, []).append(_level(score, segments.get(score.stage, 0)))
    return tuple(
        Waterfall(
            name, name in lower, tuple(levels), tuple(_segment(loss) for loss in judgement.losses if loss.score == name)
        )
        for name, levels in named.items()
        if len(levels) > 1
    )


def _level(score: Score, segment: int) -> Level:
    found = score.interval
    is_known = found is not None and math.isfinite(found.low) and math.isfinite(found.high)
    low, high = (found.low, found.high) if found is not None and is_known else (None, None)
    return Level(_short(score.stage, STAGE), segment, score.value, _short(score.text, TEXT), low, high)


def _segment(loss: SegmentLoss) -> SegmentLine:
    share = "" if loss.eroded is None else f"{round(100 * loss.eroded, 1) + 0.0:g} %"
    return SegmentLine(loss.segment, loss.reference, loss.candidate, number(float(f"{loss.loss:.4g}") + 0.0), share)


def _short(text: str, limit: int) -> str:
    return shortened(one_line(text), limit)
