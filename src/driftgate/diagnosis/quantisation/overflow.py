"""Numbers beyond their type: integers that wrap, halves that become infinite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import HALF_FLOOR, INTEGER_FLOOR, Bench
from driftgate.diagnosis.quantisation.quantisers import known_ranges
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT
from driftgate.diagnosis.residuals import lattice, residual, spread
from driftgate.diagnosis.surgery import attribute, copied
from driftgate.diagnosis.trials import Fact, explained, fact, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]

HALF_MAX = 65504.0
ENDS = ((-128, 127), (-127, 127), (0, 255), (-32768, 32767), (-32767, 32767), (0, 65535))  # of integers
NEAR_STEPS, FAR = 2, 0.8  # steps of rounding; share of the wrapped values that must be far off
LEAST_WRAPPED, LEAST_KEPT = 2, 8  # values


def find_wraparound(bench: Bench) -> Iterator[Explanation]:
    """Integers that overflowed: the candidate is the reference, wrapped at 2^bits steps.

    A reference that saturates has lost what was beyond; it is taken from before its own quantiser.
    """
    ranges = known_ranges(bench)
    ends = {tensor.tensor: tensor for tensor in bench.a.quantised}
    pools = (
        (dict(bench.outputs_a), dict(bench.outputs_b)),
        (dict(bench.evidence.layers_a), dict(bench.evidence.layers_b)),
    )
    for a_values, b_values in pools:
        for name, a in a_values.items():
            b = b_values.get(name)
            if b is None or b.shape != a.shape or a.dtype.kind not in "fi" or residual(a, b) <= INTEGER_FLOOR:
                continue
            end = ends.get(name)
            whole = bench.values_a.get(end.source) if end is not None else None
            steps = [
                end.step if end is not None else None,
                ranges[name].step if name in ranges else None,
                bench.step(name),
                lattice(b),
            ]
            for meant in (a, whole):
                for step in dict.fromkeys(step for step in steps if step and meant is not None):
                    found = tuple(_wrapped(name, a if meant is None else meant, b, step))
                    yield from found
                    if found:
                        return
            yield from _at_the_end(name, a, b, [step for step in steps if step])


def _at_the_end(name: str, a: Tensor, b: Tensor, steps: Sequence[float]) -> Iterator[Explanation]:
    """What was beyond is not known: the two differ only where the reference stands at the end of the range, and
    the candidate has gone on from the other end."""
    for step in dict.fromkeys(steps):
        x, y = np.rint(np.asarray(a, np.float64) / step), np.rint(np.asarray(b, np.float64) / step)
        for low, high in ENDS:
            if x.min() < low or x.max() > high or y.min() < low or y.max() > high:
                continue
            at_end = (x == high) | (x == low)
            far = np.abs(x - y) > NEAR_STEPS
            beyond = far & at_end & (np.abs(x - y) > (high - low) / 2)
            if far.sum() < LEAST_WRAPPED or (~far).sum() < LEAST_KEPT:
                continue
            if (far & ~at_end).any() or beyond.sum() < FAR * far.sum():
                continue
            yield from fact(
                "int8-wraparound",
                ("values that wrapped", float(far.mean()), ""),
                ("of those at the end of the range", float(far.sum() / at_end.sum()), ""),
                ("step", step, ""),
                subjects=(name,),
            )
            return


def _wrapped(name: str, a: Tensor, b: Tensor, step: float) -> Iterator[Explanation]:
    codes = np.asarray(a, np.float64) / step
    for bits, low in ((8, -128), (8, 0), (16, -32768), (16, 0)):
        over = (codes > low + 2**bits - 0.5) | (codes < low - 0.5)
        if not over.any() or over.all():
            continue
        wrapped = (np.mod(np.rint(codes) - low, 2**bits) + low) * step
        far = np.abs(wrapped - np.asarray(b, np.float64))
        near_edge = np.minimum(far, np.abs(far - 2**bits * step))
        after = float(np.sqrt((near_edge**2).mean()) / (float(np.std(a)) or 1.0))
        agree = float((far[over] <= 4 * step + 0.05 * 2**bits * step).mean())
        tried = trial("int8-wraparound", f"wrapped at {bits} bits", spread(a, b), after, ORDINARY, target=name)
        if tried.result.value == "confirmed" and agree >= 0.8:
            yield from explained(
                tried,
                subjects=(name,),
                facts=(("values that wrapped", float(over.mean()), ""), ("step", step, "")),
                unit=SPREAD_UNIT,
            )
            return


def find_half_overflow(bench: Bench) -> Iterator[Explanation]:
    """A value of the reference is beyond 65504 where the candidate's is infinite, or it is rounded to half."""
    for name, op in bench.order:
        a, b = bench.values_a.get(name), bench.values_b.get(name)
        if a is None or b is None or a.shape != b.shape or a.dtype.kind != "f" or b.dtype.kind != "f":
            continue
        over = np.abs(np.asarray(a, np.float64)) > HALF_MAX
        if not over.any() or np.isfinite(np.asarray(b, np.float64)[over]).all():
            continue
        facts: tuple[Fact, ...] = (
            ("largest value", float(np.abs(np.asarray(a, np.float64)).max()), ""),
            ("largest of half precision", HALF_MAX, ""),
        )
        model = _without_halves(bench)
        if (
            model is not None
            and (made := bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, model)) is not None
        ):
            after = bench.distance(bench.outputs_a, made)
            tried = trial(
                "fp16-overflow", "single precision", bench.start, after, max(HALF_FLOOR, bench.floor), target=name
            )
            yield from explained(tried, subjects=(name, op), facts=facts)
            return
        yield from fact(
            "fp16-overflow",
            *facts,
            subjects=(name, op),
            confirmed=not np.isfinite(np.asarray(b, np.float64)[over]).any(),
        )
        return


def _without_halves(bench: Bench) -> onnx.ModelProto | None:
    """The candidate's model with casts to half precision that are undone at once left out."""
    if bench.b.model is None or not bench.half:
        return None
    copy = copied(bench.b.model)
    for node in copy.graph.node:
        if node.op_type == "Cast" and attribute(node, "to") in (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16):
            for entry in node.attribute:
                if entry.name == "to":
                    entry.i = onnx.TensorProto.FLOAT
    return copy
