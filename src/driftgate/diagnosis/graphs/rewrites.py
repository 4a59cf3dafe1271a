"""Experiments on the differences between two graphs: the candidate computing as the reference does, there only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from driftgate.diagnosis.bench import Bench, Tensor
from driftgate.diagnosis.graphs.differences import Altered, Compute, Difference, Rewritten, find_parting
from driftgate.diagnosis.graphs.folds import read_norm, ways
from driftgate.diagnosis.graphs.grafts import grafted, piece
from driftgate.diagnosis.graphs.kinds import code_of, halves
from driftgate.diagnosis.graphs.twins import Twins, read_twins
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.surgery import attribute, label
from driftgate.diagnosis.trials import Fact, explained, trial
from driftgate.domain.investigations import Explanation

MOST_SUBJECTS = 12
LAST_DIGITS = 1e-6  # relative
NOISES = 4.0  # rounding in every layer against rounding of the inputs alone
MOST_NOISE = 1e-2
MOST_CODES = 8  # that are left out one by one


def find_rewrites(bench: Bench) -> Iterator[Explanation]:
    """All differences of the graphs undone explain the outputs: which kinds of them are needed for it?"""
    told = read_parting(bench)
    theirs = bench.rerun_b if bench.same_feeds else bench.run(bench.b, bench.evidence.feeds_a)
    if told is None or not told[1] or theirs is None:
        return
    twins, kinds = told[0], _by_code(*told)
    before = bench.distance(bench.outputs_a, theirs)
    after = _without(bench, twins, kinds.values())
    floor = _noise_floor(bench, after)
    if after is None or floor is None:
        return
    kept = dict(kinds)
    for code in [*kinds][:MOST_CODES] if len(kinds) > 1 else kinds:
        rest = {name: some for name, some in kept.items() if name != code}
        start = before if not any(rest) else _without(bench, twins, rest.values())
        start = math.inf if start is None else start
        made = trial(code, "computed as in the reference", start, after, floor)
        if made.result.value != "confirmed":
            kept = rest
        elif code:
            facts = (("differences of this kind", float(len(kinds[code])), ""), *_facts(twins, kinds[code]))
            yield from explained(made, subjects=_subjects(twins, kinds[code]), facts=facts)


def read_parting(bench: Bench) -> tuple[Twins, tuple[Difference, ...]] | None:
    """Both models and where they part; None where that cannot be told, because one of them does not run, does not
    give what was recorded or gives what is no number, or the candidate computes with integers."""
    if bench.fixed_point or (bench.recorded_b and bench.same_feeds and not bench.replays_b):
        return None
    twins = read_twins(bench)
    if twins is None or not all(_is_finite(twins.b.value(name)) for _, name in twins.ends):
        return None
    return twins, find_parting(twins, _computing(bench, twins))


def _is_finite(value: Tensor | None) -> bool:
    return value is None or value.dtype.kind != "f" or bool(np.isfinite(value).all())


def _computing(bench: Bench, twins: Twins) -> Compute:
    def compute(name: str, anchors: frozenset[str]) -> Tensor | None:
        made = piece(twins, name, anchors) if twins.runs == 1 else None
        found = made and bench.run(bench.b, bench.evidence.feeds_a, made[0], taps=(made[1],))
        return found.get(made[1]) if made and found else None

    return compute


def _noise_floor(bench: Bench, after: float | None) -> float | None:
    """The residual below which all is noise, not less than `after`; None where that is more than noise.

    Deep networks make more of the last digits than the usual floor allows for: how much, this reference tells when
    it is fed numbers that differ in their last digits.
    """
    if after is None or after <= bench.floor:
        return bench.floor
    if after > MOST_NOISE or bench.rerun_a is None:
        return None
    random = np.random.default_rng(0)
    fed = {
        name: (value * (1 + random.choice((-LAST_DIGITS, LAST_DIGITS), value.shape))).astype(value.dtype)
        if value.dtype.kind == "f"
        else value
        for name, value in bench.evidence.feeds_a.items()
    }
    made = bench.run(bench.a, fed)
    noise = NOISES * bench.distance(bench.rerun_a, made)
    return min(noise, MOST_NOISE) if noise >= after else None


def _by_code(twins: Twins, differences: Sequence[Difference]) -> dict[str, list[Difference]]:
    """Differences by what they are called; those that follow from others under no name, last."""
    found: dict[str, list[Difference]] = {}
    for difference in differences:
        found.setdefault(code_of(twins, difference) or "", []).append(difference)
    if "weights-mismatch" in found and "bn-fold-error" in found:
        # Other weights, folded, are still other weights: only a known way to get a fold wrong speaks against it.
        for one in found.pop("bn-fold-error"):
            known = isinstance(one, Rewritten) and any(_fold_facts(twins, one.nodes_a, one.nodes_b))
            found.setdefault("bn-fold-error" if known else "weights-mismatch", []).append(one)
    return dict(sorted(found.items(), key=lambda item: not item[0]))


def _without(bench: Bench, twins: Twins, kinds: Iterable[Sequence[Difference]]) -> float | None:
    """The residual that is left without some differences; None where that cannot be run."""
    model = grafted(twins, [difference for some in kinds for difference in some])
    made = None if model is None else bench.run(bench.b, bench.evidence.feeds_a, model)
    return None if made is None else bench.distance(bench.outputs_a, made)


def _subjects(twins: Twins, differences: Iterable[Difference]) -> tuple[str, ...]:
    """Names of the nodes of the candidate, then of the reference, the last ones first; of the node that reads, where
    the candidate has none in between."""
    sides = []
    for one in differences:
        a, b = halves(twins, one)
        if isinstance(one, Rewritten) and not b.nodes and one.site.place >= 0:
            b = replace(b, nodes=(twins.b.node(one.site.place),))
        sides.append((a, b))
    names = [label(node) for side in (1, 0) for half in sides for node in reversed(half[side].nodes)]
    return tuple(dict.fromkeys(names))[:MOST_SUBJECTS]


def _facts(twins: Twins, differences: Sequence[Difference]) -> Iterator[Fact]:
    """What can be told of the first difference in numbers."""
    first = differences[0]
    if isinstance(first, Altered):
        nodes = (twins.a.node(first.place_a), twins.b.node(first.place_b))
        for name in first.attributes:
            for whose, node in (("of the reference", nodes[0]), ("of the candidate", nodes[1])):
                value = attribute(node, name)
                if isinstance(value, int | float):
                    yield (f"{name} {whose}", float(value), "")
        pairs = [(nodes[0].input[m], nodes[1].input[n]) for m, n in first.constants]
    else:
        pairs = [(first.a, first.b)]
        yield from _fold_facts(twins, first.nodes_a, first.nodes_b)
    for a, b in pairs:
        x, y = twins.a.value(a), twins.b.value(b)
        if x is not None and y is not None and math.isfinite(error := residual(x, y)):
            yield ("difference there", error, "of the range")


def _fold_facts(twins: Twins, places_a: Sequence[int], places_b: Sequence[int]) -> Iterator[Fact]:
    """How a batch normalisation was folded, where the candidate has one linear operator for the reference's."""
    norms = [found for place in places_a if (found := read_norm(twins.a, place)) is not None]
    for before, norm in norms[:1]:
        kind = twins.a.node(before).op_type
        linear = [twins.b.node(place) for place in places_b if twins.b.node(place).op_type == kind]
        weight = twins.b.constant(linear[0].input[1]) if len(linear) == 1 else None
        if weight is not None:
            bias = twins.b.constant(linear[0].input[2]) if len(linear[0].input) > 2 else None
            yield from ways(norm, weight, bias)
