"""What the candidate may have been fed where its inputs are not told: suspected errors, tried on a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench, Side
from driftgate.diagnosis.channel_maps import layouts
from driftgate.diagnosis.trials import Fact, explained, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]
Tensors = Mapping[str, Tensor]

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


def applied(
    bench: Bench, code: str, transform: str, fed: Tensors, *, subjects: tuple[str, ...], facts: tuple[Fact, ...] = ()
) -> Iterator[Explanation]:
    """The suspected error applied: the feeds changed, and run by what gave the candidate's outputs. Where the
    candidate's model gives them from the same feeds, its input stage may differ: the reverse is tried on it."""
    if bench.rerun_b is not None and bench.replays_b:
        after = bench.distance(bench.outputs_a, bench.run(bench.b, fed))
    else:
        side = bench.b if bench.b.runs else bench.a
        made = bench.tried(side, fed)
        after = math.inf if made is None else bench.distance(made, bench.outputs_b)
    result = trial(code, transform, bench.start, after, bench.floor)
    if result.result.value == "confirmed":
        yield from explained(result, subjects=subjects, facts=facts)


def has_unseen_feed(bench: Bench) -> bool:
    """Whether the candidate's feeds are not told and a model can be run to try some."""
    e = bench.evidence
    runs = bench.a.answers or bench.b.runs
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
            found = tuple(applied(bench, code, transform, {**e.feeds_a, name: changed}, subjects=(name,), facts=facts))
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
