"""Where an image comes to lie in a network's input, so that boxes can be mapped there and back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from driftgate.transforms.resampling import Filter

Boxes = NDArray[np.float64]


class Resize(str, Enum):
    """How an image of another size is brought to the network's."""

    LETTERBOX = "letterbox"  # the whole image at its own proportions, the rest filled
    STRETCH = "stretch"  # the whole image, its proportions lost
    CROP = "crop"  # at its own proportions, what stands out in the middle cut off
    NONE = "none"  # every image has the network's size already


class Place(str, Enum):
    """Where a letterbox has the image."""

    CENTRE = "centre"  # of an odd rest the smaller half lies left and above
    CORNER = "corner"  # top left


@dataclass(frozen=True, slots=True)
class Fit:
    """How pixels are brought to size. `size` is (height, width) in pixels; None, with NONE only, is any size.

    `shorter`, with CROP only, is the length in pixels that the shorter side gets before the cut; without it the
    image just covers the size. `pad` is the RGB value of what a letterbox adds.
    """

    size: tuple[int, int] | None
    resize: Resize
    filter: Filter
    antialias: bool
    pad: tuple[int, int, int]
    place: Place
    shorter: int | None = None


@dataclass(frozen=True, slots=True)
class Geometry:
    """An image of `width` × `height` pixels, upright, resized to `resized_width` × `resized_height`, with its top
    left corner at (`left`, `top`) of the network's input; negative where a part is cut off.

    Positions are continuous: pixel i covers i to i + 1.
    """

    width: int
    height: int
    resized_width: int
    resized_height: int
    left: int
    top: int

    @property
    def scale(self) -> tuple[float, float]:
        """Pixels of the input per pixel of the image, (x, y)."""
        return self.resized_width / self.width, self.resized_height / self.height

    def to_network(self, boxes: Boxes) -> Boxes:
        """Boxes (n, 4) as x1, y1, x2, y2 in pixels of the image → in pixels of the network's input."""
        found: Boxes = np.asarray(boxes, np.float64) * self._factors + self._offsets
        return found

    def to_image(self, boxes: Boxes) -> Boxes:
        """Boxes (n, 4) as x1, y1, x2, y2 in pixels of the network's input → in pixels of the image, not clipped."""
        found: Boxes = (np.asarray(boxes, np.float64) - self._offsets) / self._factors
        return found

    @property
    def _factors(self) -> Boxes:
        return np.array([*self.scale, *self.scale])

    @property
    def _offsets(self) -> Boxes:
        return np.array([self.left, self.top, self.left, self.top], np.float64)


def placed(width: int, height: int, fit: Fit) -> Geometry:
    """Where an image of so many pixels comes to lie."""
    if fit.size is None or fit.resize is Resize.NONE:
        return Geometry(width, height, width, height, 0, 0)
    rows, columns = fit.size
    if fit.resize is Resize.STRETCH:
        return Geometry(width, height, columns, rows, 0, 0)
    if fit.resize is Resize.LETTERBOX:
        resized = _within(width, height, columns, rows)
        left, top = (0, 0) if fit.place is Place.CORNER else ((columns - resized[0]) // 2, (rows - resized[1]) // 2)
        return Geometry(width, height, *resized, left, top)
    resized = _covering(width, height, columns, rows, fit.shorter)
    return Geometry(width, height, *resized, -round((resized[0] - columns) / 2), -round((resized[1] - rows) / 2))


def _within(width: int, height: int, columns: int, rows: int) -> tuple[int, int]:
    """The largest size of the same proportions that fits, rounded to the nearest whole pixel."""
    if columns * height <= rows * width:
        return columns, max(1, round(height * columns / width))
    return max(1, round(width * rows / height)), rows


def _covering(width: int, height: int, columns: int, rows: int, shorter: int | None) -> tuple[int, int]:
    """The smallest size of the same proportions that covers, or that with such a shorter side; rounded down."""
    if shorter is not None:
        columns, rows = shorter, shorter
    if columns * height >= rows * width:
        return columns, height * columns // width
    return width * rows // height, rows
