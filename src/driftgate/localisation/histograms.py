"""Histograms of the worst pairs: how the values of both sides are spread, found in a second pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.investigations import Histogram, NodeError
from driftgate.localisation.subject import Subject
from driftgate.localisation.windows import fitting
from driftgate.sessions import Tensor

BINS = 64
FINE = 64  # so many parts of a bin tell percentiles
PERCENTILES = (0.1, 1.0, 50.0, 99.0, 99.9)
BOTH = 2.0  # how often the tapped numbers are held
PART = 1 << 16
SAMPLED = 1 << 15  # so many values a sample, at the most, of a tensor that is not counted whole

Counts = NDArray[np.int64]


@dataclass(slots=True)
class _Spread:
    """Fine counts of both sides over the range of both."""

    low: float
    high: float
    every: int
    a: Counts = field(default_factory=lambda: np.zeros(BINS * FINE, np.int64))
    b: Counts = field(default_factory=lambda: np.zeros(BINS * FINE, np.int64))

    def add(self, counts: Counts, values: Tensor) -> None:
        """Count the finite values of one tensor."""
        flat = np.ascontiguousarray(values).reshape(-1)[:: self.every]
        scale = len(counts) / (self.high - self.low)
        for start in range(0, len(flat), PART):
            part = flat[start : start + PART].astype(np.float64)
            part = part[np.isfinite(part)]
            places = np.clip((part - self.low) * scale, 0, len(counts) - 1).astype(np.int64)
            counts += np.bincount(places, minlength=len(counts))


def histograms(
    a: Subject, b: Subject, nodes: Sequence[NodeError], samples: Sequence[str], *, whole: int, memory: int
) -> tuple[Histogram, ...]:
    """The values of these nodes' tensors over the samples, in the order of the nodes; of all but the first `whole`
    nodes one of several values where there are many.

    Bins are of one width between the least and the largest value of both sides; percentiles are good to a
    4096th of that range. Nodes without values have none. Tapped tensors take up to `memory` bytes. Raises what
    the sessions raise.
    """
    index_a = {point.tensor: point.index for point in a.points}
    sizes = {node.order: int(node.total.count.sum() / max(1, len(samples))) + 1 for node in nodes}
    spread = {
        node.order: _Spread(*_range(node), 1 if place < whole else _stride(sizes[node.order] - 1))
        for place, node in enumerate(nodes)
        if _range(node)[0] < _range(node)[1]
    }
    partner = {node.order: index_a[node.pair.tensor_a] for node in nodes if node.order in spread}
    for window in fitting(sorted(spread), sizes, memory, held=BOTH):
        _count(a, [(partner[order], spread[order], spread[order].a) for order in window], samples)
        _count(b, [(order, spread[order], spread[order].b) for order in window], samples)
    return tuple(_histogram(b, node, spread[node.order]) for node in nodes if node.order in spread)


def _count(subject: Subject, points: Sequence[tuple[int, _Spread, Counts]], samples: Sequence[str]) -> None:
    """Run one side on all samples and count the values of its points."""
    with subject.open(index for index, _, _ in points) as session:
        for sample in samples:
            feeds = subject.feeds(sample)
            outputs = subject.run(session, feeds, sample)
            for index, spread, counts in points:
                value = subject.numbers(index, outputs, feeds)
                if value is not None:
                    spread.add(counts, value)
            del outputs


def _stride(size: int) -> int:
    """One of so many values is counted; it has no divisor in common with the size, so that no channel or column is
    left out for the others."""
    every = -(-size // SAMPLED)
    while every > 1 and math.gcd(every, size) > 1:
        every += 1
    return every


def _range(node: NodeError) -> tuple[float, float]:
    """The least and the largest value of both sides; equal where there is nothing to spread."""
    total = node.total
    if not total.count.sum():
        return 0.0, 0.0
    return float(min(total.min_a.min(), total.min_b.min())), float(max(total.max_a.max(), total.max_b.max()))


def _histogram(b: Subject, node: NodeError, found: _Spread) -> Histogram:
    return Histogram(
        tensor=node.pair.tensor_b,
        low=found.low,
        high=found.high,
        counts_a=tuple(int(n) for n in found.a.reshape(BINS, FINE).sum(1)),
        counts_b=tuple(int(n) for n in found.b.reshape(BINS, FINE).sum(1)),
        clip=b.points[node.order].clip,
        percentiles=tuple((q, _percentile(found, found.a, q), _percentile(found, found.b, q)) for q in PERCENTILES),
        every=found.every,
    )


def _percentile(found: _Spread, counts: Counts, percentile: float) -> float:
    """The value below which so many percent of the counted values lie, to half a fine bin."""
    total = int(counts.sum())
    if not total:
        return float("nan")
    place = int(np.searchsorted(np.cumsum(counts), total * percentile / 100))
    width = (found.high - found.low) / len(counts)
    return found.low + (min(place, len(counts) - 1) + 0.5) * width
