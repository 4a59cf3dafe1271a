"""Where the error comes from: one rounding that carries it, or many that add up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import INTEGER_FLOOR, Bench
from driftgate.diagnosis.quantisation.quantisers import can_change, is_its_own, reference_names
from driftgate.diagnosis.quantisation.spreads import MOST, NOISE, SPREAD_UNIT, fitted_outcome, loss, outcome
from driftgate.diagnosis.residuals import spread
from driftgate.diagnosis.surgery import Quantised, label, unrounded, with_inputs
from driftgate.diagnosis.trials import Fact, explained, fact, trial
from driftgate.diagnosis.weights import rounded_weights
from driftgate.domain.investigations import Explanation, Trial, TrialResult
from driftgate.numerics.alignment import same_shape

Tensor = NDArray[Any]

ALMOST_ALL, NEARLY_ALL = 0.5, 0.7  # share of the error that few parts must carry to be named, to be it
MANY, MOST_PARTS = 6, 400  # parts from which on an error can accumulate; that are tried one by one
FALL = 3.0  # times that one tensor's error must be that of the next to be named beforehand
CLOSER = 12  # of the roundings that alone do most, so many are also undone one at a time
FEW, ONE_IN = 5, 8  # so many parts are few, and no more than one in so many


@dataclass(frozen=True, slots=True)
class _Part:
    """One rounding: of an activation, or of the weights of a node."""

    name: str
    node: str
    tensor: Quantised | None = None
    weight: tuple[int, int, Tensor] | None = None


def _parts(bench: Bench) -> list[_Part]:
    """Each rounded tensor and each rounded weight."""
    found = []
    for tensor in bench.b.quantised:
        name = reference_names(bench, tensor)[-1]
        found.append(_Part(name, _maker(bench, name), tensor=tensor))
    for _, place, a, _ in rounded_weights(bench):
        node = label(bench.b.whole_model.graph.node[place])
        found.append(_Part(node, node, weight=(place, 1, a)))
    return found


def _undone(bench: Bench, parts: Sequence[_Part]) -> onnx.ModelProto:
    """The candidate without the roundings of these parts."""
    model = unrounded(bench.b.whole_model, [part.tensor for part in parts if part.tensor is not None])
    return with_inputs(model, [part.weight for part in parts if part.weight is not None])


def find_sensitive(bench: Bench) -> Iterator[Explanation]:
    """Each rounding made alone, then all but the worst few: do they carry the loss, or do all a little?"""
    ablation = bench.evidence.ablation
    if not bench.b.runs or bench.b.model is None:
        yield from _by_ablation(ablation)
        return
    ranked = sorted(ablation.items(), key=lambda item: -item[1])
    named = len(ranked) > 1 and ranked[0][1] >= FALL * ranked[1][1]
    whole = loss(bench.outputs_a, bench.outputs_b)
    if not is_its_own(bench) or bench.before_spread <= INTEGER_FLOOR / 2 or (whole <= NOISE and not named):
        return
    parts = _parts(bench)
    if not parts or len(parts) > MOST_PARTS:
        return
    before = _loss(bench, bench.outputs_b)
    alone = _alone(bench, parts)
    if alone is None:
        yield from _by_ablation(ablation)
        return
    order = sorted(range(len(parts)), key=lambda index: -alone[index])
    total = sum(value**2 for value in alone) or 1.0
    of_alone = [value**2 / total for value in alone]
    count = 1
    while sum(of_alone[index] for index in order[:count]) < ALMOST_ALL and count < min(FEW, len(parts) // ONE_IN):
        count += 1
    chosen = [parts[index] for index in order[:count]]
    after = _loss(bench, outcome(bench, _undone(bench, chosen)))
    share = _share(after, before)
    facts: tuple[Fact, ...] = (
        ("share of the error of these parts", share, f"{len(chosen)} of {len(parts)}"),
        *((f"share of {_told(parts[index])}", of_alone[index], "") for index in order[:3]),
        *((f"error with only {name} rounded", value, "") for name, value in ranked[:3]),
    )
    carries = sum(of_alone[index] for index in order[:count]) >= ALMOST_ALL
    if carries and share >= ALMOST_ALL:
        result = TrialResult.CONFIRMED if share >= NEARLY_ALL else TrialResult.REFUTED
        nodes = tuple(dict.fromkeys(part.node for part in chosen if part.node))
        params = (("nodes", nodes),)
        made = Trial("sensitive-nodes", "not rounded", params, chosen[0].name, before, after, before / 2, result)
        subjects = tuple(dict.fromkeys(name for part in chosen for name in (part.name, part.node)))
        yield from explained(made, subjects=subjects, facts=facts, unit=SPREAD_UNIT)
    if not (carries and share >= NEARLY_ALL) and len(parts) >= MANY and bench.before_spread > INTEGER_FLOOR:
        nothing = _loss(bench, outcome(bench, _undone(bench, parts)))
        tried = trial("error-accumulation", "nothing rounded", before, nothing, INTEGER_FLOOR / 2)
        if tried.result is TrialResult.CONFIRMED and _is_mended(bench, before):
            tried = replace(tried, result=TrialResult.REFUTED)
        counts = (("parts", float(len(parts)), ""), ("largest share of one part", of_alone[order[0]], ""))
        gains = {index: _loss(bench, outcome(bench, _undone(bench, [parts[index]]))) for index in order[:CLOSER]}
        most = min(gains, key=lambda index: gains[index])
        first = tuple(name for name in (parts[most].name, parts[most].node) if name)
        only = (f"without the rounding of {_told(parts[most])} only", gains[most], SPREAD_UNIT)
        yield from explained(tried, subjects=first, facts=(*counts, only), unit=SPREAD_UNIT)


def _alone(bench: Bench, parts: Sequence[_Part]) -> list[float] | None:
    """The error with only one part rounded, for each; None where there was no time for all."""
    found = []
    for part in parts:
        if not bench.has_time:
            return None
        found.append(_loss(bench, outcome(bench, _undone(bench, [other for other in parts if other is not part]))))
    return found if all(math.isfinite(value) for value in found) else None


def _is_mended(bench: Bench, before: float) -> bool:
    """Whether well chosen ranges take most of the error away, so that it is not the roundings as such."""
    return can_change(bench) and _share(_loss(bench, fitted_outcome(bench)), before) >= MOST


def _share(after: float, before: float) -> float:
    """Of the error's power that is gone."""
    return 1 - (after / before) ** 2 if before else 0.0


def _told(part: _Part) -> str:
    return f"{'weights' if part.tensor is None else 'activation'} {part.name}"


def _loss(bench: Bench, made: Mapping[str, Tensor] | None) -> float:
    """Root mean square of the error against the standard deviation, over all outputs; inf where one is missing."""
    total = 0.0
    for name, a in bench.outputs_a.items():
        other = None if made is None or name not in made else same_shape(a, made[name])
        if other is None:
            return math.inf
        x, y = np.asarray(a, np.float64), np.asarray(other, np.float64)
        total += float(((x - y) ** 2).mean()) / (float(x.var()) or 1.0)
    return math.sqrt(total / max(len(bench.outputs_a), 1)) if math.isfinite(total) else math.inf


def _by_ablation(ablation: Mapping[str, float]) -> Iterator[Explanation]:
    ranked = sorted(ablation.items(), key=lambda item: -item[1])
    total = math.sqrt(sum(value**2 for _, value in ranked))
    if len(ranked) >= 2 and total and ranked[0][1] / total >= math.sqrt(ALMOST_ALL):
        facts = tuple((f"error with only {name} rounded", value, "") for name, value in ranked[:3])
        yield from fact("sensitive-nodes", *facts, subjects=(ranked[0][0],), confirmed=len(ranked) >= 3)


def _maker(bench: Bench, tensor: str) -> str:
    """The node that makes a tensor; nothing for an input."""
    for side in (bench.b, bench.a):
        if tensor in side.makers:
            return label(side.makers[tensor])
    return ""


def find_layer_growth(bench: Bench) -> Iterator[Explanation]:
    """Without models: the error of the layers grows steadily, and no layer has a jump."""
    a, b = bench.evidence.layers_a, bench.evidence.layers_b
    if bench.b.runs:
        return
    errors = [
        spread(a[name], b[name])
        for name, _ in bench.order
        if name in a and name in b and a[name].shape == b[name].shape
    ]
    errors = [error for error in errors if math.isfinite(error) and error > 0]
    if len(errors) < 6:
        return
    jumps = [after / before for before, after in pairwise(errors)]
    if max(jumps) < 4 and errors[-1] > 2 * errors[0]:
        yield from fact(
            "error-accumulation",
            ("layers", float(len(errors)), ""),
            ("first", errors[0], SPREAD_UNIT),
            ("last", errors[-1], SPREAD_UNIT),
            ("largest jump", max(jumps), "times"),
            confirmed=False,
        )
