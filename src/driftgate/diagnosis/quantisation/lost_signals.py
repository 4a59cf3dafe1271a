"""Signals that are smaller than one step of the scale they share."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from driftgate.diagnosis.bench import INTEGER_FLOOR, Bench
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT, spread_with
from driftgate.diagnosis.residuals import by_channel, lattice, spread
from driftgate.diagnosis.surgery import unrounded
from driftgate.diagnosis.trials import Fact, explained, trial
from driftgate.domain.investigations import Explanation

STATIC = 2.0  # steps that the part which stays must have: below that all of it is lost, not what moves


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
            after = spread_with(bench, unrounded(bench.b.whole_model, tensors))
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
        lost = (moving > 0) & (moving < step) & (still > 4 * moving) & (still > STATIC * step)
        if not lost.any() or lost.sum() < 0.5 * (moving > 0).sum():
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
        after = spread_with(bench, unrounded(bench.b.whole_model, tensors)) if tensors and bench.b.runs else math.inf
        if math.isinf(after):
            after = spread(np.asarray(b, np.float64), np.rint(x / step).reshape(a.shape) * step)
        tried = trial("small-signal-lost", "not rounded", bench.before_spread, after, INTEGER_FLOOR, target=name)
        yield from explained(tried, subjects=(name,), facts=facts, unit=SPREAD_UNIT)
