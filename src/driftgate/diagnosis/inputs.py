"""Causes in what the network is fed: layout, order of channels and inputs, range, normalisation, another sample."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import SAME, Bench
from driftgate.diagnosis.cameras import loses_only_chroma
from driftgate.diagnosis.channel_maps import ChannelMap, channel_map, layouts, relative
from driftgate.diagnosis.same_feeds import fed_alike
from driftgate.diagnosis.trials import Fact, Rule, explained, fact, trial
from driftgate.diagnosis.unseen_inputs import OFFSET, applied, find_unseen_feed, has_unseen_feed
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]


def _both_fed(bench: Bench) -> bool:
    """Whether an input of either side is known to be the other's; what is called otherwise is not looked at."""
    return not bench.evidence.feeds_a.keys().isdisjoint(bench.evidence.feeds_b)


def _tested(
    bench: Bench, code: str, transform: str, error: float, name: str, facts: tuple[Fact, ...]
) -> tuple[Explanation, ...]:
    """A map that is exact on the inputs, tested on the outputs."""
    made = fed_alike(bench, code, transform, target=name)
    if made is None:
        return fact(code, ("input error", error, "of the range"), *facts, subjects=(name,), confirmed=False)
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
        if not bench.has_time:
            return
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
            yield from applied(bench, "input-permuted", "inputs", fed, subjects=tuple(group))


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


def find_other_feeds(bench: Bench) -> Iterator[Explanation]:
    """The sides were fed different data, whatever the reason; what NV12 loses is none."""
    e = bench.evidence
    if loses_only_chroma(bench) or not e.feeds_a.keys() & e.feeds_b.keys():
        return  # what nv12 loses; or another form of the input, which says nothing of what is in it
    gaps = {name: relative(a, e.feeds_b[name]) if name in e.feeds_b else math.inf for name, a in e.feeds_a.items()}
    different = [name for name, gap in gaps.items() if gap > SAME]
    if not different:
        return
    made = fed_alike(bench, "input-mismatch", "same feeds", least=bench.floor)
    largest = max(gap for gap in gaps.values() if gap > SAME)
    facts = (("input error", largest, "of the range"),) if math.isfinite(largest) else ()
    if made is None:
        yield from fact("input-mismatch", *facts, subjects=different, confirmed=False)
        return
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
        has_unseen_feed,
        find_unseen_feed,
    ),
    Rule(("input-mismatch",), 3, _both_fed, find_other_feeds),
)
