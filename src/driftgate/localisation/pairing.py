"""Pairing: which point of one graph means the same as which point of the other."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driftgate.domain.measurements import Array
from driftgate.localisation.points import VIEWS, Point, Route, consumers, roots
from driftgate.numerics.sketches import EQUAL_DB as EQUAL_SKETCHES_DB
from driftgate.numerics.sketches import Sketch, likeness, order_free_likeness

EQUAL_DB = 55.0  # alike enough to be the same number whatever the graphs look like
CLOSE_DB, SIMILAR_DB, HINT_DB = 35.0, 15.0, 6.0  # what quantised tensors reach, well and less well
MARGIN_DB = 8.0  # by this the best is better than the second
PERMUTED_DB = 80.0  # sorted values of one tensor in two axis orders
LEAST_SIZE = 8  # smaller tensors agree by chance
_TAIL = re.compile(r"_output_\d+$")
_SCOPE = re.compile(r"[./:]+")


@dataclass(frozen=True, slots=True)
class Side:
    """One graph: its points in order, their routes, and a sketch of each point that holds numbers."""

    points: Sequence[Point]
    routes: Sequence[Sequence[Route]]
    sketches: Mapping[int, Sketch]


@dataclass(frozen=True, slots=True)
class Match:
    """Two points that mean the same; `certainty` 0 … 1, `permuted` if only the sorted values agree, `again` for
    a view in `b` that repeats the number of a point whose partner `a` is."""

    a: int
    b: int
    how: str  # structure, value or name
    certainty: float
    permuted: bool = False
    again: bool = False


def pair(a: Side, b: Side, known: Iterable[Match] = ()) -> tuple[Match, ...]:
    """All matches that follow from values, structure and, as a hint only, names, in the order of `a`.

    `known` matches stay. What cannot be told apart stays unpaired.
    """
    found = _Found(a, b, known)
    found.by_value()
    progress = True
    while progress:
        progress = found.by_structure() or found.by_likeness() or found.by_surroundings() or found.by_name()
    found.views()
    return tuple(sorted((*found.matches.values(), *found.repeated()), key=lambda match: (match.a, match.again)))


class _Found:
    def __init__(self, a: Side, b: Side, known: Iterable[Match]) -> None:
        self._a, self._b = a, b
        self.matches: dict[int, Match] = {match.a: match for match in known if not match.again}
        self._taken: set[int] = {match.b for match in self.matches.values()}
        self._readers_a, self._readers_b = consumers(a.points), consumers(b.points)
        self._tables: dict[int, Array] = {}
        self._name_b = {name: point.index for point in b.points for name in point.names}

    def by_value(self) -> None:
        """Pairs whose values agree as only the same tensor's do; equal ones are told apart by their surroundings."""
        edges = []
        sizes_b = _by_size(self._b)
        for size, members_a in _by_size(self._a).items():
            members_b = sizes_b.get(size, [])
            if size < LEAST_SIZE or not members_b:
                continue
            table = self._table(size, members_a, members_b)
            for row, column in np.argwhere(table >= EQUAL_DB):
                edges.append((members_a[row], members_b[column], float(table[row, column])))
        self._accept(edges, "value")

    def by_structure(self) -> bool:
        """Pairs that are computed in the same way from points that are paired already."""
        partner = {match.a: match.b for match in self.matches.values()}
        keys: dict[tuple[object, ...], list[int]] = {}
        for point in self._b.points:
            if point.index not in self._taken and point.sources and point.op not in VIEWS:
                for route in self._b.routes[point.index]:
                    keys.setdefault(_key(route.tokens, route.sources), []).append(point.index)
        edges: dict[tuple[int, int], float] = {}
        for point in self._a.points:
            if point.index in self.matches or not point.sources or point.op in VIEWS:
                continue
            for route in self._a.routes[point.index]:
                if not all(source in partner for source in route.sources):
                    continue
                key = _key(route.tokens, tuple(partner[source] for source in route.sources))
                for other in keys.get(key, ()):
                    found = self._alike(point.index, other)
                    if found is not None:
                        edges[point.index, other] = found
        return self._accept([(x, y, found) for (x, y), found in edges.items()], "structure")

    def by_name(self) -> bool:
        """One pair that names suggest: the earliest, of one operator and size, with nothing against it."""
        for point in self._a.points:
            if point.index in self.matches or point.is_input or point.op in VIEWS:
                continue
            for name in point.names:
                other = self._name_b.get(name)
                if other is None or other in self._taken or self._b.points[other].op != point.op:
                    continue
                if self._alike(point.index, other) is None:
                    continue
                self._add(Match(point.index, other, "name", 0.5))
                return True
        return False

    def by_likeness(self) -> bool:
        """Pairs of which each is by far the most alike that the other has, paired ones counted: lossy values."""
        found = []
        sizes_b = _by_size(self._b)
        for size, members_a in _by_size(self._a).items():
            members_b = sizes_b.get(size, [])
            loose_a = [n for n, x in enumerate(members_a) if x not in self.matches]
            loose_b = [n for n, y in enumerate(members_b) if y not in self._taken]
            if size < LEAST_SIZE or not loose_a or not loose_b:
                continue
            table = self._table(size, members_a, members_b)
            for row in loose_a:
                column = int(np.argmax(table[row]))
                best = table[row, column]
                others = max(
                    np.delete(table[row], column).max(initial=0), np.delete(table[:, column], row).max(initial=0)
                )
                if column in loose_b and best >= SIMILAR_DB and best >= others + MARGIN_DB:
                    found.append((members_a[row], members_b[column], float(best)))
        return self._accept(found, "value")

    def _table(self, size: int, members_a: Sequence[int], members_b: Sequence[int]) -> Array:
        """How alike the points of one size are, computed once."""
        if size not in self._tables:
            sketches = [self._a.sketches[x] for x in members_a], [self._b.sketches[y] for y in members_b]
            self._tables[size] = _likeness_table(*sketches)
        return self._tables[size]

    def by_surroundings(self) -> bool:
        """Pairs of one size between the same paired points and what reads them, where there is only one such."""
        partner = {match.a: match.b for match in self.matches.values()}
        between: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
        for side, readers, paired, known in (
            (self._a, self._readers_a, set(self.matches), partner),
            (self._b, self._readers_b, self._taken, {y: y for y in self._taken}),
        ):
            for index, before in _nearest(side, paired).items():
                key = (
                    frozenset(known[source] for source in before),
                    self._after(side, readers, index),
                    side.sketches[index].size,
                )
                between.setdefault(key, ([], []))[side is self._b].append(index)
        found = [(xs[0], ys[0], 0.0) for xs, ys in between.values() if len(xs) == len(ys) == 1]
        return self._accept(found, "structure", certainty=0.7)

    def repeated(self) -> list[Match]:
        """Views that quantise a paired number once more, in the same order of its elements."""
        partner = {match.b: match for match in self.matches.values()}
        found: list[Match] = []
        for point in self._b.points:
            before = partner.get(point.sources[0]) if point.op in VIEWS and point.sources else None
            if before is None or point.index in self._taken or point.index not in self._b.sketches:
                continue
            if point.op != "Transpose" and point.step is not None:
                match = Match(before.a, point.index, "structure", before.certainty, before.permuted, again=True)
                found.append(match)
                partner[point.index] = match
        return found

    def views(self) -> None:
        """Pairs of views of paired points that have one shape: what they were quantised to may differ."""
        partner = {match.a: match.b for match in self.matches.values()}
        root_a, root_b = roots(self._a.points), roots(self._b.points)
        loose: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for point in self._b.points:
            if root_b[point.index] != point.index and point.index in self._b.sketches:
                loose.setdefault((root_b[point.index], self._b.sketches[point.index].shape), []).append(point.index)
        edges = [
            (point.index, other, found)
            for point in self._a.points
            if root_a[point.index] in partner and point.index in self._a.sketches and root_a[point.index] != point.index
            for other in loose.get((partner[root_a[point.index]], self._a.sketches[point.index].shape), ())
            if (found := self._alike(point.index, other)) is not None
        ]
        self._accept(edges, "structure")

    def _alike(self, x: int, y: int) -> float | None:
        """How alike two points are in dB; None where they cannot be the same: other sizes, or no numbers on
        one side only."""
        sketch_x, sketch_y = self._a.sketches.get(x), self._b.sketches.get(y)
        if sketch_x is None or sketch_y is None:
            return 0.0 if sketch_x is None and sketch_y is None else None
        if sketch_x.size != sketch_y.size:
            return None
        return alike(sketch_x, sketch_y)

    def _accept(self, edges: Sequence[tuple[int, int, float]], how: str, certainty: float | None = None) -> bool:
        """Take the best edges first; one that another edge of the same point equals is less sure."""
        scored = [(self._score(x, y, decibel), x, y, decibel) for x, y, decibel in edges]
        scored.sort(key=lambda edge: (-edge[0], edge[1], edge[2]))
        best: dict[tuple[str, int], list[float]] = {}
        for score, x, y, _ in scored:
            best.setdefault(("a", x), []).append(score)
            best.setdefault(("b", y), []).append(score)
        changed = False
        for score, x, y, decibel in scored:
            if x in self.matches or y in self._taken:
                continue
            unsure = best["a", x].count(score) > 1 or best["b", y].count(score) > 1
            permuted = how == "value" and self._a.sketches[x].shape != self._b.sketches[y].shape
            sure = (1.0 if decibel >= EQUAL_DB else 0.9 if decibel >= SIMILAR_DB else 0.8) - (0.4 if unsure else 0.0)
            self._add(Match(x, y, how, round(sure, 2) if certainty is None else certainty, permuted))
            changed = True
        return changed

    def _score(self, x: int, y: int, decibel: float) -> float:
        """Values speak loudest where they speak at all, then what comes next in the graph, then names."""
        point, other = self._a.points[x], self._b.points[y]
        loud = next(
            (
                weight
                for limit, weight in ((EQUAL_DB, 8.0), (CLOSE_DB, 6.0), (SIMILAR_DB, 4.0), (HINT_DB, 1.0))
                if decibel >= limit
            ),
            0.0,
        )
        fine = min(max(decibel, 0.0), EQUAL_DB) / (4 * EQUAL_DB)
        after = self._after(self._a, self._readers_a, x) == self._after(self._b, self._readers_b, y)
        sketch_x, sketch_y = self._a.sketches.get(x), self._b.sketches.get(y)
        shape = sketch_x is not None and sketch_y is not None and sketch_x.shape == sketch_y.shape
        named = bool(set(point.names) & set(other.names))
        near = not named and _bare(point.names[0]) == _bare(other.names[0])
        inputs = [self.matches[source].b for source in point.sources if source in self.matches] == list(other.sources)
        alone = loud + fine + 1.5 * after + 0.7 * shape + 1.0 * named + 0.6 * near + 0.5 * (point.op == other.op)
        return alone + 0.5 * inputs

    @staticmethod
    def _after(side: Side, readers: Sequence[Sequence[int]], index: int) -> tuple[str, ...]:
        """The first tokens of everything that reads a point."""
        tokens = [side.routes[reader][0].tokens[:1] for reader in readers[index] if side.routes[reader]]
        return tuple(sorted({token for route in tokens for token in route}))

    def _add(self, match: Match) -> None:
        self.matches[match.a] = match
        self._taken.add(match.b)


def _key(tokens: tuple[str, ...], sources: tuple[int, ...]) -> tuple[object, ...]:
    return (tokens, tuple(sorted(sources)))


def _nearest(side: Side, paired: Collection[int]) -> dict[int, frozenset[int]]:
    """For every point that is not paired, no view, and holds numbers: the paired points right before it."""
    before: dict[int, frozenset[int]] = {}
    for point in side.points:
        found: set[int] = set()
        for source in point.sources:
            found |= {source} if source in paired else before[source]
        before[point.index] = frozenset(found)
    return {
        index: found
        for index, found in before.items()
        if index not in paired and found and index in side.sketches and side.points[index].op not in VIEWS
    }


def _by_size(side: Side) -> dict[int, list[int]]:
    sizes: dict[int, list[int]] = {}
    for index, sketch in side.sketches.items():
        moving = sketch.invariants[0] != sketch.invariants[1]
        if sketch.finite and moving and side.points[index].op not in VIEWS:
            sizes.setdefault(sketch.size, []).append(index)
    return sizes


def _likeness_table(a: Sequence[Sketch], b: Sequence[Sketch]) -> Array:
    """`alike` of each with each."""
    straight = _decibels([sketch.projection for sketch in a], [sketch.projection for sketch in b])
    free = _decibels([sketch.invariants for sketch in a], [sketch.invariants for sketch in b])
    ordered = np.array([len(longer_axes(sketch)) > 1 for sketch in a])[:, None]
    resembling = (straight < HINT_DB) & (free >= PERMUTED_DB) & ordered
    return np.where(resembling, free - (PERMUTED_DB - EQUAL_DB), straight)


def _decibels(a: Sequence[Array], b: Sequence[Array]) -> Array:
    """Signal to noise ratios of each with each; what is above 120 dB is about right."""
    rows, columns = np.stack(a), np.stack(b)
    signal = (rows * rows).sum(1)[:, None]
    noise = np.maximum(signal + (columns * columns).sum(1) - 2 * rows @ columns.T, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        made: Array = np.where(signal > 0, 10.0 * np.log10(signal / noise), -EQUAL_SKETCHES_DB)
    return np.clip(np.nan_to_num(made, nan=EQUAL_SKETCHES_DB), -EQUAL_SKETCHES_DB, EQUAL_SKETCHES_DB)


def alike(x: Sketch, y: Sketch) -> float:
    """How alike two tensors of one size are in dB: in one order by the projections, else by what no order of the
    axes changes."""
    straight = likeness(x, y)
    if straight >= HINT_DB or len(longer_axes(x)) < 2:
        return straight
    free = order_free_likeness(x, y)
    return free - (PERMUTED_DB - EQUAL_DB) if free >= PERMUTED_DB else straight


def longer_axes(found: Sketch) -> list[int]:
    """The lengths of the axes along which there is an order."""
    return [length for length in found.shape if length != 1]


def _bare(name: str) -> str:
    """A tensor's or module's name without what exporters add: `/layer1/conv1/Conv_output_0` is `layer1.conv1`."""
    parts = [part for part in _SCOPE.split(_TAIL.sub("", name)) if part]
    if _TAIL.search(name) and len(parts) > 1:
        parts = parts[:-1]
    return ".".join(parts)
