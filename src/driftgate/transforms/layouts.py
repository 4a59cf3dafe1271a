"""RGB pixels as the tensors of a feed: colours, range, normalisation, type and axes, in this order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.transforms.colours import Colour, coloured
from driftgate.transforms.nv12 import nv12
from driftgate.transforms.resampling import Pixels

Tensor = NDArray[Any]


class Layout(str, Enum):
    """The order of a feed's axes; the first always has length 1."""

    NCHW = "NCHW"
    NHWC = "NHWC"


class Range(str, Enum):
    """What the pixels 0 and 255 become."""

    UNIT = "0-1"
    BYTE = "0-255"
    SIGNED = "-1-1"


#: Divisor and subtrahend: value = pixel / divisor - subtrahend.
SCALES: Mapping[Range, tuple[float, float]] = {
    Range.UNIT: (255.0, 0.0),
    Range.BYTE: (1.0, 0.0),
    Range.SIGNED: (127.5, 1.0),
}


class ElementType(str, Enum):
    """The type of a feed's elements."""

    FLOAT32 = "float32"
    UINT8 = "uint8"  # the pixels as they are


@dataclass(frozen=True, slots=True)
class Encoding:
    """What a feed is made of. `mean` and `std` are in units of the range, one number, or one a channel in the
    order of the colours: value = (value - mean) / std."""

    feed: str
    colour: Colour
    range: Range
    layout: Layout
    dtype: ElementType
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


def encoded(rgb: Pixels, encoding: Encoding) -> dict[str, Tensor]:
    """The tensors of RGB pixels (height, width, 3): one, (1, channels, height, width) or as the layout says;
    two for nv12, `<feed>_y` and `<feed>_uv`, 8-bit, NHWC.

    Computed in double precision, rounded once to the type.
    """
    if encoding.colour is Colour.NV12:
        luma, chroma = nv12(rgb)
        return {f"{encoding.feed}_y": luma, f"{encoding.feed}_uv": chroma}
    pixels = coloured(rgb, encoding.colour)
    values: Tensor = pixels if encoding.dtype is ElementType.UINT8 else _normalised(pixels, encoding)
    if encoding.layout is Layout.NCHW:
        values = values.transpose(2, 0, 1)
    return {encoding.feed: np.array(values[None], order="C")}


def _normalised(pixels: Pixels, encoding: Encoding) -> Tensor:
    divisor, subtrahend = SCALES[encoding.range]
    values = pixels / divisor - subtrahend
    values = (values - np.array(encoding.mean or (0.0,))) / np.array(encoding.std or (1.0,))
    found: Tensor = values.astype(np.float32)
    return found
