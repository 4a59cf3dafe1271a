"""Pictures as cameras and boards hold them: NV12 planes with and without row padding, resizing, letterboxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from faultgen.planting import Array, Random, chance, floats


@dataclass(frozen=True, slots=True)
class Matrix:
    """How RGB becomes luma and chroma: weights of red and blue, and whether black is 0 or 16."""

    red: float
    blue: float
    full: bool


FULL_601 = Matrix(0.299, 0.114, full=True)
VIDEO_601 = Matrix(0.299, 0.114, full=False)


def draw_matrix(random: Random) -> Matrix:
    """Mostly the full range that the boards' colour conversion takes."""
    return FULL_601 if chance(random, 0.75) else VIDEO_601


def to_nv12(picture: Array, matrix: Matrix) -> tuple[Array, Array]:
    """Picture (3, height, width) in 0 … 255 → luma (height, width) and chroma (height/2, width), u and v in turn."""
    red, green, blue = picture.astype(np.float64)
    luma = matrix.red * red + (1 - matrix.red - matrix.blue) * green + matrix.blue * blue
    u, v = (0.5 * (part - luma) / (1 - weight) for part, weight in ((blue, matrix.blue), (red, matrix.red)))
    height, width = luma.shape
    chroma = np.stack([c.reshape(height // 2, 2, width // 2, 2).mean((1, 3)) for c in (u, v)], axis=-1)
    if not matrix.full:
        luma, chroma = 16 + luma * 219 / 255, chroma * 224 / 255
    planes = (luma, chroma.reshape(height // 2, width) + 128)
    y, uv = (np.clip(np.rint(plane), 0, 255).astype(np.uint8) for plane in planes)
    return y, uv


def from_nv12(y: Array, uv: Array, matrix: Matrix) -> Array:
    """The picture (3, height, width) in 0 … 255 that a network sees, as float32."""
    luma = y.astype(np.float64)
    chroma = uv.astype(np.float64).reshape(uv.shape[0], -1, 2) - 128
    if not matrix.full:
        luma, chroma = (luma - 16) * 255 / 219, chroma * 255 / 224
    u, v = (chroma[..., place].repeat(2, 0).repeat(2, 1) for place in (0, 1))
    red, blue = luma + 2 * (1 - matrix.red) * v, luma + 2 * (1 - matrix.blue) * u
    green = (luma - matrix.red * red - matrix.blue * blue) / (1 - matrix.red - matrix.blue)
    return floats(np.clip(np.stack([red, green, blue]), 0, 255))


def padded_rows(plane: Array, stride: int, fill: int = 0) -> Array:
    """Rows filled up to the stride in bytes."""
    return np.pad(plane, ((0, 0), (0, stride - plane.shape[1])), constant_values=fill)


def read_rows(content: Array, height: int, width: int, stride: int) -> Array:
    """What somebody reads who takes rows of that stride from a buffer; behind its end lie zeros."""
    flat = np.zeros(height * stride, np.uint8)
    flat[: min(content.size, flat.size)] = content.reshape(-1)[: flat.size]
    return flat.reshape(height, stride)[:, :width]


def resized(picture: Array, height: int, width: int) -> Array:
    """Bilinear, pixel centres at halves; picture (3, height, width)."""

    def weights(come: int, go: int) -> Array:
        places = np.clip((np.arange(go) + 0.5) * come / go - 0.5, 0, come - 1)
        low = np.minimum(places.astype(int), come - 2)
        made = np.zeros((go, come))
        made[np.arange(go), low] = 1 - (places - low)
        made[np.arange(go), low + 1] = places - low
        return made

    return floats(weights(picture.shape[1], height) @ picture @ weights(picture.shape[2], width).T)


def letterboxed(picture: Array, height: int, width: int, fill: float) -> Array:
    """The picture with its sides' ratio kept, in the middle of a uniform frame."""
    ratio = min(height / picture.shape[1], width / picture.shape[2])
    inner = tuple(max(2, round(side * ratio)) for side in picture.shape[1:])
    top, left = (height - inner[0]) // 2, (width - inner[1]) // 2
    made = np.full((3, height, width), fill, np.float32)
    made[:, top : top + inner[0], left : left + inner[1]] = resized(picture, *inner)
    return made
