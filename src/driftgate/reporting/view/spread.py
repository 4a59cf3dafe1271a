"""How the values of a tensor are spread on both sides, beside the range that the candidate can hold."""

from __future__ import annotations

from dataclasses import dataclass

from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Histogram, Investigation
from driftgate.escaping.characters import one_line, shortened
from driftgate.messages.text import number
from driftgate.reporting.view.graph import NAME

MOST = 200  # tensors of a link
MOST_PERCENTILES = 20  # of them those whose percentiles stand in a table


@dataclass(frozen=True, slots=True)
class PercentileLine:
    """A percentile of both sides."""

    percentile: str
    reference: str
    candidate: str


@dataclass(frozen=True, slots=True)
class Spread:
    """The histogram of one tensor: counts of both sides in bins of one width from `low` to `high`, of one of `every`
    values."""

    tensor: str
    low: float
    high: float
    every: int
    reference: tuple[int, ...]
    candidate: tuple[int, ...]
    clip: tuple[float, float] | None
    clip_text: str
    percentiles: tuple[PercentileLine, ...]


def spreads(link: str, facts: Facts | None, most: int) -> tuple[Spread, ...]:
    """The tensors of a link whose values were counted, at most `most`, the worst first."""
    found: tuple[Investigation, ...] = facts.investigations if facts is not None else ()
    return tuple(
        _spread(one, percentiles=place < MOST_PERCENTILES)
        for each in found
        if each.link == link
        for place, one in enumerate(each.histograms[:most])
    )


def _spread(found: Histogram, *, percentiles: bool) -> Spread:
    told = found.percentiles if percentiles else ()
    return Spread(
        tensor=shortened(one_line(found.tensor), NAME),
        low=found.low,
        high=found.high,
        every=found.every,
        reference=found.counts_a,
        candidate=found.counts_b,
        clip=found.clip,
        clip_text="" if found.clip is None else " … ".join(_short(bound) for bound in found.clip),
        percentiles=tuple(PercentileLine(number(q), _short(a), _short(b)) for q, a, b in told),
    )


def _short(value: float) -> str:
    return number(float(f"{value:.4g}"))
