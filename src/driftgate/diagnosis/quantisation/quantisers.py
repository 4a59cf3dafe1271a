"""The candidate's quantisers beside the tensors of the reference that they round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.residuals import widest
from driftgate.diagnosis.surgery import Quantised, reranged, rescaled, with_inputs
from driftgate.diagnosis.weights import rounded_biases

Tensor = NDArray[Any]
Array = NDArray[np.float64]

MINE = 0.3  # share of the difference up to which a rerun of the candidate may be off: another machine's last bits


@dataclass(frozen=True, slots=True)
class Range:
    """What a quantiser can hold: its lowest and highest number, and one step."""

    low: float
    high: float
    step: float

    @property
    def threshold(self) -> float:
        """The largest magnitude that fits."""
        return max(-self.low, self.high)

    def clipped(self, value: Tensor) -> float:
        """The share of values more than a step beyond it. Without negative numbers none of them counts: a Relu."""
        flat = finite(value)
        over = flat > self.high + self.step
        if self.low < 0:
            over |= flat < self.low - self.step
        return float(over.mean()) if flat.size else 0.0


def range_of(tensor: Quantised) -> Range:
    """The range of a rounded tensor."""
    return Range(tensor.low * tensor.step, tensor.high * tensor.step, tensor.step)


def can_change(bench: Bench) -> bool:
    """Whether quantisers can be changed in the candidate's model, and it is this model that made the difference."""
    return bool(bench.b.quantised) and bench.b.runs and bool(bench.outputs_a) and is_its_own(bench)


def is_its_own(bench: Bench) -> bool:
    """Whether the candidate's model gives here what was recorded, or nearly: else its rounding is not the cause."""
    if not bench.recorded_b:
        return True
    made = bench.rerun_b
    if made is None:
        return False
    return bench.replays_b or widest(bench.outputs_b, made) <= MINE * bench.before_spread


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


def known_ranges(bench: Bench) -> dict[str, Range]:
    """Range by the reference's name of the tensor: those of the graph, else of the side file."""
    found: dict[str, Range] = {}
    quant = bench.evidence.quant
    for name, step in (quant.steps if quant is not None else {}).items():
        limit = quant.threshold(name) if quant is not None else 0.0
        found[name] = Range(-limit, limit, step)
    for tensor in bench.b.quantised:
        found[known_name(bench, tensor)] = range_of(tensor)
    return found


def known_name(bench: Bench, tensor: Quantised) -> str:
    """What the reference calls a rounded tensor; its own name where the reference has none of the kind."""
    return next((n for n in reference_names(bench, tensor) if n in bench.values_a), tensor.source)


def fitting_step(tensor: Quantised, value: Tensor) -> float:
    """The smallest step with which all values fit, those aside that the quantiser cuts off by design."""
    return tensor.step_for(*_extent(value))


def refitted(
    bench: Bench, choose: Callable[[Quantised, float], float | None], values: Mapping[str, Tensor] | None = None
) -> onnx.ModelProto:
    """The candidate with other steps: `choose` is given a tensor and the step that fits, and answers None to keep."""
    steps = {}
    for tensor in bench.b.quantised:
        value = reference_of(bench, tensor, bench.values_a if values is None else values)
        step = None if value is None else choose(tensor, fitting_step(tensor, value))
        if step is not None:
            steps[tensor] = step
    return rescaled(bench.b.whole_model, steps)


def fitted(bench: Bench) -> onnx.ModelProto:
    """The candidate with every range as wide as the reference's values in operation are, and with its biases, whose
    steps follow from the ranges."""
    ranges = {}
    for tensor in bench.b.quantised:
        value = reference_of(bench, tensor, bench.values_a)
        if value is not None:
            ranges[tensor] = _extent(value)
    return with_inputs(reranged(bench.b.whole_model, ranges), rounded_biases(bench))


def _extent(value: Tensor) -> tuple[float, float]:
    """The lowest and the highest finite value, zero among them."""
    flat = finite(value)
    return float(flat.min(initial=0.0)), float(flat.max(initial=0.0))


def magnitudes(value: Tensor) -> Array:
    """All finite magnitudes."""
    found: Array = np.abs(finite(value))
    return found


def finite(value: Tensor) -> Array:
    """All finite values, flat."""
    flat = np.asarray(value, np.float64).reshape(-1)
    return flat[np.isfinite(flat)]
