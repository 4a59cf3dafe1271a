"""Numbers from version to version, for those that moved somewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from driftgate.domain.comparisons import Change, Comparison, Row, RowKind

#: What has a number that can be drawn.
DRAWN = (RowKind.SCORE, RowKind.LOSS, RowKind.LINK, RowKind.SPEED, RowKind.BUILD)
MOST = 20


@dataclass(frozen=True, slots=True)
class Trend:
    """One number of one subject in every version: NaN and an empty text where a version has none. `worst`: the worst
    change among the steps."""

    subject: str
    target: str
    row: Row
    values: tuple[float, ...]
    texts: tuple[str, ...]
    worst: Change


def trends(steps: Sequence[Comparison], most: int = MOST) -> tuple[Trend, ...]:
    """The numbers that moved in some step, those that became worse first; at most `most` a subject."""
    found: dict[tuple[str, str, RowKind, tuple[str, ...], str], list[Row | None]] = {}
    for place, step in enumerate(steps):
        for one in step.subjects:
            for row in one.rows:
                if row.kind in DRAWN:
                    key = (one.subject, one.target, row.kind, row.key, row.criterion)
                    found.setdefault(key, [None] * len(steps))[place] = row
    made = [_trend(key[0], key[1], rows) for key, rows in found.items()]
    moved = [one for one in made if one is not None]
    moved.sort(key=lambda one: (one.worst is not Change.WORSE, DRAWN.index(one.row.kind)))
    kept: list[Trend] = []
    for trend in moved:
        if sum((other.subject, other.target) == (trend.subject, trend.target) for other in kept) < most:
            kept.append(trend)
    return tuple(kept)


def _trend(subject: str, target: str, rows: Sequence[Row | None]) -> Trend | None:
    changes = {row.change for row in rows if row is not None}
    worst = next((change for change in (Change.WORSE, Change.BETTER, Change.DRIFT) if change in changes), None)
    last = next((row for row in reversed(rows) if row is not None), None)
    if worst is None or last is None:
        return None
    values = [math.nan] * (len(rows) + 1)
    texts = [""] * (len(rows) + 1)
    for place, row in enumerate(rows):
        if row is None:
            continue
        for at, value, text in ((place, row.base, row.base_text), (place + 1, row.head, row.head_text)):
            if value is not None:
                values[at], texts[at] = value, text
    return Trend(subject, target, last, tuple(values), tuple(texts), worst)
