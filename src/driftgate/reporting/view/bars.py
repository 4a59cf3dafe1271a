"""How an error runs over the samples, and a score along the stages, as lines of bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Score
from driftgate.domain.measurements import Measurement, Role
from driftgate.messages.message import Message, message
from driftgate.reporting.sparkline import UNKNOWN, grouped, sparkline

WIDTH = 60  # bars


@dataclass(frozen=True, slots=True)
class Bars:
    """A line of bars and what they are; `legend` explains those that are no bars."""

    text: str
    title: Message
    legend: Message | None


def error_bars(target: str, output: str | None, facts: Facts | None) -> Bars | None:
    """The largest error of every sample on one link, in sample order; of another output where that one has none.

    None without measurements, or with one sample only.
    """
    on_link = [m for m in facts.measurements if m.link == target and m.role is Role.OUTPUT] if facts else []
    measured = next((m for m in on_link if m.output == output), on_link[0] if on_link else None)
    if facts is None or measured is None or len(facts.plan.samples.ids) < 2:
        return None
    errors = _errors(measured, facts.plan.samples.ids)
    values, size = grouped(errors, WIDTH)
    highest = max((value for value in errors if math.isfinite(value)), default=0.0)
    text = sparkline(values, low=0.0, high=highest)
    count = len(errors)
    title = (
        message("bars-each", output=measured.output, count=count, highest=highest)
        if size == 1
        else message("bars-groups", output=measured.output, count=count, highest=highest, size=size)
    )
    return Bars(text, title, message("bars-unknown") if UNKNOWN in text else None)


def score_bars(scores: Sequence[Score]) -> str:
    """One score along the stages, between its lowest and its highest; empty where it is the same at all of them."""
    values = [score.value for score in scores]
    finite = [value for value in values if math.isfinite(value)]
    if len(set(values)) < 2 or not finite:
        return ""
    return sparkline(values, low=min(finite), high=max(finite))


def _errors(measured: Measurement, samples: Sequence[str]) -> tuple[float, ...]:
    """NaN where a sample was not measured, or has numbers that could not be compared."""
    rows = measured.rows
    lost = (rows.count == 0) | (rows.broken > 0) | (rows.nonfinite_a > rows.infinite_same)
    errors = {
        sample: math.nan if gone else float(error)
        for sample, error, gone in zip(measured.samples, rows.max_abs, lost, strict=True)
    }
    return tuple(errors.get(sample, math.nan) for sample in samples)
