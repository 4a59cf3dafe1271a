"""RGB pixels in the order and space of colours that a network eats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

import numpy as np

from driftgate.transforms.resampling import Numbers, Pixels

#: BT.601, full range (JPEG's): Y, then Cb (U) and Cr (V) around 128, of R, G and B in 0..255.
LUMA = np.array([0.299, 0.587, 0.114])
BT601 = np.array([LUMA, [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
OFFSET = np.array([0.0, 128.0, 128.0])


class Colour(str, Enum):
    """Order and space of the channels."""

    RGB = "rgb"
    BGR = "bgr"
    GRAY = "gray"
    YUV444 = "yuv444"  # BT.601, full range, U and V around 128
    NV12 = "nv12"  # the same, U and V of 2 × 2 pixels; two tensors, for deployed models only

    @property
    def channels(self) -> int:
        """How many numbers a pixel has."""
        return 1 if self is Colour.GRAY else 3


def coloured(rgb: Pixels, colour: Colour) -> Pixels:
    """RGB pixels (height, width, 3) as (height, width, channels), 8-bit; nv12 is not made here."""
    return COLOURS[colour](rgb)


def ycbcr(rgb: Pixels) -> Numbers:
    """Y, Cb, Cr (height, width, 3), not rounded."""
    found: Numbers = rgb.astype(np.float64) @ BT601.T + OFFSET
    return found


def bytes_of(values: Numbers) -> Pixels:
    """The nearest 8-bit numbers."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def _gray(rgb: Pixels) -> Pixels:
    return bytes_of(rgb.astype(np.float64) @ LUMA)[:, :, None]


COLOURS: Mapping[Colour, Callable[[Pixels], Pixels]] = {
    Colour.RGB: lambda rgb: rgb,
    Colour.BGR: lambda rgb: rgb[:, :, ::-1],
    Colour.GRAY: _gray,
    Colour.YUV444: lambda rgb: bytes_of(ycbcr(rgb)),
}
