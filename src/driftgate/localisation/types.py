"""Element types of the tensors that a point goes by: integers of quantisers, floats behind a Cast."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftgate.domain.graphs import Graph
from driftgate.localisation.points import Point

DType = np.dtype[Any]
#: Root mean square of the relative error of arithmetic in half precision: half a unit in the last place, 2^-11, of
#: what is read, of constants and of the result.
HALF_NOISE = 1e-3


def tensor_types(graph: Graph | None, point: Point, tapped: DType) -> dict[str, DType]:
    """The type of every name of a point whose tapped tensor has the type `tapped`."""
    known: dict[str, DType] = {point.tensor: tapped}
    for name in point.names:
        quantizer = None if graph is None else graph.quantizers.get(name)
        if quantizer is not None:
            known[name] = np.min_scalar_type(quantizer.low if quantizer.low < 0 else quantizer.high)
        elif name not in known:
            cast = None if graph is None else graph.casts.get(name)
            source = "" if graph is None else graph.handed.get(name, "")
            known[name] = np.dtype(cast) if cast is not None else _float(known.get(source), tapped)
    return known


def _float(found: DType | None, tapped: DType) -> DType:
    """What is handed on; integers come back as float32."""
    if found is None:
        return tapped
    return found if found.kind == "f" else np.dtype(np.float32)
