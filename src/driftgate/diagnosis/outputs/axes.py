"""The order of axes of an output, or of a dumped layer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.outputs.undoing import READ_FLOOR, lsb_floor, try_undone
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.trials import explained, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]

_NHWC = (0, 2, 3, 1)


def find_axis_order(bench: Bench) -> Iterator[Explanation]:
    """An output's axes lie in another order, told or not."""
    for name, a, b in bench.pairs:
        if a.size != b.size or a.ndim > 5:
            continue
        if a.shape == b.shape and residual(a, b) <= bench.floor and not bench.fixed_point:
            continue
        yield from _reordered(bench, name, a, b)


def _reordered(bench: Bench, name: str, a: Tensor, b: Tensor) -> Iterator[Explanation]:
    floor = lsb_floor(bench, name)
    if a.ndim < 2:
        yield from _flattened(bench, name, a, b)
        return
    for order in itertools.permutations(range(a.ndim)):
        if order == tuple(range(a.ndim)):
            continue
        there = tuple(a.shape[axis] for axis in order)
        back = tuple(int(axis) for axis in np.argsort(order))
        undone = b.reshape(there).transpose(back)
        if a.shape == b.shape and np.array_equal(undone, b):
            continue
        code = _axis_code(bench, name, order, there)
        facts = tuple((f"axis {place}", float(axis), "") for place, axis in enumerate(back))
        found = tuple(try_undone(bench, code, "axes", name, undone, facts=facts, floor=floor))
        yield from found
        if found:
            return


def _axis_code(bench: Bench, name: str, order: tuple[int, ...], there: tuple[int, ...]) -> str:
    if order not in (_NHWC, (0, 3, 1, 2)):
        return "output-transposed"
    return "comparator-layout" if _says_so(bench, name, there) else "output-layout-nhwc"


def _says_so(bench: Bench, name: str, there: tuple[int, ...]) -> bool:
    """Whether a dump says how its axes lie, by its shape or its description, or is flat and claims nothing: then
    whoever compared did not look, and nothing reads it wrongly."""
    a, b = bench.outputs_a[name], bench.outputs_b[name]
    if b.ndim == a.ndim:
        return b.shape == there != a.shape
    board = bench.evidence.board.output(name) if bench.evidence.board is not None else None
    return board is None or board.valid_shape in ((), there) or board.valid_shape != a.shape


def _flattened(bench: Bench, name: str, a: Tensor, b: Tensor) -> Iterator[Explanation]:
    """Flat dumps of NCHW and NHWC: some number of channels makes them the same."""
    n = a.size
    shape = _described(bench, name, n)
    candidates = [shape[1]] if shape is not None and len(shape) == 4 else [c for c in range(2, 2049) if n % c == 0]
    batches = {1, *(v.shape[0] for v in bench.evidence.feeds_a.values() if v.ndim and n % max(v.shape[0], 1) == 0)}
    for channels, batch in itertools.product(candidates, sorted(batches)):
        if not batch or n % (channels * batch):
            continue
        undone = b.reshape(batch, -1, channels).swapaxes(1, 2).reshape(a.shape)
        if np.array_equal(undone, b):
            continue
        found = tuple(
            try_undone(
                bench, "comparator-layout", "flat NHWC", name, undone, facts=(("channels", float(channels), ""),)
            )
        )
        yield from found
        if found:
            return


def _described(bench: Bench, name: str, size: int) -> tuple[int, ...] | None:
    board = bench.evidence.board.output(name) if bench.evidence.board is not None else None
    if board is not None and board.valid_shape and math.prod(board.valid_shape) == size:
        return board.valid_shape
    return None


def find_layer_layout(bench: Bench) -> Iterator[Explanation]:
    """The outputs agree and the dumped layers do not, because a dump has its axes in another order."""
    if bench.start > max(bench.floor, FLOAT_FLOOR):
        return
    for name in bench.evidence.layers_b:
        a, b = bench.evidence.layers_a.get(name), bench.evidence.layers_b[name]
        if a is None or a.size != b.size or a.ndim != 4 or residual(a, b) <= bench.floor:
            continue
        undone = b.reshape(tuple(a.shape[axis] for axis in _NHWC)).transpose(0, 3, 1, 2)
        made = trial("comparator-layout", "axes", residual(a, b), residual(a, undone), READ_FLOOR, target=name)
        if made.result.value == "confirmed":
            yield from explained(made, subjects=(name,))
            return
