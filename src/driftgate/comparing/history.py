"""The history of a branch: continued run by run, and what has slid although no single step was worth a word."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from driftgate.comparing.levels import LOWER
from driftgate.comparing.links import FLOAT_ERROR
from driftgate.domain.comparisons import Erosion, PastRun, RowKind
from driftgate.domain.history import History, Level, Number, Series
from driftgate.domain.judgement import REACHED_BY, Slide, Slides
from driftgate.judgement.criteria import FPS, LATENCY, MEMORY

#: Runs that are kept.
MOST_RUNS = 200
#: Criterion of a speed → which limit holds for it; every other kind has its own.
_OF_SPEED: Mapping[str, Slide] = {LATENCY: Slide.LATENCY_RISE, FPS: Slide.FPS_DROP, MEMORY: Slide.MEMORY_RISE}
_OF_KIND: Mapping[RowKind, Slide] = {RowKind.SCORE: Slide.SCORE_DROP, RowKind.LINK: Slide.ERROR_RISE}
#: The least that an error is taken for: below it there is only the noise of floats.
_FLOORS: Mapping[RowKind, float] = {RowKind.LINK: FLOAT_ERROR}


def continued(history: History, run: PastRun, found: Iterable[Level], most: int = MOST_RUNS) -> History:
    """The history with one more run; the oldest go, and so do numbers that no kept run has."""
    dropped = max(0, len(history.runs) + 1 - most)
    now = {level.name: level for level in found}
    made: list[Series] = []
    for series in history.series:
        level = now.pop(series.name, None)
        value, basis = (math.nan, "") if level is None else (level.value, level.basis)
        values, bases = (*series.values[dropped:], value), (*series.bases[dropped:], basis)
        if any(map(math.isfinite, values)):
            made.append(_series(series, values, bases))
    before = len(history.runs) - dropped
    for level in now.values():
        made.append(_series(level, (*[math.nan] * before, level.value), (*[""] * before, level.basis)))
    return History((*history.runs[dropped:], run), tuple(made))


def before(history: History) -> History:
    """The history without its last run."""
    series = (_series(one, one.values[:-1], one.bases[:-1]) for one in history.series)
    return History(history.runs[:-1], tuple(series))


def _series(like: Number, values: tuple[float, ...], bases: tuple[str, ...]) -> Series:
    return Series(like.subject, like.target, like.kind, like.key, like.criterion, like.better, values, bases)


@dataclass(frozen=True, slots=True)
class Slid:
    """What has slid, the worst first, and over how many runs before this one that could be told."""

    erosions: tuple[Erosion, ...] = ()
    runs: int = 0


def slid(history: History, found: Iterable[Level], slides: Slides) -> dict[tuple[str, str], Slid]:
    """Subject and target → what has slid beyond its limit, held against the last runs of the history, in which this
    one is not."""
    known = {series.name: series for series in history.series}
    limits = dict(slides.limits)
    made: dict[tuple[str, str], Slid] = {}
    for level in found:
        key = (level.subject, level.target)
        so_far = made.setdefault(key, Slid())
        series = known.get(level.name)
        if series is None:
            continue
        past = _comparable(history.runs[-slides.runs :], series, level)
        slide = _OF_SPEED.get(level.criterion) if level.kind is RowKind.SPEED else _OF_KIND.get(level.kind)
        limit = None if slide is None else limits.get(slide)
        one = None if limit is None else _erosion(past, level, limit)
        erosions = so_far.erosions if one is None else (*so_far.erosions, one)
        made[key] = Slid(erosions, max(so_far.runs, len(past)))
    return {key: replace(one, erosions=tuple(sorted(one.erosions, key=_worst_first))) for key, one in made.items()}


def _worst_first(one: Erosion) -> float:
    return -one.drop


def _comparable(runs: Sequence[PastRun], series: Series, level: Level) -> list[tuple[PastRun, float]]:
    """The runs whose number rests on what this one rests on, from old to new."""
    tail = zip(runs, series.values[-len(runs) :], series.bases[-len(runs) :], strict=True) if runs else ()
    return [
        (run, _floored(value, level)) for run, value, basis in tail if math.isfinite(value) and basis == level.basis
    ]


def _floored(value: float, level: Level) -> float:
    floor = _FLOORS.get(level.kind)
    return value if floor is None else max(value, floor)


def _erosion(past: Sequence[tuple[PastRun, float]], level: Level, limit: float) -> Erosion | None:
    if len(past) < REACHED_BY:
        return None
    is_higher = level.better != LOWER
    best = sorted((value for _, value in past), reverse=is_higher)[REACHED_BY - 1]
    drop = _drop(_floored(level.value, level), best, is_higher=is_higher)
    if not drop > limit:
        return None
    first_bad = None
    for run, value in reversed(past):
        if not _drop(value, best, is_higher=is_higher) > limit:
            break
        first_bad = run
    reached = next(run for run, value in reversed(past) if (value >= best if is_higher else value <= best))
    return Erosion(
        level.kind, level.key, level.criterion, level.value, best, reached, drop, limit, first_bad, len(past)
    )


def _drop(value: float, level: float, *, is_higher: bool) -> float:
    """How much worse, as a share of the level; of a level of zero every loss is beyond all limits."""
    worse = level - value if is_higher else value - level
    if level == 0:
        return math.inf if worse > 0 else 0.0
    return worse / abs(level)
