"""Flips: items whose decision changed on the way, and which segments took the margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driftgate.domain.measurements import Array
from driftgate.domain.scores import Flip
from driftgate.scoring.decisions import Decisions


@dataclass(frozen=True, slots=True)
class Step:
    """A stage on the way, and the segment whose link leads to it."""

    stage: str
    segment: int


def find_flips(decisions: Decisions, steps: Sequence[Step]) -> tuple[Flip, ...]:
    """Items that the last stage decides in another way than the first, the largest lost margin first.

    Those that were lost stand before those that were won; `steps` go with the stages of `decisions`.
    """
    changed = np.flatnonzero(decisions.right[:, 0] != decisions.right[:, -1])
    flips = [
        Flip(
            sample=decisions.items[n].sample,
            item=decisions.items[n].number,
            kind=decisions.items[n].kind,
            right=tuple(bool(right) for right in decisions.right[n]),
            margins=tuple((step.stage, float(m)) for step, m in zip(steps, decisions.margins[n], strict=True)),
            eroded=_shares(decisions.margins[n], steps) if decisions.right[n, 0] else (),
        )
        for n in changed
    ]
    return tuple(sorted(flips, key=lambda f: (not f.lost, -f.loss if f.loss == f.loss else 0.0, f.sample, f.item)))


def erosion(flips: Sequence[Flip]) -> tuple[tuple[int, float], ...]:
    """The share of the margin lost by all lost items together that each segment took; the shares add up to 1.

    A segment that gave margin back has a share below 0. Empty where nothing was lost.
    """
    lost = [flip for flip in flips if flip.eroded]
    total = sum(flip.loss for flip in lost)
    segments = sorted({segment for flip in lost for segment, _ in flip.eroded})
    return tuple(
        (segment, sum(dict(flip.eroded).get(segment, 0.0) * flip.loss for flip in lost) / total) for segment in segments
    )


def _shares(margins: Array, steps: Sequence[Step]) -> tuple[tuple[int, float], ...]:
    """The share of the lost margin by segment; empty where the margin is not known or did not fall."""
    loss = margins[0] - margins[-1]
    if not np.isfinite(margins).all() or loss <= 0:
        return ()
    taken: dict[int, float] = {}
    for step, before, after in zip(steps[1:], margins, margins[1:], strict=False):
        taken[step.segment] = taken.get(step.segment, 0.0) + float((before - after) / loss)
    return tuple(sorted(taken.items()))
