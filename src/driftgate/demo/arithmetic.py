"""Convolution and pooling in numpy, exact in int64 and in double precision alike."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from driftgate.demo.network import Layer

Number = TypeVar("Number", np.int64, np.float64)


def convolve(tensor: NDArray[Number], weight: NDArray[Number], layer: Layer, *, fill: int = 0) -> NDArray[Number]:
    """(n, in, h, w) to (n, out, h', w') without bias; the border is `fill`. Groups are one or one a channel."""
    border = (layer.padding, layer.padding)
    padded = np.pad(tensor, ((0, 0), (0, 0), border, border), constant_values=fill)
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], axis=(2, 3))
    windows = windows[:, :, :: layer.stride, :: layer.stride]
    if layer.groups > 1:
        depthwise: NDArray[Number] = np.einsum("nchwij,cij->nchw", windows, weight[:, 0])
        return depthwise
    n, _, height, width = windows.shape[:4]
    rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * height * width, -1)
    product = rows @ weight.reshape(len(weight), -1).T
    dense: NDArray[Number] = product.reshape(n, height, width, -1).transpose(0, 3, 1, 2)
    return dense


def max_pool(tensor: NDArray[Number]) -> NDArray[Number]:
    """The largest of every two by two pixels: (n, c, h, w) to (n, c, h / 2, w / 2)."""
    n, channels, height, width = tensor.shape
    pooled: NDArray[Number] = tensor.reshape(n, channels, height // 2, 2, width // 2, 2).max(axis=(3, 5))
    return pooled
