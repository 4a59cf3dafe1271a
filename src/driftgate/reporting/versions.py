"""Versions and gates as pages of GitHub's Markdown: each step, the numbers along versions, each clause."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from driftgate.comparing.trend import Trend
from driftgate.domain.comparisons import Comparison
from driftgate.domain.gates import GateLine
from driftgate.reporting.markdown import github
from driftgate.reporting.sparkline import sparkline
from driftgate.reporting.view.comparison import TrendLine, step_of, trend_line
from driftgate.reporting.view.gate import gate_block


def versions_summary(steps: Sequence[Comparison], found: Sequence[Trend]) -> str:
    """The page of a comparison of two versions or more."""
    made: str = (
        github()
        .get_template("versions.md.j2")
        .render(
            steps=tuple(map(step_of, steps)),
            trends=tuple(trend_lines(found)),
            versions=(steps[0].base.label, *(step.head.label for step in steps)),
        )
    )
    return made


def gate_summary(lines: Sequence[GateLine], policy: str) -> str:
    """The page of a gate: what it comes to, and a row for each clause."""
    made: str = github().get_template("gate.md.j2").render(gate=gate_block(lines, policy))
    return made


def trend_lines(found: Sequence[Trend]) -> Iterator[TrendLine]:
    """The trends with their bars."""
    for one in found:
        finite = [value for value in one.values if math.isfinite(value)]
        bars = sparkline(one.values, low=min(finite), high=max(finite)) if finite else ""
        yield trend_line(one, bars)
