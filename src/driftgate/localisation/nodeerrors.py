"""Node errors: what was measured of one pair, held against what the node's precision explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from driftgate.domain.investigations import NodeError
from driftgate.domain.measurements import Array, Moments, concatenate
from driftgate.localisation.explained import excess, explained
from driftgate.localisation.pairing import Match
from driftgate.localisation.points import VIEWS, Point
from driftgate.localisation.rounding import Rounding
from driftgate.localisation.survey import Survey
from driftgate.numerics.moments import fold
from driftgate.numerics.single import quick_by_channel
from driftgate.sessions import Tensor

TOP_CHANNELS = 5
ROWS = 16  # rows that are kept before they are folded into one
CUT_OFF_STEPS = 4.0  # what lies farther beyond a range than this is cut off; less is rounded
UNIFORM = 12.0  # variance of rounding to a step of 1 is 1/12


@dataclass(slots=True)
class Gathered:
    """One pair's moments: `total` rows of samples, `own` a table of channels for each of a few samples."""

    total: list[Moments] = field(default_factory=list)
    own: list[Moments] = field(default_factory=list)
    clipped: float = 0.0
    cut_off: float = 0.0
    count: int = 0
    source_power: dict[int, list[Array]] = field(default_factory=dict)

    def add_total(self, survey: Survey, match: Match, value_a: Tensor, value_b: Tensor) -> None:
        """One sample's error as both sides run."""
        row = survey.moments(match, value_a, value_b, axis=None)
        if row is None:
            return
        self.total.append(row)
        if len(self.total) == ROWS:
            self.total = [fold(concatenate(self.total))]

    def add_own(
        self, survey: Survey, match: Match, reference: Mapping[int, Tensor], own: Tensor, rounding: Rounding | None
    ) -> None:
        """One sample's error of the node alone; what its range cannot hold is counted, not held against it."""
        value = self._held(survey.b.points[match.b], reference[match.a])
        table = survey.moments(match, value, own, axis=survey.axis(match, value.shape))
        if table is not None and (not self.own or len(self.own[0]) == len(table)):
            self.own.append(table)
        for index in {term.source for term in rounding.terms} if rounding is not None else ():
            source = survey.by_candidate.get(index)
            if source is not None and source.a in reference:
                given = reference[source.a]
                self.source_power.setdefault(index, []).append(_power(given, survey.axis(source, given.shape)))

    def _held(self, point: Point, value: Tensor) -> Tensor:
        """What of a value the point's range holds; the rest is counted."""
        self.count += value.size
        if point.clip is None or not value.size:
            return value
        low, high = point.clip
        if value.min() >= low and value.max() <= high:
            return value
        slack = CUT_OFF_STEPS * (point.step or 0.0)
        kept: Tensor = np.clip(value, low, high)
        value = np.clip(value, *point.heard)
        self.clipped += float(np.count_nonzero(value < low - slack) + np.count_nonzero(value > high + slack))
        self.cut_off += float(np.square(value - np.clip(value, low, high), dtype=np.float64).sum())
        return kept


def node_error(
    survey: Survey, match: Match, found: Gathered, rounding: Rounding | None, region: tuple[str, ...]
) -> NodeError:
    """What was gathered of a pair, as one node's error."""
    point = survey.b.points[match.b]
    own: Moments | None = None
    worst = 0.0
    channels: tuple[tuple[int, float], ...] = ()
    if found.own:
        table = fold(concatenate(found.own), len(found.own[0]))
        own = fold(table)
        worst, channels = _worst(survey, point, table, found, rounding)
    return NodeError(
        pair=survey.pair(match),
        op=point.op,
        order=match.b,
        region=region,
        total=fold(concatenate(found.total)),
        own=own,
        excess=worst,
        top_channels=channels,
        step=point.step,
        clipped=found.clipped / found.count if found.count else 0.0,
    )


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


def _power(value: Tensor, axis: int | None) -> Array:
    """Mean square by channel."""
    return _mean_square(quick_by_channel(value, value, axis=axis))


def _mean_square(table: Moments) -> Array:
    power: Array = table.m2_a / np.maximum(table.count, 1.0) + table.mean_a**2
    return power


def _worst(
    survey: Survey, point: Point, table: Moments, found: Gathered, rounding: Rounding | None
) -> tuple[float, tuple[tuple[int, float], ...]]:
    """How many times the own error is what precision explains: of the tensor, and of its worst channels."""
    allowed = explained(
        point,
        power=_mean_square(table),
        rounding=rounding,
        source_power={index: np.mean(powers, axis=0) for index, powers in found.source_power.items()},
        given_noise=sum((step**2 / UNIFORM for step in _given_steps(survey, point)), 0.0),
    )
    whole, ratio = excess(table, allowed, found.cut_off / found.count if found.count else 0.0)
    order = np.argsort(-ratio, kind="stable")[:TOP_CHANNELS]
    return whole, tuple((int(c), float(ratio[c])) for c in order if ratio[c] > 0) if len(ratio) > 1 else ()


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
