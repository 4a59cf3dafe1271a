"""Image files to RGB pixels of the network's size, by Pillow."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import IO, TYPE_CHECKING

import numpy as np

from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.transforms.geometry import Fit, Geometry, Resize, placed
from driftgate.transforms.resampling import Filter, Pixels, resampled

if TYPE_CHECKING:
    from PIL.Image import Image

#: Endings of the files that are taken for images.
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")

#: Pillow's mode → the conversions to 8-bit RGB. Alpha is dropped and CMYK has no profile, as in most training code.
CONVERSIONS: Mapping[str, tuple[str, ...]] = {
    "1": ("RGB",),
    "L": ("RGB",),
    "LA": ("RGB",),
    "P": ("RGBA", "RGB"),
    "PA": ("RGBA", "RGB"),
    "RGB": (),
    "RGBA": ("RGB",),
    "RGBX": ("RGB",),
    "CMYK": ("RGB",),
    "YCbCr": ("RGB",),
}
#: Modes of 16-bit grey: the high byte is taken, as Pillow and OpenCV do with 16-bit colour.
SIXTEEN_BIT = ("I;16", "I;16L", "I;16B", "I;16N")
SIXTEEN_BIT_AS_32 = (("I", "PNG"), ("I", "PPM"))  # mode and format: how Pillow reads some 16-bit files

PIXELS_MOST = 1 << 27  # of a resized image: 400 MB
_ORIENTATION = 0x0112  # EXIF tag; from 5 on, width and height are exchanged
_TURNED = (5, 6, 7, 8)

#: What Pillow raises for files that are damaged, by their format.
_DAMAGED = (OSError, ValueError, SyntaxError, EOFError, KeyError, IndexError, TypeError, struct.error, zlib.error)


def decoder() -> str:
    """What decodes and resizes, with versions. Raises SampleError where Pillow is not installed."""
    pillow = _pillow()
    turbo, jpeg = (pillow.features.version(feature) for feature in ("libjpeg_turbo", "jpg"))
    return f"Pillow {pillow.__version__}, " + (f"libjpeg-turbo {turbo}" if turbo else f"libjpeg {jpeg}")


def decoded(file: IO[bytes], *, name: str) -> Pixels:
    """The RGB pixels (height, width, 3) of an image file, upright as its EXIF orientation says.

    Of a file with several images the first is taken; colour profiles are not applied. Raises SampleError.
    """
    with _opened(file, name) as image:
        upright: Image = _pillow().ImageOps.exif_transpose(image)
        if upright.mode in SIXTEEN_BIT or (upright.mode, image.format) in SIXTEEN_BIT_AS_32:
            grey = (np.asarray(upright).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
            return np.repeat(grey[:, :, None], 3, axis=2)
        if upright.mode not in CONVERSIONS:
            raise SampleError(message("image-mode", path=name, mode=upright.mode, known=tuple(CONVERSIONS)))
        for mode in CONVERSIONS[upright.mode]:
            upright = upright.convert(mode)
        return np.array(upright, np.uint8)


def size_of(file: IO[bytes], *, name: str) -> tuple[int, int]:
    """Width and height of an image file in pixels, upright, without decoding it. Raises SampleError."""
    with _opened(file, name) as image:
        width, height = image.size
        return (height, width) if image.getexif().get(_ORIENTATION) in _TURNED else (width, height)


def fitted(pixels: Pixels, fit: Fit, *, name: str) -> tuple[Pixels, Geometry]:
    """The pixels at the network's size, and where they lie in it. Raises SampleError."""
    height, width = pixels.shape[:2]
    geometry = placed(width, height, fit)
    if fit.resize is Resize.NONE and fit.size is not None and fit.size != (height, width):
        rows, columns = fit.size
        raise SampleError(message("image-size", path=name, found=f"{width} × {height}", wanted=f"{columns} × {rows}"))
    if geometry.resized_width * geometry.resized_height > PIXELS_MOST:
        raise SampleError(message("image-long", path=name, found=f"{width} × {height}"))
    resized = resize(pixels, geometry.resized_height, geometry.resized_width, fit.filter, antialias=fit.antialias)
    return _cut(resized, geometry, fit), geometry


def resize(pixels: Pixels, height: int, width: int, filter: Filter, *, antialias: bool) -> Pixels:
    """RGB pixels of another size, rounded to 8 bits.

    Pillow does NEAREST, and with `antialias` BILINEAR, BICUBIC and LANCZOS; the rest is our own (`resampling`).
    """
    if pixels.shape[:2] == (height, width):
        return pixels
    if filter is Filter.AREA or (not antialias and filter is not Filter.NEAREST):
        return resampled(pixels, height, width, filter)
    module = _pillow().Image
    resized: Image = module.fromarray(pixels).resize((width, height), getattr(module.Resampling, filter.name))
    return np.array(resized, np.uint8)


def _cut(pixels: Pixels, geometry: Geometry, fit: Fit) -> Pixels:
    """The network's input: what of the resized image lies in it, and the padding around."""
    height, width = pixels.shape[:2]
    if fit.size is None or (geometry.left, geometry.top, fit.size) == (0, 0, (height, width)):
        return pixels
    rows, columns = fit.size
    canvas = np.empty((rows, columns, 3), np.uint8)
    canvas[:] = fit.pad
    top, left = max(0, geometry.top), max(0, geometry.left)
    inside = pixels[max(0, -geometry.top) :, max(0, -geometry.left) :][: rows - top, : columns - left]
    canvas[top : top + inside.shape[0], left : left + inside.shape[1]] = inside
    return canvas


@contextmanager
def _opened(file: IO[bytes], name: str) -> Iterator[Image]:
    """An image while it is worked on; what Pillow says of a damaged one becomes a SampleError."""
    module = _pillow().Image
    try:
        with module.open(file) as image:
            yield image
    except (*_DAMAGED, module.DecompressionBombError) as error:
        reason = str(error) or type(error).__name__
        raise SampleError(message("image-damaged", path=name, reason=reason)) from error


def _pillow() -> ModuleType:
    """Pillow, which is an extra for those who have images. Raises SampleError."""
    try:
        import PIL.features
        import PIL.Image
        import PIL.ImageOps
    except ImportError as error:
        raise SampleError(message("images-no-pillow")) from error
    return PIL
