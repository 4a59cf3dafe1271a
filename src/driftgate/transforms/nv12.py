"""RGB pixels as NV12: a plane of Y, and one of U and V interleaved at half the width and height."""

from __future__ import annotations

from driftgate.transforms.colours import bytes_of, ycbcr
from driftgate.transforms.resampling import Pixels


def nv12(rgb: Pixels) -> tuple[Pixels, Pixels]:
    """Y (1, height, width, 1) and UV (1, height / 2, width / 2, 2) of RGB pixels (height, width, 3), without strides.

    BT.601, full range. U and V are the mean of 2 × 2 pixels, rounded once. Height and width must be even.
    """
    height, width = rgb.shape[:2]
    values = ycbcr(rgb)
    luma = bytes_of(values[None, :, :, :1])
    chroma = values[:, :, 1:].reshape(height // 2, 2, width // 2, 2, 2).mean((1, 3))
    return luma, bytes_of(chroma[None])
