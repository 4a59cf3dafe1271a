"""Pictures that one side letterboxes and the other stretches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.channel_maps import relative
from driftgate.diagnosis.same_feeds import fed_alike
from driftgate.diagnosis.trials import explained, fact
from driftgate.domain.investigations import Explanation

Array = NDArray[np.float64]

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
        made = fed_alike(bench, "resize-letterbox-mismatch", "same geometry", target=name)
        if made is None:
            yield from fact("resize-letterbox-mismatch", *facts, subjects=(name,), confirmed=False)
            continue
        yield from explained(made, subjects=(name,), facts=facts)


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
