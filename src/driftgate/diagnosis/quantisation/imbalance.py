"""Channels of weights of very different size under one scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT, spread_with
from driftgate.diagnosis.residuals import lattice
from driftgate.diagnosis.surgery import attribute, label, with_inputs
from driftgate.diagnosis.trials import explained, trial
from driftgate.diagnosis.weights import paired_weights
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]

IMBALANCE = 8.0  # times that the widest channel of weights is wider than the narrowest


def find_imbalance(bench: Bench) -> Iterator[Explanation]:
    """One scale for channels of weights of very different size; one scale a channel brings the outputs back."""
    if not bench.b.runs:
        return
    changes: list[tuple[int, int, Tensor]] = []
    subjects: list[str] = []
    largest = 0.0
    for _, place, a, b in paired_weights(bench):
        node = bench.b.whole_model.graph.node[place]
        axis = (
            0
            if node.op_type == "Conv" or (node.op_type == "Gemm" and attribute(node, "transB", 0))
            else a.ndim - 1
            if node.op_type != "ConvTranspose"
            else 1
        )
        sizes = np.abs(np.moveaxis(np.asarray(a, np.float64), axis, 0).reshape(a.shape[axis], -1)).max(1)
        ratio = float(sizes.max() / sizes.min()) if sizes.min() > 0 else math.inf
        if np.array_equal(a, b) or ratio < IMBALANCE or a.shape[axis] < 2:
            continue
        step = lattice(b)
        bits = 8 if step is None else max(2, min(16, round(math.log2(max(float(np.abs(b).max()) / step, 1.0))) + 1))
        around = [1] * a.ndim
        around[axis] = -1
        steps = (np.maximum(sizes, 1e-12) / (2 ** (bits - 1) - 1)).reshape(around)
        changes.append((place, 1, (np.rint(a / steps) * steps).astype(np.float32)))
        subjects += [node.input[1], label(node)]
        largest = max(largest, ratio if math.isfinite(ratio) else 1e12)
    if not changes:
        return
    after = spread_with(bench, with_inputs(bench.b.whole_model, changes))
    tried = trial("weight-range-imbalance", "one scale a channel", bench.before_spread, after, ORDINARY)
    yield from explained(
        tried,
        subjects=tuple(dict.fromkeys(subjects)),
        facts=(("widest channel against narrowest", largest, "times"),),
        unit=SPREAD_UNIT,
    )
