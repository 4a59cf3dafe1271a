"""Channels of weights of very different size under one scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.quantisers import is_its_own
from driftgate.diagnosis.quantisation.spreads import SPREAD_UNIT, mended
from driftgate.diagnosis.residuals import lattice
from driftgate.diagnosis.surgery import label, with_inputs
from driftgate.diagnosis.trials import explained
from driftgate.diagnosis.weights import rounded_weights
from driftgate.domain.investigations import Explanation
from driftgate.localisation.rounding import output_axis

Tensor = NDArray[Any]

IMBALANCE = 8.0  # times that the widest channel of weights is wider than the narrowest


def find_imbalance(bench: Bench) -> Iterator[Explanation]:
    """One scale for channels of weights of very different size; one scale a channel brings the outputs back."""
    if not bench.b.runs or not is_its_own(bench):
        return
    changes: list[tuple[int, int, Tensor]] = []
    subjects: list[str] = []
    largest = 0.0
    for _, place, a, b in rounded_weights(bench):
        node = bench.b.whole_model.graph.node[place]
        axis = output_axis(node)
        if a.shape[axis] < 2:
            continue
        sizes = np.abs(np.moveaxis(np.asarray(a, np.float64), axis, 0).reshape(a.shape[axis], -1)).max(1)
        used = sizes[sizes > 0]
        ratio = float(used.max() / used.min()) if used.size else 1.0
        step = lattice(b)
        if ratio < IMBALANCE and step is None:
            continue  # has a scale a channel
        changes.append((place, 1, _rounded(a, sizes, axis, _bits(b, step))))
        if ratio >= IMBALANCE:
            subjects += [node.input[1], label(node)]
            largest = max(largest, ratio)
    if not subjects:
        return
    model = with_inputs(bench.b.whole_model, changes)
    tried = mended(bench, "weight-range-imbalance", "one scale a channel", model)
    yield from explained(
        tried,
        subjects=tuple(dict.fromkeys(subjects)),
        facts=(("widest channel against narrowest", largest, "times"),),
        unit=SPREAD_UNIT,
    )


def _bits(value: Tensor, step: float | None) -> int:
    """Bits of the integers that weights on one step are; 8 where it is not one step."""
    if step is None:
        return 8
    return max(2, min(16, round(math.log2(max(float(np.abs(value).max()) / step, 1.0))) + 1))


def _rounded(value: Tensor, sizes: Tensor, axis: int, bits: int) -> Tensor:
    """Weights rounded with a scale for each channel."""
    around = [1] * value.ndim
    around[axis] = -1
    steps = (np.maximum(sizes, 1e-12) / (2 ** (bits - 1) - 1)).reshape(around)
    found: Tensor = (np.rint(value / steps) * steps).astype(np.float32)
    return found
