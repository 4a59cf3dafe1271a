"""Decoding of boxes that one side lacks, seen from the numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.outputs.activation import sigmoid
from driftgate.diagnosis.outputs.undoing import READ_FLOOR
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.trials import explained, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]
Array = NDArray[np.float64]

EXACT = 5e-4
_FORMS: Mapping[str, Callable[[Array], Array]] = {
    "linear": lambda y: y,
    "sigmoid": sigmoid,
    "exp": lambda y: np.exp(np.clip(y, -60, 60)),
    "sigmoid squared": lambda y: sigmoid(y) ** 2,
}


def find_missing_decode(bench: Bench) -> Iterator[Explanation]:
    """Each channel of the reference is a form of the candidate's, plus a grid: factor · form + x, y, 1."""
    for name, a, b in bench.pairs:
        if a.size != b.size or b.dtype.kind != "f" or not np.isfinite(b).all() or not np.isfinite(a).all():
            continue
        if residual(a, b) <= READ_FLOOR:
            continue
        for x, y, columns, rows in _as_grids(a, b):
            found = _decoded(x, y, columns, rows)
            if found is None:
                continue
            after, forms, gridded = found
            if set(forms) <= {"linear", "sigmoid"} and not gridded:
                continue
            made = trial(
                "missing-decode", "+".join(dict.fromkeys(forms)), residual(a, b), after, READ_FLOOR, target=name
            )
            if made.result.value == "confirmed":
                facts = (
                    ("channels with a grid", float(gridded), ""),
                    ("channels with exp", float(forms.count("exp")), ""),
                )
                yield from explained(made, subjects=(name,), facts=facts)
                return


def _as_grids(a: Tensor, b: Tensor) -> Iterator[tuple[Array, Array, int, int]]:
    """Both as (channels, cells), with the grid's columns and rows; cells of a square where nothing tells."""
    tensors = {4: b, 5: b}.get(b.ndim), {4: a, 5: a}.get(a.ndim)
    grid = next((t for t in tensors if t is not None), None)
    options: list[tuple[int, int, int]] = []
    if grid is not None and grid.shape[0] == 1 and grid.ndim == 4:
        options = [(grid.shape[1], grid.shape[2], grid.shape[3]), (grid.shape[3], grid.shape[1], grid.shape[2])]
    elif b.ndim == 3 and b.shape[0] == 1:
        for channels, cells in ((b.shape[1], b.shape[2]), (b.shape[2], b.shape[1])):
            side = math.isqrt(cells)
            options += [
                (channels, rows, cells // rows) for rows in {side, *range(1, min(cells, 200))} if cells % rows == 0
            ]
    for channels, rows, columns in options:
        cells = rows * columns
        if cells < 6 or not 1 <= channels <= 512:
            continue
        for y in _channels_first(b, channels, cells):
            for x in _channels_first(a, channels, cells):
                yield x, y, columns, rows


def _channels_first(value: Tensor, channels: int, cells: int) -> Iterator[Array]:
    flat = np.asarray(value, np.float64)
    shape = [n for n in value.shape if n != 1]
    if shape and shape[0] == channels:
        yield flat.reshape(channels, cells)
    if shape and shape[-1] == channels:
        yield flat.reshape(cells, channels).T


def _decoded(x: Array, y: Array, columns: int, rows: int) -> tuple[float, list[str], int] | None:
    grid_x = np.tile(np.arange(columns, dtype=np.float64), rows)
    grid_y = np.repeat(np.arange(rows, dtype=np.float64), columns)
    ones = np.ones(len(grid_x))
    worst, forms, gridded = 0.0, [], 0
    for wanted, given in zip(x, y, strict=True):
        span = float(np.ptp(wanted)) or 1.0
        best: tuple[float, str, bool] | None = None
        for form, bend in _FORMS.items():
            for axes in ((), (grid_x,), (grid_y,)):
                basis = np.stack([bend(given), ones, *axes])
                solution = np.linalg.lstsq(basis.T, wanted, rcond=None)[0]
                gap = float(np.abs(solution @ basis - wanted).max()) / span
                if gap <= EXACT and best is None:
                    best = (gap, form, bool(axes))
        if best is None:
            return None
        worst, gridded = max(worst, best[0]), gridded + best[2]
        forms.append(best[1])
    return worst, forms, gridded
