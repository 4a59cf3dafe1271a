"""How one input is made of another: another order of axes or channels, a factor and an offset."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import SAME
from driftgate.diagnosis.outputs.channels import rows_along

Tensor = NDArray[Any]

MOST_CHANNELS = 64
FEWEST = 8  # numbers of a channel: through fewer, some factor and offset nearly always go


def relative(a: Tensor, b: Tensor) -> float:
    """Largest |a - b| of two inputs against the range of the first; inf where shapes differ."""
    if a.shape != b.shape or not a.size:
        return math.inf
    x, y = a.astype(np.float64), b.astype(np.float64)
    span = float(np.ptp(x)) or float(np.abs(x).max()) or 1.0
    gap = float(np.abs(x - y).max())
    return gap / span if math.isfinite(gap) else math.inf


# layouts


@dataclass(frozen=True, slots=True)
class Layout:
    """A buffer in one order of axes that is read in another."""

    code: str
    name: str
    apply: Callable[[Tensor], Tensor]
    order: tuple[int, ...] = ()


def layouts(tensor: Tensor) -> Iterator[Layout]:
    """The identity, then every other order in which the bytes of a tensor of this rank may lie."""
    yield Layout("", "identity", lambda value: value)
    rank = tensor.ndim
    if rank < 2 or rank > 5:
        return
    seen = [tensor]
    orders = [order for order in itertools.permutations(range(rank)) if order != tuple(range(rank))]
    batched = sorted(orders, key=lambda order: (order[0] != 0, order not in _NHWC, order))
    for order in batched:
        if rank == 5 and order[0] != 0:
            continue
        for inverse in (False, True) if order in _NHWC else (False,):
            moved = _moved(tensor, order, inverse)
            if any(np.array_equal(moved, other, equal_nan=moved.dtype.kind == "f") for other in seen):
                continue
            seen.append(moved)
            code = "layout-nhwc" if order in _NHWC else "noncontiguous-input"
            yield Layout(code, "reordered", _mover(order, inverse), order)


_NHWC = ((0, 2, 3, 1),)


def _mover(order: tuple[int, ...], inverse: bool) -> Callable[[Tensor], Tensor]:
    return lambda value: _moved(value, order, inverse)


def _moved(value: Tensor, order: tuple[int, ...], inverse: bool) -> Tensor:
    """The bytes of `value` in another order of axes, read in its shape; or the other way about."""
    if not inverse:
        return np.ascontiguousarray(value.transpose(order)).reshape(value.shape)
    back = tuple(int(axis) for axis in np.argsort(order))
    shape = tuple(value.shape[axis] for axis in order)
    return np.ascontiguousarray(value.reshape(shape).transpose(back))


# channels: permutation, factor and offset, from the data


@dataclass(frozen=True, slots=True)
class ChannelMap:
    """candidate[c] = scale[c] · reference[order[c]] + offset[c] along `axis`, within `error` of the range."""

    axis: int | None
    order: tuple[int, ...]
    scale: tuple[float, ...]
    offset: tuple[float, ...]
    error: float

    @property
    def permuted(self) -> bool:
        """Whether channels changed places."""
        return self.order != tuple(range(len(self.order)))

    @property
    def affine(self) -> bool:
        """Whether factors or offsets are there."""
        return not (np.allclose(self.scale, 1, atol=1e-4) and np.allclose(self.offset, 0, atol=1e-5 * self.size))

    @property
    def size(self) -> float:
        """The largest factor, at least 1."""
        return max(1.0, *(abs(value) for value in self.scale))


def channel_map(a: Tensor, b: Tensor) -> ChannelMap | None:
    """The map between the channels of two inputs of one shape; None where a channel has no partner."""
    if a.shape != b.shape or not a.size:
        return None
    axes = [axis for axis in range(1, a.ndim) if a.shape[axis] in (3, 4)] or [
        axis for axis in range(1, min(a.ndim, 2)) if 1 < a.shape[axis] <= MOST_CHANNELS
    ]
    found = [fitted for axis in (*axes, None) if (fitted := _fitted(a, b, axis)) is not None]
    return min(found, key=lambda m: (m.error > SAME * 10, m.permuted, m.affine, m.axis is not None), default=None)


def _fitted(a: Tensor, b: Tensor, axis: int | None) -> ChannelMap | None:
    x, y = (rows_along(value, axis) for value in (a, b))
    if x.shape[1] < FEWEST:
        return None
    deviations_x, deviations_y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    norm_x, norm_y = (np.sqrt((d**2).sum(1)) for d in (deviations_x, deviations_y))
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = (deviations_y @ deviations_x.T) / norm_y[:, None] / norm_x[None, :]
    if not np.isfinite(alike).all():
        return None
    order, scales, offsets = [], [], []
    for channel, row in enumerate(alike):
        near = np.flatnonzero(np.abs(row) >= 0.99999)
        if not near.size:
            near = np.array([int(np.abs(row).argmax())])
        errors = []
        for other in near:
            slope = float(row[other] * norm_y[channel] / norm_x[other])
            shift = float(y[channel].mean() - slope * x[other].mean())
            plain = abs(slope - 1) > 1e-4 or abs(shift) > 1e-5
            errors.append((plain, other != channel, other, slope, shift))
        _, _, other, slope, shift = min(errors)
        order.append(int(other))
        scales.append(slope)
        offsets.append(shift)
    made = np.array(scales)[:, None] * x[order] + np.array(offsets)[:, None]
    span = float(np.ptp(y)) or 1.0
    if sorted(order) != list(range(len(x))):
        return None
    return ChannelMap(axis, tuple(order), tuple(scales), tuple(offsets), float(np.abs(made - y).max()) / span)
