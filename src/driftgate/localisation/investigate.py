"""Investigating a link: pair its points, then tell own from inherited error."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from driftgate.domain.investigations import Investigation
from driftgate.errors import UsageError
from driftgate.localisation.measuring import Progress, measure
from driftgate.localisation.missing import pair_missing
from driftgate.localisation.pairing import Match, Side, pair
from driftgate.localisation.sketching import find_orders, is_firm, sketch_forced, sketch_sides
from driftgate.localisation.subject import Subject
from driftgate.localisation.survey import Survey
from driftgate.messages.message import Message, message
from driftgate.numerics.sketches import Sketch
from driftgate.sessions import Tensor, Tensors

ROUNDS = 3
FEW = 4
DEFAULT_MEMORY = 512 * 1024 * 1024
UNTAPPED_SHARE = 8  # of the memory, for outputs of untapped runs
UNOPTIMISED = ("", "disabled", "eager")


def investigate(
    link: str,
    a: Subject,
    b: Subject,
    samples: Sequence[str],
    *,
    outputs: Mapping[str, str],
    memory: int = DEFAULT_MEMORY,
    few: int = FEW,
    untapped: Mapping[str, Tensors] | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Investigation:
    """Find out where the candidate `b` leaves the reference `a`; `outputs` maps a's outputs to b's.

    The first sample pairs the points, all samples measure, the first `few` tell own errors and the effect of
    tapping, for which `untapped` may have the candidate's outputs by sample. Tapped tensors take up to `memory`
    bytes. Raises UsageError without samples and what the sessions raise; a candidate that cannot be cut open has
    no own errors.
    """
    if not samples:
        raise UsageError(message("investigate-no-samples", link=link))
    started, before = clock(), a.count.runs + b.count.runs
    survey = Survey(a, b)
    _pair_points(survey, samples[0], outputs, memory)
    alone = untapped if untapped is not None else _untapped(b, samples[:few], memory // UNTAPPED_SHARE)
    found = measure(survey, samples, few=samples[:few], untapped=alone, memory=memory, progress=progress)
    survey.notes.extend(_notes(survey, found.tap_gap))
    paired_a, paired_b = {match.a for match in survey.matches}, set(survey.by_candidate)
    return Investigation(
        link=link,
        pairs=tuple(survey.pair(match) for match in survey.matches),
        unpaired_a=tuple(a.points[i].tensor for i in sorted(survey.sketches_a) if i not in paired_a),
        unpaired_b=tuple(b.points[i].tensor for i in sorted(survey.sketches_b) if i not in paired_b),
        nodes=found.nodes,
        samples=len(samples),
        tap_gap=found.tap_gap,
        runs=a.count.runs + b.count.runs - before,
        seconds=round(clock() - started, 3),
        notes=tuple(survey.notes),
    )


def _pair_points(survey: Survey, sample: str, outputs: Mapping[str, str], memory: int) -> None:
    """Pair by what is known, by values and structure; then again with the values that the candidate computes
    from the reference's, which are not spoilt by what went wrong before."""
    sketch_sides(survey, sample, memory)
    known = _known(survey.a, survey.b, outputs)
    for turn in range(ROUNDS):
        before = len(survey.matches)
        firm = (match for match in survey.matches if is_firm(match))
        sides = _side(survey.a, survey.sketches_a), _side(survey.b, survey.sketches_b)
        survey.matches = _with_numbers(survey, pair(*sides, (*known, *firm)))
        find_orders(survey, sample, memory)
        if turn == ROUNDS - 1:
            break
        moved = pair_missing(survey, sample, memory)
        if turn and not moved and len(survey.matches) == before:
            break
        if not sketch_forced(survey, sample, memory) and not moved:
            break


def _side(subject: Subject, sketches: Mapping[int, Sketch]) -> Side:
    return Side(subject.points, subject.routes, sketches)


def _with_numbers(survey: Survey, matches: Sequence[Match]) -> tuple[Match, ...]:
    """Only pairs that hold numbers on both sides."""
    return tuple(m for m in matches if m.a in survey.sketches_a and m.b in survey.sketches_b)


def _known(a: Subject, b: Subject, outputs: Mapping[str, str]) -> tuple[Match, ...]:
    """Inputs pair by name, or one to one; outputs as the link pairs them."""
    ins_a, ins_b = [p for p in a.points if p.is_input], [p for p in b.points if p.is_input]
    named = {p.names[0]: p for p in ins_b}
    found = [Match(p.index, named[p.names[0]].index, "structure", 1.0) for p in ins_a if p.names[0] in named]
    if not found and len(ins_a) == len(ins_b) == 1:
        found.append(Match(ins_a[0].index, ins_b[0].index, "structure", 1.0))
    place_a = {name: p.index for p in a.points for name in p.names}
    place_b = {name: p.index for p in b.points for name in p.names}
    taken_a, taken_b = {m.a for m in found}, {m.b for m in found}
    for name, other in outputs.items():
        place, place_other = place_a.get(name), place_b.get(other)
        if place is None or place_other is None or place in taken_a or place_other in taken_b:
            continue
        found.append(Match(place, place_other, "structure", 1.0))
        taken_a.add(place)
        taken_b.add(place_other)
    return tuple(found)


def _untapped(b: Subject, samples: Sequence[str], room: int) -> dict[str, dict[str, Tensor]]:
    """The candidate's outputs as it runs untapped, of the first sample and of more while they fit the room."""
    found: dict[str, dict[str, Tensor]] = {}
    held = 0
    with b.open() as session:
        for sample in samples:
            found[sample] = b.run(session, b.feeds(sample), sample)
            held += sum(output.nbytes for output in found[sample].values())
            if held > room:
                break
    return found


def _notes(survey: Survey, gap: float) -> list[Message]:
    """What the reader should know of the numbers."""
    notes = []
    sides = (survey.a, survey.sketches_a), (survey.b, survey.sketches_b)
    for subject, sketches in sides:
        level = str(subject.artifact.options.get("level", ""))
        if level not in UNOPTIMISED:
            notes.append(message("tapped-level", stage=subject.stage, level=level))
        odd = [subject.points[index].tensor for index in sorted(sketches) if not sketches[index].finite]
        if odd:
            notes.append(message("points-not-finite", stage=subject.stage, count=len(odd), tensor=odd[0]))
        if not any(sketches[index].size for index in sketches if not subject.points[index].is_input):
            notes.append(message("points-none", stage=subject.stage))
    if gap:
        notes.append(message("tap-gap", stage=survey.b.stage, gap=gap))
    if not survey.matches:
        notes.append(message("points-unpaired", reference=survey.a.stage, candidate=survey.b.stage))
    return notes
