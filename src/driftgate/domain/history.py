"""Numbers of the last runs of a branch, as few as tell whether they slide."""

from __future__ import annotations

from dataclasses import dataclass

from driftgate.domain.comparisons import PastRun, RowKind


@dataclass(frozen=True, slots=True)
class Number:
    """Which number it is; `better` is `higher` or `lower`."""

    subject: str
    target: str
    kind: RowKind
    key: tuple[str, ...]
    criterion: str
    better: str

    @property
    def name(self) -> tuple[str, ...]:
        """What tells it from the other numbers of its run."""
        return self.subject, self.target, self.kind.value, *self.key, self.criterion


@dataclass(frozen=True, slots=True)
class Level(Number):
    """One number of one run. Only numbers of one `basis` (the same samples, labels and scoring) can be held against
    each other."""

    value: float
    basis: str = ""


@dataclass(frozen=True, slots=True)
class Series(Number):
    """One number in every run, NaN where a run has none, and what each of them rests on."""

    values: tuple[float, ...]
    bases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class History:
    """The last runs, from old to new, and every number of theirs."""

    runs: tuple[PastRun, ...] = ()
    series: tuple[Series, ...] = ()
