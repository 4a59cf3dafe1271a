"""Missing operators: a candidate that goes on with a number to which the reference does something first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from driftgate.errors import DriftgateError
from driftgate.localisation.pairing import MARGIN_DB, SIMILAR_DB, Match, Side, alike
from driftgate.localisation.points import VIEWS, consumers
from driftgate.localisation.sketching import SURE, sketch_window
from driftgate.localisation.survey import Survey
from driftgate.localisation.windows import plan_windows
from driftgate.messages.message import message
from driftgate.numerics.sketches import Sketch

DEEPEST = 3  # operators that can be missing in one place
NEAR = 4  # steps within which a reader's partner is looked for


@dataclass(frozen=True, slots=True)
class Suspicion:
    """That a point of the candidate stands where the reference's point `instead.a` should be. `readers` of it
    then compute what `expected` points of the reference are."""

    held: Match
    instead: Match
    readers: tuple[int, ...]
    expected: tuple[int, ...]

    def proven(self, a: Side, before: Mapping[int, Sketch], after: Mapping[int, Sketch]) -> bool:
        """Whether a reader comes out right, and did not before; the sketches are those of the readers."""
        return any(
            self._best(a, after.get(reader)) >= max(SIMILAR_DB, self._best(a, before.get(reader)) + MARGIN_DB)
            for reader in self.readers
        )

    def _best(self, a: Side, made: Sketch | None) -> float:
        known = [a.sketches[index] for index in self.expected]
        return max(
            (alike(sketch, made) for sketch in known if made is not None and sketch.size == made.size), default=0.0
        )


def pair_missing(survey: Survey, sample: str, memory: int) -> bool:
    """Pair points anew behind which the candidate lacks operators; whether there were any.

    Where the candidate goes on from a point as if from a later number of the reference, giving it that number
    makes what reads it come out right.
    """
    moved = False
    for depth in range(1, DEEPEST + 1):
        sides = (
            Side(survey.a.points, survey.a.routes, survey.sketches_a),
            Side(survey.b.points, survey.b.routes, survey.sketches_b),
        )
        found = suspicions(*sides, survey.matches, depth)
        if not found:
            continue
        held, readers = survey.matches, [reader for suspicion in found for reader in suspicion.readers]
        try:
            before = _sketches(survey, readers, sample, memory)
            survey.matches = _replaced(held, found)
            after = _sketches(survey, readers, sample, memory)
        except DriftgateError as error:
            survey.matches = held
            survey.note(message("cut-failed", reason=error.problems[0]))
            return moved
        proven = [suspicion for suspicion in found if suspicion.proven(sides[0], before, after)]
        survey.matches = _replaced(held, proven)
        moved = moved or bool(proven)
    return moved


def _sketches(survey: Survey, points: Sequence[int], sample: str, memory: int) -> dict[int, Sketch]:
    """Of the candidate's points, as computed from the reference's values right before them."""
    found: dict[int, Sketch] = {}
    for window in plan_windows(survey, (), memory, points):
        found.update(sketch_window(survey, window, sample))
    return found


def _replaced(matches: Sequence[Match], found: Sequence[Suspicion]) -> tuple[Match, ...]:
    """The matches with those that are suspected instead of those that are held, views of them too."""
    instead = {suspicion.held.a: suspicion.instead for suspicion in found}
    made = (
        replace(instead[match.a], b=match.b, again=match.again) if match.a in instead else match for match in matches
    )
    return tuple(made)


def suspicions(a: Side, b: Side, matches: Sequence[Match], depth: int) -> tuple[Suspicion, ...]:
    """Where `depth` operators, each the only reader of the one before, may be missing behind a pair.

    No two have a reader in common, so that they can be tried together.
    """
    readers_a, readers_b = consumers(a.points), consumers(b.points)
    paired = {match.a for match in matches}
    partner = {match.b: match.a for match in matches}
    claimed: set[int] = set()
    found: list[Suspicion] = []
    for match in matches:
        chain = _chain(a, readers_a, match.a, paired, depth)
        readers = [reader for reader in readers_b[match.b] if reader in b.sketches]
        if chain is None or match.again or not readers or claimed & set(readers):
            continue
        near = set(_following(readers_a, chain[-1]))
        expected = {partner[reader] for reader in readers if reader in partner} | near
        instead = Match(chain[-1], match.b, "structure", SURE)
        told = tuple(index for index in sorted(expected) if index in a.sketches)
        claimed.update(readers)
        found.append(Suspicion(match, instead, tuple(readers), told))
    return tuple(found)


def _chain(
    side: Side, readers: Sequence[Sequence[int]], start: int, paired: Iterable[int], depth: int
) -> list[int] | None:
    """So many loose points one behind the other, of one size, each with one source and one reader before it."""
    taken, chain, last = set(paired), [], start
    for _ in range(depth):
        if len(readers[last]) != 1 or start not in side.sketches:
            return None
        (reader,) = readers[last]
        point = side.points[reader]
        sketch = side.sketches.get(reader)
        if reader in taken or len(point.sources) != 1 or point.op in VIEWS or sketch is None:
            return None
        if sketch.size != side.sketches[start].size:
            return None
        chain.append(reader)
        last = reader
    return chain


def _following(readers: Sequence[Sequence[int]], start: int) -> Iterator[int]:
    """What is computed from a point within a few steps."""
    layer = {start}
    for _ in range(NEAR):
        layer = {reader for index in layer for reader in readers[index]}
        yield from layer
