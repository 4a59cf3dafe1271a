"""Causes in how camera pictures reach the network: pitch and order of NV12 buffers, and what NV12 loses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.channel_maps import relative
from driftgate.diagnosis.input_kinds import KIND_RULES, holds_tensor
from driftgate.diagnosis.letterboxes import find_letterbox
from driftgate.diagnosis.pictures import (
    CONVERSIONS,
    Conversion,
    Picture,
    picture_of,
    pixels,
    planes,
    through_nv12,
    unpacked,
)
from driftgate.diagnosis.same_feeds import rounding_floor
from driftgate.diagnosis.trials import Fact, Rule, explained, fact, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]
Array = NDArray[Any]
Bytes = NDArray[np.uint8]

MEAN_LOSS = 0.03  # of 255, over a picture: NV12 loses no more of most, or what it loses of this one
SAME_READING = 0.004  # of 255, over a picture: one level, as integer arithmetic rounds
EXACT = 1e-2  # of the range, of the worst pixel
PAIRS = 96  # of rows that are compared to find the reading
MOST_PITCHES = 4  # that are looked at in colours, closest luma first
_ALIGNMENTS = (2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True, slots=True)
class Buffers:
    """The planes as they were sent, for a picture of (height, width), and the pitch that the board tells."""

    y: Bytes
    uv: Bytes
    size: tuple[int, int]
    stride: int


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read NV12 buffers."""

    conversion: Conversion
    pitch: int
    exchanged: bool  # V before U
    reversed: bool  # the network eats BGR

    def rgb(self, buffers: Buffers, pairs: Array | None = None) -> Array:
        """The picture, (1, 3, height, width), or some pairs of rows of it."""
        luma, chroma = unpacked(buffers.y, buffers.uv, buffers.size, self.pitch)
        if pairs is not None:
            luma, chroma = luma[:, _rows_of(pairs)], chroma[:, pairs]
        found = pixels(luma, chroma[..., ::-1] if self.exchanged else chroma, self.conversion)
        return found[:, ::-1] if self.reversed else found


@dataclass(frozen=True, slots=True)
class Readings:
    """How buffers must be read to give the reference's picture, and how the candidate read them."""

    picture: Picture
    right: Reading
    used: Reading
    right_rgb: Array
    used_rgb: Array
    loss: float  # mean difference to the reference's picture, of 255, read rightly
    error: float  # the same, as the candidate read them

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What was found, for a finding."""
        return (
            ("pitch of the buffer", float(self.right.pitch), "bytes"),
            ("pitch it was read with", float(self.used.pitch), "bytes"),
            ("image error before", self.error, "of 255"),
            ("image error after", self.loss, "of 255"),
        )


def _readings(bench: Bench) -> Readings | None:
    """None where there are no buffers, or no reading of them is the reference's picture."""
    e = bench.evidence
    picture, y, uv = picture_of(e.feeds_a), e.buffers.get("y"), e.buffers.get("uv")
    if picture is None or y is None or uv is None or not picture.fits_nv12 or len(picture.rgb) != 1:
        return None
    if holds_tensor(picture, y, uv):
        return None
    board = e.board.input if e.board is not None else None
    stride = board.stride if board is not None and board.stride else picture.size[1]
    buffers = Buffers(y, uv, picture.size, stride)
    right = _closest(buffers, picture.rgb)
    right_rgb = right.rgb(buffers)
    loss, usual = (_gap(found, picture.rgb) for found in (right_rgb, through_nv12(picture.rgb, right.conversion)))
    if loss > max(MEAN_LOSS, 1.2 * usual):
        return None
    fed = picture_of(e.feeds_b)
    if fed is not None and fed.rgb.shape == picture.rgb.shape:
        used = _closest(buffers, fed.rgb, first=right)
    else:
        used = Reading(right.conversion, stride, False, right.reversed)
    used_rgb = used.rgb(buffers)
    error = _gap(used_rgb, picture.rgb)
    if used.pitch == right.pitch and used.exchanged == right.exchanged and error <= 1.2 * loss + 1e-3:
        right, right_rgb = used, used_rgb  # conversions that this picture does not tell apart
    return Readings(picture, right, used, right_rgb, used_rgb, loss, error)


def _closest(buffers: Buffers, wanted: Array, *, first: Reading | None = None) -> Reading:
    """The reading that is closest to a picture: its pitch by the luma, the rest by the colours; of equal ones the
    `first`, which says whether the channels are reversed, or the usual one. Looks at some rows of large pictures."""
    height, width = buffers.size
    pairs = np.unique(np.linspace(0, height // 2 - 1, min(height // 2, PAIRS)).astype(np.int64))
    rows = _rows_of(pairs)
    some = wanted[:, :, rows]
    lumas = [planes(some[:, ::step], conversion)[0] for conversion in CONVERSIONS for step in (1, -1)]
    gaps = {}
    for pitch in _pitches(width, buffers.stride, len(buffers.y) // height):
        luma = unpacked(buffers.y, buffers.uv, buffers.size, pitch)[0][:, rows]
        gaps[pitch] = min(_gap(luma, other) for other in lumas)
    pitches = sorted(gaps, key=lambda pitch: (round(gaps[pitch], 6), pitch != buffers.stride))[:MOST_PITCHES]
    orders = (False, True) if first is None else (first.reversed,)
    ways = [Reading(*each) for each in itertools.product(CONVERSIONS, pitches, (False, True), orders)]
    errors = {way: _gap(way.rgb(buffers, pairs), some) for way in ways}
    return min(
        errors,
        key=lambda way: (round(errors[way], 6), way != first, way.pitch != buffers.stride, way.exchanged, way.reversed),
    )


def _rows_of(pairs: Array) -> Array:
    return np.stack([2 * pairs, 2 * pairs + 1], 1).reshape(-1)


def _gap(a: Array, b: Array) -> float:
    return float(np.abs(a - b).mean()) / 255


def _pitches(width: int, stride: int, held: int) -> tuple[int, ...]:
    aligned = tuple(-(-width // to) * to for to in _ALIGNMENTS)
    return tuple(dict.fromkeys(pitch for pitch in (stride, width, held, *aligned) if pitch >= width))


def find_nv12(bench: Bench) -> Iterator[Explanation]:
    """How the buffers must be read to give the reference's picture, and how they were read."""
    found = _readings(bench)
    if found is None:
        return
    if found.right.pitch != found.used.pitch:
        yield from _misread(bench, "nv12-stride-padding", found)
    if found.right.exchanged != found.used.exchanged:
        yield from _misread(bench, "nv12-uv-order", found)
    if found.right == found.used:
        yield from _lossy(bench, found.picture, found.used_rgb, found.facts)


def _misread(bench: Bench, code: str, found: Readings) -> Iterator[Explanation]:
    """The wrong reading applied gives the candidate's outputs; or the right one gives the reference's but for what
    NV12 loses."""
    name, feeds = found.picture.name, bench.evidence.feeds_a
    made = [
        trial(code, "read wrong", bench.start, after, bench.floor, target=name)
        for after in _applied(bench, found.picture, found.used_rgb)
    ]
    undone = bench.run(bench.b, {**feeds, name: found.picture.fed(found.right_rgb)})
    if undone is not None:
        floor = max(bench.floor, 2 * _loss(bench, found))
        after = bench.distance(bench.outputs_a, undone)
        made.append(trial(code, "read right", bench.start, after, floor, target=name))
    if not made:
        yield from fact(code, *found.facts, subjects=(name,), confirmed=False)
        return
    best = min(made, key=lambda tried: (tried.result.value != "confirmed", tried.after))
    yield from explained(best, subjects=(name,), facts=found.facts)


def _applied(bench: Bench, picture: Picture, rgb: Array) -> Iterator[float]:
    """The residual of what gave the candidate's outputs, fed a picture as it was read; then as it was recorded."""
    e = bench.evidence
    side = bench.b if bench.b.runs else bench.a
    fed = [{**e.feeds_a, picture.name: picture.fed(rgb)}]
    recorded = picture_of(e.feeds_b)
    if recorded is not None and recorded.rgb.shape == rgb.shape and _gap(recorded.rgb, rgb) <= SAME_READING:
        fed.append(dict(e.feeds_b))
    for feeds in fed:
        made = bench.tried(side, feeds)
        if made is not None:
            yield bench.distance(made, bench.outputs_b)


def _loss(bench: Bench, found: Readings) -> float:
    """What the conversion alone does to the reference's outputs; 0 where that cannot be computed."""
    lossy = found.picture.fed(through_nv12(found.picture.rgb, found.right.conversion))
    made = bench.run(bench.a, {**bench.evidence.feeds_a, found.picture.name: lossy})
    gap = math.inf if made is None else bench.distance(bench.outputs_a, made)
    return gap if math.isfinite(gap) else 0.0


def _lossy(bench: Bench, picture: Picture, rgb: Array, facts: tuple[Fact, ...] = ()) -> Iterator[Explanation]:
    """The whole difference is what NV12 loses: what gave the candidate's outputs gives them from the lossy picture,
    and fed as the reference was it agrees. Suspected where no model runs and the pictures tell all."""
    if not (bench.a.runs or bench.b.runs):
        if bench.evidence.feeds_b:
            yield from fact("nv12-conversion-loss", *facts, subjects=(picture.name,), confirmed=False)
        return
    if bench.b.runs:
        same = bench.run(bench.b, bench.evidence.feeds_a)
        if same is None or bench.distance(bench.outputs_a, same) > rounding_floor(bench):
            return
    floor = max(bench.floor, 10 * FLOAT_FLOOR)
    for after in _applied(bench, picture, rgb):
        tried = trial("nv12-conversion-loss", "to NV12 and back", bench.start, after, floor, target=picture.name)
        if tried.result.value == "confirmed":
            yield from explained(tried, subjects=(picture.name,), facts=facts)
            return


def find_roundtrip(bench: Bench) -> Iterator[Explanation]:
    """Without buffers: the reference's picture to NV12 and back, in both orders of U and V, is what was fed."""
    e = bench.evidence
    picture = picture_of(e.feeds_a)
    if picture is None or "y" in e.buffers or not picture.fits_nv12:
        return
    if not e.feeds_b and (bench.replays_b or bench.fixed_point):
        return  # it was fed as the reference; or rounding is as large as what NV12 does
    told = e.board is not None and e.board.input is not None and "nv12" in e.board.input.type.lower()
    conversions = CONVERSIONS if told or e.feeds_b else CONVERSIONS[:1]
    for exchanged, conversion in itertools.product((False, True), conversions):
        if not bench.has_time:
            return
        rgb = through_nv12(picture.rgb, conversion, exchanged=exchanged)
        if e.feeds_b and not _is_fed(bench, picture, rgb):
            continue
        found = tuple(_exchanged(bench, picture, rgb) if exchanged else _lossy(bench, picture, rgb))
        yield from found
        if found:
            return


def _is_fed(bench: Bench, picture: Picture, rgb: Array) -> bool:
    told = bench.evidence.feeds_b.get(picture.name)
    return told is not None and relative(picture.fed(rgb), told) <= EXACT


def _exchanged(bench: Bench, picture: Picture, rgb: Array) -> Iterator[Explanation]:
    for after in _applied(bench, picture, rgb):
        floor = max(bench.floor, 10 * FLOAT_FLOOR)
        tried = trial("nv12-uv-order", "U and V exchanged", bench.start, after, floor, target=picture.name)
        if tried.result.value == "confirmed":
            yield from explained(tried, subjects=(picture.name,))
            return


def loses_only_chroma(bench: Bench) -> bool:
    """Whether all that the candidate's feeds differ in is what NV12 loses of the reference's pictures."""
    e = bench.evidence
    picture, fed = picture_of(e.feeds_a), picture_of(e.feeds_b)
    if picture is None or fed is None or fed.rgb.shape != picture.rgb.shape or not picture.fits_nv12:
        return False
    if any(n not in e.feeds_b or relative(a, e.feeds_b[n]) > EXACT for n, a in e.feeds_a.items() if n != picture.name):
        return False
    found = _readings(bench)
    if found is not None:
        return found.right == found.used and _gap(found.used_rgb, fed.rgb) <= SAME_READING
    return any(_is_fed(bench, picture, through_nv12(picture.rgb, conversion)) for conversion in CONVERSIONS)


def _has_nv12(bench: Bench) -> bool:
    return bool(bench.evidence.feeds_a) and "y" in bench.evidence.buffers


def _both(bench: Bench) -> bool:
    return bool(bench.evidence.feeds_a) and bool(bench.evidence.feeds_b)


RULES = (
    *KIND_RULES,
    Rule(("nv12-stride-padding", "nv12-uv-order", "nv12-conversion-loss"), 1, _has_nv12, find_nv12),
    Rule(("resize-letterbox-mismatch",), 1, _both, find_letterbox),
    Rule(("nv12-conversion-loss", "nv12-uv-order"), 2, lambda bench: bool(bench.evidence.feeds_a), find_roundtrip),
)
