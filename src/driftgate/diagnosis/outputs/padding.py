"""Padded rows of an output's buffer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.outputs.undoing import lsb_floor, try_undone
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.trials import Fact, explained, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]
Array = NDArray[np.float64]


def find_padding(bench: Bench) -> Iterator[Explanation]:
    """Rows of an output are padded, and it was read as if they were not (or its padding was kept)."""
    for name, a, b in bench.pairs:
        if a.ndim < 1 or (a.shape == b.shape and residual(a, b) <= FLOAT_FLOOR):
            continue
        yield from _unpadded(bench, name, a, b)


def _unpadded(bench: Bench, name: str, a: Tensor, b: Tensor) -> Iterator[Explanation]:
    floor = lsb_floor(bench, name)
    if a.ndim == b.ndim and a.shape != b.shape and all(m >= n for m, n in zip(b.shape, a.shape, strict=True)):
        cut = b[tuple(slice(n) for n in a.shape)]
        told = bench.evidence.board.output(name) if bench.evidence.board is not None else None
        rest = float(np.abs(np.asarray(b, np.float64)).sum() - np.abs(np.asarray(cut, np.float64)).sum())
        if abs(rest) > 1e-3 * float(np.abs(np.asarray(a, np.float64)).mean()) and (
            told is None or told.aligned_shape != b.shape
        ):
            return  # what is beyond is no padding: it holds numbers
        pads = tuple((f"axis {axis} padded to", float(b.shape[axis]), "") for axis in range(a.ndim))
        yield from try_undone(bench, "output-stride-padding", "padding kept", name, cut, facts=pads, floor=floor)
        return
    if b.size < a.size:
        return
    for raw, dtype in _raws(bench, name, b):
        for facts, undone, known in _strided(bench, name, a, raw):
            if undone.shape == b.shape and np.array_equal(undone, b):
                continue
            error = residual(a, np.where(known, undone, a))
            made = trial("output-stride-padding", dtype, residual(a, b), error, max(floor, FLOAT_FLOOR), target=name)
            if made.result.value == "confirmed":
                yield from explained(made, subjects=(name,), facts=facts)
                return


def _raws(bench: Bench, name: str, b: Tensor) -> Iterator[tuple[Tensor, str]]:
    yield np.ascontiguousarray(b).reshape(-1), str(b.dtype)
    raw = bench.evidence.buffers.get(f"raw_{name}")
    if raw is not None and len(raw) >= b.dtype.itemsize:
        yield raw[: len(raw) // b.dtype.itemsize * b.dtype.itemsize].view(b.dtype), "raw buffer"


def _strided(
    bench: Bench, name: str, a: Tensor, raw: Tensor
) -> Iterator[tuple[tuple[Fact, ...], Array, NDArray[np.bool_]]]:
    """Readings of a flat buffer with padded rows, and which of the numbers the buffer still has."""
    for shape in _aligned_shapes(bench, name, a.shape, len(raw)):
        size = math.prod(shape)
        flat = np.full(size, np.nan)
        held = min(size, len(raw))
        flat[:held] = raw[:held]
        cut = flat.reshape(shape)[tuple(slice(n) for n in a.shape)]
        known = ~np.isnan(cut)
        if known.mean() < 0.25 or not known.any():
            continue
        facts = tuple((f"axis {axis} padded to", float(n), "") for axis, n in enumerate(shape) if n != a.shape[axis])
        yield facts, np.where(known, cut, 0.0), known


def _aligned_shapes(bench: Bench, name: str, shape: tuple[int, ...], held: int) -> Iterator[tuple[int, ...]]:
    board = bench.evidence.board.output(name) if bench.evidence.board is not None else None
    if board is not None and len(board.aligned_shape) == len(shape):
        yield board.aligned_shape
    if board is not None and len(board.strides) == len(shape) > 1 and board.strides[-1] > 0:
        inner = [board.strides[axis] // max(board.strides[axis + 1], 1) for axis in range(len(shape) - 1)]
        if all(n > 0 for n in inner):
            yield (shape[0], *inner)
    seen = set()
    for axis in (len(shape) - 1, 1):
        if not 0 <= axis < len(shape):
            continue
        for padded in [
            *(_up(shape[axis], to) for to in (2, 4, 8, 16, 32, 64, 128)),
            *range(shape[axis] + 1, shape[axis] + 65),
        ]:
            aligned = (*shape[:axis], padded, *shape[axis + 1 :])
            if padded > shape[axis] and aligned not in seen:
                seen.add(aligned)
                yield aligned


def _up(value: int, to: int) -> int:
    return -(-value // to) * to
