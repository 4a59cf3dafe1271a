"""Batch normalisation folded into the convolution before it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench, Side
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.surgery import added_constant, attribute, label, with_inputs
from driftgate.diagnosis.trials import explained, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]


def find_wrong_fold(bench: Bench) -> Iterator[Explanation]:
    """Batch normalisations folded anew into the candidate's convolutions."""
    if bench.b.model is None or bench.a.model is None or bench.fixed_point:
        return
    folds = [*_folds(bench.a)]
    if not folds:
        return
    changes: list[tuple[int, int, Tensor]] = []
    wrong: list[str] = []
    taken: set[int] = set()
    for output, op, weight, bias in folds:
        place = _folded_at(bench, output, op, weight, taken)
        if place is None:
            continue
        taken.add(place)
        node = bench.b.model.graph.node[place]
        held = bench.b.value(node.input[1])
        shift = bench.b.value(node.input[2]) if len(node.input) > 2 else None
        if held is None:
            continue
        if residual(weight, held) > FLOAT_FLOOR:
            changes.append((place, 1, weight))
            wrong.append(label(node))
        if shift is not None and residual(bias, shift) > FLOAT_FLOOR:
            changes.append((place, 2, bias))
            wrong.append(label(node))
    model = with_inputs(bench.b.model, changes)
    short = [place for place in taken if len(model.graph.node[place].input) < 3]
    for output, _, _, bias in folds:
        for place in short:
            if model.graph.node[place].output[0] == output:
                model.graph.node[place].input.append(added_constant(model, bias))
                wrong.append(label(model.graph.node[place]))
    if not wrong:
        return
    made = bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, model)
    if made is None:
        return
    tried = trial("bn-fold-error", "folded anew", bench.start, bench.distance(bench.outputs_a, made), bench.floor)
    yield from explained(
        tried,
        subjects=tuple(dict.fromkeys(wrong)),
        facts=(("convolutions folded wrongly", float(len(set(wrong))), ""),),
    )


def _folds(side: Side) -> Iterator[tuple[str, str, Tensor, Tensor]]:
    """(output, operator, weights, bias) of every convolution with its batch normalisation."""
    model = side.whole_model
    maker = {name: node for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        if node.op_type != "BatchNormalization":
            continue
        conv = maker.get(node.input[0])
        if conv is None or conv.op_type not in ("Conv", "ConvTranspose", "Gemm"):
            continue
        gamma, beta, mean, variance = (side.value(name) for name in node.input[1:5])
        weight = side.value(conv.input[1])
        bias = side.value(conv.input[2]) if len(conv.input) > 2 else np.zeros(1, np.float32)
        if gamma is None or beta is None or mean is None or variance is None or weight is None or bias is None:
            continue
        factor = gamma.astype(np.float64) / np.sqrt(
            variance.astype(np.float64) + float(attribute(node, "epsilon", 1e-5))
        )
        axis = 0 if conv.op_type == "Conv" else 1
        if conv.op_type == "Gemm":
            axis = 0 if attribute(conv, "transB", 0) else 1
        around = [1] * weight.ndim
        around[axis] = -1
        if weight.shape[axis] != factor.size:
            continue
        folded = (weight * factor.reshape(around)).astype(np.float32)
        yield node.output[0], conv.op_type, folded, ((bias - mean) * factor + beta).astype(np.float32)


def _folded_at(bench: Bench, output: str, op: str, weight: Tensor, taken: set[int]) -> int | None:
    """The candidate's convolution that stands for it: by what it makes, else the nearest weights."""
    model = bench.b.whole_model
    fits = [
        place
        for place, node in enumerate(model.graph.node)
        if node.op_type == op
        and place not in taken
        and (held := bench.b.value(node.input[1])) is not None
        and held.shape == weight.shape
    ]
    named = [place for place in fits if output in model.graph.node[place].output]
    if named:
        return named[0]

    def gap(place: int) -> float:
        held = bench.b.value(model.graph.node[place].input[1])
        return math.inf if held is None else float(np.abs(held - weight).mean())

    return min(fits, key=gap, default=None)
