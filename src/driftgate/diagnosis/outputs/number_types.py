"""The type that the bytes of an output are read in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.outputs.undoing import READ_FLOOR, lsb_floor, told, undone_trial
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.trials import Fact, fact
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]

LEAST_ALIKE = 0.9  # correlation with the reference of a buffer that holds it, whatever the candidate's noise
#: Types a buffer may have been read in, by name.
VIEWS: Mapping[str, Callable[[NDArray[np.uint8]], Tensor]] = {
    "float16": lambda raw: raw[: len(raw) // 2 * 2].view(np.float16),
    "bfloat16": lambda raw: (raw[: len(raw) // 2 * 2].view(np.uint16).astype(np.uint32) << 16).view(np.float32),
    "float32": lambda raw: raw[: len(raw) // 4 * 4].view(np.float32),
    "int8": lambda raw: raw.view(np.int8),
    "uint8": lambda raw: raw,
    "int16": lambda raw: raw[: len(raw) // 2 * 2].view(np.int16),
    "uint16": lambda raw: raw[: len(raw) // 2 * 2].view(np.uint16),
    "int32": lambda raw: raw[: len(raw) // 4 * 4].view(np.int32),
}


def find_type(bench: Bench) -> Iterator[Explanation]:
    """The bytes of an output were read in another type."""
    for name, a, b in bench.pairs:
        if a.dtype.kind not in "fiu" or (a.shape == b.shape and residual(a, b) <= FLOAT_FLOOR):
            continue
        kept = bench.evidence.buffers.get(f"raw_{name}")
        misread = () if kept is None else tuple(_half_as_long(bench, name, kept))
        yield from misread
        if misread:
            continue
        for raw in ([kept] if kept is not None else []) + [np.ascontiguousarray(b).reshape(-1).view(np.uint8)]:
            found = tuple(_viewed(bench, name, raw))
            yield from found
            if found:
                break


def _half_as_long(bench: Bench, name: str, raw: NDArray[np.uint8]) -> Iterator[Explanation]:
    """The buffer has the bytes of a narrower type, and what was read of it are those bytes taken for wider numbers."""
    a, b = bench.outputs_a[name], np.ascontiguousarray(bench.outputs_b[name]).reshape(-1)
    held = len(raw) // b.itemsize
    if b.itemsize < 2 or len(raw) * 2 != b.nbytes or a.size != b.size:
        return
    if not np.array_equal(b[:held].view(np.uint8), raw[: held * b.itemsize]):
        return
    for dtype in ("float16", "bfloat16"):
        numbers = VIEWS[dtype](raw)
        with np.errstate(all="ignore"):
            alike = np.corrcoef(np.asarray(numbers, np.float64), np.asarray(a, np.float64).reshape(-1))[0, 1]
        if len(numbers) == a.size and np.isfinite(alike) and alike >= LEAST_ALIKE:
            facts: tuple[Fact, ...] = (
                ("bytes a number has", 2.0, ""),
                ("bytes a number was read with", float(b.itemsize), ""),
                ("correlation when read rightly", float(alike), ""),
            )
            yield from fact("dtype-misread", *facts, subjects=(name, dtype, b.dtype.name))
            return


def _viewed(bench: Bench, name: str, raw: NDArray[np.uint8]) -> Iterator[Explanation]:
    a, b = bench.outputs_a[name], bench.outputs_b[name]
    board = bench.evidence.board.output(name) if bench.evidence.board is not None else None
    for dtype, view in VIEWS.items():
        if dtype == b.dtype.name:
            continue
        numbers = view(raw)
        if len(numbers) < a.size // 2 or not len(numbers):
            continue
        with np.errstate(invalid="ignore"):
            read = np.asarray(numbers[: a.size], np.float64)
        scales = [1.0, *(board.scales if board is not None and len(board.scales) == 1 else ())]
        if dtype in ("int8", "uint8", "int16", "uint16", "int32") and (step := bench.step(name)):
            scales.append(step)
        flat = np.asarray(a, np.float64).reshape(-1)[: len(read)]
        if not np.isfinite(read).all():
            continue
        for scale in scales:
            floor = max(READ_FLOOR, lsb_floor(bench, name))
            made = undone_trial("dtype-misread", dtype, (a, b), read * scale, floor, target=name, wanted=flat)
            if made.result.value == "confirmed" and float(np.ptp(flat)) > 0:
                facts = (
                    ("bytes a number has", float(numbers.dtype.itemsize if dtype != "bfloat16" else 2), ""),
                    ("bytes a number was read with", float(b.dtype.itemsize), ""),
                )
                yield from told(made, subjects=(name, dtype, b.dtype.name), facts=facts)
                return
