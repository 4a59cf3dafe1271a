"""How tensors lie in the board's memory: strides, padding, and bytes in that form (toolchain facts §7.2, §9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from support.vendor.files import TensorTold

#: What stands in the padding of every tensor that the board writes: never zero, so that a misreading shows.
FILL = 0xA5
WIDE = ("nash-h", "nash-p")
LEAST_BYTES = 256


def alignment(march: str) -> int:
    """The multiple of bytes that a row begins at."""
    return 64 if march in WIDE else 32


def aligned(size: int, step: int) -> int:
    """The next multiple."""
    return -(-size // step) * step


def dense(shape: Sequence[int], item: int) -> tuple[int, ...]:
    """Strides without padding."""
    found = [item]
    for length in reversed(shape[1:]):
        found.append(found[-1] * length)
    return tuple(reversed(found)) if shape else ()


def laid_out(tensor: TensorTold, march: str, *, padded: bool) -> TensorTold:
    """The tensor with its strides and size: the innermost row padded, or nothing."""
    item = tensor.kind.itemsize
    if not padded or len(tensor.shape) < 2:
        size = tensor.valid_bytes
        return replace(
            tensor, stride=dense(tensor.shape, item), aligned_bytes=aligned(size, LEAST_BYTES if padded else 1)
        )
    row = aligned(tensor.shape[-1] * item, alignment(march))
    stride = (*dense(tensor.shape[:-1], row), item)
    return replace(tensor, stride=stride, aligned_bytes=aligned(stride[0] * tensor.shape[0], LEAST_BYTES))


def plane(tensor: TensorTold, march: str, *, dynamic: bool) -> TensorTold:
    """A plane of NV12: its row padded, or strides that whoever feeds it chooses."""
    channels = tensor.shape[3]
    if dynamic:
        return replace(tensor, stride=(-1, -1, channels, 1), aligned_bytes=-1)
    row = aligned(tensor.shape[2] * channels, alignment(march))
    return replace(tensor, stride=(row * tensor.shape[1], row, channels, 1), aligned_bytes=row * tensor.shape[1])


def chosen(tensor: TensorTold, march: str) -> TensorTold:
    """The tensor with the strides that a tool takes by itself where they are dynamic."""
    return plane(tensor, march, dynamic=False) if -1 in tensor.stride else tensor


def view(buffer: np.ndarray[Any, Any], tensor: TensorTold) -> np.ndarray[Any, Any]:
    """The valid part of a buffer of bytes, as a writable view."""
    found: np.ndarray[Any, Any] = np.ndarray(tensor.shape, tensor.kind, buffer.data, 0, tensor.stride)
    return found


def padded_bytes(value: np.ndarray[Any, Any], tensor: TensorTold) -> np.ndarray[Any, Any]:
    """The tensor as it lies in memory."""
    buffer = np.full(tensor.aligned_bytes, FILL, np.uint8)
    view(buffer, tensor)[...] = value
    return buffer
