"""Causes in how outputs are read: order of outputs and axes, padding, type of the numbers, scale, missing tail."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.trials import Explanation, Fact, Rule, explained, fact, trial

Tensor = NDArray[Any]
Array = NDArray[np.float64]

MOST_OUTPUTS = 6
LIST_RANK, LEAST_ROWS = 3, 4  # of a list of results
LEAST_GAIN = 0.999  # correlation of two tensors that differ by a factor only
_NHWC = (0, 2, 3, 1)
#: Rounding of a scale that was written with few digits, and half precision.
READ_FLOOR = 5e-3
EXACT = 5e-4
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


def _has_pairs(bench: Bench) -> bool:
    return bool(bench.pairs) and bench.start > 0


def _finite(bench: Bench) -> bool:
    """Whether there are outputs that differ and that are numbers."""
    return _has_pairs(bench) and all(np.isfinite(b).all() for _, _, b in bench.pairs if b.dtype.kind == "f")


def _tried(
    bench: Bench,
    code: str,
    transform: str,
    name: str,
    undone: Tensor,
    *,
    facts: Sequence[Fact] = (),
    floor: float | None = None,
) -> Iterator[Explanation]:
    """The error undone on one output of the candidate; only what is confirmed on it counts."""
    a = bench.outputs_a[name]
    before, after = residual(a, bench.outputs_b[name]), residual(a, undone)
    least = max(FLOAT_FLOOR, READ_FLOOR if floor is None else floor)
    made = trial(code, transform, before, after, least, target=name)
    if made.result.value == "confirmed":
        yield from explained(made, subjects=(name,), facts=facts)


def _lsb_floor(bench: Bench, name: str) -> float:
    """What rounding leaves on an output whose step is known, as a share of its range."""
    step = bench.step(name)
    a = np.asarray(bench.outputs_a[name], np.float64)
    span = float(np.ptp(a)) if a.size else 0.0
    return FLOAT_FLOOR if not step or not span else max(FLOAT_FLOOR, 2 * step / span)


# order of outputs


def find_output_order(bench: Bench) -> Iterator[Explanation]:
    """Every output of the reference is another one of the candidate's."""
    names = [name for name in bench.outputs_a if name in bench.outputs_b]
    if not 2 <= len(names) <= 32:
        return
    order: dict[str, str] = {}
    for name in names:
        a = bench.outputs_a[name]
        gaps = {other: residual(a, bench.outputs_b[other]) for other in names if other not in order.values()}
        order[name] = min(gaps, key=lambda other: (gaps[other], other != name))
        if not gaps[order[name]] <= max(bench.floor, READ_FLOOR):
            return
    moved = [name for name, other in order.items() if name != other]
    if not moved:
        return
    undone = {name: bench.outputs_b[other] for name, other in order.items()}
    made = trial("output-permuted", "outputs", bench.start, bench.distance(bench.outputs_a, undone), bench.floor)
    facts = tuple((f"{name} is output", float(names.index(order[name])), "") for name in moved)
    yield from explained(made, subjects=tuple(moved), facts=facts)


# order of axes


def find_axis_order(bench: Bench) -> Iterator[Explanation]:
    """An output's axes lie in another order, told or not."""
    for name, a, b in bench.pairs:
        if a.size != b.size or a.ndim > 5:
            continue
        if a.shape == b.shape and residual(a, b) <= bench.floor and not bench.fixed_point:
            continue
        yield from _reordered(bench, name, a, b)


def _reordered(bench: Bench, name: str, a: Tensor, b: Tensor) -> Iterator[Explanation]:
    floor = _lsb_floor(bench, name)
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
        code = _axis_code(a, b, order, there)
        facts = tuple((f"axis {place}", float(axis), "") for place, axis in enumerate(back))
        found = tuple(_tried(bench, code, "axes", name, undone, facts=facts, floor=floor))
        yield from found
        if found:
            return


def _axis_code(a: Tensor, b: Tensor, order: tuple[int, ...], there: tuple[int, ...]) -> str:
    nhwc = a.ndim == 4 and order in (_NHWC, (0, 3, 1, 2))
    if nhwc and b.shape == there and a.shape != b.shape:
        return "comparator-layout"  # the shape says what it is: whoever compared did not look
    if nhwc:
        return "output-layout-nhwc"
    return "output-transposed"


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
            _tried(bench, "comparator-layout", "flat NHWC", name, undone, facts=(("channels", float(channels), ""),))
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


# padding


def find_padding(bench: Bench) -> Iterator[Explanation]:
    """Rows of an output are padded, and it was read as if they were not (or its padding was kept)."""
    for name, a, b in bench.pairs:
        if a.ndim < 1 or (a.shape == b.shape and residual(a, b) <= FLOAT_FLOOR):
            continue
        yield from _unpadded(bench, name, a, b)


def _unpadded(bench: Bench, name: str, a: Tensor, b: Tensor) -> Iterator[Explanation]:
    floor = _lsb_floor(bench, name)
    if a.ndim == b.ndim and a.shape != b.shape and all(m >= n for m, n in zip(b.shape, a.shape, strict=True)):
        cut = b[tuple(slice(n) for n in a.shape)]
        told = bench.evidence.board.output(name) if bench.evidence.board is not None else None
        rest = float(np.abs(np.asarray(b, np.float64)).sum() - np.abs(np.asarray(cut, np.float64)).sum())
        if abs(rest) > 1e-3 * float(np.abs(np.asarray(a, np.float64)).mean()) and (
            told is None or told.aligned_shape != b.shape
        ):
            return  # what is beyond is no padding: it holds numbers
        pads = tuple((f"axis {axis} padded to", float(b.shape[axis]), "") for axis in range(a.ndim))
        yield from _tried(bench, "output-stride-padding", "padding kept", name, cut, facts=pads, floor=floor)
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


# type of the numbers


def find_type(bench: Bench) -> Iterator[Explanation]:
    """The bytes of an output were read in another type."""
    for name, a, b in bench.pairs:
        if a.dtype.kind not in "fiu" or (a.shape == b.shape and residual(a, b) <= FLOAT_FLOOR):
            continue
        kept = bench.evidence.buffers.get(f"raw_{name}")
        for raw in ([kept] if kept is not None else []) + [np.ascontiguousarray(b).reshape(-1).view(np.uint8)]:
            found = tuple(_viewed(bench, name, raw))
            yield from found
            if found:
                break


def _viewed(bench: Bench, name: str, raw: NDArray[np.uint8]) -> Iterator[Explanation]:
    a, b = bench.outputs_a[name], bench.outputs_b[name]
    told = bench.evidence.board.output(name) if bench.evidence.board is not None else None
    for dtype, view in VIEWS.items():
        if dtype == b.dtype.name:
            continue
        numbers = view(raw)
        if len(numbers) < a.size // 2 or not len(numbers):
            continue
        with np.errstate(invalid="ignore"):
            read = np.asarray(numbers[: a.size], np.float64)
        scales = [1.0, *(told.scales if told is not None and len(told.scales) == 1 else ())]
        if dtype in ("int8", "uint8", "int16", "uint16", "int32") and (step := bench.step(name)):
            scales.append(step)
        flat = np.asarray(a, np.float64).reshape(-1)[: len(read)]
        if not np.isfinite(read).all():
            continue
        for scale in scales:
            after = residual(flat, read * scale)
            made = trial(
                "dtype-misread", dtype, residual(a, b), after, max(READ_FLOOR, _lsb_floor(bench, name)), target=name
            )
            if made.result.value == "confirmed" and float(np.ptp(flat)) > 0:
                facts = (
                    ("bytes a number has", float(numbers.dtype.itemsize if dtype != "bfloat16" else 2), ""),
                    ("bytes a number was read with", float(b.dtype.itemsize), ""),
                )
                yield from explained(made, subjects=(name, dtype, b.dtype.name), facts=facts)
                return


# scale


def _gains(a: Tensor, b: Tensor, axis: int | None) -> tuple[Array, float]:
    """Least-squares factors b ≈ k·a along an axis, and the smallest correlation."""
    x, y = (_rows(value, axis) for value in (a, b))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gains = (x * y).sum(1) / (x * x).sum(1)
        alike = (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))
    silent = ~np.isfinite(gains)
    return np.where(silent, 1.0, gains), float(np.where(silent, 1.0, alike).min(initial=1.0))


def _rows(value: Tensor, axis: int | None) -> Array:
    x = np.asarray(value, np.float64)
    return x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, 0).reshape(value.shape[axis], -1)


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
    rows = _rows(a, 1) if a.ndim > 1 else a.reshape(1, -1)
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
            yield from _tried(
                bench, "tail-int32-undequantized", "scale", name, _scaled(b, values, axis), facts=facts, floor=floor
            )
        inverse = [1 / v for v in values]
        yield from _tried(
            bench, "double-dequantization", "scale twice", name, _scaled(b, inverse, axis), facts=facts, floor=floor
        )
        for other, (theirs, their_axis) in scales.items():
            if other == name or len(theirs) != len(values) or their_axis != axis or theirs == values:
                continue
            factors = [own / their for own, their in zip(values, theirs, strict=True)]
            yield from _tried(
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
            yield from _tried(
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
    """Factors estimated from the numbers, per channel or for all."""
    for axis in (None, *range(1, a.ndim)):
        if axis is not None and not 1 < a.shape[axis] <= 1024:
            continue
        gains, alike = _gains(a, b, axis)
        if alike < LEAST_GAIN or not (np.abs(gains) > 1e-12).all() or np.allclose(gains, 1, rtol=0.01):
            continue
        undone = _scaled(b, tuple(1 / gains), axis)
        code = _gain_code(b, gains, name, scales)
        facts = tuple((f"factor {c}" if axis is not None else "factor", float(g), "") for c, g in enumerate(gains[:8]))
        found = tuple(
            _tried(bench, code, "fitted factor", name, undone, facts=facts, floor=_floor_of(bench, name, scales))
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


# what is behind the end of the candidate


def _sigmoid(x: Array) -> Array:
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
        if residual(a, b) <= READ_FLOOR:
            continue
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        before = residual(a, b)
        floor = max(READ_FLOOR, bench.floor)
        guesses: list[tuple[str, Array, Array]] = [("sigmoid", x, _sigmoid(y)), ("sigmoid on both", y, _sigmoid(x))]
        for axis in range(1, x.ndim):
            guesses += [("softmax", x, _softmax(y, axis)), ("softmax on both", y, _softmax(x, axis))]
        for axis in range(1, x.ndim):
            if 1 < x.shape[axis] <= 1024:
                guesses.append(("sigmoid of some", x, _some(x, y, axis)))
        for transform, wanted, made in guesses:
            tried = trial("missing-sigmoid", transform, before, residual(wanted, made), floor, target=name)
            if tried.result.value == "confirmed":
                yield from explained(tried, subjects=(name,))
                break


def _some(x: Array, y: Array, axis: int) -> Array:
    """The sigmoid of those channels of y that come closer to x by it."""
    rows_x, rows_y = _rows(x, axis), _rows(y, axis)
    bent = _sigmoid(rows_y)
    closer = np.abs(bent - rows_x).max(1) < np.abs(rows_y - rows_x).max(1)
    made = np.where(closer[:, None], bent, rows_y)
    shape = (x.shape[axis], *(n for place, n in enumerate(x.shape) if place != axis))
    return np.moveaxis(made.reshape(shape), 0, axis)


_FORMS: Mapping[str, Callable[[Array], Array]] = {
    "linear": lambda y: y,
    "sigmoid": _sigmoid,
    "exp": lambda y: np.exp(np.clip(y, -60, 60)),
    "sigmoid squared": lambda y: _sigmoid(y) ** 2,
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


def find_cut_tail(bench: Bench) -> Iterator[Explanation]:
    """The candidate's output is a tensor within the reference's model: what comes behind it is missing."""
    model = bench.a.model
    if model is None or not bench.a.runs:
        return
    makers = {name: node for node in model.graph.node for name in node.output}
    values = bench.values_a
    for name, a, b in bench.pairs:
        if residual(a, b) <= max(bench.floor, FLOAT_FLOOR) or name not in makers:
            continue
        for tensor, value in values.items():
            if tensor == name or tensor not in makers or value.size != b.size or value.dtype.kind != "f":
                continue
            after = residual(b, value.reshape(b.shape))
            tail = _between(makers, name, tensor)
            code = _tail_code(tail)
            if after > max(bench.floor, FLOAT_FLOOR) or code is None:
                continue
            made = trial(code, "cut", residual(a, b), after, max(bench.floor, FLOAT_FLOOR), target=name)
            yield from explained(made, subjects=(tensor, *tail), facts=(("missing operators", float(len(tail)), ""),))
            return


def _between(makers: Mapping[str, Any], end: str, start: str) -> tuple[str, ...]:
    """Operators that make `end`, back to `start`."""
    found: list[str] = []
    waiting, seen = [end], {start}
    while waiting:
        name = waiting.pop()
        if name in seen or name not in makers:
            continue
        seen.add(name)
        found.append(makers[name].op_type)
        waiting.extend(makers[name].input)
    return tuple(found)


_MOVING = frozenset({"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast"})


def _tail_code(tail: Sequence[str]) -> str | None:
    working = [op for op in tail if op not in _MOVING]
    if not working:
        return None
    if set(working) <= {"Sigmoid", "Softmax", "HardSigmoid", "LogSoftmax", "Tanh"}:
        return "missing-sigmoid"
    return (
        "missing-decode"
        if set(working) & {"Mul", "Add", "Exp", "Concat", "Sub", "Pow", "Div", "Split", "Slice"}
        else None
    )


# rows of detections


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
    if axis is None or any(a.ndim <= axis or a.shape[axis] != pairs[0][1].shape[axis] for _, a, _ in pairs):
        return
    count = pairs[0][1].shape[axis]
    rows_a = np.concatenate([_listed(a, axis) for _, a, _ in pairs], 1)
    rows_b = np.concatenate([_listed(b, axis) for _, _, b in pairs], 1)
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


def _listed(value: Tensor, axis: int) -> Array:
    return np.moveaxis(np.asarray(value, np.float64), axis, 0).reshape(value.shape[axis], -1)


def find_row_cap(bench: Bench) -> Iterator[Explanation]:
    """One side has more results: those that the other has are among them."""
    for name, a, b in bench.pairs:
        axis = _row_axis(a, b)
        if axis is None or a.ndim > LIST_RANK or a.dtype.kind not in "fiu":
            continue
        rows_a, rows_b = _without_filler(_listed(a, axis)), _without_filler(_listed(b, axis))
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


def _without_filler(rows: Array) -> Array:
    """Without the rows at the end that are all 0, all -1 or not finite."""
    filler = ~np.isfinite(rows).all(1) | (rows == 0).all(1) | (rows == -1).all(1)
    real = np.flatnonzero(~filler)
    return rows[: int(real[-1]) + 1 if real.size else 0]


def find_wrong_rank(bench: Bench) -> Iterator[Explanation]:
    """Outputs of which one side has none."""
    missing = [name for name in bench.outputs_a if name not in bench.outputs_b]
    if missing and bench.outputs_b and bench.recorded_b:
        yield from fact("incomplete-evidence", ("outputs missing", float(len(missing)), ""), subjects=missing)


RULES = (
    Rule(("incomplete-evidence",), 0, lambda bench: bool(bench.outputs_a), find_wrong_rank),
    Rule(("output-permuted",), 1, lambda bench: len(bench.outputs_a) > 1 and _finite(bench), find_output_order),
    Rule(("output-layout-nhwc", "output-transposed", "comparator-layout"), 1, _finite, find_axis_order),
    Rule(("comparator-layout",), 1, lambda bench: bool(bench.evidence.layers_b), find_layer_layout),
    Rule(("output-stride-padding",), 1, _finite, find_padding),
    Rule(("dtype-misread",), 1, _has_pairs, find_type),
    Rule(("tail-int32-undequantized", "double-dequantization", "dequant-scale-mismatch"), 1, _finite, find_scale),
    Rule(("missing-sigmoid",), 1, _finite, find_missing_activation),
    Rule(("missing-decode",), 1, _finite, find_missing_decode),
    Rule(("missing-sigmoid", "missing-decode"), 2, _finite, find_cut_tail),
    Rule(("topk-order",), 1, _finite, find_row_order),
    Rule(("nms-topk-cap",), 1, _finite, find_row_cap),
)
