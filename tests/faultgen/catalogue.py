"""All planters, and the instances a seed makes of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from faultgen import (
    boards,
    boxes,
    calibrations,
    evidence,
    exporting,
    inputs,
    integers,
    nv12,
    operators,
    outputs,
    precision,
    rewrites,
)
from faultgen.planting import Planter, planted

PLANTERS: tuple[Planter, ...] = tuple(
    planter
    for family in (
        inputs,
        nv12,
        outputs,
        boxes,
        operators,
        exporting,
        rewrites,
        calibrations,
        precision,
        integers,
        boards,
        evidence,
    )
    for planter in family.PLANTERS
)
FAMILIES = tuple(dict.fromkeys(planter.family for planter in PLANTERS))


@dataclass(frozen=True, slots=True)
class Instance:
    """One fault: a planter, and the text its random numbers come from."""

    planter: Planter
    seed: str
    number: int

    @property
    def name(self) -> str:
        """Unique, and enough to plant it again."""
        return f"{self.planter.name}:{self.seed}:{self.number}"

    def plant(self, folder: Path) -> None:
        """Write the evidence folder; raises RuntimeError where no draw shows the cause."""
        planted(self.name, self.planter.plant, folder)


def instances(seeds: Sequence[str], count: int) -> Iterator[Instance]:
    """`count` instances of every planter for every seed."""
    for number, seed, planter in itertools.product(range(count), seeds, PLANTERS):
        yield Instance(planter, seed, number)
