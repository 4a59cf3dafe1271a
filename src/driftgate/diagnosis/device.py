"""Causes on the device: an operator computed wrong, rounding by one step, noise of floating-point sums."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, SAME, Bench, Tensors, side_tensors
from driftgate.diagnosis.channel_maps import relative
from driftgate.diagnosis.residuals import by_channel, residual
from driftgate.diagnosis.surgery import forced
from driftgate.diagnosis.trials import Fact, Rule, explained, fact, trial
from driftgate.domain.investigations import Explanation
from driftgate.numerics.alignment import same_shape

Tensor = NDArray[Any]

ONE_STEP = 1.01
MOST_MOVED = 0.25  # share of elements that rounding may move


def find_wrong_operator(bench: Bench) -> Iterator[Explanation]:
    """The first layer that differs while what it reads agrees; put into the reference it gives the outputs."""
    a, b = _layers_of_reference(bench), bench.evidence.layers_b
    if bench.b.runs:
        return
    good = ""
    for name, op in bench.order:
        if name not in a or name not in b:
            continue
        gap = residual(a[name], b[name])
        if gap <= max(FLOAT_FLOOR, bench.floor if bench.fixed_point else 0.0):
            good = name
            continue
        facts: list[Fact] = [("difference at the node", gap, "of the range")]
        other = same_shape(a[name], b[name])
        if other is not None:
            rows = np.abs(by_channel(a[name]) - by_channel(other)).max(1)
            wrong = np.flatnonzero(rows > FLOAT_FLOOR * max(float(np.ptp(np.asarray(a[name], np.float64))), 1e-12))
            facts.append(("channels that are wrong", float(len(wrong)), f"of {len(rows)}"))
        if bench.a.model is not None and bench.a.runs and other is not None:
            feeds = bench.evidence.feeds_b or bench.evidence.feeds_a
            made = bench.run(bench.a, feeds, forced(bench.a.model, {name: other}))
            after = math.inf if made is None else bench.distance(made, bench.outputs_b)
            tried = trial(
                "device-op-error", "value of the device", bench.start, after, max(bench.floor, 1e-3), target=name
            )
            yield from explained(tried, subjects=(name, op, good), facts=facts)
        else:
            yield from fact("device-op-error", *facts, subjects=(name, op, good), confirmed=bool(good))
        return


def _layers_of_reference(bench: Bench) -> Tensors:
    """The reference's layers of what the candidate was fed: made anew where it was fed something else."""
    e = bench.evidence
    if bench.same_feeds or all(n in e.feeds_b and relative(v, e.feeds_b[n]) <= SAME for n, v in e.feeds_a.items()):
        return e.layers_a
    taps = tuple(name for name in side_tensors(bench.a) if name in e.layers_b)
    return bench.run(bench.a, e.feeds_b, taps=taps) or {}


def find_one_step(bench: Bench) -> Iterator[Explanation]:
    """Both sides lie on the same steps, and few elements are one step apart."""
    moved, total, largest = 0, 0, 0.0
    for name, a, b in bench.pairs:
        other = same_shape(a, b)
        step = bench.step(name) or (1.0 if a.dtype.kind in "iu" and b.dtype.kind in "iu" else None)
        if other is None or step is None or a.dtype.kind not in "fiu":
            return
        x, y = (np.asarray(v, np.float64) / step for v in (a, other))
        if max(float(np.abs(v - np.rint(v)).max(initial=0.0)) for v in (x, y)) > 0.02:
            return
        apart = np.abs(np.rint(x) - np.rint(y))
        moved, total = moved + int((apart > 0).sum()), total + apart.size
        largest = max(largest, float(apart.max(initial=0.0)))
    if not moved or len(bench.pairs) != len(bench.outputs_a):
        return
    share = moved / total
    if largest <= ONE_STEP and share <= MOST_MOVED:
        yield from fact("rounding-lsb", ("largest difference", largest, "steps"), ("elements that differ", share, ""))


def find_noise(bench: Bench) -> Iterator[Explanation]:
    """The difference is what another order of summation gives."""
    if len(bench.pairs) != len(bench.outputs_a) or not 0 < bench.before <= FLOAT_FLOOR:
        return
    if any(a.dtype.kind != "f" for _, a, _ in bench.pairs):
        return
    largest = max(
        float(np.nanmax(np.abs(np.asarray(a, np.float64) - np.asarray(same_shape(a, b), np.float64))))
        for _, a, b in bench.pairs
    )
    yield from fact(
        "numeric-noise",
        ("difference", bench.before, "of the range"),
        ("limit", FLOAT_FLOOR, "of the range"),
        ("largest difference", largest, ""),
    )


RULES = (
    Rule(("rounding-lsb",), 1, lambda bench: bool(bench.pairs), find_one_step),
    Rule(("numeric-noise",), 1, lambda bench: bool(bench.pairs), find_noise),
    Rule(
        ("device-op-error",),
        2,
        lambda bench: bool(bench.evidence.layers_b) and bool(bench.evidence.layers_a),
        find_wrong_operator,
    ),
)
