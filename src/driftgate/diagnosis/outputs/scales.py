"""The scale of an output: not applied, applied twice, or another one's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.outputs.channels import rows_along
from driftgate.diagnosis.outputs.undoing import READ_FLOOR, try_undone
from driftgate.diagnosis.residuals import residual
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]
Array = NDArray[np.float64]

LEAST_NUMBERS = 4  # for every factor that is read off
LEAST_ERROR = 0.05  # of a factor that is read off: what is closer to 1 is rounding, not another scale
LEAST_GAIN = 0.999  # correlation of two tensors that differ by a factor only


def _gains(a: Tensor, b: Tensor, axis: int | None) -> tuple[Array, float]:
    """Least-squares factors b ≈ k·a along an axis, and the smallest correlation."""
    x, y = (rows_along(value, axis) for value in (a, b))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gains = (x * y).sum(1) / (x * x).sum(1)
        alike = (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))
    silent = ~np.isfinite(gains)
    return np.where(silent, 1.0, gains), float(np.where(silent, 1.0, alike).min(initial=1.0))


def _scaled(value: Tensor, scales: Sequence[float], axis: int | None) -> Array:
    x = np.asarray(value, np.float64)
    if len(scales) == 1:
        made: Array = x * scales[0]
        return made
    around = [1] * x.ndim
    around[axis or 0] = -1
    by_axis: Array = x * np.array(scales).reshape(around)
    return by_axis


def _board_scales(bench: Bench) -> dict[str, tuple[tuple[float, ...], int | None]]:
    """Scales by output: the board's, the side file's, those in a model."""
    found: dict[str, tuple[tuple[float, ...], int | None]] = {}
    board = bench.evidence.board
    for name in bench.outputs_a:
        told = board.output(name) if board is not None else None
        step = bench.step(name)
        if told is not None and told.scales:
            found[name] = (told.scales, told.axis if len(told.scales) > 1 else None)
        elif step:
            found[name] = ((step,), None)
    return found


def find_scale(bench: Bench) -> Iterator[Explanation]:
    """An output is off by a scale: none applied, applied twice, or another one's."""
    scales = _board_scales(bench)
    for name, a, b in bench.pairs:
        if a.shape != b.shape or not np.isfinite(np.asarray(b, np.float64)).all() or residual(a, b) <= READ_FLOOR:
            continue
        if a.dtype.kind != "f" and b.dtype.kind != "f":
            continue
        found = tuple(_by_table(bench, name, a, b, scales)) or tuple(_by_data(bench, name, a, b, scales))
        yield from found


def _floor_of(bench: Bench, name: str, scales: Mapping[str, tuple[tuple[float, ...], int | None]]) -> float:
    a = np.asarray(bench.outputs_a[name], np.float64)
    own = max(scales[name][0]) if name in scales else 0.0
    span = float(np.ptp(a)) or 1.0
    rows = rows_along(a, 1) if a.ndim > 1 else a.reshape(1, -1)
    narrow = float((rows.max(1) - rows.min(1)).min()) if rows.size else span
    least = max(narrow, 1e-3 * span)
    return min(0.1, max(READ_FLOOR, 2 * own / least))


def _by_table(
    bench: Bench,
    name: str,
    a: Tensor,
    b: Tensor,
    scales: Mapping[str, tuple[tuple[float, ...], int | None]],
) -> Iterator[Explanation]:
    floor = _floor_of(bench, name, scales)
    if name in scales:
        values, axis = scales[name]
        if axis is not None and (axis >= a.ndim or a.shape[axis] != len(values)):
            return
        facts = tuple((f"scale {c}", v, "") for c, v in enumerate(values[:8]))
        integers = b.dtype.kind in "iu" or bool(np.allclose(b, np.rint(b)))
        if integers:
            yield from try_undone(
                bench, "tail-int32-undequantized", "scale", name, _scaled(b, values, axis), facts=facts, floor=floor
            )
        inverse = [1 / v for v in values]
        yield from try_undone(
            bench, "double-dequantization", "scale twice", name, _scaled(b, inverse, axis), facts=facts, floor=floor
        )
        for other, (theirs, their_axis) in scales.items():
            if other == name or len(theirs) != len(values) or their_axis != axis or theirs == values:
                continue
            factors = [own / their for own, their in zip(values, theirs, strict=True)]
            yield from try_undone(
                bench,
                "dequant-scale-mismatch",
                f"scale of {other}",
                name,
                _scaled(b, factors, axis),
                facts=(("ratio", 1 / factors[0], ""), *facts),
                floor=floor,
            )
        if axis is not None:
            mean = [v / values[0] for v in values]
            yield from try_undone(
                bench,
                "dequant-scale-mismatch",
                "first channel's scale for all",
                name,
                _scaled(b, mean, axis),
                facts=facts,
                floor=floor,
            )


def _by_data(
    bench: Bench,
    name: str,
    a: Tensor,
    b: Tensor,
    scales: Mapping[str, tuple[tuple[float, ...], int | None]],
) -> Iterator[Explanation]:
    """Factors estimated from the numbers, per channel or for all; not where the candidate's model gives them so."""
    if bench.replays_b and b.dtype.kind == "f":
        return
    for axis in (None, *range(1, a.ndim)):
        if axis is not None and not 1 < a.shape[axis] <= 1024:
            continue
        if a.size < LEAST_NUMBERS * (1 if axis is None else a.shape[axis]):
            continue  # so few numbers fit any factor
        gains, alike = _gains(a, b, axis)
        if alike < LEAST_GAIN or not (np.abs(gains) > 1e-12).all() or np.abs(gains - 1).max() < LEAST_ERROR:
            continue
        undone = _scaled(b, tuple(1 / gains), axis)
        code = _gain_code(b, gains, name, scales)
        facts = tuple((f"factor {c}" if axis is not None else "factor", float(g), "") for c, g in enumerate(gains[:8]))
        found = tuple(
            try_undone(bench, code, "fitted factor", name, undone, facts=facts, floor=_floor_of(bench, name, scales))
        )
        sure = bool(scales) or bench.fixed_point or b.dtype.kind in "iu"
        for one in found:
            yield one if sure else replace(one, confirmed=False, share=one.share / 2)
        if found:
            return


def _gain_code(b: Tensor, gains: Array, name: str, scales: Mapping[str, tuple[tuple[float, ...], int | None]]) -> str:
    whole = b.dtype.kind in "iu" or bool(np.allclose(b, np.rint(b)) and np.abs(b).max() > 2)
    if whole and np.abs(gains).min() > 2:
        return "tail-int32-undequantized"
    if name not in scales and float(np.abs(gains).max()) < 0.1:
        return "double-dequantization"
    return "dequant-scale-mismatch"
