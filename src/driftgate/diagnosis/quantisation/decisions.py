"""Decisions that flip at a threshold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.spreads import NOISE, ORDINARY, loss
from driftgate.diagnosis.residuals import spread
from driftgate.diagnosis.trials import fact
from driftgate.domain.investigations import Explanation


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
            is_ordinary = noise <= limit and spread(a, b) <= ORDINARY
            if not flipped.any() or not (is_ordinary or loss({name: a}, {name: b}) <= NOISE):
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
