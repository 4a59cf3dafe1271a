"""The demo's stand-in for a board: the engine between buffers laid out as a board wants and dumps them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftgate.demo.engine import Program, run
from driftgate.demo.quantize import Int8s

ALIGNMENT = 32  # bytes, of a row of pixels; that of J6M
_UNUSED = 0x5A  # fills what lies between the rows


def run_on_board(program: Program, images: Int8s) -> dict[str, Int8s]:
    """Every activation of int8 images (n, 1, 8, 8) by name: through an NHWC input buffer, dumped as NHWC buffers."""
    return {name: _dumped(value) for name, value in run(program, _dumped(images)).items()}


def _dumped(tensor: Int8s) -> Int8s:
    """A tensor through a buffer and back; one of rank 2 has pixels of one."""
    shape = tensor.shape if tensor.ndim == len("NCHW") else (*tensor.shape, 1, 1)
    return unpack(pack(tensor.reshape(shape)), shape).reshape(tensor.shape)


def pack(tensor: Int8s) -> NDArray[np.uint8]:
    """An NCHW tensor as a flat buffer: NHWC, every row of pixels filled up to a multiple of the alignment."""
    n, channels, height, width = tensor.shape
    rows = tensor.transpose(0, 2, 3, 1).reshape(n, height, width * channels).view(np.uint8)
    buffer = np.full((n, height, row_bytes(width, channels)), _UNUSED, np.uint8)
    buffer[:, :, : width * channels] = rows
    return buffer.ravel()


def unpack(buffer: NDArray[np.uint8], shape: tuple[int, ...]) -> Int8s:
    """The NCHW tensor of that shape in a flat buffer."""
    n, channels, height, width = shape
    rows = buffer.reshape(n, height, row_bytes(width, channels))[:, :, : width * channels]
    tensor: Int8s = rows.copy().view(np.int8).reshape(n, height, width, channels).transpose(0, 3, 1, 2)
    return tensor


def row_bytes(width: int, channels: int) -> int:
    """What one row of pixels takes in a buffer."""
    return -(-width * channels // ALIGNMENT) * ALIGNMENT
