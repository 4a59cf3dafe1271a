"""Scores along the stages: one line where nothing changes, else where they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from driftgate.domain.judgement import Score
from driftgate.messages.message import Message, message
from driftgate.reporting.view.bars import score_bars


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
    texts = {(score.stage, score.name): score.text for score in scores}
    lines = tuple((stage, tuple(texts.get((stage, name), "") for name in names)) for stage in stages)
    return ScoreTable(names, lines)


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
