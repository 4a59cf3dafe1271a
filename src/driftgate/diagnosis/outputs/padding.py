"""Padded rows of an output's buffer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.outputs.undoing import lsb_floor, told, try_undone, undone_trial
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.trials import trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]
Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST_HELD = 0.25  # share of the output that a buffer must still hold, if the padding is guessed
LEAST_MOVED = 8  # numbers that padding must have moved to another place
FIRST = 16  # rows that are looked at before the whole buffer is
LEAST_FILLER = 4  # equal numbers where padding would be, if nothing else tells of padding


@dataclass(frozen=True, slots=True)
class Unpadded:
    """An output read out of a flat buffer with padded rows: its numbers, which of them the buffer holds and which of
    those lie elsewhere than in a tight one, and whether the places of the padding hold one number throughout."""

    shape: tuple[int, ...]
    values: Array
    held: Mask
    moved: Mask
    filled: bool


def find_padding(bench: Bench) -> Iterator[Explanation]:
    """Rows of an output are padded, and it was read as if they were not (or its padding was kept)."""
    for name, a, b in bench.pairs:
        floor = max(FLOAT_FLOOR, lsb_floor(bench, name))
        if a.ndim < 1 or a.dtype.kind not in "fiu" or not np.isfinite(np.asarray(a, np.float64)).all():
            continue
        if a.shape == b.shape and residual(a, b) <= floor:
            continue
        if a.ndim == b.ndim and a.shape != b.shape and all(m >= n for m, n in zip(b.shape, a.shape, strict=True)):
            yield from _kept(bench, name, a, b, floor)
        elif b.size == a.size:
            yield from _sheared(bench, name, a, b, floor)


def _kept(bench: Bench, name: str, a: Tensor, b: Tensor, floor: float) -> Iterator[Explanation]:
    """The padding is still there: what is beyond the reference's shape holds nothing, or is told to be padding."""
    cut = b[tuple(slice(n) for n in a.shape)]
    board = bench.evidence.board.output(name) if bench.evidence.board is not None else None
    is_told = board is not None and board.aligned_shape == b.shape
    rest = float(np.abs(np.asarray(b, np.float64)).sum() - np.abs(np.asarray(cut, np.float64)).sum())
    if not is_told and (
        abs(rest) > 1e-3 * float(np.abs(np.asarray(a, np.float64)).mean()) or a.shape[1:] == b.shape[1:]
    ):
        return  # what is beyond are numbers, or whole samples
    pads = tuple((f"axis {axis} padded to", float(b.shape[axis]), "") for axis in range(a.ndim))
    yield from try_undone(bench, "output-stride-padding", "padding kept", name, cut, facts=pads, floor=floor)


def _sheared(bench: Bench, name: str, a: Tensor, b: Tensor, floor: float) -> Iterator[Explanation]:
    """Padded rows were read as tight ones. That they are padded must be told, or seen in the buffer; and numbers
    that were moved by it must agree where they are read rightly."""
    aligned = tuple(_told_shapes(bench, name, a.shape))
    for raw, dtype, whole in _raws(bench, name, b):
        for shape in dict.fromkeys((*aligned, *_guessed_shapes(a.shape))):
            if shape not in aligned and not (
                len(raw) == math.prod(shape) if whole else _begins_filled(shape, a.shape, raw)
            ):
                continue
            read = _read(shape, a.shape, raw)
            if (
                read is None
                or (shape not in aligned and read.held.mean() < LEAST_HELD)
                or (read.held.all() and np.array_equal(read.values, b.reshape(a.shape)))
            ):
                continue
            if not (shape in aligned or read.filled or whole):
                continue
            x, y, undone = (value[read.moved] for value in (a, b.reshape(a.shape), read.values))
            if not np.ptp(x):
                continue
            if shape in aligned or whole:
                made = undone_trial("output-stride-padding", dtype, (x, y), undone, floor, target=name)
            else:
                made = trial("output-stride-padding", dtype, residual(x, y), residual(x, undone), floor, target=name)
            if made.result.value == "confirmed":
                pads = tuple((f"axis {at} padded to", float(n), "") for at, n in enumerate(shape) if n != a.shape[at])
                yield from told(made, subjects=(name,), facts=pads)
                return


def _raws(bench: Bench, name: str, b: Tensor) -> Iterator[tuple[Tensor, str, bool]]:
    """Flat buffers: what was read, and the whole one where it was kept."""
    raw = bench.evidence.buffers.get(f"raw_{name}")
    if raw is not None and len(raw) >= b.dtype.itemsize:
        yield raw[: len(raw) // b.dtype.itemsize * b.dtype.itemsize].view(b.dtype), "raw buffer", True
    yield np.ascontiguousarray(b).reshape(-1), str(b.dtype), False


def _read(shape: tuple[int, ...], wanted: tuple[int, ...], raw: Tensor) -> Unpadded | None:
    size = math.prod(shape)
    if any(n < m for n, m in zip(shape, wanted, strict=True)):
        return None
    here = np.arange(size).reshape(shape)[tuple(slice(n) for n in wanted)]
    held = here < len(raw)
    moved = held & (here != np.arange(here.size).reshape(wanted))
    if moved.sum() < LEAST_MOVED:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        flat = np.asarray(raw[:size], np.float64)
    values = np.where(held, flat[np.minimum(here, len(flat) - 1)], 0.0)
    padding = np.ones(len(flat), bool)
    padding[here[held]] = False
    filler = flat[padding]
    return Unpadded(shape, values, held, moved, len(filler) >= LEAST_FILLER and bool((filler == filler[0]).all()))


def _begins_filled(shape: tuple[int, ...], wanted: tuple[int, ...], raw: Tensor) -> bool:
    """Whether the first places where the padding of one axis would be hold one number."""
    axis = next(at for at, n in enumerate(shape) if n != wanted[at])
    block, used = (lengths[axis] * math.prod(wanted[axis + 1 :]) for lengths in (shape, wanted))
    count = min(len(raw) // block, FIRST)
    begin = raw[: count * block].reshape(count, block)[:, used:]
    return not begin.size or bool((begin == begin[0, 0]).all())


def _told_shapes(bench: Bench, name: str, shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The aligned shape that the board tells, and that of its strides."""
    board = bench.evidence.board.output(name) if bench.evidence.board is not None else None
    if board is not None and len(board.aligned_shape) == len(shape):
        yield board.aligned_shape
    if board is not None and len(board.strides) == len(shape) > 1 and board.strides[-1] > 0:
        inner = [board.strides[axis] // max(board.strides[axis + 1], 1) for axis in range(len(shape) - 1)]
        if all(n > 0 for n in inner):
            yield (shape[0], *inner)


def _guessed_shapes(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The last axis, or that of the channels, padded to usual alignments or by a few numbers."""
    for axis in dict.fromkeys((len(shape) - 1, min(1, len(shape) - 1))):
        usual = (_up(shape[axis], to) for to in (2, 4, 8, 16, 32, 64, 128))
        for padded in (*usual, *range(shape[axis] + 1, shape[axis] + 65)):
            if padded > shape[axis]:
                yield (*shape[:axis], padded, *shape[axis + 1 :])


def _up(value: int, to: int) -> int:
    return -(-value // to) * to
