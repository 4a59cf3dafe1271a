"""A sigmoid or softmax that one side lacks, seen from the numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.outputs.channels import rows_along
from driftgate.diagnosis.outputs.undoing import READ_FLOOR, told, undone_trial
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.trials import trial
from driftgate.domain.investigations import Explanation

Array = NDArray[np.float64]

LEAST_NUMBERS = 4  # fewer may be met by chance
_CHOSEN = "sigmoid of some"  # channels that are chosen by what they give: no proof where noise is left


def sigmoid(x: Array) -> Array:
    """The logistic function; does not overflow."""
    return 0.5 * (1 + np.tanh(0.5 * x))


def _softmax(x: Array, axis: int) -> Array:
    raised = np.exp(x - x.max(axis, keepdims=True))
    found: Array = raised / raised.sum(axis, keepdims=True)
    return found


def find_missing_activation(bench: Bench) -> Iterator[Explanation]:
    """Sigmoid or softmax of the candidate's output, or of some of its channels, is the reference's; or reversed."""
    for name, a, b in bench.pairs:
        if a.shape != b.shape or b.dtype.kind != "f" or not np.isfinite(b).all() or not np.isfinite(a).all():
            continue
        if residual(a, b) <= READ_FLOOR or a.size < LEAST_NUMBERS:
            continue
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        before = residual(a, b)
        floor = max(READ_FLOOR, bench.floor)
        guesses: list[tuple[str, Array, Array]] = [("sigmoid", x, sigmoid(y)), ("sigmoid on both", y, sigmoid(x))]
        for axis in range(1, x.ndim):
            guesses += [("softmax", x, _softmax(y, axis)), ("softmax on both", y, _softmax(x, axis))]
        for axis in range(1, x.ndim):
            if 1 < x.shape[axis] <= 1024:
                guesses.append((_CHOSEN, x, _some(x, y, axis)))
        for transform, wanted, made in guesses:
            if transform == _CHOSEN:
                tried = trial("missing-sigmoid", transform, before, residual(wanted, made), floor, target=name)
            else:
                tried = undone_trial("missing-sigmoid", transform, (x, y), made, floor, target=name, wanted=wanted)
            if tried.result.value == "confirmed":
                yield from told(tried, subjects=(name,))
                break


def _some(x: Array, y: Array, axis: int) -> Array:
    """The sigmoid of those channels of y that come closer to x by it."""
    rows_x, rows_y = rows_along(x, axis), rows_along(y, axis)
    bent = sigmoid(rows_y)
    closer = np.abs(bent - rows_x).max(1) < np.abs(rows_y - rows_x).max(1)
    made = np.where(closer[:, None], bent, rows_y)
    shape = (x.shape[axis], *(n for place, n in enumerate(x.shape) if place != axis))
    return np.moveaxis(made.reshape(shape), 0, axis)
