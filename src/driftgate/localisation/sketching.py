"""Sketching: one pass over all points of both sides, so that equal values are recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import permutations
from typing import Any

from numpy.typing import NDArray

from driftgate.errors import DriftgateError
from driftgate.localisation.pairing import HINT_DB, SIMILAR_DB, Match, longer_axes
from driftgate.localisation.subject import Subject
from driftgate.localisation.survey import Survey
from driftgate.localisation.types import tensor_types
from driftgate.localisation.windows import Window, fitting, guessed_sizes, plan_windows
from driftgate.messages.message import message
from driftgate.numerics.sketches import Sketch, likeness, order_free_likeness, sketch
from driftgate.sessions import Session, Tensor, Tensors

MOST_AXES = 5
SURE = 0.8
ONCE, BOTH = 1.0, 2.0  # how often the tapped numbers are held where one side is run, or both


def sketch_sides(survey: Survey, sample: str, memory: int) -> None:
    """Sketch every point of both sides, and note types and ranks of the candidate's tensors."""
    for subject, sketches in ((survey.a, survey.sketches_a), (survey.b, survey.sketches_b)):
        feeds = subject.feeds(sample)
        indices = [point.index for point in subject.points]
        for window in fitting(indices, guessed_sizes(subject, feeds), memory, held=ONCE):
            with subject.open(window) as session:
                outputs = subject.run(session, feeds, sample)
            for index in window:
                value = subject.numbers(index, outputs, feeds)
                if value is not None:
                    sketches[index] = sketch(value)
                    if subject is survey.b:
                        _note_types(survey, index, value, outputs)
            del outputs


def _note_types(survey: Survey, index: int, value: Tensor, outputs: Tensors) -> None:
    point = survey.b.points[index]
    raw = outputs.get(point.tensor, value)
    floating = raw.dtype if raw.dtype.kind == "f" else value.dtype
    for name, kind in tensor_types(survey.b.graph, point, floating).items():
        survey.types[name] = kind, value.ndim


def is_firm(match: Match) -> bool:
    """Whether a match needs no better look."""
    return match.how != "name" and match.certainty >= SURE


def sketch_forced(survey: Survey, sample: str, memory: int) -> bool:
    """Sketch the candidate's loose points anew, computed from the reference's values; False where it cannot be."""
    if survey.b.parts is None:
        return False
    paired = survey.by_candidate
    loose = [index for index in sorted(survey.sketches_b) if index not in paired]
    weak = [match for match in survey.matches if not is_firm(match)]
    if not loose and not weak:
        return False
    try:
        for window in plan_windows(survey, weak, memory, loose):
            survey.sketches_b.update(sketch_window(survey, window, sample))
    except DriftgateError as error:
        survey.note(message("cut-failed", reason=error.problems[0]))
        return False
    return True


def sketch_window(survey: Survey, window: Window, sample: str) -> dict[int, Sketch]:
    """Sketches of a window's points of the candidate, computed from the reference's values. Raises what the
    backends raise."""
    with ExitStack() as stack:
        session_a = stack.enter_context(survey.a.open(window.reference))
        forced = open_forced(survey, window, stack)
        if forced is None:
            return {}
        feeds = survey.a.feeds(sample)
        outputs = survey.a.run(session_a, feeds, sample)
        given = {i: n for i in window.reference if (n := survey.a.numbers(i, outputs, feeds)) is not None}
        del outputs
        own = survey.b.feeds(sample)
        return {index: sketch(value) for index, value in run_forced(survey, window, forced, given, sample, own).items()}


def open_forced(survey: Survey, window: Window, stack: ExitStack) -> Session | None:
    """The session of a window's cut, closed with the stack. Raises what the backend raises."""
    if window.cut is None or survey.b.parts is None or not window.cut.outputs:
        return None
    return stack.enter_context(survey.b.parts.open(window.cut.model))


def run_forced(
    survey: Survey, window: Window, session: Session, reference: Mapping[int, Tensor], sample: str, own: Tensors
) -> dict[int, Tensor]:
    """The candidate's own values of a window, from the reference's numbers by its points; `own` are its feeds."""
    b = survey.b
    if window.cut is None:
        return {}
    partner = survey.by_candidate
    given = {
        point: survey.as_candidate(partner[point], reference[partner[point].a])
        for _, point, _ in window.cut.feeds
        if partner[point].a in reference
    }
    names = {spec.name for spec in (session.signature.inputs if session.signature is not None else ())}
    feeds: dict[str, NDArray[Any]] = {
        **window.cut.given(given, {name: told[0] for name, told in survey.types.items()}),
        **{name: feed for name, feed in own.items() if name in names},
    }
    outputs = b.run(session, {name: feed for name, feed in feeds.items() if name in names}, sample)
    return {i: n for i in window.candidate if (n := b.numbers(i, outputs, own)) is not None}


def find_orders(survey: Survey, sample: str, memory: int) -> None:
    """For pairs in another axis order, the order: the one in which the values agree best."""
    unclear = {
        m.b: m
        for m in survey.matches
        if (m.a, m.b) not in survey.permuted and _needs_order(survey.sketches_a[m.a], survey.sketches_b[m.b])
    }
    for window in fitting(sorted(unclear), survey.sizes(unclear.values()), memory, held=BOTH):
        values_a = _values(survey.a, [unclear[index].a for index in window], sample)
        values_b = _values(survey.b, window, sample)
        for index in window:
            match = unclear[index]
            if match.a in values_a and index in values_b:
                order = _order(values_a[match.a], values_b[index])
                if order is not None:
                    survey.permuted[match.a, index] = order


def _values(subject: Subject, points: Sequence[int], sample: str) -> dict[int, Tensor]:
    feeds = subject.feeds(sample)
    with subject.open(points) as session:
        outputs = subject.run(session, feeds, sample)
    return {index: n for index in points if (n := subject.numbers(index, outputs, feeds)) is not None}


def _needs_order(a: Sketch, b: Sketch) -> bool:
    """Whether the axes may lie in another order: by their lengths, or as values agree only when sorted."""
    if len(a.shape) > MOST_AXES or sorted(a.shape) != sorted(b.shape):
        return False
    if longer_axes(a) != longer_axes(b):
        return True
    return len(longer_axes(a)) > 1 and likeness(a, b) < HINT_DB and order_free_likeness(a, b) >= SIMILAR_DB


def _order(a: Tensor, b: Tensor) -> tuple[int, ...] | None:
    """The axis order of b that gives a; None where there is none of that shape, or the one they have may be it."""
    reference = sketch(a)
    scored = [
        (likeness(reference, sketch(b.transpose(order))), order)
        for order in permutations(range(b.ndim))
        if b.transpose(order).shape == a.shape
    ]
    best, order = max(scored, default=(0.0, None))
    return None if a.shape == b.shape and best < SIMILAR_DB else order
