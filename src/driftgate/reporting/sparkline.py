"""Numbers as a line of bars in plain text, for places that show no pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
UNKNOWN = "?"


def sparkline(values: Sequence[float], *, low: float, high: float) -> str:
    """One character a value, from ▁ at `low` to █ at `high`, which are finite; NaN is `?`.

    Where `low` is `high`, nothing can differ: bars are full, or empty if both are zero.
    """
    return "".join(_bar(value, low, high) for value in values)


def grouped(values: Sequence[float], most: int) -> tuple[tuple[float, ...], int]:
    """At most `most` numbers, each the largest of as many neighbours as the second result says; NaN wins."""
    size = max(1, -(-len(values) // most))
    groups = (values[start : start + size] for start in range(0, len(values), size))
    return tuple(math.nan if any(map(math.isnan, group)) else max(group) for group in groups), size


def _bar(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return BARS[-1 if value > 0 else 0]
    if high <= low:
        return BARS[-1 if high and value >= high else 0]
    if math.isinf(high - low):
        value, low, high = value / 2, low / 2, high / 2
    share = (value - low) / (high - low)
    return BARS[int(min(max(share, 0.0), 1.0) * (len(BARS) - 1) + 0.5)]
