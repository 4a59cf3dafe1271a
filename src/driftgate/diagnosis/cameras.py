"""Causes in how images reach the network: NV12 buffers, their stride and order, letterbox against stretch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.inputs import relative
from driftgate.diagnosis.trials import Rule, explained, fact, trial
from driftgate.domain.investigations import Explanation
from driftgate.transforms.colours import ycbcr

Tensor = NDArray[Any]
Array = NDArray[np.float64]
Bytes = NDArray[np.uint8]

#: A conversion to NV12 and back moves a pixel by no more than this share of 255.
LOSS = 0.2
#: Mean loss of images; more is another fault.
MEAN_LOSS = 0.03
EXACT = 5e-3
LEAST_CONTRAST = 8.0  # of 255: below this an image says nothing
_ALIGNMENTS = (2, 4, 8, 16, 32, 64, 128, 256)


def rgb_of(luma: Array, chroma: Array) -> Array:
    """Y (H, W) and UV (H/2, W/2, 2), 0 … 255, as RGB (3, H, W) 0 … 255; BT.601 full range, nearest chroma."""
    u, v = (np.repeat(np.repeat(chroma[:, :, plane], 2, 0), 2, 1) - 128.0 for plane in (0, 1))
    rgb = np.stack([luma + 1.402 * v, luma - 0.344136 * u - 0.714136 * v, luma + 1.772 * u])
    return np.clip(rgb, 0.0, 255.0)


def through_nv12(rgb: Array) -> Array:
    """RGB (3, H, W), 0 … 255, with even H and W, to NV12 and back."""
    values = ycbcr(rgb.transpose(1, 2, 0))
    height, width = values.shape[:2]
    luma = np.clip(np.rint(values[:, :, 0]), 0, 255)
    means = values[:, :, 1:].reshape(height // 2, 2, width // 2, 2, 2).mean((1, 3))
    return rgb_of(luma, np.clip(np.rint(means), 0, 255))


def _read(y: Bytes, uv: Bytes, size: tuple[int, int], pitch: int, *, swapped: bool) -> Array | None:
    height, width = size
    if pitch < width or height % 2 or width % 2:
        return None
    luma, chroma = _plane(y, height, pitch), _plane(uv, height // 2, pitch)
    pairs = chroma[:, :width].reshape(height // 2, width // 2, 2)
    return rgb_of(luma[:, :width], pairs[:, :, ::-1] if swapped else pairs)


def _plane(buffer: Bytes, rows: int, pitch: int) -> Array:
    held = np.zeros(rows * pitch)
    count = min(len(buffer), len(held))
    held[:count] = buffer[:count]
    return held.reshape(rows, pitch)


def _image(bench: Bench, feeds: Mapping[str, Tensor]) -> tuple[str, Array, float] | None:
    """The one image among the feeds as (name, RGB (3, H, W) 0 … 255, what 255 stands for)."""
    for name, value in feeds.items():
        if value.ndim == 4 and value.shape[0] == 1 and 3 in (value.shape[1], value.shape[3]):
            found = np.asarray(value[0], np.float64)
            found = found if value.shape[1] == 3 else found.transpose(2, 0, 1)
            if not np.isfinite(found).all() or float(found.min(initial=0.0)) < 0:
                return None
            unit = 255.0 if float(np.abs(found).max(initial=0.0)) > 2.0 else 1.0
            return name, found * (255.0 / unit), unit
    return None


def _has_nv12(bench: Bench) -> bool:
    e = bench.evidence
    told = e.board is not None and e.board.input is not None and "nv12" in e.board.input.type.lower()
    return bool(e.feeds_a) and (told or "y" in e.buffers)


def find_nv12(bench: Bench) -> Iterator[Explanation]:
    """How the buffers must be read to give the reference's image, and how they were read."""
    e = bench.evidence
    image = _image(bench, e.feeds_a)
    y, uv = e.buffers.get("y"), e.buffers.get("uv")
    if image is None or y is None or uv is None:
        return
    name, wanted, unit = image
    size = wanted.shape[1], wanted.shape[2]
    told = e.board.input if e.board is not None else None
    stride = told.stride if told is not None and told.stride else size[1]
    readings = {
        (pitch, swapped): reading
        for pitch in _pitches(size[1], stride, len(y) // max(size[0], 1))
        for swapped in (False, True)
        if (reading := _read(y, uv, size, pitch, swapped=swapped)) is not None
    }
    if not readings:
        return
    errors = {key: float(np.abs(reading - wanted).mean()) / 255 for key, reading in readings.items()}
    right = min(errors, key=lambda key: (round(errors[key], 6), key[0] != stride, key[1]))
    if errors[right] > MEAN_LOSS:
        return
    read = _image(bench, e.feeds_b)
    gaps = {} if read is None else {key: float(np.abs(value - read[1]).mean()) / 255 for key, value in readings.items()}
    used = min(gaps, key=lambda key: (round(gaps[key], 6), key != right)) if gaps else (stride, False)
    fed = (readings[right] * (unit / 255.0)).astype(np.float32)[None]
    if e.feeds_a[name].shape[1] != 3:
        fed = fed.transpose(0, 2, 3, 1)
    facts: tuple[tuple[str, float, str], ...] = (
        ("pitch of the buffer", float(right[0]), "bytes"),
        ("pitch it was read with", float(used[0]), "bytes"),
    )
    facts += (
        ("image error before", errors.get(used, math.nan), "of 255"),
        ("image error after", errors[right], "of 255"),
    )
    if right[0] != used[0]:
        yield from _undone(bench, "nv12-stride-padding", name, fed, facts=facts)
    if right[1] != used[1]:
        yield from _undone(bench, "nv12-uv-order", name, fed, facts=facts)
    if right == used:
        yield from _lossy(bench, name, fed, facts)


def _pitches(width: int, stride: int, held: int) -> tuple[int, ...]:
    aligned = tuple(-(-width // to) * to for to in _ALIGNMENTS)
    return tuple(dict.fromkeys(pitch for pitch in (stride, width, held, *aligned) if pitch >= width))


def _undone(
    bench: Bench, code: str, name: str, fed: Tensor, *, facts: tuple[tuple[str, float, str], ...]
) -> Iterator[Explanation]:
    """Fed what the buffers hold when they are read right: what is left is the loss of NV12."""
    for side in (bench.b, bench.a):
        made = bench.run(side, {**bench.evidence.feeds_a, name: fed})
        if made is None:
            continue
        after = bench.distance(made, bench.outputs_a)
        floor = max(bench.floor, _loss_floor(bench, name))
        yield from explained(
            trial(code, "read right", bench.start, after, floor, target=name), subjects=(name,), facts=facts
        )
        return
    yield from fact(code, *facts, subjects=(name,), confirmed=False)


def _loss_floor(bench: Bench, name: str) -> float:
    """What the conversion alone does to the reference's outputs."""
    image = _image(bench, bench.evidence.feeds_a)
    if image is None or not bench.a.runs or image[1].shape[1] % 2 or image[1].shape[2] % 2:
        return 0.05
    made = bench.run(bench.a, {**bench.evidence.feeds_a, name: _fed(bench, name, through_nv12(image[1]), image[2])})
    found = math.inf if made is None else bench.distance(bench.outputs_a, made)
    return 2 * found if math.isfinite(found) else 0.05


def _fed(bench: Bench, name: str, rgb: Array, unit: float) -> Tensor:
    like = bench.evidence.feeds_a[name]
    value = (rgb * (unit / 255.0))[None]
    return (value if like.shape[1] == 3 else value.transpose(0, 2, 3, 1)).astype(like.dtype)


def _lossy(bench: Bench, name: str, fed: Tensor, facts: tuple[tuple[str, float, str], ...]) -> Iterator[Explanation]:
    """The whole difference is what NV12 loses: the reference's model gives the candidate's outputs with it."""
    for side in (bench.a, bench.b):
        made = bench.run(side, {**bench.evidence.feeds_a, name: fed})
        if made is None:
            continue
        tried = trial(
            "nv12-conversion-loss",
            "to NV12 and back",
            bench.start,
            bench.distance(made, bench.outputs_b),
            max(bench.floor, FLOAT_FLOOR * 10),
            target=name,
        )
        yield from explained(tried, subjects=(name,), facts=facts)
        return


def find_roundtrip(bench: Bench) -> Iterator[Explanation]:
    """Without buffers: the reference's image to NV12 and back, in both orders of U and V, is what was fed."""
    e = bench.evidence
    image = _image(bench, e.feeds_a)
    if image is None or "y" in e.buffers or image[1].shape[1] % 2 or image[1].shape[2] % 2 or image[1].min() < 0:
        return
    name, rgb, unit = image
    values = through_nv12(rgb)
    for code, changed in (("nv12-conversion-loss", values), ("nv12-uv-order", _chroma_swapped(rgb))):
        fed = _fed(bench, name, changed, unit)
        told = e.feeds_b.get(name)
        gap = math.nan if told is None or told.shape != fed.shape else relative(fed, told)
        if e.feeds_b and not gap <= 2 * EXACT:
            continue
        made = bench.run(bench.a, {**e.feeds_a, name: fed}) or bench.run(bench.b, {**e.feeds_a, name: fed})
        if made is None:
            continue
        tried = trial(
            code,
            "to NV12 and back",
            bench.start,
            bench.distance(made, bench.outputs_b),
            max(bench.floor, 10 * FLOAT_FLOOR),
            target=name,
        )
        if tried.result.value == "confirmed":
            yield from explained(tried, subjects=(name,))


def _chroma_swapped(rgb: Array) -> Array:
    values = ycbcr(rgb.transpose(1, 2, 0))
    height, width = values.shape[:2]
    means = values[:, :, 1:].reshape(height // 2, 2, width // 2, 2, 2).mean((1, 3))
    return rgb_of(np.clip(np.rint(values[:, :, 0]), 0, 255), np.clip(np.rint(means[:, :, ::-1]), 0, 255))


def find_wrong_kind(bench: Bench) -> Iterator[Explanation]:
    """An image's buffers for an input that is no image, or a tensor for one that is."""
    e = bench.evidence
    told = e.board.input if e.board is not None else None
    if told is None or not told.type:
        return
    kind = told.type.lower()
    picture = any(word in kind for word in ("nv12", "yuv", "y_uv"))
    y, uv = e.buffers.get("y"), e.buffers.get("uv")
    if picture and told.height and told.width:
        need = told.height * (told.stride or told.width)
        tight = told.height * told.width
        if y is not None and len(y) not in (need, tight) and len(y) % tight == 0 and len(y) // tight in (3, 4, 12, 6):
            yield from fact(
                "wrong-input-kind", ("bytes sent", float(len(y)), "bytes"), ("bytes of Y", float(need), "bytes")
            )
        elif (
            y is None
            and uv is None
            and e.feeds_b
            and not _is_nv12_sized(e.feeds_b, tight)
            and bench.start > bench.floor
        ):
            sent = sum(value.nbytes for value in e.feeds_b.values())
            yield from fact(
                "wrong-input-kind",
                ("bytes sent", float(sent), "bytes"),
                ("bytes of NV12", tight * 1.5, "bytes"),
                confirmed=not any(
                    value.dtype.kind == "f" and _image(bench, {"x": value}) for value in e.feeds_b.values()
                ),
            )
    elif not picture and (y is not None or uv is not None):
        sent = sum(len(part) for part in (y, uv) if part is not None)
        yield from fact("wrong-input-kind", ("bytes of the picture", float(sent), "bytes"), subjects=(told.type,))


def _is_nv12_sized(feeds: Mapping[str, Tensor], tight: int) -> bool:
    total = sum(value.size for value in feeds.values())
    return tight * 3 // 2 == total or any(value.size in (tight, tight * 3 // 2) for value in feeds.values())


def find_wrong_kind_by_bytes(bench: Bench) -> Iterator[Explanation]:
    """The candidate's input holds the bytes of NV12, read as a tensor."""
    e = bench.evidence
    image = _image(bench, e.feeds_a)
    if image is None or image[1].shape[1] % 2 or image[1].shape[2] % 2:
        return
    name, rgb, _ = image
    other = e.feeds_b.get(name)
    if other is None or other.size < rgb.shape[1] * rgb.shape[2] * 3 // 2:
        return
    values = ycbcr(rgb.transpose(1, 2, 0))
    luma = np.clip(np.rint(values[:, :, 0]), 0, 255).reshape(-1)
    flat = np.asarray(other, np.float64).reshape(-1)[: luma.size]
    for factor in (1.0, 255.0):
        if float(luma.std()) >= LEAST_CONTRAST and float(np.abs(flat * factor - luma).mean()) <= 2.0:
            yield from fact("wrong-input-kind", ("pixels that are Y", float(luma.size), ""), subjects=(name,))
            return


# letterbox


_Pick = Callable[[int, int], tuple[NDArray[np.int64], NDArray[np.int64], Array]]


def _floor(source: int, target: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    first = np.floor(np.arange(target) * source / target).astype(np.int64)
    return first, first, np.zeros(target)


def _centre(source: int, target: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    first = np.clip(np.floor((np.arange(target) + 0.5) * source / target), 0, source - 1).astype(np.int64)
    return first, first, np.zeros(target)


def _linear(shift: float, ends: bool) -> _Pick:
    def pick(source: int, target: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        scale = (source - 1) / max(target - 1, 1) if ends else source / target
        at = np.clip((np.arange(target) + shift) * scale - shift, 0, source - 1)
        first = np.floor(at).astype(np.int64)
        return first, np.minimum(first + 1, source - 1), at - first

    return pick


_PICKS: tuple[_Pick, ...] = (_floor, _centre, _linear(0.5, False), _linear(0.0, False), _linear(0.0, True))


def _resized(image: Array, height: int, width: int, pick: _Pick) -> Array:
    for axis, target in ((1, height), (2, width)):
        first, second, share = pick(image.shape[axis], target)
        weights = share.reshape([-1 if place == axis else 1 for place in range(3)])
        image = np.take(image, first, axis) * (1 - weights) + np.take(image, second, axis) * weights
    return image


def _bands(image: Array) -> tuple[slice, slice, float] | None:
    """Rows and columns of the content between uniform bands at the edges, and the bands' value."""
    for axis in (1, 2):
        lines = np.moveaxis(image, axis, 0).reshape(image.shape[axis], -1)
        flat = np.ptp(lines, 1) <= 1e-6 * max(1.0, float(np.abs(lines).max()))
        if flat.all() or not (flat[0] or flat[-1]):
            continue
        content = np.flatnonzero(~flat)
        inside = slice(int(content[0]), int(content[-1]) + 1)
        value = float(lines[0 if flat[0] else -1].mean())
        everything = slice(None)
        return (inside, everything, value) if axis == 1 else (everything, inside, value)
    return None


def find_letterbox(bench: Bench) -> Iterator[Explanation]:
    """One side has uniform bands around the whole image, the other stretched it."""
    e = bench.evidence
    for name, a in e.feeds_a.items():
        b = e.feeds_b.get(name)
        if b is None or a.ndim != 4 or b.ndim != 4 or relative(a, b) <= 1e-5:
            continue
        x, y = (np.asarray(value[0], np.float64) for value in (a, b))
        if x.shape[0] not in (1, 3) and x.shape[-1] in (1, 3):
            x, y = x.transpose(2, 0, 1), y.transpose(2, 0, 1)
        bands_a, bands_b = _bands(x), _bands(y)
        if bands_a == bands_b:
            continue
        boxed, other, bands = (x, y, bands_a) if bands_a is not None else (y, x, bands_b)
        if bands is None:
            continue
        alike = _alike(bench, boxed[:, bands[0], bands[1]], other)
        if alike < 0.8:
            continue
        rows, columns = (boxed[:, bands[0], bands[1]].shape[axis] for axis in (1, 2))
        facts = (
            ("rows of content", float(rows), f"of {boxed.shape[1]}"),
            ("columns of content", float(columns), f"of {boxed.shape[2]}"),
            ("value of the bands", bands[2], ""),
            ("correlation of the content", alike, ""),
        )
        made = bench.run(bench.b, e.feeds_a)
        after = math.inf if made is None else bench.distance(bench.outputs_a, made)
        if made is None and (found := bench.run(bench.a, e.feeds_b)) is not None:
            after = bench.distance(found, bench.outputs_b)
        if math.isinf(after):
            yield from fact("resize-letterbox-mismatch", *facts, subjects=(name,), confirmed=False)
            continue
        yield from explained(
            trial("resize-letterbox-mismatch", "same geometry", bench.start, after, bench.floor, target=name),
            subjects=(name,),
            facts=facts,
        )


def _alike(bench: Bench, content: Array, other: Array) -> float:
    """How well the content, resized to the whole, is the other side; by the raw image too where there is one."""
    best = 0.0
    raws = [np.asarray(value, np.float64) for value in bench.evidence.raw.values() if value.ndim == 3]
    sources = [content, *(raw if raw.shape[0] in (1, 3) else raw.transpose(2, 0, 1) for raw in raws)]
    for source in sources:
        if source.shape[0] != other.shape[0]:
            continue
        for pick in _PICKS:
            made = _resized(source, other.shape[1], other.shape[2], pick)
            with np.errstate(invalid="ignore", divide="ignore"):
                found = float(np.corrcoef(made.reshape(-1), other.reshape(-1))[0, 1])
            best = max(best, found if math.isfinite(found) else 0.0)
    return best


def _both(bench: Bench) -> bool:
    return bool(bench.evidence.feeds_a) and bool(bench.evidence.feeds_b)


RULES = (
    Rule(("wrong-input-kind",), 0, lambda bench: bench.evidence.board is not None, find_wrong_kind),
    Rule(("nv12-stride-padding", "nv12-uv-order", "nv12-conversion-loss"), 1, _has_nv12, find_nv12),
    Rule(("wrong-input-kind",), 1, _both, find_wrong_kind_by_bytes),
    Rule(("resize-letterbox-mismatch",), 1, _both, find_letterbox),
    Rule(("nv12-conversion-loss", "nv12-uv-order"), 2, lambda bench: bool(bench.evidence.feeds_a), find_roundtrip),
)
