"""Rows of a list of results: their order, their number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.outputs.channels import rows_along
from driftgate.diagnosis.outputs.undoing import READ_FLOOR
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.trials import explained, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]
Array = NDArray[np.float64]

_CHOOSING = frozenset({"TopK", "NonMaxSuppression"})
LIST_RANK, LEAST_ROWS = 3, 4  # of a list of results


def _row_axis(a: Tensor, b: Tensor) -> int | None:
    """The axis along which two lists of results lie."""
    if a.ndim != b.ndim or not a.ndim:
        return None
    unequal = [axis for axis in range(a.ndim) if a.shape[axis] != b.shape[axis]]
    if len(unequal) == 1:
        return unequal[0]
    return None if unequal else next((axis for axis in range(a.ndim) if a.shape[axis] > 1), None)


def find_row_order(bench: Bench) -> Iterator[Explanation]:
    """Rows of equal score changed places, or tied rows were cut differently."""
    pairs = [(name, a, b) for name, a, b in bench.pairs if a.shape == b.shape and a.size and a.ndim <= LIST_RANK]
    if len(pairs) != len(bench.outputs_a) or bench.before == 0:
        return
    axis = _row_axis(pairs[0][1], pairs[0][2])
    if axis is None or _are_samples(bench, pairs[0][1], axis):
        return
    if any(a.ndim <= axis or a.shape[axis] != pairs[0][1].shape[axis] for _, a, _ in pairs):
        return
    count = pairs[0][1].shape[axis]
    rows_a = np.concatenate([rows_along(a, axis) for _, a, _ in pairs], 1)
    rows_b = np.concatenate([rows_along(b, axis) for _, _, b in pairs], 1)
    span = np.maximum(np.ptp(rows_a, 0), 1e-12)
    equal = np.abs(rows_a - rows_b) / span <= FLOAT_FLOOR
    moved = ~equal.all(1)
    falling = [c for c in range(rows_a.shape[1]) if equal[:, c].all() and (np.diff(rows_a[:, c]) <= 0).all()]
    if not moved.any() or not falling or count < LEAST_ROWS:
        return
    for column in falling:
        scores = rows_a[:, column]
        groups = np.abs(scores[:, None] - scores[None, :]) <= FLOAT_FLOOR * max(float(np.ptp(scores)), 1e-12)
        tied = groups.sum(1) > 1
        at_cut = groups[:, -1]
        if not np.ptp(scores) or 2 * at_cut.sum() > count:
            continue  # a number that is everywhere the same orders nothing
        if not (tied | at_cut)[moved].all():
            continue
        left = [
            i for i in np.flatnonzero(moved) if not at_cut[i] and not _elsewhere(rows_a[i], rows_b[groups[i]], span)
        ]
        after = 0.0 if not left else math.inf
        made = trial("topk-order", "tied rows", bench.before, after, FLOAT_FLOOR)
        yield from explained(made, facts=(("rows moved", float(moved.sum()), ""), ("rows tied", float(tied.sum()), "")))
        return


def _elsewhere(row: Array, rows: Array, span: Array) -> bool:
    return bool(((np.abs(rows - row) / span).max(1) <= FLOAT_FLOOR).any())


def find_row_cap(bench: Bench) -> Iterator[Explanation]:
    """One side has more results: those that the other has are among them."""
    if _no_model_chooses(bench):
        return
    for name, a, b in bench.pairs:
        axis = _row_axis(a, b)
        if axis is None or a.ndim > LIST_RANK or a.dtype.kind not in "fiu" or _are_samples(bench, a, axis):
            continue
        rows_a, rows_b = _without_filler(rows_along(a, axis)), _without_filler(rows_along(b, axis))
        if len(rows_a) == len(rows_b) or min(len(rows_a), len(rows_b)) == 0 or rows_a.shape[1] != rows_b.shape[1]:
            continue
        few, many = (rows_a, rows_b) if len(rows_a) < len(rows_b) else (rows_b, rows_a)
        span = np.maximum(np.ptp(many, 0), 1e-12)
        gaps = np.array([(np.abs(many - row) / span).max(1).min() for row in few])
        falling = (np.diff(many, axis=0) <= 0).all(0) & (np.ptp(many, 0) > 0)
        if not falling.any() and residual(few, many[: len(few)]) > READ_FLOOR:
            continue
        made = trial("nms-topk-cap", "cut to fewer rows", bench.before, float(gaps.max()), READ_FLOOR, target=name)
        if made.result.value == "confirmed":
            counts = (
                ("rows of the reference", float(len(rows_a)), ""),
                ("rows of the candidate", float(len(rows_b)), ""),
            )
            yield from explained(made, subjects=(name,), facts=counts)
            return


def _no_model_chooses(bench: Bench) -> bool:
    """Whether the numbers are what the models give, and no operator of them chooses results."""
    if not (bench.replays_a and bench.replays_b):
        return False
    nodes = [node for side in (bench.a, bench.b) for node in side.whole_model.graph.node]
    return not any(node.op_type in _CHOOSING or node.domain not in ("", "ai.onnx") for node in nodes)


def _are_samples(bench: Bench, a: Tensor, axis: int) -> bool:
    """Whether the rows are one for every sample that was fed: fewer of them are samples that are missing."""
    return axis == 0 and any(fed.ndim and fed.shape[0] == a.shape[0] > 1 for fed in bench.evidence.feeds_a.values())


def _without_filler(rows: Array) -> Array:
    """Without the rows at the end that are all 0, all -1 or not finite."""
    filler = ~np.isfinite(rows).all(1) | (rows == 0).all(1) | (rows == -1).all(1)
    real = np.flatnonzero(~filler)
    return rows[: int(real[-1]) + 1 if real.size else 0]
