"""Tensors as they lie in a board's memory: rows padded to an alignment (toolchain facts §7.2, §9)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

Tensor = NDArray[Any]


class StrideError(ValueError):
    """A buffer that cannot be the tensor; says how many bytes it has and how many were wanted."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a tensor's numbers are: numpy's name of their type, the valid shape, and for each axis how many bytes
    lie between one index and the next; without `stride` there is no padding."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] = ()

    @property
    def item_bytes(self) -> int:
        """One number."""
        return np.dtype(self.dtype).itemsize

    @property
    def valid_bytes(self) -> int:
        """All numbers, without padding."""
        return math.prod(self.shape) * self.item_bytes

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides, those without padding where none are told."""
        return self.stride or dense_strides(self.shape, self.item_bytes)

    @property
    def reach_bytes(self) -> int:
        """From the first byte to the last one that is a number."""
        if not math.prod(self.shape):
            return 0
        return sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)) + self.item_bytes


def dense_strides(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """The strides of a tensor in C order without padding."""
    return tuple(math.prod(shape[axis + 1 :]) * item_bytes for axis in range(len(shape)))


def tensor_of(buffer: bytes, layout: Layout) -> Tensor:
    """The valid numbers of a buffer, as a fresh array; one of just their bytes had its padding removed already.

    Raises StrideError for a buffer that is too short, or strides in which rows overlap.
    """
    shape, strides = layout.shape, layout.strides
    if len(strides) != len(shape) or any(step < 0 for step in strides) or not _is_apart(layout):
        raise StrideError(f"strides {strides} do not hold a tensor {shape} of {layout.dtype}")
    if len(buffer) == layout.valid_bytes:
        strides = dense_strides(shape, layout.item_bytes)
    elif len(buffer) < layout.reach_bytes:
        wanted = f"{layout.valid_bytes} bytes without padding, or {layout.reach_bytes} and more with it"
        raise StrideError(f"{len(buffer)} bytes, wanted {wanted}: {shape} of {layout.dtype}, strides {layout.strides}")
    flat = np.frombuffer(buffer, np.uint8)
    numbers = as_strided(flat, (*shape, layout.item_bytes), (*strides, 1), writeable=False)
    found: Tensor = np.ascontiguousarray(numbers).view(layout.dtype).reshape(shape)
    return found


def bytes_of(tensor: Tensor, layout: Layout, *, total_bytes: int | None = None) -> bytes:
    """A tensor as a buffer with its padding, which is zero; `total_bytes` where the whole is aligned as well.

    Raises StrideError where the tensor is another one, or does not fit.
    """
    if tensor.shape != layout.shape or tensor.dtype.name != layout.dtype or not _is_apart(layout):
        wanted = f"{layout.shape} of {layout.dtype}, strides {layout.strides}"
        raise StrideError(f"a tensor {tensor.shape} of {tensor.dtype.name}, wanted {wanted}")
    size = layout.reach_bytes if total_bytes is None else total_bytes
    if size < layout.reach_bytes:
        raise StrideError(f"a buffer of {size} bytes, wanted {layout.reach_bytes} and more")
    buffer = np.zeros(size, np.uint8)
    numbers = as_strided(buffer, (*layout.shape, layout.item_bytes), (*layout.strides, 1))
    numbers[...] = np.ascontiguousarray(tensor).reshape(*layout.shape, 1).view(np.uint8)
    return buffer.tobytes()


def nv12_stride(shape: tuple[int, ...], w_stride: int) -> tuple[int, ...]:
    """The strides of a plane (1, height, width, channels) of NV12 whose rows are aligned to `w_stride` bytes."""
    _, height, width, channels = shape
    row = -(-width * channels // w_stride) * w_stride
    return (row * height, row, channels, 1)


def _is_apart(layout: Layout) -> bool:
    """Whether no two numbers share a byte: each axis steps over all that lies within."""
    within = layout.item_bytes
    for n, step in reversed(list(zip(layout.shape, layout.strides, strict=True))):
        if n > 1 and step < within:
            return False
        within = max(within, n * step)
    return True
