"""Ranges that a few values, or a constant of a mask, stretch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.calibration import other_feeds
from driftgate.diagnosis.quantisation.parameters import contradicted
from driftgate.diagnosis.quantisation.quantisers import (
    can_change,
    known_name,
    known_ranges,
    magnitudes,
    range_of,
    refitted,
)
from driftgate.diagnosis.quantisation.spreads import MOST, SPREAD_UNIT, mended
from driftgate.diagnosis.surgery import Quantised
from driftgate.diagnosis.trials import Fact, explained, fact
from driftgate.domain.investigations import Explanation, Trial, TrialResult

Tensor = NDArray[Any]

STRETCHED = 8.0  # times that a range may be wider than what nearly all values need
BULK = 0.999
FEW, ALIKE = 0.1, 2.0  # share of the values; largest against smallest of a cluster
MASKING = frozenset({"Add", "Sub", "Where"})  # operators that put a mask's constant into a tensor
MASKED = 0.5  # of the constant: values beyond are masked
NOTHING = 16.0  # further below the largest value than this a Softmax gives e^-16: as good as masked


@dataclass(frozen=True, slots=True)
class _Stretched:
    """A range many times wider than the bulk of its values needs; `constant` stretches it, or else a few values."""

    ratio: float
    bulk: float
    constant: float | None = None


def find_outliers(bench: Bench) -> Iterator[Explanation]:
    """A few values, or a constant, stretch a range; the range of nearly all brings the outputs back."""
    if other_feeds(bench):
        return  # all of the calibration is like that, not a few values
    stretched = _stretched(bench)
    if not stretched:
        return
    facts: tuple[Fact, ...] = tuple(
        (f"range of {name} against nearly all values", one.ratio, "times") for name, one in [*stretched.items()][:6]
    )
    facts += tuple((f"constant in {n}", one.constant, "") for n, one in stretched.items() if one.constant is not None)
    if not can_change(bench):
        yield from fact("outlier-range", *facts, subjects=tuple(stretched), confirmed=False, share=0.0)
        return
    models = [_narrowed(bench, stretched, 0.0)]
    if any(one.constant is not None for one in stretched.values()):
        models.append(_narrowed(bench, stretched, NOTHING))
    tried = [mended(bench, "outlier-range", "ranges of nearly all values", model) for model in models]
    best = min(tried, key=_left)
    kept = mended(bench, "outlier-range", "all other ranges fitted", _narrowed(bench, stretched, math.inf))
    if best.result is TrialResult.CONFIRMED and _share_left(best) ** 2 > (1 - MOST) * _share_left(kept) ** 2:
        best = replace(best, result=TrialResult.REFUTED)  # it is the other ranges that were too wide
    yield from explained(best, subjects=tuple(stretched), facts=facts, unit=SPREAD_UNIT)


def _left(made: Trial) -> tuple[bool, float]:
    return made.result is not TrialResult.CONFIRMED, _share_left(made)


def _share_left(made: Trial) -> float:
    return made.after / made.before if made.before else made.after


def _narrowed(bench: Bench, stretched: Mapping[str, _Stretched], room: float) -> onnx.ModelProto:
    """The candidate with stretched ranges cut to the bulk of their values, and no other range wider than its values.

    What is stretched at the beginning stretches what is behind it, each a little less. With room without end the
    stretched ranges stay as they are.
    """
    others = contradicted(bench)

    def narrower(tensor: Quantised, step: float) -> float | None:
        one = stretched.get(known_name(bench, tensor))
        if one is not None and math.isinf(room):
            return None
        if one is None or (one.constant is None and step * STRETCHED <= tensor.step):
            return None if tensor in others else min(step, tensor.step)
        wanted = one.bulk if one.constant is None else one.bulk + room
        return tensor.step * wanted / range_of(tensor).threshold

    return refitted(bench, narrower)


def _stretched(bench: Bench) -> dict[str, _Stretched]:
    calibrated = bench.calibrated() if bench.evidence.calib and bench.a.runs else {}
    masks = _masks(bench)
    others = {known_name(bench, tensor) for tensor in contradicted(bench)}
    found: dict[str, _Stretched] = {}
    for name, held in known_ranges(bench).items():
        calib, real = calibrated.get(name), bench.values_a.get(name)
        value = calib if real is None else real
        if name in others or value is None or value.dtype.kind != "f" or not value.size or not held.threshold > 0:
            continue
        if name in masks:
            kept = magnitudes(value)
            bulk = float(kept[kept < MASKED * masks[name]].max(initial=0.0))
            if bulk > 0 and masks[name] >= STRETCHED * bulk and held.threshold >= STRETCHED * bulk:
                found[name] = _Stretched(held.threshold / bulk, bulk, masks[name])
            continue
        bulk = _bulk(value)
        if calib is not None and bulk > 0 and _usual(calib) >= STRETCHED * bulk:
            continue
        if bulk > 0 and held.threshold / bulk >= STRETCHED:
            found[name] = _Stretched(held.threshold / bulk, bulk)
    return found


def _masks(bench: Bench) -> dict[str, float]:
    """The largest magnitude of a constant that an operator adds or puts into a rounded tensor, by the tensor."""
    if bench.b.model is None:
        return {}
    found = {}
    for tensor in bench.b.quantised:
        node = bench.b.makers.get(tensor.source)
        held = [bench.b.value(name) for name in node.input] if node is not None and node.op_type in MASKING else []
        sizes = [float(magnitudes(value).max(initial=0.0)) for value in held if value is not None]
        if any(size > 0 for size in sizes):
            found[known_name(bench, tensor)] = max(sizes)
    return {name: size for name, size in found.items() if _reaches(bench, name, size)}


def _reaches(bench: Bench, name: str, size: float) -> bool:
    """Whether values of a tensor are that constant, nearly, and others are far smaller."""
    value = bench.values_a.get(name)
    if value is None or value.dtype.kind != "f":
        return False
    found = magnitudes(value)
    return bool(((found > MASKED * size) & (found < size / MASKED)).any() and (found < size / STRETCHED).any())


def _bulk(value: Tensor) -> float:
    """The magnitude below a gap, or below which 99.9 % of the values lie. Above a gap there are few values, or such
    as are alike (a constant that was added); zeros of a Relu have a gap above them as well."""
    sorted_ = np.sort(magnitudes(value))
    if not sorted_.size:
        return 0.0
    found = float(np.quantile(sorted_, BULK))
    upper = sorted_[len(sorted_) // 3 :]
    with np.errstate(divide="ignore", invalid="ignore"):
        jumps = np.where(upper[:-1] > 0, upper[1:] / upper[:-1], 1.0)
    place = int(jumps.argmax()) if jumps.size else 0
    if jumps.size and jumps[place] >= STRETCHED and upper[place] > 1e-3 * float(np.median(sorted_) or 1.0):
        above = upper[place + 1 :]
        if len(above) <= FEW * len(sorted_) or above[-1] < ALIKE * above[0]:
            found = min(found, float(upper[place]))
    return found


def _usual(value: Tensor) -> float:
    """The magnitude that 90 % of the values stay below."""
    found = magnitudes(value)
    return float(np.quantile(found, 0.9)) if found.size else 0.0
