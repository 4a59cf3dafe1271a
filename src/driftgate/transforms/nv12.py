"""RGB pixels as NV12 and back: a plane of Y, and one of U and V interleaved at half the width and height."""

from __future__ import annotations

import numpy as np

from driftgate.transforms.colours import BT601, OFFSET, bytes_of, ycbcr
from driftgate.transforms.resampling import Numbers, Pixels

#: Video range: Y is in 16 … 235, U and V are in 16 … 240 around 128.
VIDEO_GAIN = np.array([219.0, 224.0, 224.0]) / 255.0
VIDEO_OFFSET = np.array([16.0, 128.0, 128.0])


def nv12(rgb: Pixels, *, video: bool = False) -> tuple[Pixels, Pixels]:
    """Y (1, height, width, 1) and UV (1, height / 2, width / 2, 2) of RGB pixels (height, width, 3), without strides.

    BT.601, full or video range. U and V are the mean of 2 × 2 pixels, rounded once. Height and width must be even.
    """
    return planes(ycbcr(rgb), video=video)


def planes(values: Numbers, *, video: bool = False) -> tuple[Pixels, Pixels]:
    """The same of Y, U and V in full range (height, width, 3), not rounded."""
    height, width = values.shape[:2]
    if video:
        values = (values - OFFSET) * VIDEO_GAIN + VIDEO_OFFSET
    luma = bytes_of(values[None, :, :, :1])
    chroma = values[:, :, 1:].reshape(height // 2, 2, width // 2, 2, 2).mean((1, 3))
    return luma, bytes_of(chroma[None])


def ycbcr_of(luma: Pixels, chroma: Pixels, *, video: bool = False) -> Numbers:
    """Y, U and V in full range (height, width, 3) of the two planes; each U and V stands for 2 × 2 pixels."""
    wide = chroma[0].repeat(2, axis=0).repeat(2, axis=1)
    values = np.concatenate([luma[0], wide], axis=2).astype(np.float64)
    return (values - VIDEO_OFFSET) / VIDEO_GAIN + OFFSET if video else values


def rgb_of(values: Numbers) -> Pixels:
    """RGB pixels of Y, U and V in full range (height, width, 3), rounded once."""
    return bytes_of((values - OFFSET) @ np.linalg.inv(BT601).T)
