"""Causes in quantisation: ranges from calibration, single tensors, weights, overflow, and ordinary rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, HALF_FLOOR, INTEGER_FLOOR, Bench
from driftgate.diagnosis.evidence_rules import implausible_feeds
from driftgate.diagnosis.graphs import paired_weights
from driftgate.diagnosis.residuals import by_channel, lattice, residual, spread, widest
from driftgate.diagnosis.surgery import Quantised, attribute, copied, label, rescaled, unrounded, with_inputs
from driftgate.diagnosis.trials import Explanation, Fact, Rule, explained, fact, trial
from driftgate.domain.investigations import Trial, TrialResult
from driftgate.numerics.alignment import same_shape

Tensor = NDArray[Any]
Array = NDArray[np.float64]

CLIPPED = 0.01  # share of values that a calibrated range may cut off
STRETCHED = 8.0  # times that a range may be wider than what nearly all values need
BULK = 0.999
IMBALANCE = 8.0  # times that the widest channel of weights is wider than the narrowest
ORDINARY = 0.15  # spread (16.5 dB) up to which rounding with good ranges may go
HELPED = 0.1  # share of the error that the right parameters must take away
ALMOST_ALL, NEARLY_ALL = 0.5, 0.7  # share of the error that one part must carry to be named, to be it
MANY, MOST_PARTS = 6, 400  # parts from which on an error can accumulate; that are tried one by one
FALL = 3.0  # times that one tensor's error must be that of the next to be named beforehand
HALF_MAX = 65504.0
SPREAD_UNIT = "of the standard deviation"
_LINEAR_OPS = ("Conv", "MatMul", "Gemm", "ConvTranspose")
_ACTIVATIONS = frozenset(
    {"Relu", "LeakyRelu", "Clip", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Elu", "PRelu", "Mish", "Mul"}
)


def _lossy(bench: Bench) -> bool:
    return bench.fixed_point and bool(bench.pairs)


def _bad(bench: Bench) -> bool:
    return _lossy(bench) and bench.start > INTEGER_FLOOR


def _can_change(bench: Bench) -> bool:
    """Whether quantisers can be changed in the candidate's model."""
    return bool(bench.b.quantised) and bench.b.runs and bool(bench.outputs_a)


def _spread(bench: Bench, model: onnx.ModelProto) -> float:
    made = bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, model)
    return math.inf if made is None else widest(bench.outputs_a, made)


def _model(bench: Bench) -> onnx.ModelProto:
    return bench.b.whole_model


def _names(bench: Bench, tensor: Quantised) -> tuple[str, ...]:
    """What a rounded tensor may be called in the reference: its number before, after, and without suffixes."""
    found = [tensor.tensor, tensor.source]
    for name in (tensor.tensor, tensor.source):
        for suffix in ("_dq", "_f", "_DequantizeLinear_Output", "_quantized", "_q"):
            found.append(name.removesuffix(suffix))
    return tuple(dict.fromkeys(found))


def _reference_of(bench: Bench, tensor: Quantised, values: Mapping[str, Tensor]) -> Tensor | None:
    found = next((values[name] for name in _names(bench, tensor) if name in values), None)
    return None if found is None or found.dtype.kind != "f" or not found.size else found


def _thresholds(bench: Bench) -> dict[str, tuple[float, float]]:
    """(threshold, step) by the reference's name of the tensor: those of the graph, else of the side file."""
    found: dict[str, tuple[float, float]] = {}
    quant = bench.evidence.quant
    for name, step in (quant.steps if quant is not None else {}).items():
        found[name] = (quant.threshold(name) if quant is not None else 0.0, step)
    for tensor in bench.b.quantised:
        value = next((n for n in _names(bench, tensor) if n in bench.values_a), tensor.source)
        found[value] = (tensor.threshold, tensor.step)
    return found


def _magnitudes(value: Tensor) -> Array:
    flat = np.abs(np.asarray(value, np.float64).reshape(-1))
    return flat[np.isfinite(flat)]


# ranges


def find_clipping(bench: Bench) -> Iterator[Explanation]:
    """Real values lie beyond the calibrated ranges; ranges that hold them bring the outputs back."""
    if implausible_feeds(bench):
        return
    values = bench.values_a
    cut: dict[str, float] = {}
    for name, (threshold, step) in _thresholds(bench).items():
        value = values.get(name)
        if value is not None and value.dtype.kind == "f" and value.size:
            cut[name] = float((_magnitudes(value) > threshold + step).mean())
    over = {name: share for name, share in cut.items() if share > CLIPPED}
    if not over:
        return
    facts = tuple((f"clipped share of {name}", share, "") for name, share in list(over.items())[:6])
    code = _clipping_code(bench, over)
    after, floor = math.inf, ORDINARY
    if _can_change(bench):
        steps = {}
        for tensor in bench.b.quantised:
            value = _reference_of(bench, tensor, values)
            if value is not None:
                steps[tensor] = max(float(_magnitudes(value).max(initial=0.0)), 1e-12) / max(tensor.high, 1)
        after = _spread(bench, rescaled(_model(bench), steps))
    else:
        after = _clipped_outputs(bench)
    tried = trial(code, "ranges of the real values", bench.before_spread, after, floor)
    yield from explained(tried, subjects=tuple(over), facts=facts, unit=SPREAD_UNIT)


def _clipped_outputs(bench: Bench) -> float:
    """The reference's outputs cut off as the candidate's are: what is left."""
    found = {}
    thresholds = _thresholds(bench)
    for name, a, b in bench.pairs:
        if name in thresholds:
            limit, step = thresholds[name]
            found[name] = np.clip(a, -limit - step, limit)
        else:
            found[name] = a
        del b
    return widest({n: b for n, _, b in bench.pairs}, found)


def _clipping_code(bench: Bench, over: Mapping[str, float]) -> str:
    if set(over) <= set(bench.outputs_a):
        return "saturation"
    return "calibration-not-representative"


def find_output_saturation(bench: Bench) -> Iterator[Explanation]:
    """Without known ranges: the candidate is the reference, cut off at the candidate's own extremes."""
    if bench.evidence.quant is not None or bench.b.quantised:
        return
    for name, a, b in bench.pairs:
        if a.shape != b.shape or a.dtype.kind != "f" or not np.isfinite(np.asarray(b, np.float64)).all():
            continue
        low, high = float(b.min()), float(b.max())
        x = np.asarray(a, np.float64)
        share = float(((x > high) | (x < low)).mean())
        if share <= CLIPPED / 4 or low == high:
            continue
        tried = trial(
            "saturation",
            "cut off",
            spread(a, b),
            spread(np.asarray(b, np.float64), np.clip(x, low, high)),
            INTEGER_FLOOR / 2,
            target=name,
        )
        if tried.result.value == "confirmed":
            yield from explained(
                tried, subjects=(name,), facts=(("clipped share", share, ""), ("limit", high, "")), unit=SPREAD_UNIT
            )


def find_calibration_feeds(bench: Bench) -> Iterator[Explanation]:
    """Calibration feeds are another multiple or normalisation of what is fed in operation."""
    e = bench.evidence
    if implausible_feeds(bench):
        return
    for name, calib in e.calib.items():
        fed = (e.feeds_b or e.feeds_a).get(name)
        if fed is None or calib.dtype.kind not in "fiu" or not calib.size or not fed.size:
            continue
        bulk_c, bulk_f = (float(np.quantile(_magnitudes(v), 0.95)) for v in (calib, fed))
        if not bulk_c or not bulk_f:
            continue
        factor = bulk_c / bulk_f
        centred_c, centred_f = (float(v.min()) < -0.25 * bulk for v, bulk in ((calib, bulk_c), (fed, bulk_f)))
        shifted = (centred_c and fed.min() >= 0) or (centred_f and calib.min() >= 0)
        if 1 / 30 < factor < 30 and not shifted:
            continue
        facts: tuple[Fact, ...] = (("calibration against operation", factor, "times"),)
        if not _can_change(bench):
            yield from fact("calibration-preprocess-mismatch", *facts, subjects=(name,), confirmed=False)
            continue
        steps = {}
        for tensor in bench.b.quantised:
            value = _reference_of(bench, tensor, bench.values_a)
            if value is not None:
                steps[tensor] = max(float(_magnitudes(value).max(initial=0.0)), 1e-12) / max(tensor.high, 1)
        tried = trial(
            "calibration-preprocess-mismatch",
            "ranges of what is fed",
            bench.before_spread,
            _spread(bench, rescaled(_model(bench), steps)),
            ORDINARY,
        )
        yield from explained(tried, subjects=(name,), facts=facts, unit=SPREAD_UNIT)


def find_outliers(bench: Bench) -> Iterator[Explanation]:
    """A few values, or a constant, stretch a range; the range of nearly all brings the outputs back."""
    calibrated = bench.calibrated() if bench.evidence.calib and bench.a.runs else {}
    stretched: dict[str, float] = {}
    bulks: dict[str, float] = {}
    for name, (threshold, _) in _thresholds(bench).items():
        calib, real = calibrated.get(name), bench.values_a.get(name)
        value = calib if real is None else real
        if value is None or value.dtype.kind != "f" or not value.size:
            continue
        bulk = _bulk(value)
        if calib is not None and bulk > 0 and _usual(calib) >= STRETCHED * bulk:
            continue  # all of the calibration is like that, not a few values
        if bulk > 0 and threshold / bulk >= STRETCHED:
            stretched[name] = threshold / bulk
            bulks[name] = bulk
    if not stretched:
        return
    facts = tuple(
        (f"range of {name} against nearly all values", ratio, "times") for name, ratio in list(stretched.items())[:6]
    )
    if not _can_change(bench):
        yield from fact("outlier-range", *facts, subjects=tuple(stretched), confirmed=False)
        return
    steps = {}
    for tensor in bench.b.quantised:
        known = next((n for n in _names(bench, tensor) if n in bulks), None)
        if known is not None:
            steps[tensor] = bulks[known] / max(tensor.high, 1)
    tried = trial(
        "outlier-range",
        "ranges of nearly all values",
        bench.before_spread,
        _spread(bench, rescaled(_model(bench), steps)),
        ORDINARY,
    )
    yield from explained(tried, subjects=tuple(stretched), facts=facts, unit=SPREAD_UNIT)


def _bulk(value: Tensor) -> float:
    """The magnitude below a gap in the upper half of the values, or below which 99.9 % of them lie."""
    sorted_ = np.sort(_magnitudes(value))
    if not sorted_.size:
        return 0.0
    found = float(np.quantile(sorted_, BULK))
    upper = sorted_[len(sorted_) // 3 :]
    with np.errstate(divide="ignore", invalid="ignore"):
        jumps = np.where(upper[:-1] > 0, upper[1:] / upper[:-1], 1.0)
    place = int(jumps.argmax()) if jumps.size else 0
    if jumps.size and jumps[place] >= STRETCHED and upper[place] > 1e-3 * float(np.median(sorted_) or 1.0):
        found = min(found, float(upper[place]))
    return found


def _usual(value: Tensor) -> float:
    """The magnitude that 90 % of the values stay below."""
    found = _magnitudes(value)
    return float(np.quantile(found, 0.9)) if found.size else 0.0


# one tensor, one node


def find_mixed_ranges(bench: Bench) -> Iterator[Explanation]:
    """Parts of very different size share one scale: the small ones have no steps left."""
    for name, a, b in bench.pairs:
        step = bench.step(name) or lattice(b)
        if step is None or a.shape != b.shape or a.ndim < 2:
            continue
        rows_a, rows_b = by_channel(a), by_channel(b)
        sizes = np.abs(rows_a).max(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            dead = (
                (np.ptp(rows_a, 1) > 0)
                & (sizes < 4 * step)
                & (np.sqrt(((rows_a - rows_b) ** 2).mean(1)) > 0.3 * rows_a.std(1))
            )
        if not dead.any() or dead.all() or sizes.max() < 16 * sizes[dead].max():
            continue
        facts: tuple[Fact, ...] = (
            ("step", step, ""),
            ("largest value of the small part", float(sizes[dead].max()), ""),
            ("largest value of all", float(sizes.max()), ""),
            ("channels lost", float(dead.sum()), ""),
        )
        tensors = [t for t in bench.b.quantised if t.tensor == name or t.source == name]
        rest = {n: v for n, v, _ in bench.pairs}
        if tensors and bench.b.runs:
            after = _spread(bench, unrounded(_model(bench), tensors))
            tried = trial("mixed-range-concat", "not rounded", bench.before_spread, after, ORDINARY, target=name)
        else:
            made = {**rest, name: np.rint(np.asarray(a, np.float64) / step) * step}
            gap = float(np.abs(made[name] - b).max()) / step
            tried = trial("mixed-range-concat", "rounded alike", 1.0 + gap, gap, 1.01, target=name)
        subjects = (name, *(f"channel {c}" for c in np.flatnonzero(dead)[:8]))
        yield from explained(tried, subjects=subjects, facts=facts, unit=SPREAD_UNIT)


def find_small_signal(bench: Bench) -> Iterator[Explanation]:
    """What changes from sample to sample is smaller than one step beside what stays."""
    for name, a, b in bench.pairs:
        step = bench.step(name) or lattice(b)
        if step is None or a.shape != b.shape or a.ndim < 2 or a.shape[0] < 4:
            continue
        x, y = (np.asarray(v, np.float64).reshape(len(v), -1) for v in (a, b))
        moving, still = x.std(0), np.abs(x.mean(0))
        lost = (moving > 0) & (moving < step) & (still > 4 * moving)
        if lost.mean() < 0.5:
            continue
        dx, dy = x[:, lost] - x[:, lost].mean(0), y[:, lost] - y[:, lost].mean(0)
        norm = math.sqrt(float((dx**2).sum() * (dy**2).sum()))
        alike = float((dx * dy).sum()) / norm if norm else 0.0
        if alike > 0.98:
            continue
        facts: tuple[Fact, ...] = (
            ("step", step, ""),
            ("standard deviation between samples", float(moving[lost].mean()), ""),
            ("mean that stays", float(still[lost].mean()), ""),
            ("correlation of what changes", alike, ""),
        )
        tensors = [t for t in bench.b.quantised if t.tensor == name or t.source == name]
        after = _spread(bench, unrounded(_model(bench), tensors)) if tensors and bench.b.runs else math.inf
        if math.isinf(after):
            after = spread(np.asarray(b, np.float64), np.rint(x / step).reshape(a.shape) * step)
        tried = trial("small-signal-lost", "not rounded", bench.before_spread, after, INTEGER_FLOOR, target=name)
        yield from explained(tried, subjects=(name,), facts=facts, unit=SPREAD_UNIT)


def _parts(bench: Bench) -> list[tuple[str, onnx.ModelProto]]:
    """(name, model without that part's rounding): each rounded tensor and each rounded weight."""
    found = [(_names(bench, t)[-1], unrounded(_model(bench), (t,))) for t in bench.b.quantised]
    for _, place, a, b in paired_weights(bench):
        if not np.array_equal(a, b):
            node = _model(bench).graph.node[place]
            found.append((label(node), with_inputs(_model(bench), ((place, 1, a),))))
    return found


def _all_undone(bench: Bench) -> onnx.ModelProto:
    model = unrounded(_model(bench), bench.b.quantised)
    return with_inputs(model, [(place, 1, a) for _, place, a, b in paired_weights(bench) if not np.array_equal(a, b)])


def find_sensitive(bench: Bench) -> Iterator[Explanation]:
    """Each rounding undone alone: does one carry the loss, or do all a little?"""
    ablation = bench.evidence.ablation
    if not bench.b.runs or bench.b.model is None:
        yield from _by_ablation(ablation)
        return
    parts = _parts(bench)
    if not parts or len(parts) > MOST_PARTS:
        return
    before = _loss(bench, bench.outputs_b)
    left: dict[str, float] = {}
    for name, model in parts:
        if not bench.has_time:
            return
        left[name] = _loss(bench, bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, model))
    best = min(left, key=lambda name: left[name])
    share = 1 - (left[best] / before) ** 2 if before else 0.0
    ranked = sorted(ablation.items(), key=lambda item: -item[1])
    named = len(ranked) > 1 and ranked[0][1] >= FALL * ranked[1][1]
    if bench.before_spread <= (INTEGER_FLOOR / 2 if named else INTEGER_FLOOR):
        return
    facts: tuple[Fact, ...] = (
        ("share of the error of this part", share, ""),
        *((f"error with only {name} rounded", value, "") for name, value in ranked[:3]),
    )
    if share >= ALMOST_ALL:
        result = TrialResult.CONFIRMED if share >= NEARLY_ALL else TrialResult.REFUTED
        made = Trial("sensitive-nodes", "not rounded", (), best, before, left[best], before / 2, result)
        yield from explained(made, subjects=(best, *_maker(bench, best)), facts=facts, unit=SPREAD_UNIT)
    if share < NEARLY_ALL and len(parts) >= MANY and bench.before_spread > ORDINARY:
        after = _loss(bench, bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, _all_undone(bench)))
        tried = trial("error-accumulation", "nothing rounded", before, after, INTEGER_FLOOR / 2)
        counts = (("parts", float(len(parts)), ""), ("largest share of one part", max(share, 0.0), ""))
        yield from explained(tried, facts=counts, unit=SPREAD_UNIT)


def _loss(bench: Bench, made: Mapping[str, Tensor] | None) -> float:
    """Root mean square of the error against the standard deviation, over all outputs; inf where one is missing."""
    total = 0.0
    for name, a in bench.outputs_a.items():
        other = None if made is None or name not in made else same_shape(a, made[name])
        if other is None:
            return math.inf
        x, y = np.asarray(a, np.float64), np.asarray(other, np.float64)
        total += float(((x - y) ** 2).mean()) / (float(x.var()) or 1.0)
    return math.sqrt(total / max(len(bench.outputs_a), 1)) if math.isfinite(total) else math.inf


def _by_ablation(ablation: Mapping[str, float]) -> Iterator[Explanation]:
    ranked = sorted(ablation.items(), key=lambda item: -item[1])
    total = math.sqrt(sum(value**2 for _, value in ranked))
    if len(ranked) >= 2 and total and ranked[0][1] / total >= math.sqrt(ALMOST_ALL):
        facts = tuple((f"error with only {name} rounded", value, "") for name, value in ranked[:3])
        yield from fact("sensitive-nodes", *facts, subjects=(ranked[0][0],), confirmed=len(ranked) >= 3)


def _maker(bench: Bench, tensor: str) -> tuple[str, ...]:
    for side in (bench.b, bench.a):
        if side.model is not None:
            for node in side.model.graph.node:
                if tensor in node.output:
                    return (label(node),)
    return ()


def find_layer_growth(bench: Bench) -> Iterator[Explanation]:
    """Without models: the error of the layers grows steadily, and no layer has a jump."""
    a, b = bench.evidence.layers_a, bench.evidence.layers_b
    if bench.b.runs:
        return
    errors = [
        spread(a[name], b[name])
        for name, _ in bench.order
        if name in a and name in b and a[name].shape == b[name].shape
    ]
    errors = [error for error in errors if math.isfinite(error) and error > 0]
    if len(errors) < 6:
        return
    jumps = [after / before for before, after in pairwise(errors)]
    if max(jumps) < 4 and errors[-1] > 2 * errors[0]:
        yield from fact(
            "error-accumulation",
            ("layers", float(len(errors)), ""),
            ("first", errors[0], SPREAD_UNIT),
            ("last", errors[-1], SPREAD_UNIT),
            ("largest jump", max(jumps), "times"),
            confirmed=False,
        )


# weights


def find_imbalance(bench: Bench) -> Iterator[Explanation]:
    """One scale for channels of weights of very different size; one scale a channel brings the outputs back."""
    if not bench.b.runs:
        return
    changes: list[tuple[int, int, Tensor]] = []
    subjects: list[str] = []
    largest = 0.0
    for _, place, a, b in paired_weights(bench):
        node = _model(bench).graph.node[place]
        axis = (
            0
            if node.op_type == "Conv" or (node.op_type == "Gemm" and attribute(node, "transB", 0))
            else a.ndim - 1
            if node.op_type != "ConvTranspose"
            else 1
        )
        sizes = np.abs(np.moveaxis(np.asarray(a, np.float64), axis, 0).reshape(a.shape[axis], -1)).max(1)
        ratio = float(sizes.max() / sizes.min()) if sizes.min() > 0 else math.inf
        if np.array_equal(a, b) or ratio < IMBALANCE or a.shape[axis] < 2:
            continue
        step = lattice(b)
        bits = 8 if step is None else max(2, min(16, round(math.log2(max(float(np.abs(b).max()) / step, 1.0))) + 1))
        around = [1] * a.ndim
        around[axis] = -1
        steps = (np.maximum(sizes, 1e-12) / (2 ** (bits - 1) - 1)).reshape(around)
        changes.append((place, 1, (np.rint(a / steps) * steps).astype(np.float32)))
        subjects += [node.input[1], label(node)]
        largest = max(largest, ratio if math.isfinite(ratio) else 1e12)
    if not changes:
        return
    after = _spread(bench, with_inputs(_model(bench), changes))
    tried = trial("weight-range-imbalance", "one scale a channel", bench.before_spread, after, ORDINARY)
    yield from explained(
        tried,
        subjects=tuple(dict.fromkeys(subjects)),
        facts=(("widest channel against narrowest", largest, "times"),),
        unit=SPREAD_UNIT,
    )


# overflow


def find_wraparound(bench: Bench) -> Iterator[Explanation]:
    """Integers that overflowed: the candidate is the reference, wrapped at 2^bits steps."""
    thresholds = _thresholds(bench)
    pools = (
        (dict(bench.outputs_a), dict(bench.outputs_b)),
        (dict(bench.evidence.layers_a), dict(bench.evidence.layers_b)),
    )
    for a_values, b_values in pools:
        for name, a in a_values.items():
            b = b_values.get(name)
            if b is None or b.shape != a.shape or a.dtype.kind not in "fi" or residual(a, b) <= INTEGER_FLOOR:
                continue
            known = [thresholds[name][1]] if name in thresholds else []
            told = bench.step(name)
            own = lattice(b)
            for step in dict.fromkeys([*known, *([told] if told else []), *([own] if own else [])]):
                found = tuple(_wrapped(name, a, b, step))
                yield from found
                if found:
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
            node.attribute[0].i = onnx.TensorProto.FLOAT
    return copy


def find_accumulator(bench: Bench) -> Iterator[Explanation]:
    """Sums of products that were cut off at 16 bits."""
    if not bench.b.runs or bench.b.model is None:
        return
    limits = (32767.0, -32768.0, 65535.0)
    places = []
    for place, node in enumerate(bench.b.model.graph.node):
        bounds = [bench.b.value(name) for name in node.input[1:3] if name] if node.op_type == "Clip" else []
        told = [attribute(node, "min"), attribute(node, "max")] if node.op_type == "Clip" else []
        numbers = [float(v.reshape(-1)[0]) for v in bounds if v is not None and v.size] + [
            float(v) for v in told if v is not None
        ]
        if any(number in limits for number in numbers):
            places.append(place)
    if not places:
        return
    copy = copied(bench.b.model)
    for place in places:
        node = copy.graph.node[place]
        node.CopyFrom(onnx.helper.make_node("Identity", [node.input[0]], [node.output[0]], name=node.name))
    made = bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, copy)
    if made is not None:
        tried = trial(
            "accumulator-saturation",
            "wider sums",
            bench.start,
            bench.distance(bench.outputs_a, made),
            max(ORDINARY, bench.floor),
        )
        yield from explained(
            tried,
            subjects=tuple(label(bench.b.model.graph.node[p]) for p in places[:8]),
            facts=(("sums cut off", float(len(places)), ""),),
        )


def find_accumulator_by_hand(bench: Bench) -> Iterator[Explanation]:
    """Integer weights at hand: the layer computed with pairs of products cut off at 16 bits is the candidate's."""
    if not bench.a.runs or bench.a.model is None:
        return
    quant = bench.evidence.quant
    values = bench.values_a
    for node in bench.a.model.graph.node:
        weights = bench.evidence.weights.get(node.input[1]) if len(node.input) > 1 else None
        wanted = bench.values_b.get(node.output[0])
        fed, own = (
            values.get(node.input[0]) if node.input else None,
            bench.a.value(node.input[1]) if weights is not None else None,
        )
        if node.op_type not in ("MatMul", "Gemm") or weights is None or wanted is None or fed is None or own is None:
            continue
        if weights.ndim != 2 or fed.ndim < 2 or own.shape != weights.shape:
            continue
        if node.op_type == "Gemm" and attribute(node, "transB", 0):
            weights, own = weights.T, own.T
        integers = np.asarray(weights, np.float64)
        step_w = float((own * integers).sum() / max((integers**2).sum(), 1.0))
        steps = quant.steps if quant is not None else {}
        step_x = steps.get(node.input[0]) or float(np.abs(fed).max()) / 255 or 1.0
        codes = np.clip(np.rint(np.asarray(fed, np.float64) / step_x), 0, 255)
        count = integers.shape[0] // 2 * 2
        pairs = codes[..., 0:count:2, None] * integers[0:count:2] + codes[..., 1:count:2, None] * integers[1:count:2]
        whole = codes @ integers
        cut = np.clip(pairs, -32768, 32767).sum(-2) + whole - pairs.sum(-2)
        made = (
            np.asarray(values.get(node.output[0], whole * step_x * step_w), np.float64)
            + (cut - whole) * step_x * step_w
        )
        lost = float((np.abs(pairs) > 32767).mean())
        tried = trial(
            "accumulator-saturation",
            "pairs cut off",
            spread(values[node.output[0]], wanted),
            spread(made, wanted),
            INTEGER_FLOOR / 2,
            target=node.output[0],
        )
        if lost and tried.result is TrialResult.CONFIRMED:
            yield from explained(
                tried, subjects=(label(node), node.output[0]), facts=(("pairs cut off", lost, ""),), unit=SPREAD_UNIT
            )
            return


# parameters


def find_parameters(bench: Bench) -> Iterator[Explanation]:
    """The side file against the graph: scales that differ, that are not there, bits that were not given."""
    quant = bench.evidence.quant
    if quant is None:
        return
    missing = list(quant.unscaled)
    bound = [n for n in bench.evidence.weights if n not in quant.steps and n not in missing]
    if quant.steps and bound and any(n in quant.steps for n in bench.evidence.weights):
        missing += bound
    missing += [_names(bench, t)[-1] for t in bench.b.quantised if not math.isfinite(t.step) or t.step <= 0]
    if missing:
        yield from fact(
            "quant-params-missing",
            ("tensors without a scale", float(len(missing)), ""),
            subjects=tuple(dict.fromkeys(missing))[:12],
        )
    wrong: dict[Quantised, float] = {}
    coarse: dict[Quantised, float] = {}
    facts: list[Fact] = []
    for tensor in bench.b.quantised:
        name = next((n for n in _names(bench, tensor) if n in quant.steps), None)
        if name is None:
            continue
        bits = quant.bits_of.get(name, quant.bits)
        if tensor.bits < bits:
            coarse[tensor] = quant.steps[name]
            facts += [(f"bits asked for {name}", float(bits), ""), (f"bits of {name}", float(tensor.bits), "")]
        elif not math.isclose(tensor.step, quant.steps[name], rel_tol=0.01):
            wrong[tensor] = quant.steps[name]
            facts += [
                (f"step of {name} in the graph", tensor.step, ""),
                (f"step of {name} in the file", quant.steps[name], ""),
            ]
    for code, found, transform in (
        ("quant-params-mismatch", wrong, "steps of the file"),
        ("precision-fallback", coarse, "not rounded"),
    ):
        if not found:
            continue
        model = rescaled(_model(bench), found) if code == "quant-params-mismatch" else unrounded(_model(bench), found)
        after = _spread(bench, model) if bench.b.runs else math.inf
        subjects = tuple(_names(bench, t)[-1] for t in found)
        tried = trial(code, transform, bench.before_spread, after, max(ORDINARY, bench.floor))
        share = 0.0 if not math.isfinite(after) or not bench.before_spread else 1 - after / bench.before_spread
        numbers = (("before", bench.before_spread, SPREAD_UNIT), ("after", after, SPREAD_UNIT), *facts[:8])
        told = explained(tried, subjects=subjects, facts=facts[:8], unit=SPREAD_UNIT)
        if told and told[0].confirmed:
            yield from told
        else:
            # That bits were asked for and not given is read off; that other steps matter is not.
            sure = share >= HELPED or code == "precision-fallback"
            yield from fact(code, *numbers, subjects=subjects, confirmed=sure, share=max(share, HELPED))


def find_blocked_fusion(bench: Bench) -> Iterator[Explanation]:
    """A convolution's wide output is rounded before its activation, because something else reads it."""
    if not _can_change(bench):
        return
    model = _model(bench)
    makers = {name: node for node in model.graph.node for name in node.output}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    blocked = [
        t
        for t in bench.b.quantised
        if (made := makers.get(t.source)) is not None
        and made.op_type in (*_LINEAR_OPS, "BatchNormalization", "Add")
        and any(r.op_type in _ACTIVATIONS for r in readers.get(t.tensor, ()))
        and (
            len(readers.get(t.tensor, ())) > 1
            or t.tensor in {o.name for o in model.graph.output}
            or len(readers.get(t.source, ())) > 1
        )
    ]
    if not blocked:
        return
    tried = trial(
        "fusion-blocked",
        "not rounded before the activation",
        bench.before_spread,
        _spread(bench, unrounded(model, blocked)),
        ORDINARY,
    )
    others = max(len(readers.get(t.tensor, ())) for t in blocked)
    yield from explained(
        tried,
        subjects=tuple(_names(bench, t)[-1] for t in blocked),
        facts=(("readers", float(others), ""),),
        unit=SPREAD_UNIT,
    )


# what is no fault


def find_crossing(bench: Bench) -> Iterator[Explanation]:
    """A decision flips only where the score is within the noise of the threshold."""
    for threshold_name, threshold in bench.evidence.post.items():
        if "thr" not in threshold_name.lower() and "conf" not in threshold_name.lower():
            continue
        for name, a, b in bench.pairs:
            if a.shape != b.shape or a.dtype.kind != "f":
                continue
            x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
            flipped = (x > threshold) != (y > threshold)
            noise = float(np.abs(x - y).max(initial=0.0))
            span = float(np.ptp(x)) or 1.0
            step = bench.step(name) or 0.0
            limit = max(1.01 * step, 0.02 * span)
            if not flipped.any() or noise > limit or spread(a, b) > ORDINARY:
                continue
            margin = float(np.abs(x - threshold)[flipped].max())
            yield from fact(
                "threshold-crossing",
                ("decisions that flip", float(flipped.sum()), f"of {flipped.size}"),
                ("threshold", threshold, ""),
                ("largest distance of a flipped score", margin, ""),
                ("noise", noise, ""),
                ("step", step, ""),
                subjects=(name, threshold_name),
                confirmed=margin <= noise,
            )


def find_rounding_noise(bench: Bench) -> Iterator[Explanation]:
    """Ranges hold the values, no channel is lost, and the error is what rounding gives."""
    if bench.before_spread > ORDINARY or bench.before == 0:
        return
    facts: tuple[Fact, ...] = (("error", bench.before_spread, SPREAD_UNIT), ("limit", ORDINARY, SPREAD_UNIT))
    worst = 0.0
    for name, (threshold, step) in _thresholds(bench).items():
        value = bench.values_a.get(name)
        if value is not None and value.dtype.kind == "f" and value.size:
            worst = max(worst, float((_magnitudes(value) > threshold + step).mean()))
    if worst > CLIPPED:
        return
    yield from fact("quantization-noise", *facts, ("largest clipped share", worst, ""), confirmed=True)


def find_constant(bench: Bench) -> Iterator[Explanation]:
    """An output of the candidate is the same whatever is fed."""
    for name, a, b in bench.pairs:
        if a.dtype.kind not in "fiu" or a.size < 2 or b.size < 2 or not np.isfinite(np.asarray(b, np.float64)).all():
            continue
        one_value = float(np.ptp(np.asarray(b, np.float64))) == 0.0 and float(np.ptp(np.asarray(a, np.float64))) > 0
        batched = a.ndim > 1 and a.shape[0] > 1 and a.shape == b.shape
        same_rows = batched and bool((b == b[:1]).all()) and not bool((a == a[:1]).all())
        if one_value or same_rows:
            yield from fact(
                "constant-output",
                ("values of the candidate", 1.0 if one_value else float(b[:1].size), ""),
                ("range of the reference", float(np.ptp(np.asarray(a, np.float64))), ""),
                subjects=(name,),
            )


def _has_layers_or_models(bench: Bench) -> bool:
    return bool(bench.evidence.layers_b) or bench.b.runs


def _weights_only(bench: Bench) -> bool:
    return bench.b.runs and bool(paired_weights(bench)) and bench.start > INTEGER_FLOOR


def _ablated(bench: Bench) -> bool:
    known = bool(bench.evidence.ablation) or bench.fixed_point
    return known and bench.before_spread > INTEGER_FLOOR / 2


RULES: Sequence[Rule] = (
    Rule(
        ("quant-params-missing", "quant-params-mismatch", "precision-fallback"),
        2,
        lambda bench: bench.evidence.quant is not None,
        find_parameters,
    ),
    Rule(("threshold-crossing",), 1, lambda bench: bool(bench.evidence.post), find_crossing),
    Rule(("int8-wraparound",), 1, lambda bench: bool(bench.pairs), find_wraparound),
    Rule(("saturation",), 1, lambda bench: bool(bench.pairs) and bench.start > INTEGER_FLOOR, find_output_saturation),
    Rule(("small-signal-lost",), 1, lambda bench: bool(bench.pairs), find_small_signal),
    Rule(("mixed-range-concat",), 2, _lossy, find_mixed_ranges),
    Rule(("fp16-overflow",), 2, _has_layers_or_models, find_half_overflow),
    Rule(
        ("calibration-preprocess-mismatch",),
        2,
        lambda bench: bool(bench.evidence.calib) and _bad(bench),
        find_calibration_feeds,
    ),
    Rule(("calibration-not-representative", "saturation"), 2, _bad, find_clipping),
    Rule(("outlier-range",), 2, _bad, find_outliers),
    Rule(("weight-range-imbalance",), 2, _weights_only, find_imbalance),
    Rule(("fusion-blocked",), 2, _bad, find_blocked_fusion),
    Rule(("accumulator-saturation",), 2, lambda bench: bench.b.runs and bench.start > FLOAT_FLOOR, find_accumulator),
    Rule(("accumulator-saturation",), 2, lambda bench: bool(bench.evidence.weights), find_accumulator_by_hand),
    Rule(("sensitive-nodes", "error-accumulation"), 3, _ablated, find_sensitive),
    Rule(("error-accumulation",), 3, lambda bench: bool(bench.evidence.layers_b), find_layer_growth),
    Rule(("constant-output",), 3, lambda bench: bool(bench.pairs), find_constant),
    Rule(("quantization-noise",), 3, _lossy, find_rounding_noise),
)
