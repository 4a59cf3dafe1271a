"""Causes in what kind of data an input is sent: a picture's planes to a tensor, or a tensor to a picture."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.pictures import CONVERSIONS, Picture, picture_of, pixels, planes, unpacked
from driftgate.diagnosis.trials import Rule, fact
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]
Array = NDArray[np.float64]
Bytes = NDArray[np.uint8]

LEAST_CONTRAST = 8.0  # of 255: below this a picture says nothing
LEAST_BYTES = 64
ONE_LEVEL = 1.01
_TENSORS = (3, 4, 6, 12)  # bytes a pixel that three channels of 1, 2 or 4 bytes have, or four of 1
_ALIKE = 0.98  # share of bytes that must be the tensor's


def find_wrong_kind(bench: Bench) -> Iterator[Explanation]:
    """Planes for an input that is no picture, or a tensor for one that is, by what the board tells and the sizes."""
    e = bench.evidence
    told = e.board.input if e.board is not None else None
    if told is None or not told.type:
        return
    y, uv = e.buffers.get("y"), e.buffers.get("uv")
    if not any(word in told.type.lower() for word in ("nv12", "yuv", "y_uv")):
        if y is not None or uv is not None:
            sent = sum(len(part) for part in (y, uv) if part is not None)
            yield from fact("wrong-input-kind", ("bytes of the picture", float(sent), "bytes"), subjects=(told.type,))
    elif told.height and told.width:
        tight = told.height * told.width
        if y is not None:
            yield from _whole_tensor(y, uv, tight, told.height * (told.stride or told.width))
        elif uv is None and e.feeds_b and bench.start > bench.floor:
            yield from _no_planes(bench, tight)


def _whole_tensor(y: Bytes, uv: Bytes | None, tight: int, need: int) -> Iterator[Explanation]:
    """The buffer of Y has the bytes of a whole tensor; with chroma of half its size it has a wide pitch instead."""
    is_planes = uv is not None and 2 * len(uv) == len(y)
    if len(y) not in (need, tight) and not is_planes and len(y) in [tight * times for times in _TENSORS]:
        numbers = (("bytes sent", float(len(y)), "bytes"), ("bytes of Y", float(need), "bytes"))
        yield from fact("wrong-input-kind", *numbers)


def _no_planes(bench: Bench, tight: int) -> Iterator[Explanation]:
    """What was fed is neither planes nor the tensor that the reference's network eats."""
    fed, own = bench.evidence.feeds_b, {value.shape for value in bench.evidence.feeds_a.values()}
    if any(value.shape in own or value.size in (tight, tight * 3 // 2) for value in fed.values()):
        return
    if sum(value.size for value in fed.values()) == tight * 3 // 2:
        return
    sent = sum(value.nbytes for value in fed.values())
    numbers = (("bytes sent", float(sent), "bytes"), ("bytes of NV12", tight * 1.5, "bytes"))
    yield from fact("wrong-input-kind", *numbers)


def find_planes_as_tensor(bench: Bench) -> Iterator[Explanation]:
    """The candidate's input holds the bytes of NV12, read as a tensor."""
    e = bench.evidence
    picture = picture_of(e.feeds_a)
    other = e.feeds_b.get(picture.name) if picture is not None else None
    if picture is None or other is None or not picture.fits_nv12 or len(picture.rgb) != 1:
        return
    height, width = picture.size
    if other.size < height * width * 3 // 2:
        return
    for conversion in CONVERSIONS:
        luma = planes(picture.rgb, conversion)[0].reshape(-1)
        flat = np.asarray(other, np.float64).reshape(-1)[: luma.size]
        if float(luma.std()) < LEAST_CONTRAST:
            return
        if min(float(np.abs(flat * factor - luma).mean()) for factor in (1.0, 255.0)) <= 2.0:
            yield from fact("wrong-input-kind", ("pixels that are Y", float(luma.size), ""), subjects=(picture.name,))
            return


#: How the numbers of a tensor may lie in the bytes that were sent for NV12.
_PACKINGS: Mapping[str, Callable[[Picture], Bytes]] = {
    "planes": lambda picture: _levels(picture.rgb),
    "pixels": lambda picture: _levels(picture.rgb.transpose(0, 2, 3, 1)),
    "pixels, channels reversed": lambda picture: _levels(picture.rgb[:, ::-1].transpose(0, 2, 3, 1)),
    "float32": lambda picture: _raw(picture.fed(picture.rgb).astype(np.float32)),
    "signed bytes": lambda picture: _levels((picture.rgb + 128.0) % 256.0),
}


def _levels(rgb: Array) -> Bytes:
    return np.clip(np.rint(rgb), 0, 255).astype(np.uint8).reshape(-1)


def _raw(value: Tensor) -> Bytes:
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def packing(picture: Picture, y: Bytes, uv: Bytes) -> str | None:
    """Which form of the tensor itself lies, cut to their length, in the buffers of the planes; None: none."""
    size = picture.size[0] * picture.size[1]
    sent = np.concatenate([y[:size], uv[: size // 2]]).astype(np.int16)
    if len(sent) < max(LEAST_BYTES, size) or not np.ptp(uv):
        return None
    for name, pack in _PACKINGS.items():
        held = pack(picture)[: len(sent)].astype(np.int16)
        if len(held) == len(sent) and float((np.abs(held - sent) <= ONE_LEVEL).mean()) >= _ALIKE:
            return name
    return None


def holds_tensor(picture: Picture, y: Bytes, uv: Bytes) -> bool:
    """Whether the buffers hold the tensor itself, not a picture of it."""
    return packing(picture, y, uv) is not None


def find_tensor_as_planes(bench: Bench) -> Iterator[Explanation]:
    """The planes of an NV12 input were filled with the bytes of the feature map."""
    e = bench.evidence
    picture = picture_of(e.feeds_a)
    if picture is None or not picture.fits_nv12 or len(picture.rgb) != 1:
        return
    y, uv = e.buffers.get("y"), e.buffers.get("uv")
    if y is not None and uv is not None:
        form = packing(picture, y, uv)
        if form is not None:
            sent = float(min(len(y) + len(uv), picture.rgb.size))
            numbers = (("bytes of the tensor sent as planes", sent, f"of {picture.rgb.size}"),)
            yield from fact("wrong-input-kind", *numbers, subjects=(picture.name, form))
        return
    fed = picture_of(e.feeds_b)
    if fed is None or fed.rgb.shape != picture.rgb.shape or float(np.abs(fed.rgb - picture.rgb).mean()) < ONE_LEVEL:
        return
    area = picture.size[0] * picture.size[1]
    for (form, pack), conversion in itertools.product(_PACKINGS.items(), CONVERSIONS):
        held = pack(picture)
        luma, chroma = unpacked(held[:area], held[area : area * 3 // 2], picture.size, picture.size[1])
        if float(np.abs(pixels(luma, chroma, conversion) - fed.rgb).mean()) < ONE_LEVEL:
            yield from fact("wrong-input-kind", ("tensor read as planes", 1.0, ""), subjects=(picture.name, form))
            return


def _told(bench: Bench) -> bool:
    return bench.evidence.board is not None


def _sent_planes(bench: Bench) -> bool:
    """Whether something says that planes were sent: a board's input, or their buffers."""
    board = bench.evidence.board
    told = board is not None and board.input is not None and "nv12" in board.input.type.lower()
    return bool(bench.evidence.feeds_a) and (told or "y" in bench.evidence.buffers)


def _both_fed(bench: Bench) -> bool:
    return bool(bench.evidence.feeds_a) and bool(bench.evidence.feeds_b)


KIND_RULES = (
    Rule(("wrong-input-kind",), 0, _told, find_wrong_kind),
    Rule(("wrong-input-kind",), 1, _sent_planes, find_tensor_as_planes),
    Rule(("wrong-input-kind",), 1, _both_fed, find_planes_as_tensor),
)
