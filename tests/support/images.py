"""Images of the test's own making, and declarations of how they become feeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from driftgate.transforms.colours import Colour
from driftgate.transforms.geometry import Fit, Place, Resize
from driftgate.transforms.layouts import ElementType, Encoding, Layout, Range
from driftgate.transforms.resampling import Filter

Pixels = NDArray[np.uint8]

FIT = Fit((32, 48), Resize.LETTERBOX, Filter.BILINEAR, True, (114, 114, 114), Place.CENTRE)
ENCODING = Encoding("images", Colour.RGB, Range.UNIT, Layout.NCHW, ElementType.FLOAT32)


def fit(**changes: Any) -> Fit:
    """A letterbox to 48 × 32 pixels, with changes."""
    return replace(FIT, **changes)


def encoding(**changes: Any) -> Encoding:
    """RGB, 0–1, NCHW, float32, with changes."""
    return replace(ENCODING, **changes)


def picture(width: int, height: int, seed: int = 0) -> Pixels:
    """RGB pixels (height, width, 3): smooth with some noise, no two alike."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [127 + 100 * np.sin(x / (4 + c + seed % 5) + y / (7 - c)) for c in range(3)]
    found: Pixels = np.clip(np.stack(waves, 2) + rng.integers(-20, 21, (height, width, 3)), 0, 255).astype(np.uint8)
    return found


def save(path: Path, pixels: NDArray[Any], **options: Any) -> Path:
    """Pixels as a file of the format that its ending says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


def folder(root: Path, sizes: Sequence[tuple[int, int]] = ((60, 30), (20, 50), (48, 32))) -> Path:
    """A folder of PNG images a.png, b.png, … of these (width, height)."""
    for number, (width, height) in enumerate(sizes):
        save(root / f"{chr(97 + number)}.png", picture(width, height, seed=number))
    return root


def turned(orientation: int) -> Any:
    """The EXIF data of an image that lies in this way."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def coco(
    path: Path, images: Sequence[str], objects: Sequence[tuple[int, int, Sequence[float], int]], **top: Any
) -> Path:
    """A COCO file: file names, whose ids count from 1, and objects as (image, category, box, crowd); the categories
    are 7 dog, 3 cat and 90 brush."""
    document = {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(images, 1)],
        "annotations": [
            {"id": number, "image_id": image, "category_id": category, "bbox": box, "iscrowd": crowd}
            for number, (image, category, box, crowd) in enumerate(objects, 1)
        ],
        "categories": [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat"}, {"id": 90, "name": "brush"}],
        **top,
    }
    path.write_text(json.dumps(document))
    return path
