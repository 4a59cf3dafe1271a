"""Node errors: what was measured of one pair, held against what the node's precision explains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driftgate.domain.investigations import NodeError
from driftgate.domain.measurements import Array, Moments
from driftgate.localisation.explained import FLOAT_NOISE, excess, explained
from driftgate.localisation.pairing import Match
from driftgate.localisation.points import VIEWS, Point
from driftgate.localisation.rounding import Rounding
from driftgate.localisation.survey import Survey
from driftgate.localisation.types import HALF_NOISE
from driftgate.localisation.windows import Window
from driftgate.numerics.moments import fold
from driftgate.numerics.sums import RunningSums, mean_square
from driftgate.sessions import Tensor

TOP_CHANNELS = 5
CUT_OFF_STEPS = 4.0  # what lies farther beyond a range than this is cut off; less is rounded
UNIFORM = 12.0  # variance of rounding to a step of 1 is 1/12


@dataclass(slots=True)
class _Held:
    """Of the reference's values how many were looked at and how many the range cuts off; the squares cut off."""

    count: int = 0
    clipped: float = 0.0
    cut_off: float = 0.0


class Gathered:
    """The sums of a window's pairs: of both sides as they run, and by channel of the few samples of which the
    candidate's own error is known."""

    def __init__(self, survey: Survey, window: Window, rounding: Mapping[int, Rounding]) -> None:
        self._survey = survey
        self._window = window
        self._rounding = rounding
        self._total = RunningSums()
        self._own = RunningSums()
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._held: defaultdict[int, _Held] = defaultdict(_Held)
        self._powers: defaultdict[int, list[Array]] = defaultdict(list)

    def add_total(self, match: Match, value_a: Tensor, value_b: Tensor) -> None:
        """One sample's error of a pair as both sides run."""
        other = self._survey.as_reference(match, value_b, value_a)
        if other is not None:
            self._total.add(match.b, value_a, other, axis=None)
            self._shapes[match.b] = value_b.shape

    def add_own(self, reference: Mapping[int, Tensor], own: Mapping[int, Tensor]) -> None:
        """One sample's errors of the nodes alone; what a range cannot hold is counted, not held against it."""
        survey = self._survey
        sources: set[int] = set()
        for match in self._window.matches:
            if match.b not in own or match.a not in reference:
                continue
            value = self._kept(survey.b.points[match.b], reference[match.a])
            other = survey.as_reference(match, own[match.b], value)
            if other is not None:
                self._own.add(match.b, value, other, axis=survey.axis(match, value.shape))
            if match.b in self._rounding:
                sources.update(term.source for term in self._rounding[match.b].terms)
        for index in sources:
            source = survey.by_candidate.get(index)
            if source is not None and source.a in reference:
                given = reference[source.a]
                power = mean_square(given, survey.axis(source, given.shape))
                if not self._powers[index] or len(self._powers[index][0]) == len(power):
                    self._powers[index].append(power)

    def _kept(self, point: Point, value: Tensor) -> Tensor:
        """What of a value the point's range holds; the rest is counted."""
        held = self._held[point.index]
        held.count += value.size
        if point.clip is None or not value.size:
            return value
        low, high = point.clip
        if value.min() >= low and value.max() <= high:
            return value
        slack = CUT_OFF_STEPS * (point.step or 0.0)
        kept: Tensor = np.clip(value, low, high)
        value = np.clip(value, *point.heard)
        held.clipped += float(np.count_nonzero(value < low - slack) + np.count_nonzero(value > high + slack))
        held.cut_off += float(np.square(value - np.clip(value, low, high), dtype=np.float64).sum())
        return kept

    def node_errors(self, region: Mapping[int, tuple[str, ...]]) -> Iterator[NodeError]:
        """What was gathered, one error for each pair that was compared."""
        for match in self._window.matches:
            if match.b in self._total:
                yield self._node_error(match, region[match.b])

    def _node_error(self, match: Match, region: tuple[str, ...]) -> NodeError:
        point = self._survey.b.points[match.b]
        held = self._held[match.b]
        own: Moments | None = None
        worst = 0.0
        ratio: Array = np.zeros(0)
        if match.b in self._own:
            table = self._own.moments(match.b)
            own = fold(table)
            worst, ratio = self._excess(match, table)
        return NodeError(
            pair=self._survey.pair(match),
            op=point.op,
            order=match.b,
            region=region,
            total=self._total.moments(match.b),
            own=own,
            excess=worst,
            top_channels=_worst_of(ratio),
            step=point.step,
            clipped=held.clipped / held.count if held.count else 0.0,
            shape=self._shapes.get(match.b, ()),
            channel_excess=tuple(map(float, ratio)) if len(ratio) > 1 else (),
        )

    def _excess(self, match: Match, table: Moments) -> tuple[float, Array]:
        """How many times the own error is what precision explains: of the tensor, and of each channel."""
        point = self._survey.b.points[match.b]
        held = self._held[match.b]
        rounding = self._rounding.get(match.b)
        sources = {term.source for term in rounding.terms} if rounding is not None else set()
        allowed = explained(
            point,
            power=table.m2_a / np.maximum(table.count, 1.0) + table.mean_a**2,
            rounding=rounding,
            source_power={index: np.mean(self._powers[index], axis=0) for index in sources if self._powers[index]},
            noise=self._noise(point),
            given_noise=sum((step**2 / UNIFORM for step in _given_steps(self._survey, point)), 0.0),
        )
        return excess(table, allowed, held.cut_off / held.count if held.count else 0.0)

    def _noise(self, point: Point) -> float:
        """Of the arithmetic of a point: in half precision where it or what it reads is."""
        kinds = (self._survey.types.get(name) for name in (point.tensor, *point.reads))
        return HALF_NOISE if any(kind is not None and kind[0] == np.float16 for kind in kinds) else FLOAT_NOISE


def _worst_of(ratio: Array) -> tuple[tuple[int, float], ...]:
    """The channels that add most; none of what has but one."""
    order = np.argsort(-ratio, kind="stable")[:TOP_CHANNELS] if len(ratio) > 1 else ()
    return tuple((int(c), float(ratio[c])) for c in order if ratio[c] > 0)


def regions(survey: Survey) -> dict[int, tuple[str, ...]]:
    """For every paired point the candidate's operators between the pairs before it and itself."""
    paired = survey.by_candidate
    points = survey.b.points
    found: dict[int, tuple[str, ...]] = {}
    for index in paired:
        names: list[str] = []
        pending, seen = [index], set()
        while pending:
            at = pending.pop()
            if at in seen or points[at].is_input:
                continue
            seen.add(at)
            if points[at].op not in VIEWS or at == index:
                names.append(points[at].node)
            pending.extend(source for source in points[at].sources if source not in paired)
        found[index] = tuple(names)
    return found


def _given_steps(survey: Survey, point: Point) -> Sequence[float]:
    """Steps of the integers that a point's operator is given: rounding the reference's values to them costs."""
    graph, points = survey.b.graph, survey.b.points
    if graph is None:
        return ()
    read = {*point.reads}
    return [
        step
        for source in point.sources
        for name in points[source].names
        if name in read and (step := _given_step(survey, source, name)) is not None
    ]


def _given_step(survey: Survey, source: int, name: str) -> float | None:
    """The step of integers that are read, or of a reference's integers that stand for what is read unrounded."""
    point, told = survey.b.points[source], None if survey.b.graph is None else survey.b.graph.quantizers.get(name)
    if told is not None:
        return told.step
    match = survey.by_candidate.get(source)
    unrounded = point.step is not None and name == point.names[0]
    return survey.a.points[match.a].step if match is not None and unrounded else None
