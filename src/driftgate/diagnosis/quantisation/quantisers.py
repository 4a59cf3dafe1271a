"""The candidate's quantisers beside the tensors of the reference that they round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.surgery import Quantised

Tensor = NDArray[Any]
Array = NDArray[np.float64]


def can_change(bench: Bench) -> bool:
    """Whether quantisers can be changed in the candidate's model."""
    return bool(bench.b.quantised) and bench.b.runs and bool(bench.outputs_a)


def reference_names(bench: Bench, tensor: Quantised) -> tuple[str, ...]:
    """What a rounded tensor may be called in the reference: its number before, after, and without suffixes."""
    found = [tensor.tensor, tensor.source]
    for name in (tensor.tensor, tensor.source):
        for suffix in ("_dq", "_f", "_DequantizeLinear_Output", "_quantized", "_q"):
            found.append(name.removesuffix(suffix))
    return tuple(dict.fromkeys(found))


def reference_of(bench: Bench, tensor: Quantised, values: Mapping[str, Tensor]) -> Tensor | None:
    """The numbers that the reference has for a rounded tensor; None where they are not floats."""
    found = next((values[name] for name in reference_names(bench, tensor) if name in values), None)
    return None if found is None or found.dtype.kind != "f" or not found.size else found


def known_thresholds(bench: Bench) -> dict[str, tuple[float, float]]:
    """(threshold, step) by the reference's name of the tensor: those of the graph, else of the side file."""
    found: dict[str, tuple[float, float]] = {}
    quant = bench.evidence.quant
    for name, step in (quant.steps if quant is not None else {}).items():
        found[name] = (quant.threshold(name) if quant is not None else 0.0, step)
    for tensor in bench.b.quantised:
        value = next((n for n in reference_names(bench, tensor) if n in bench.values_a), tensor.source)
        found[value] = (tensor.threshold, tensor.step)
    return found


def magnitudes(value: Tensor) -> Array:
    """All finite magnitudes."""
    flat = np.abs(np.asarray(value, np.float64).reshape(-1))
    return flat[np.isfinite(flat)]
