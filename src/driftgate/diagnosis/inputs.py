"""Causes in what the network is fed: layout, order of channels and inputs, range, normalisation, another sample."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import SAME, Bench, Side
from driftgate.diagnosis.trials import Fact, Rule, explained, fact, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]
Tensors = Mapping[str, Tensor]

MOST_CHANNELS = 64
BYTE_FACTORS = (250.0, 260.0)
OFFSET = 128.0
#: What values may go up to, besides bytes: 4, 5, 10, 12 and 16 bits, percent.
FULL_SCALES = (15.0, 16.0, 31.0, 32.0, 100.0, 1023.0, 1024.0, 4095.0, 4096.0, 65535.0, 65536.0)
#: Means and divisors, per channel of RGB, that pipelines use; value = (x - mean) / divisor.
NORMALISATIONS: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = (
    ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    ((0.5,), (0.5,)),
    ((127.5,), (127.5,)),
    ((128.0,), (128.0,)),
    ((127.5,), (128.0,)),
    ((104.0, 117.0, 123.0), (1.0,)),
    ((0.406, 0.456, 0.485), (0.225, 0.224, 0.229)),
)


def relative(a: Tensor, b: Tensor) -> float:
    """Largest |a - b| of two inputs against the range of the first; inf where shapes differ."""
    if a.shape != b.shape or not a.size:
        return math.inf
    x, y = a.astype(np.float64), b.astype(np.float64)
    span = float(np.ptp(x)) or float(np.abs(x).max()) or 1.0
    gap = float(np.abs(x - y).max())
    return gap / span if math.isfinite(gap) else math.inf


# layouts


@dataclass(frozen=True, slots=True)
class Layout:
    """A buffer in one order of axes that is read in another."""

    code: str
    name: str
    apply: Callable[[Tensor], Tensor]
    order: tuple[int, ...] = ()


def layouts(tensor: Tensor) -> Iterator[Layout]:
    """The identity, then every other order in which the bytes of a tensor of this rank may lie."""
    yield Layout("", "identity", lambda value: value)
    rank = tensor.ndim
    if rank < 2 or rank > 5:
        return
    seen = [tensor]
    orders = [order for order in itertools.permutations(range(rank)) if order != tuple(range(rank))]
    batched = sorted(orders, key=lambda order: (order[0] != 0, order not in _NHWC, order))
    for order in batched:
        if rank == 5 and order[0] != 0:
            continue
        for inverse in (False, True) if order in _NHWC else (False,):
            moved = _moved(tensor, order, inverse)
            if any(np.array_equal(moved, other, equal_nan=moved.dtype.kind == "f") for other in seen):
                continue
            seen.append(moved)
            code = "layout-nhwc" if order in _NHWC else "noncontiguous-input"
            yield Layout(code, "reordered", _mover(order, inverse), order)


_NHWC = ((0, 2, 3, 1),)


def _mover(order: tuple[int, ...], inverse: bool) -> Callable[[Tensor], Tensor]:
    return lambda value: _moved(value, order, inverse)


def _moved(value: Tensor, order: tuple[int, ...], inverse: bool) -> Tensor:
    """The bytes of `value` in another order of axes, read in its shape; or the other way about."""
    if not inverse:
        return np.ascontiguousarray(value.transpose(order)).reshape(value.shape)
    back = tuple(int(axis) for axis in np.argsort(order))
    shape = tuple(value.shape[axis] for axis in order)
    return np.ascontiguousarray(value.reshape(shape).transpose(back))


# channels: permutation, factor and offset, from the data


@dataclass(frozen=True, slots=True)
class ChannelMap:
    """candidate[c] = scale[c] · reference[order[c]] + offset[c] along `axis`, within `error` of the range."""

    axis: int | None
    order: tuple[int, ...]
    scale: tuple[float, ...]
    offset: tuple[float, ...]
    error: float

    @property
    def permuted(self) -> bool:
        """Whether channels changed places."""
        return self.order != tuple(range(len(self.order)))

    @property
    def affine(self) -> bool:
        """Whether factors or offsets are there."""
        return not (np.allclose(self.scale, 1, atol=1e-4) and np.allclose(self.offset, 0, atol=1e-5 * self.size))

    @property
    def size(self) -> float:
        """The largest factor, at least 1."""
        return max(1.0, *(abs(value) for value in self.scale))


def channel_map(a: Tensor, b: Tensor) -> ChannelMap | None:
    """The map between the channels of two inputs of one shape; None where a channel has no partner."""
    if a.shape != b.shape or not a.size:
        return None
    axes = [axis for axis in range(1, a.ndim) if a.shape[axis] in (3, 4)] or [
        axis for axis in range(1, min(a.ndim, 2)) if 1 < a.shape[axis] <= MOST_CHANNELS
    ]
    found = [fitted for axis in (*axes, None) if (fitted := _fitted(a, b, axis)) is not None]
    return min(found, key=lambda m: (m.error > SAME * 10, m.permuted, m.affine, m.axis is not None), default=None)


def _fitted(a: Tensor, b: Tensor, axis: int | None) -> ChannelMap | None:
    x, y = (_rows(value, axis) for value in (a, b))
    deviations_x, deviations_y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    norm_x, norm_y = (np.sqrt((d**2).sum(1)) for d in (deviations_x, deviations_y))
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = (deviations_y @ deviations_x.T) / norm_y[:, None] / norm_x[None, :]
    if not np.isfinite(alike).all():
        return None
    order, scales, offsets = [], [], []
    for channel, row in enumerate(alike):
        near = np.flatnonzero(np.abs(row) >= 0.99999)
        if not near.size:
            near = np.array([int(np.abs(row).argmax())])
        errors = []
        for other in near:
            slope = float(row[other] * norm_y[channel] / norm_x[other])
            shift = float(y[channel].mean() - slope * x[other].mean())
            plain = abs(slope - 1) > 1e-4 or abs(shift) > 1e-5
            errors.append((plain, other != channel, other, slope, shift))
        _, _, other, slope, shift = min(errors)
        order.append(int(other))
        scales.append(slope)
        offsets.append(shift)
    made = np.array(scales)[:, None] * x[order] + np.array(offsets)[:, None]
    span = float(np.ptp(y)) or 1.0
    if sorted(order) != list(range(len(x))):
        return None
    return ChannelMap(axis, tuple(order), tuple(scales), tuple(offsets), float(np.abs(made - y).max()) / span)


def _rows(value: Tensor, axis: int | None) -> NDArray[np.float64]:
    x = value.astype(np.float64)
    return x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, 0).reshape(value.shape[axis], -1)


def _both_fed(bench: Bench) -> bool:
    e = bench.evidence
    return bool(e.feeds_a) and bool(e.feeds_b)


def _after_undoing(bench: Bench) -> float | None:
    """The residual where both sides are fed the same: the candidate's model with the reference's feeds, or the
    reference's model with the candidate's; None where neither runs."""
    e = bench.evidence
    with_a = bench.run(bench.b, e.feeds_a)
    if with_a is not None:
        return bench.distance(bench.outputs_a, with_a)
    with_b = bench.run(bench.a, e.feeds_b)
    return None if with_b is None else bench.distance(with_b, bench.outputs_b)


def _tested(
    bench: Bench, code: str, transform: str, error: float, name: str, facts: tuple[Fact, ...]
) -> tuple[Explanation, ...]:
    """A map that is exact on the inputs, tested on the outputs."""
    after = _after_undoing(bench)
    if after is None:
        return fact(code, ("input error", error, "of the range"), *facts, subjects=(name,), confirmed=False)
    made = trial(code, transform, bench.start, after, bench.floor, target=name)
    return explained(made, subjects=(name,), facts=facts)


def find_input_map(bench: Bench) -> Iterator[Explanation]:
    """The two inputs are the same but for layout, order of channels, factor and offset."""
    e = bench.evidence
    for name, a in e.feeds_a.items():
        b = e.feeds_b.get(name)
        if b is None or relative(a, b) <= SAME or a.dtype.kind not in "fiu" or b.dtype.kind not in "fiu":
            continue
        if a.shape != b.shape and a.size == b.size:
            b = b.reshape(a.shape)
        yield from _mapped(bench, name, a, b)


def _mapped(bench: Bench, name: str, a: Tensor, b: Tensor) -> Iterator[Explanation]:
    if a.shape != b.shape or not np.isfinite(b.astype(np.float64)).all():
        return
    for layout in layouts(a):
        fitted = channel_map(layout.apply(a), b)
        if fitted is None or fitted.error > 10 * SAME:
            continue
        facts = tuple((f"axis {place}", float(axis), "") for place, axis in enumerate(layout.order))
        if layout.code:
            yield from _tested(bench, layout.code, layout.name, fitted.error, name, facts)
        if fitted.permuted:
            order = tuple((f"channel {c} gets", float(o), "") for c, o in enumerate(fitted.order))
            yield from _tested(bench, "input-channel-swap", "channels", fitted.error, name, order)
        if fitted.affine:
            numbers = tuple((f"factor {c}", s, "") for c, s in enumerate(fitted.scale))
            numbers += tuple((f"offset {c}", o, "") for c, o in enumerate(fitted.offset))
            yield from _tested(bench, _affine_code(bench, fitted, a), "affine", fitted.error, name, numbers[:12])
        return


def _affine_code(bench: Bench, fitted: ChannelMap, a: Tensor) -> str:
    scale, offset = np.array(fitted.scale), np.array(fitted.offset)
    factor = float(abs(scale).mean())
    centred = abs(offset).max() > 1e-4 * max(1.0, float(np.abs(a.astype(np.float64)).max()) * factor)
    if not centred and np.allclose(scale, scale[0], rtol=1e-3):
        return "input-scale-255"
    if np.allclose(scale, 1, atol=1e-4) and np.allclose(np.abs(offset), OFFSET, atol=0.51):
        return "input-offset-128"
    # A candidate = (a - mean) / std with std < 1 (or of bytes, std > 1 with a mean that centres) is normalised
    # once more; the inverse is not normalised at all.
    centre_a, centre_b = float(np.abs(a.mean())), float(np.abs((scale * a.mean() + offset).mean()))
    width_a = float(a.astype(np.float64).std()) or 1.0
    more = centre_b / (factor * width_a) < centre_a / width_a
    if _embeds_normalisation(bench):
        return "double-normalization" if more or (offset < 0).all() else "missing-mean-scale"
    if (offset < 0).all():
        return "double-normalization"
    return "missing-mean-scale"


def _embeds_normalisation(bench: Bench) -> bool:
    """Whether a model begins with a subtraction, division or the like by constants of at most 4 numbers."""
    for side in (bench.b, bench.a):
        if side.model is None:
            continue
        inputs = {value.name for value in side.model.graph.input}
        for node in side.model.graph.node[:8]:
            if node.op_type in ("Sub", "Div", "Mul", "Add", "BatchNormalization") and node.input[0] in inputs:
                constant = side.value(node.input[1])
                if constant is not None and constant.size <= 4:
                    return True
        return False
    return False


def find_wrapped_bytes(bench: Bench) -> Iterator[Explanation]:
    """uint8 pixels read as int8, or the reverse: the same bytes, 128 or 256 apart."""
    e = bench.evidence
    for name, a in e.feeds_a.items():
        b = e.feeds_b.get(name)
        if b is None or b.shape != a.shape or relative(a, b) <= SAME:
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        gaps = np.unique(np.rint(x - y))
        whole = np.allclose(x, np.rint(x)) and np.allclose(y, np.rint(y))
        if whole and set(np.abs(gaps)) <= {0.0, 256.0} and len(gaps) > 1:
            yield from _tested(bench, "input-offset-128", "bytes", 0.0, name, (("offset", 256.0, ""),))


def find_input_order(bench: Bench) -> Iterator[Explanation]:
    """Inputs of one shape that were fed in another order."""
    e = bench.evidence
    names = list(e.feeds_a)
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in names:
        groups.setdefault(e.feeds_a[name].shape, []).append(name)
    for group in groups.values():
        if not 2 <= len(group) <= 6:
            continue
        for order in itertools.permutations(group):
            if order == tuple(group):
                continue
            moved = dict(zip(group, order, strict=True))
            if e.feeds_b:
                gap = max(relative(e.feeds_a[moved[n]], e.feeds_b[n]) if n in e.feeds_b else math.inf for n in group)
                if gap <= SAME:
                    yield from _tested(bench, "input-permuted", "inputs", gap, group[0], ())
                    return
                continue
            fed = {**e.feeds_a, **{name: e.feeds_a[other] for name, other in moved.items()}}
            yield from _applied(bench, "input-permuted", "inputs", fed, subjects=tuple(group))


def find_sample_order(bench: Bench) -> Iterator[Explanation]:
    """Samples that were fed or recorded in another order: every row of the candidate is one of the reference's."""
    for name, a, b in bench.pairs:
        fed = {value.shape[0] for value in bench.evidence.feeds_a.values() if value.ndim}
        if a.shape != b.shape or a.ndim < 2 or not 2 <= a.shape[0] <= 256 or a.shape[0] not in fed:
            continue
        x, y = (value.reshape(len(value), -1).astype(np.float64) for value in (a, b))
        gaps = np.array([[np.abs(row - other).max() for other in x] for row in y])
        order = gaps.argmin(1)
        if len(set(order)) == len(order) and (order != np.arange(len(order))).any():
            made = trial(
                "input-mismatch", "samples", bench.start, bench.distance({name: a[order]}, {name: b}), bench.floor
            )
            yield from explained(made, subjects=(name,))


# no inputs of the candidate: what it may have been fed is tried on a model


def _applied(
    bench: Bench, code: str, transform: str, fed: Tensors, *, subjects: tuple[str, ...], facts: tuple[Fact, ...] = ()
) -> Iterator[Explanation]:
    """The suspected error applied: the feeds changed, and run by what gave the candidate's outputs. Where the
    candidate's model gives them from the same feeds, its input stage may differ: the reverse is tried on it."""
    if bench.rerun_b is not None and bench.replays_b:
        after = bench.distance(bench.outputs_a, bench.run(bench.b, fed))
    else:
        side = bench.b if bench.b.runs else bench.a
        made = bench.run(side, fed)
        after = math.inf if made is None else bench.distance(made, bench.outputs_b)
    result = trial(code, transform, bench.start, after, bench.floor)
    if result.result.value == "confirmed":
        yield from explained(result, subjects=subjects, facts=facts)


def _alone(bench: Bench) -> bool:
    e = bench.evidence
    runs = bench.a.runs or bench.b.runs
    return bool(e.feeds_a) and bench.same_feeds and runs and bool(bench.outputs_a) and bool(bench.outputs_b)


def find_unseen_feed(bench: Bench) -> Iterator[Explanation]:
    """Which change of the feeds makes the outputs agree."""
    e = bench.evidence
    for name, feed in e.feeds_a.items():
        if feed.dtype.kind not in "fiu" or feed.ndim < 2:
            continue
        for code, transform, changed, facts in _guesses(bench, feed):
            if not bench.has_time:
                return
            found = tuple(_applied(bench, code, transform, {**e.feeds_a, name: changed}, subjects=(name,), facts=facts))
            yield from found
            if found:
                return


def _guesses(bench: Bench, feed: Tensor) -> Iterator[tuple[str, str, Tensor, tuple[Fact, ...]]]:
    replays = bench.rerun_b is not None and bench.replays_b
    if replays and bench.a.model is not None and not _heads_differ(bench):
        return
    x = feed.astype(np.float32)
    for factor in _factors(x):
        yield "input-scale-255", "factor", x * np.float32(factor), (("factor", factor, ""),)
    for offset in (OFFSET, -OFFSET):
        yield "input-offset-128", "offset", x + np.float32(offset), (("offset", offset, ""),)
    wrapped = np.where(x >= OFFSET, x - 256, np.where(x < 0, x + 256, x))
    if (wrapped != x).any():
        yield "input-offset-128", "bytes", wrapped, (("offset", 256.0, ""),)
    axis = next((axis for axis in range(1, x.ndim) if x.shape[axis] == 3), None)
    if axis is not None:
        for order in ((2, 1, 0), (1, 0, 2), (0, 2, 1), (1, 2, 0), (2, 0, 1)):
            facts = tuple((f"channel {c} gets", float(o), "") for c, o in enumerate(order))
            yield "input-channel-swap", "channels", np.take(x, order, axis), facts
    for layout in layouts(x):
        if layout.code and not replays:
            facts = tuple((f"axis {place}", float(a), "") for place, a in enumerate(layout.order))
            yield layout.code, layout.name, np.ascontiguousarray(layout.apply(x)), facts
    for mean, divisor in (*_own_normalisations(bench), *NORMALISATIONS):
        if len(mean) not in (1, 3) or (max(len(mean), len(divisor)) == 3 and axis is None):
            continue
        m, s = (_around(values, x.ndim, axis) for values in (mean, divisor))
        facts = tuple((f"mean {c}", v, "") for c, v in enumerate(mean))
        facts += tuple((f"divisor {c}", v, "") for c, v in enumerate(divisor))
        # Where the candidate's own model is tried, feeding it less means that it has the step inside.
        more, less = (
            ("missing-mean-scale", "double-normalization")
            if replays
            else (
                "double-normalization",
                "missing-mean-scale",
            )
        )
        yield more, "normalised", ((x - m) / s).astype(np.float32), facts
        yield less, "raw", (x * s + m).astype(np.float32), facts


def _factors(x: Tensor) -> tuple[float, ...]:
    """Factors between usual ranges: of bytes first, then of what the values reach up to."""
    reach = float(np.max(np.abs(x), initial=0.0))
    usual = (255.0, 1 / 255.0, 256.0, 1 / 256.0, 128.0, 1 / 128.0)
    others = tuple(
        f for full in FULL_SCALES for f in (full, 1 / full) if full / 4 < reach <= full * 1.01 or reach <= 1.01
    )
    return (*usual, *(f for f in others if f not in usual))


def _heads_differ(bench: Bench) -> bool:
    """Whether the two models begin differently, and one with small constants as preprocessing has them."""
    heads = _head(bench.a), _head(bench.b)
    return heads[0] != heads[1] and any(numbers for head in heads for _, numbers in head)


def _head(side: Side) -> tuple[tuple[str, tuple[float, ...]], ...]:
    if side.model is None:
        return ()
    found = []
    for node in side.model.graph.node[:3]:
        held = [side.value(name) for name in node.input[1:]]
        numbers = tuple(float(n) for value in held if value is not None and value.size <= 4 for n in value.reshape(-1))
        found.append((node.op_type, numbers))
    return tuple(found)


def _around(values: Iterable[float], rank: int, axis: int | None) -> NDArray[np.float64]:
    found = np.array(tuple(values))
    shape = [1] * rank
    if found.size > 1 and axis is not None:
        shape[axis] = -1
    return found.reshape(shape)


def _own_normalisations(bench: Bench) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Mean and divisor that a model has at its input."""
    for side in (bench.a, bench.b):
        if side.model is None:
            continue
        means: list[tuple[float, ...]] = []
        divisors: list[tuple[float, ...]] = []
        for node in side.model.graph.node[:6]:
            constant = side.value(node.input[1]) if len(node.input) > 1 else None
            if constant is None or constant.size > 3 or constant.dtype.kind != "f":
                continue
            numbers = tuple(float(v) for v in constant.reshape(-1))
            if node.op_type in ("Sub", "Add"):
                means.append(numbers if node.op_type == "Sub" else tuple(-v for v in numbers))
            elif node.op_type in ("Div", "Mul"):
                divisors.append(numbers if node.op_type == "Div" else tuple(1 / v if v else 1.0 for v in numbers))
        for mean in means or [(0.0,)]:
            for divisor in divisors or [(1.0,)]:
                if means or divisors:
                    yield mean, divisor


def find_other_feeds(bench: Bench) -> Iterator[Explanation]:
    """The sides were fed different data, whatever the reason."""
    e = bench.evidence
    gaps = {name: relative(a, e.feeds_b[name]) if name in e.feeds_b else math.inf for name, a in e.feeds_a.items()}
    different = [name for name, gap in gaps.items() if gap > SAME]
    if not different:
        return
    after = _after_undoing(bench)
    largest = max(gap for gap in gaps.values() if gap > SAME)
    facts = (("input error", largest, "of the range"),) if math.isfinite(largest) else ()
    if after is None:
        yield from fact("input-mismatch", *facts, subjects=different, confirmed=False)
        return
    made = trial("input-mismatch", "same feeds", bench.start, after, bench.floor)
    yield from explained(made, subjects=different, facts=facts)


RULES = (
    Rule(
        (
            "layout-nhwc",
            "noncontiguous-input",
            "input-channel-swap",
            "input-scale-255",
            "input-offset-128",
            "double-normalization",
            "missing-mean-scale",
        ),
        1,
        _both_fed,
        find_input_map,
    ),
    Rule(("input-offset-128",), 1, _both_fed, find_wrapped_bytes),
    Rule(("input-permuted",), 2, lambda bench: len(bench.evidence.feeds_a) > 1, find_input_order),
    Rule(("input-mismatch",), 1, lambda bench: bool(bench.pairs), find_sample_order),
    Rule(
        (
            "input-scale-255",
            "input-offset-128",
            "input-channel-swap",
            "layout-nhwc",
            "noncontiguous-input",
            "double-normalization",
            "missing-mean-scale",
        ),
        2,
        _alone,
        find_unseen_feed,
    ),
    Rule(("input-mismatch",), 3, _both_fed, find_other_feeds),
)
