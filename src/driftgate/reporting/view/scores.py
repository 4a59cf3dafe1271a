"""Scores along the stages: one line where nothing changes, else where they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from driftgate.domain.judgement import Judgement, Score, SegmentLoss
from driftgate.domain.scores import Flip
from driftgate.messages.message import Message, message
from driftgate.reporting.view.bars import score_bars

FLIPS = 10


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """One score over all stages that have it; each part names the stages that share a value, `bars` has one a stage."""

    name: str
    parts: tuple[Message, ...]
    bars: str = ""


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """One line a stage, one column a score; empty where a stage has not that score."""

    names: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]


def score_lines(scores: Sequence[Score]) -> tuple[ScoreLine, ...]:
    """One line a score, in the order of the stages."""
    named: dict[str, list[Score]] = {}
    for score in scores:
        named.setdefault(score.name, []).append(score)
    return tuple(ScoreLine(name, _parts(along), score_bars(along)) for name, along in named.items())


def score_table(scores: Sequence[Score]) -> ScoreTable:
    """All scores of all stages."""
    names = tuple(dict.fromkeys(score.name for score in scores))
    stages = dict.fromkeys(score.stage for score in scores)
    texts = {(score.stage, score.name): _with_interval(score) for score in scores}
    lines = tuple((stage, tuple(texts.get((stage, name), "") for name in names)) for stage in stages)
    return ScoreTable(names, lines)


@dataclass(frozen=True, slots=True)
class FlipLine:
    """An item that the last stage decides in another way than the first; `calls` and `margins` go by stage."""

    sample: str
    item: Message
    calls: tuple[Message, ...]
    margins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Losses:
    """What each segment costs, and the items whose decision changed."""

    segments: tuple[Message, ...]
    stages: tuple[str, ...]
    flips: tuple[FlipLine, ...]
    told: Message | None


def losses(judgement: Judgement) -> Losses:
    """The waterfall of the scores by segment, and the worst flips."""
    segments = tuple(_segment(loss) for loss in judgement.losses if loss.loss or loss.eroded)
    shown = judgement.flips[:FLIPS]
    told = message("flips-told", count=judgement.flip_count, shown=len(shown)) if judgement.flip_count else None
    return Losses(
        segments=segments,
        stages=tuple(stage for stage, _ in shown[0].margins) if shown else (),
        flips=tuple(
            FlipLine(
                flip.sample,
                item_of(flip),
                tuple(map(call_told, flip.calls)),
                tuple(f"{margin:.3g}" for _, margin in flip.margins),
            )
            for flip in shown
        ),
        told=told,
    )


def item_of(flip: Flip) -> Message:
    """What was decided, as people name it."""
    return message(f"flip-{flip.kind}", item=flip.item)


def call_told(call: str) -> Message:
    """How it was decided."""
    return message(f"call-{call}")


def _segment(loss: SegmentLoss) -> Message:
    common = {"score": loss.score, "reference": loss.reference, "candidate": loss.candidate, "loss": f"{loss.loss:.4g}"}
    if loss.eroded is None:
        return message("loss-segment", segment=loss.segment, **common)
    return message(
        "loss-segment-eroded", segment=loss.segment, share=f"{round(100 * loss.eroded, 1) + 0.0:g}", **common
    )


def _with_interval(score: Score) -> str:
    if score.interval is None:
        return score.text
    return f"{score.text} ({score.interval.low:.4g} … {score.interval.high:.4g})"


def _parts(scores: Sequence[Score]) -> tuple[Message, ...]:
    groups = [(text, [score.stage for score in group]) for text, group in groupby(scores, key=lambda score: score.text)]
    if len(groups) == 1 and len(scores) > 1:
        return (message("score-everywhere", score=groups[0][0], stages=len(scores)),)
    return tuple(
        message("score-at", score=text, stage=stages[0])
        if len(stages) == 1
        else message("score-from-to", score=text, first=stages[0], last=stages[-1])
        for text, stages in groups
    )
