"""An output as rows, one for each channel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[Any]
Array = NDArray[np.float64]


def rows_along(value: Tensor, axis: int | None) -> Array:
    """One row for each index of an axis, float64; one row in all where there is no axis."""
    x = np.asarray(value, np.float64)
    return x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, 0).reshape(value.shape[axis], -1)
