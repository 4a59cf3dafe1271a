"""What is known of the two sides of a link while it is investigated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from driftgate.domain.investigations import Pair
from driftgate.localisation.pairing import Match
from driftgate.localisation.subject import Subject, shaped
from driftgate.messages.message import Message
from driftgate.numerics.alignment import channel_axis
from driftgate.numerics.sketches import Sketch
from driftgate.sessions import Tensor


@dataclass(slots=True)
class Survey:
    """Sketches by point, `types` (dtype and rank) of the candidate's tensors by name, the matches so far, and the
    axis orders in which matches agree, by (a, b)."""

    a: Subject
    b: Subject
    sketches_a: dict[int, Sketch] = field(default_factory=dict)
    sketches_b: dict[int, Sketch] = field(default_factory=dict)
    types: dict[str, tuple[np.dtype[Any], int]] = field(default_factory=dict)
    matches: tuple[Match, ...] = ()
    permuted: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    notes: list[Message] = field(default_factory=list)
    _indexed: tuple[tuple[Match, ...], dict[int, Match]] = ((), {})

    @property
    def by_candidate(self) -> dict[int, Match]:
        """The matches by the candidate's point."""
        if self._indexed[0] is not self.matches:
            self._indexed = self.matches, {match.b: match for match in self.matches}
        return self._indexed[1]

    def note(self, said: Message) -> None:
        """Keep a message, once."""
        if said not in self.notes:
            self.notes.append(said)

    def sizes(self, matches: Iterable[Match]) -> dict[int, int]:
        """Numbers that a pair holds, by the candidate's point."""
        return {m.b: max(self.sketches_a[m.a].size, self.sketches_b[m.b].size) for m in matches}

    def as_candidate(self, match: Match, value: Tensor) -> Tensor:
        """The reference's value in the candidate's axes."""
        order = self.permuted.get((match.a, match.b))
        if order is not None:
            value = value.transpose(np.argsort(order))
        like = shaped(value, self.sketches_b[match.b].shape, None)
        return value if like is None else like

    def as_reference(self, match: Match, value: Tensor, like: Tensor) -> Tensor | None:
        """The candidate's value in the axes of the reference's; None where the shapes do not fit."""
        return shaped(value, like.shape, self.permuted.get((match.a, match.b)))

    def axis(self, match: Match, shape: tuple[int, ...]) -> int | None:
        """The axis of a pair's features in the reference's order."""
        known = self.a.points[match.a].axis
        if known is None and self.permuted.get((match.a, match.b)) is None:
            known = self.b.points[match.b].axis
        if known is None or not -len(shape) <= known < len(shape):
            return channel_axis(shape)
        return known % len(shape)

    def pair(self, match: Match) -> Pair:
        """A match by the names of its tensors."""
        return Pair(
            tensor_a=self.a.points[match.a].tensor,
            tensor_b=self.b.points[match.b].tensor,
            how=match.how,
            certainty=match.certainty,
            permutation=self.permuted.get((match.a, match.b)),
        )
