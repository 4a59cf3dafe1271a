"""Where the error comes from: one rounding that carries it, or many that add up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import INTEGER_FLOOR, Bench
from driftgate.diagnosis.quantisation.quantisers import reference_names
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT
from driftgate.diagnosis.residuals import spread
from driftgate.diagnosis.surgery import label, unrounded, with_inputs
from driftgate.diagnosis.trials import Fact, explained, fact, trial
from driftgate.diagnosis.weights import paired_weights
from driftgate.domain.investigations import Explanation, Trial, TrialResult
from driftgate.numerics.alignment import same_shape

Tensor = NDArray[Any]

ALMOST_ALL, NEARLY_ALL = 0.5, 0.7  # share of the error that one part must carry to be named, to be it
MANY, MOST_PARTS = 6, 400  # parts from which on an error can accumulate; that are tried one by one
FALL = 3.0  # times that one tensor's error must be that of the next to be named beforehand


def _parts(bench: Bench) -> list[tuple[str, onnx.ModelProto]]:
    """(name, model without that part's rounding): each rounded tensor and each rounded weight."""
    found = [(reference_names(bench, t)[-1], unrounded(bench.b.whole_model, (t,))) for t in bench.b.quantised]
    for _, place, a, b in paired_weights(bench):
        if not np.array_equal(a, b):
            node = bench.b.whole_model.graph.node[place]
            found.append((label(node), with_inputs(bench.b.whole_model, ((place, 1, a),))))
    return found


def _all_undone(bench: Bench) -> onnx.ModelProto:
    model = unrounded(bench.b.whole_model, bench.b.quantised)
    return with_inputs(model, [(place, 1, a) for _, place, a, b in paired_weights(bench) if not np.array_equal(a, b)])


def find_sensitive(bench: Bench) -> Iterator[Explanation]:
    """Each rounding undone alone: does one carry the loss, or do all a little?"""
    ablation = bench.evidence.ablation
    if not bench.b.runs or bench.b.model is None:
        yield from _by_ablation(ablation)
        return
    parts = _parts(bench)
    if not parts or len(parts) > MOST_PARTS:
        return
    before = _loss(bench, bench.outputs_b)
    left: dict[str, float] = {}
    for name, model in parts:
        if not bench.has_time:
            return
        left[name] = _loss(bench, bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, model))
    best = min(left, key=lambda name: left[name])
    share = 1 - (left[best] / before) ** 2 if before else 0.0
    ranked = sorted(ablation.items(), key=lambda item: -item[1])
    named = len(ranked) > 1 and ranked[0][1] >= FALL * ranked[1][1]
    if bench.before_spread <= (INTEGER_FLOOR / 2 if named else INTEGER_FLOOR):
        return
    facts: tuple[Fact, ...] = (
        ("share of the error of this part", share, ""),
        *((f"error with only {name} rounded", value, "") for name, value in ranked[:3]),
    )
    if share >= ALMOST_ALL:
        result = TrialResult.CONFIRMED if share >= NEARLY_ALL else TrialResult.REFUTED
        made = Trial("sensitive-nodes", "not rounded", (), best, before, left[best], before / 2, result)
        yield from explained(made, subjects=(best, *_maker(bench, best)), facts=facts, unit=SPREAD_UNIT)
    if share < NEARLY_ALL and len(parts) >= MANY and bench.before_spread > ORDINARY:
        after = _loss(bench, bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, _all_undone(bench)))
        tried = trial("error-accumulation", "nothing rounded", before, after, INTEGER_FLOOR / 2)
        counts = (("parts", float(len(parts)), ""), ("largest share of one part", max(share, 0.0), ""))
        yield from explained(tried, facts=counts, unit=SPREAD_UNIT)


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


def _maker(bench: Bench, tensor: str) -> tuple[str, ...]:
    for side in (bench.b, bench.a):
        if side.model is not None:
            for node in side.model.graph.node:
                if tensor in node.output:
                    return (label(node),)
    return ()


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
