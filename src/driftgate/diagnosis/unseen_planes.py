"""How NV12 planes may have been misread where no picture tells: in another order or with another pitch, tried on
whatever runs the stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench, Tensors
from driftgate.diagnosis.trials import Fact, Rule, explained, trial
from driftgate.domain.investigations import Explanation

Bytes = NDArray[np.uint8]
LUMA, CHROMA = "_y", "_uv"
#: Bytes that rows are aligned to, those of the platforms first.
ALIGNMENTS = (32, 64, 16, 128, 256)
ORDER, PITCH = "nv12-uv-order", "nv12-stride-padding"


@dataclass(frozen=True, slots=True)
class Misreading:
    """One suspected error, and what it makes of the planes."""

    code: str
    transform: str
    facts: tuple[Fact, ...]
    y: Bytes
    uv: Bytes


def plane_names(feeds: Tensors) -> Iterator[tuple[str, str]]:
    """Names of luma and chroma that belong together, as bytes (N, height, width, 1) and half of it with 2."""
    for name, luma in feeds.items():
        chroma = feeds.get(name.removesuffix(LUMA) + CHROMA) if name.endswith(LUMA) else None
        if chroma is None or luma.dtype != np.uint8 or chroma.dtype != np.uint8 or luma.ndim != 4 or chroma.ndim != 4:
            continue
        if chroma.shape == (luma.shape[0], luma.shape[1] // 2, luma.shape[2] // 2, 2) and luma.shape[3] == 1:
            yield name, name.removesuffix(LUMA) + CHROMA


def find_misread_planes(bench: Bench) -> Iterator[Explanation]:
    """Which misreading of the planes makes the outputs agree.

    Where both sides were fed the same, it is applied to the reference; else undone on the candidate, which then must
    come as close as quantisation lets it.
    """
    feeds = bench.evidence.feeds_b or bench.evidence.feeds_a
    side, wanted = (bench.a, bench.outputs_b) if bench.same_feeds else (bench.b, bench.outputs_a)
    for name, partner in plane_names(feeds):
        for guess in _misreadings(feeds[name], feeds[partner]):
            if not bench.has_time:
                return
            made = bench.tried(side, {**feeds, name: guess.y, partner: guess.uv})
            if made is None:
                continue
            after = bench.distance(made, wanted)
            tried = trial(guess.code, guess.transform, bench.start, after, bench.floor, target=name)
            if tried.result.value == "confirmed":
                yield from explained(tried, subjects=(name, partner), facts=guess.facts)
                return


def _misreadings(y: Bytes, uv: Bytes) -> Iterator[Misreading]:
    yield Misreading(ORDER, "U and V exchanged", (), y, np.ascontiguousarray(uv[..., ::-1]))
    width = y.shape[2]
    for pitch in dict.fromkeys(-(-width // to) * to for to in ALIGNMENTS):
        if pitch > width:
            facts = (("pitch", float(pitch), "bytes"), ("width", float(width), "bytes"))
            yield Misreading(PITCH, "read with padding", facts, _widely(y, pitch), _widely(uv, pitch))
            yield Misreading(PITCH, "padding read as pixels", facts, _tightly(y, pitch), _tightly(uv, pitch))


def _widely(plane: Bytes, pitch: int) -> Bytes:
    """Rows that lie close together, read as if they had a pitch; zeros behind the end."""
    count, height, width, channels = plane.shape
    held = np.zeros((count, height * pitch), np.uint8)
    flat = plane.reshape(count, -1)
    held[:, : flat.shape[1]] = flat
    return held.reshape(count, height, pitch)[:, :, : width * channels].reshape(plane.shape)


def _tightly(plane: Bytes, pitch: int) -> Bytes:
    """Rows with a pitch, their padding zero, read as if they lay close together."""
    count, height, width, channels = plane.shape
    held = np.zeros((count, height, pitch), np.uint8)
    held[:, :, : width * channels] = plane.reshape(count, height, -1)
    return held.reshape(count, -1)[:, : height * width * channels].reshape(plane.shape)


def _has_planes(bench: Bench) -> bool:
    feeds: Any = bench.evidence.feeds_b or bench.evidence.feeds_a
    side = bench.a if bench.same_feeds else bench.b
    there = bool(bench.outputs_a) and bool(bench.outputs_b)
    return side.answers and there and any(True for _ in plane_names(feeds))


RULES = (Rule((ORDER, PITCH), 2, _has_planes, find_misread_planes),)
