"""Pictures among the feeds, and what NV12 makes of them: conversions, planes, pitches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[Any]
Array = NDArray[np.float64]
Bytes = NDArray[np.uint8]

WHITE = 255.0
MOST_NUMBERS = 1 << 25  # in float64, a quarter of a GiB
SIGNED = 128.0  # what a picture of int8 is shifted by


@dataclass(frozen=True, slots=True)
class Conversion:
    """RGB to luma and chroma: shares of red and blue in the luma, numbers that 0 … 255 of each becomes."""

    name: str
    red: float
    blue: float
    black: float
    luma: float
    chroma: float


#: What tool chains and cameras use, the vendor's own first.
CONVERSIONS = (
    Conversion("BT.601, full range", 0.299, 0.114, 0.0, 255.0, 255.0),
    Conversion("BT.601, video range", 0.299, 0.114, 16.0, 219.0, 224.0),
    Conversion("BT.709, full range", 0.2126, 0.0722, 0.0, 255.0, 255.0),
    Conversion("BT.709, video range", 0.2126, 0.0722, 16.0, 219.0, 224.0),
)


@dataclass(frozen=True, slots=True)
class Picture:
    """Pictures that a feed holds, (N, 3, height, width) 0 … 255; the feed is rgb · unit / 255 - offset."""

    name: str
    rgb: Array
    unit: float
    offset: float
    last: bool
    dtype: np.dtype[Any]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return int(self.rgb.shape[2]), int(self.rgb.shape[3])

    @property
    def fits_nv12(self) -> bool:
        """Whether both sides are even."""
        return self.size[0] % 2 == 0 and self.size[1] % 2 == 0

    def fed(self, rgb: Array) -> Tensor:
        """Other pictures of this size in the form of this feed."""
        value = rgb * (self.unit / WHITE) - self.offset
        value = value.transpose(0, 2, 3, 1) if self.last else value
        return (np.rint(value) if self.dtype.kind in "iu" else value).astype(self.dtype)


def picture_of(feeds: Mapping[str, Tensor]) -> Picture | None:
    """The first pictures among feeds: three channels, bytes, signed bytes or 0 … 1."""
    for name, value in feeds.items():
        if value.ndim != 4 or 3 not in value.shape[1::2] or not value.size or value.dtype.kind not in "fiu":
            continue
        if value.size > MOST_NUMBERS:
            return None
        found = np.asarray(value, np.float64)
        last = value.shape[1] != 3
        if not np.isfinite(found).all():
            return None
        low, high = float(found.min()), float(found.max())
        signed = -SIGNED <= low < 0 and high < SIGNED and high - low > 2 and bool((found == np.rint(found)).all())
        if (low < 0 and not signed) or high > WHITE + 1:
            return None
        offset = SIGNED if signed else 0.0
        unit = WHITE if signed or high > 2.0 or value.dtype.kind in "iu" else 1.0
        rgb = (found + offset) * (WHITE / unit)
        return Picture(name, rgb.transpose(0, 3, 1, 2) if last else rgb, unit, offset, last, value.dtype)
    return None


def planes(rgb: Array, conversion: Conversion) -> tuple[Array, Array]:
    """Pictures (N, 3, H, W) of even sides → luma (N, H, W) and chroma (N, H/2, W/2, 2) as bytes, not padded."""
    c = conversion
    red, green, blue = rgb[:, 0], rgb[:, 1], rgb[:, 2]
    luma = c.red * red + (1 - c.red - c.blue) * green + c.blue * blue
    both = [(part - luma) / (2 * (1 - share)) for part, share in ((blue, c.blue), (red, c.red))]
    count, height, width = luma.shape
    means = [v.reshape(count, height // 2, 2, width // 2, 2).mean((2, 4)) for v in both]
    chroma = np.stack(means, -1) * (c.chroma / WHITE) + SIGNED
    return _bytes(c.black + luma * (c.luma / WHITE)), _bytes(chroma)


def pixels(luma: Array, chroma: Array, conversion: Conversion) -> Array:
    """Luma (N, H, W) and chroma (N, H/2, W/2, 2), U before V → pictures (N, 3, H, W); nearest chroma."""
    c = conversion
    y = (luma - c.black) * (WHITE / c.luma)
    u, v = (np.repeat(np.repeat(chroma[..., at] - SIGNED, 2, 1), 2, 2) * (WHITE / c.chroma) for at in (0, 1))
    red, blue = y + 2 * (1 - c.red) * v, y + 2 * (1 - c.blue) * u
    green = (y - c.red * red - c.blue * blue) / (1 - c.red - c.blue)
    return np.clip(np.stack([red, green, blue], 1), 0.0, WHITE)


def through_nv12(rgb: Array, conversion: Conversion, *, exchanged: bool = False) -> Array:
    """Pictures to NV12 and back; `exchanged`: U and V change places on the way."""
    luma, chroma = planes(rgb, conversion)
    return pixels(luma, chroma[..., ::-1] if exchanged else chroma, conversion)


def unpacked(y: Bytes, uv: Bytes, size: tuple[int, int], pitch: int) -> tuple[Array, Array]:
    """Luma and chroma of one picture out of buffers whose rows have a pitch in bytes; zeros behind their ends."""
    height, width = size
    luma, chroma = _rows(y, height, pitch)[:, :width], _rows(uv, height // 2, pitch)[:, :width]
    return luma[None], chroma.reshape(1, height // 2, width // 2, 2)


def _rows(buffer: Bytes, rows: int, pitch: int) -> Array:
    held = np.zeros(rows * pitch)
    count = min(len(buffer), len(held))
    held[:count] = buffer[:count]
    return held.reshape(rows, pitch)


def _bytes(value: Array) -> Array:
    found: Array = np.clip(np.rint(value), 0, WHITE)
    return found
