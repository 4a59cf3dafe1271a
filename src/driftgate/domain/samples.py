"""The data set as identities: which samples, in which order, with which contents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

BLOCK = 16


class Origin(str, Enum):
    """Where samples come from; random ones never prove PASS."""

    REAL = "real"
    CALIBRATION = "calibration"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class SampleSet:
    """Ordered samples; a digest is that of a sample's tensors. Work is divided in whole blocks."""

    name: str
    ids: tuple[str, ...]
    digests: tuple[str, ...]
    origin: Origin = Origin.REAL
    block: int = BLOCK

    @property
    def blocks(self) -> tuple[int, ...]:
        """The numbers of all blocks."""
        return tuple(range(-(-len(self.ids) // self.block)))

    def of_blocks(self, blocks: Iterable[int]) -> tuple[str, ...]:
        """The ids in the given blocks, in sample order."""
        return tuple(
            sample for block in sorted(blocks) for sample in self.ids[block * self.block : (block + 1) * self.block]
        )

    def first(self, count: int) -> SampleSet:
        """The nested subset of the first `count` samples."""
        return SampleSet(self.name, self.ids[:count], self.digests[:count], self.origin, self.block)
