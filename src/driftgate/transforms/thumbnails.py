"""Small pictures of tensors that are images, as PNG, for people to look at."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.transforms.resampling import Pixels

Tensor = NDArray[Any]

SMALLEST, MOST = 8, 320  # pixels of a side: less is no picture; more is made smaller
GREY, COLOUR = 1, 3
#: Of numbers that are no bytes, the shares of the darkest and of the brightest pixels that may be lost.
DARK, BRIGHT = 0.5, 99.5


def pixels_of(tensor: Tensor) -> Pixels | None:
    """RGB or grey pixels (height, width, 1 or 3) of one image (1, C, H, W), (1, H, W, C), (C, H, W), (H, W) or
    (1, H, W); None where it is none. Numbers that are no bytes are spread from the darkest to the brightest."""
    array = tensor[0] if tensor.ndim in (3, 4) and tensor.shape[0] == 1 else tensor
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3:
        return None
    if array.shape[0] in (GREY, COLOUR) and min(array.shape[1:]) >= SMALLEST:
        array = array.transpose(1, 2, 0)
    if array.shape[2] not in (GREY, COLOUR) or min(array.shape[:2]) < SMALLEST or array.dtype.kind not in "biuf":
        return None
    return array if array.dtype == np.uint8 else _spread(array)


def png(pixels: Pixels) -> tuple[bytes, float]:
    """A PNG of pixels (height, width, 1 or 3), at most MOST high and wide, and its scale: 1 where it is as large."""
    import PIL.Image

    shown = pixels[:, :, 0] if pixels.shape[2] == GREY else pixels
    image = PIL.Image.fromarray(np.ascontiguousarray(shown))
    scale = min(1.0, MOST / max(image.size))
    if scale < 1.0:
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(size, PIL.Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue(), scale


def _spread(array: Tensor) -> Pixels:
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    low, high = np.percentile(finite, (DARK, BRIGHT)) if finite.size else (0.0, 1.0)
    shown = np.nan_to_num((numbers - low) / max(high - low, 1e-12), nan=0.0, posinf=1.0, neginf=0.0)
    made: Pixels = np.rint(np.clip(shown, 0.0, 1.0) * 255).astype(np.uint8)
    return made
