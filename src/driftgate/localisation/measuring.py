"""Measuring: for every window one pass over the samples, in which both sides and the cut candidate run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from driftgate.domain.investigations import NodeError
from driftgate.errors import DriftgateError
from driftgate.localisation.nodeerrors import Gathered, regions
from driftgate.localisation.rounding import Rounding, read_rounding
from driftgate.localisation.sketching import open_forced, run_forced
from driftgate.localisation.survey import Survey
from driftgate.localisation.windows import Window, plan_windows
from driftgate.messages.message import message
from driftgate.numerics.moments import by_channel
from driftgate.sessions import Session, Tensor, Tensors

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """Node errors in the candidate's order, and the largest |tapped - untapped| of its outputs."""

    nodes: tuple[NodeError, ...]
    tap_gap: float


def measure(
    survey: Survey,
    samples: Sequence[str],
    *,
    few: Sequence[str],
    untapped: Mapping[str, Tensors],
    memory: int,
    progress: Progress | None,
) -> Measured:
    """Total errors over `samples`; own errors and the tap gap over those of them that are among the `few`."""
    b = survey.b
    pairs = [m for m in survey.matches if not (b.points[m.b].is_input and len(b.points[m.b].names) == 1)]
    rounding: Mapping[int, Rounding] = {}
    if b.model is not None and b.graph is not None and b.constants is not None:
        rounding = read_rounding(b.model, b.graph, b.points, b.constants)
    planned = plan_windows(survey, pairs, memory)
    region = regions(survey)
    nodes: list[NodeError] = []
    gap = 0.0
    for number, window in enumerate(planned):
        found = Gathered(survey, window, rounding)
        with ExitStack() as stack:
            sides = _Sides.opened(survey, window, stack)
            for sample in samples:
                alone = untapped.get(sample, {}) if number == 0 else {}
                gap = max(gap, _measure_sample(survey, window, sides, sample, found, sample in few, alone))
        nodes += found.node_errors(region)
        if progress is not None:
            progress(len(nodes), len(pairs))
    return Measured(tuple(sorted(nodes, key=lambda node: node.order)), gap)


@dataclass(slots=True)
class _Sides:
    """The sessions of one window; `forced` is None where the candidate cannot be cut open."""

    a: Session
    b: Session
    forced: Session | None

    @classmethod
    def opened(cls, survey: Survey, window: Window, stack: ExitStack) -> _Sides:
        a = stack.enter_context(survey.a.open(window.reference))
        b = stack.enter_context(survey.b.open(window.candidate))
        try:
            forced = open_forced(survey, window, stack)
        except DriftgateError as error:
            survey.note(message("cut-failed", reason=error.problems[0]))
            forced = None
        return cls(a, b, forced)


def _measure_sample(
    survey: Survey,
    window: Window,
    sides: _Sides,
    sample: str,
    found: Gathered,
    is_one_of_few: bool,
    alone: Tensors,
) -> float:
    """Run both sides, then the candidate on the reference's numbers; nothing of it outlives the call but sums."""
    reference = _numbers_of_reference(survey, window, sides.a, sample)
    feeds = survey.b.feeds(sample)
    gap = _add_totals(survey, window, sides.b, sample, feeds, found, reference, alone)
    if sides.forced is None or not is_one_of_few:
        return gap
    try:
        own = run_forced(survey, window, sides.forced, reference, sample, feeds)
    except DriftgateError as error:
        survey.note(message("cut-failed", reason=error.problems[0]))
        sides.forced = None
        return gap
    found.add_own(reference, own)
    return gap


def _numbers_of_reference(survey: Survey, window: Window, session: Session, sample: str) -> dict[int, Tensor]:
    feeds = survey.a.feeds(sample)
    outputs = survey.a.run(session, feeds, sample)
    return {i: n for i in window.reference if (n := survey.a.numbers(i, outputs, feeds)) is not None}


def _add_totals(
    survey: Survey,
    window: Window,
    session: Session,
    sample: str,
    feeds: Tensors,
    found: Gathered,
    reference: Mapping[int, Tensor],
    alone: Tensors,
) -> float:
    outputs = survey.b.run(session, feeds, sample)
    for match in window.matches:
        value = survey.b.numbers(match.b, outputs, feeds)
        if value is not None and match.a in reference:
            found.add_total(match, reference[match.a], value)
    return _gap(outputs, alone)


def _gap(tapped: Tensors, alone: Tensors) -> float:
    """The largest difference of an output; infinite where it is not finite in one run only."""
    largest = 0.0
    for name, value in alone.items():
        other = tapped.get(name)
        if other is None or other.shape != value.shape or value.dtype.kind not in "fiub" or not value.size:
            continue
        row = by_channel(value, other, axis=None)
        odd = bool((row.nonfinite_a != row.nonfinite_b).any())
        largest = max(largest, float("inf") if odd else float(np.max(row.max_abs)))
    return largest
