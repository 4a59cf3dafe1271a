"""PP-OCR's text direction classifier, from a Paddle export to INT8, on strips of a scanned page."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import version_converter
from skimage.data import page  # type: ignore[import-not-found]
from skimage.transform import resize  # type: ignore[import-not-found]

from support.field.quantize import calibrate, optimise
from support.field.wheels import RAPIDOCR, members

SHAPE = (1, 3, 48, 192)
STRIP = 17  # pixels: the height of a line of text on the page
#: Top and right end of the five lines of text in pixels.
LINES = ((48, 380), (65, 380), (82, 380), (100, 380), (117, 172))


def strips() -> NDArray[np.float32]:
    """(86, 3, 48, 192) in -1 … 1: pieces of lines, each upright (even) and turned by half a turn (odd)."""
    scan = page() / 255
    wide = SHAPE[3] * STRIP // SHAPE[2]
    pieces = [
        scan[top : top + STRIP, left : left + wide] for top, end in LINES for left in range(4, end - wide, 2 * STRIP)
    ]
    upright = [resize(piece, SHAPE[2:], order=1, anti_aliasing=False) for piece in pieces]
    both = np.stack([turned for piece in upright for turned in (piece, piece[::-1, ::-1])])
    return np.repeat((both[:, None] - 0.5) / 0.5, 3, axis=1).astype(np.float32)


def build(folder: Path) -> None:
    """Lay out a user's project: `cls.onnx` as shipped (opset 11), what follows from it, strips and labels.

    `cls_optimized.onnx cls_calibrated.onnx cls_ptq.onnx`, `cls_miscalibrated.onnx` (calibrated with pixels
    of 0 … 255), `strips.npz labels.npz`; the feed is `x`. Per-channel QDQ needs opset 13, so what follows has 17.
    """
    (shipped,) = members(RAPIDOCR).values()
    shutil.copyfile(shipped, folder / "cls.onnx")
    feeds = strips()
    np.savez(folder / "strips.npz", x=feeds)
    np.savez(folder / "labels.npz", labels=(np.arange(len(feeds)) % 2).astype(np.int64))
    converted = folder / "cls_17.onnx"
    onnx.save(_fixed(version_converter.convert_version(onnx.load(shipped), 17)), converted)
    optimise(converted, folder / "cls_optimized.onnx", "basic")
    calibration = [{"x": strip[None]} for strip in feeds[::3]]
    calibrated = calibrate(converted, folder / "cls_calibrated.onnx", calibration, weight_bits=7)
    optimise(calibrated, folder / "cls_ptq.onnx", "extended")
    pixels = [{"x": (strip[None] + 1) * np.float32(127.5)} for strip in feeds[::3]]
    calibrate(converted, folder / "cls_miscalibrated.onnx", pixels, weight_bits=7)


def _fixed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give the input its shape; both dynamic sides are called `?`, which shape inference takes for equal."""
    for dimension, size in zip(model.graph.input[0].type.tensor_type.shape.dim, SHAPE, strict=True):
        dimension.dim_value = size
    return model
