"""Score records: what a scorer noted of each sample, from which every score is folded."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from driftgate.domain.measurements import Array


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRecords:
    """One stage's records for one score: `values` is float64 of shape (samples, columns)."""

    stage: str
    run: str
    score: str
    columns: tuple[str, ...]
    samples: tuple[str, ...]
    values: Array

    @property
    def key(self) -> tuple[str, ...]:
        """What these are records of."""
        return (self.stage, self.run, self.score)

    def column(self, name: str) -> Array:
        """The values of one column, one a sample."""
        column: Array = self.values[:, self.columns.index(name)]
        return column

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreRecords):
            return NotImplemented
        same = all(getattr(self, f.name) == getattr(other, f.name) for f in fields(self) if f.name != "values")
        return same and np.array_equal(self.values, other.values, equal_nan=True)
