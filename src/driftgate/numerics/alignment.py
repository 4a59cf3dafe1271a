"""Making two outputs comparable: dequantise, permute, drop singleton axes, put tied entries into one order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.tensors import Quantization

Tensor = NDArray[Any]

CHANNELS_LEAST, CHANNELS_MOST = 2, 1024
PICTURE_RANK = 4
#: Scales that hrt_model_exec prints have six digits (toolchain facts §7.3).
PRINTED = 6e-6


def dequantised(tensor: Tensor, quantization: Quantization) -> Tensor:
    """Integers as the numbers they stand for, (q - zero_point)·scale in float64; per axis where one is given."""
    scales, zeros = _around(tensor, quantization)
    values: Tensor = (tensor.astype(np.float64) - zeros) * scales
    return values


def quantised(tensor: Tensor, quantization: Quantization, dtype: str) -> Tensor:
    """Numbers as integers of a type, round(value / scale) + zero_point, ties to even, saturating: what a quantise node
    at the edge of a network does. NaN becomes the zero point."""
    scales, zeros = _around(tensor, quantization)
    reach = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        rounded = np.rint(np.nan_to_num(tensor.astype(np.float64) / scales, nan=0.0)) + zeros
    found: Tensor = np.clip(rounded, reach.min, reach.max).astype(dtype)
    return found


def _around(tensor: Tensor, quantization: Quantization) -> tuple[Tensor, Tensor]:
    """Scales and zero points in a shape that goes with the tensor."""
    scales = np.asarray(quantization.scales, dtype=np.float64)
    zeros = np.asarray(quantization.zero_points, dtype=np.float64)
    if quantization.axis is not None and (len(scales) > 1 or len(zeros) > 1):
        around: list[int] = [1] * tensor.ndim
        around[quantization.axis] = -1
        scales = scales.reshape(around) if scales.size > 1 else scales
        zeros = zeros.reshape(around) if zeros.size > 1 else zeros
    return scales, zeros


def alike(a: Quantization | None, b: Quantization | None) -> bool:
    """Whether integers of both stand for the same numbers; the scales may be those of a tool that prints six digits."""
    if a is None or b is None or a == b:
        return a == b
    if len(a.scales) != len(b.scales) or a.axis != b.axis or set(a.zero_points) != set(b.zero_points):
        return False
    fits = all(math.isclose(x, y, rel_tol=PRINTED) for x, y in zip(a.scales, b.scales, strict=True))
    return fits and (len(set(a.zero_points)) == 1 or a.zero_points == b.zero_points)


def same_shape(a: Tensor, b: Tensor) -> Tensor | None:
    """b in the shape of a where they differ by axes of length 1 only; None where they really differ."""
    if a.shape == b.shape:
        return b
    if [n for n in a.shape if n != 1] == [n for n in b.shape if n != 1]:
        return b.reshape(a.shape)
    return None


def equal(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are of one type and shape and have the same values; NaN is the same as NaN."""
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def all_equal(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> bool:
    """Whether both have the same names, and equal tensors under them."""
    return a.keys() == b.keys() and all(equal(value, b[name]) for name, value in a.items())


def channel_axis(shape: Sequence[int], quantised: int | None = None) -> int | None:
    """The axis along which an output is looked at piece by piece.

    The quantisation axis where there is one, else the first axis after the batch axis whose length is
    2 … 1024 (NCHW: the channels; logits: the classes); None where there is no such axis, and for pictures of
    one channel (N, 1, H, W): their rows are no channels.
    """
    if quantised is not None and quantised < len(shape):
        return quantised
    if len(shape) == PICTURE_RANK and shape[1] == 1 < min(shape[2:]):
        return None
    for axis in range(1, len(shape)):
        if CHANNELS_LEAST <= shape[axis] <= CHANNELS_MOST:
            return axis
    return None


def settle_ties(values_a: Tensor, values_b: Tensor, index_a: Tensor, index_b: Tensor) -> tuple[Tensor, int]:
    """The candidate's top-k indices with tied entries put into the reference's order, and how many moved.

    All four of one shape, sorted by falling value along the last axis. Two entries may change places only
    if the reference and the candidate give both exactly one and the same value; a tie that the k-th place
    cuts may hold other indices on either side. Anything else is left as it is, so that it is reported.
    """
    width = values_a.shape[-1]
    rows = [np.ascontiguousarray(t).reshape(-1, width) for t in (values_a, values_b, index_a, index_b)]
    settled = rows[3].copy()
    moved = 0
    for va, vb, ia, ib, out in zip(*rows, settled, strict=True):
        if np.array_equal(ia, ib) or not np.array_equal(va, vb) or (np.diff(va) > 0).any():
            continue
        start = 0
        for end in range(1, width + 1):
            if end < width and va[end] == va[start]:
                continue
            group = slice(start, end)
            cut = end == width and end - start > 1
            if cut or np.array_equal(np.sort(ia[group]), np.sort(ib[group])):
                moved += int((ia[group] != ib[group]).sum())
                out[group] = ia[group]
            start = end
    return settled.reshape(index_b.shape), moved
