"""Outputs that a capture puts aside for an investigation, which then need not run the candidate untapped again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from driftgate.sessions import Tensors


@dataclass(slots=True)
class Aside:
    """All stages' outputs of the first `samples`, while they fit `limit` bytes together; a sample is kept whole or
    not at all."""

    samples: int
    limit: int
    _kept: dict[str, Mapping[str, Tensors]] = field(default_factory=dict)
    _held: int = 0
    _full: bool = False

    def add(self, sample: str, outputs: Mapping[str, Tensors]) -> None:
        """One sample's outputs by stage. Once one did not fit, no more are taken."""
        if self._full or len(self._kept) == self.samples:
            return
        size = sum(tensor.nbytes for made in outputs.values() for tensor in made.values())
        self._full = self._held + size > self.limit
        if not self._full:
            self._kept[sample] = {stage: dict(made) for stage, made in outputs.items()}
            self._held += size

    def of(self, stage: str) -> dict[str, Tensors]:
        """One stage's outputs by sample."""
        return {sample: outputs[stage] for sample, outputs in self._kept.items() if stage in outputs}
