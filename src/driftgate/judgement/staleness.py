"""What tells that another artifact was evaluated than the one that is meant, from facts alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from driftgate.domain.chain import Link, LinkKind
from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Explanation
from driftgate.domain.measurements import Array, Measurement, Role
from driftgate.domain.plan import Plan

STALE = "stale-artifact"
RECORDED = "recorded"
QUANTISED = 3  # the segment from which on a network is quantised
LEAST_NUMBERS = 8  # so many numbers that agree to the bit by chance are not believed
#: Of means and moments, relative, as they depend on the order of the sum; and of sums that are whole numbers.
ROUNDING, WHOLE = 1e-12, 1e-9
SHOWN = 12  # characters of a digest


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What is known of a stage's numbers in one output: a row a sample of their count, extremes, mean and moment."""

    samples: tuple[str, ...]
    is_float: bool
    is_finite: bool
    count: Array
    low: Array
    high: Array
    mean: Array
    moment: Array

    @property
    def is_computed(self) -> bool:
        """Whether they are what no other network gives by chance: not whole, and others in most samples. Classes,
        masks, anchors and constants are the same at every stage of many a sound network."""
        with np.errstate(invalid="ignore", over="ignore"):
            sums = self.count * self.mean
            whole = np.abs(sums - np.rint(sums)) <= WHOLE * np.maximum(1.0, np.abs(sums))
        whole &= (self.low == np.rint(self.low)) & (self.high == np.rint(self.high))
        extremes = np.unique(np.concatenate([self.low, self.high]))
        return not bool(whole.all()) and len(extremes) > len(self.samples)

    def are_those_of(self, other: _Numbers) -> bool:
        """Whether the other has these numbers in every sample, as far as can be told."""
        place = {sample: at for at, sample in enumerate(other.samples)}
        if not (self.is_finite and other.is_finite and place.keys() >= set(self.samples)):
            return False
        at = [place[sample] for sample in self.samples]
        exact = ((self.count, other.count), (self.low, other.low), (self.high, other.high))
        if not all(np.array_equal(mine, theirs[at]) for mine, theirs in exact):
            return False
        with np.errstate(invalid="ignore", over="ignore"):
            size = np.abs(self.mean) + np.sqrt(self.moment / np.maximum(self.count, 1.0))
            is_near = bool((np.abs(self.mean - other.mean[at]) <= ROUNDING * size).all())
            return is_near and np.allclose(self.moment, other.moment[at], rtol=ROUNDING, atol=0.0)


def find_stale(facts: Facts, link: Link, measurements: Sequence[Measurement]) -> Iterator[Explanation]:
    """The candidate is quantised, and has the file or gives the numbers, to the bit, of a stage that was not."""
    artifacts = {artifact.stage: artifact for artifact in facts.plan.artifacts}
    candidate = artifacts[link.candidate]
    for stage in reversed(_before_loss(facts.plan, link.candidate)):
        # Equal recordings are equal numbers, and no more than these.
        same_file = artifacts[stage].digest == candidate.digest and candidate.backend != RECORDED
        equal = _unchanged(measurements) if stage == link.reference else _returned(facts, stage, measurements)
        if same_file or equal >= LEAST_NUMBERS:
            evidence = ("numbers equal to the bit", equal, ""), ("same artifact", float(same_file), "")
            yield Explanation(STALE, True, evidence, subjects=(stage, link.candidate))
            return


def find_other_run(facts: Facts, link: Link) -> Iterator[Explanation]:
    """A run of either stage had another artifact than the planned one."""
    for stage in (link.reference, link.candidate):
        for found, planned in other_runs(facts, stage):
            yield Explanation(STALE, True, (), subjects=(stage, f"{found}, not {planned}"))


def other_runs(facts: Facts, stage: str) -> tuple[tuple[str, str], ...]:
    """What a stage ran and what was planned, where these differ: the beginnings of both digests, the second empty for
    a stage that was not planned."""
    planned = next((one.digest for one in facts.plan.artifacts if one.stage == stage), "")
    found = (run.artifact for run in facts.runs_of(stage) if run.artifact != planned)
    return tuple(dict.fromkeys((one[:SHOWN], planned[:SHOWN]) for one in found))


def _before_loss(plan: Plan, candidate: str) -> tuple[str, ...]:
    """The stages that a quantised candidate is parted from by a link that loses something; none for another one."""
    stages = plan.chain.stages
    end = [stage.name for stage in stages].index(candidate) + 1
    if stages[end - 1].segment < QUANTISED:
        return ()
    last = max((at for at, stage in enumerate(stages[:end]) if stage.kind is LinkKind.LOSSY), default=0)
    return tuple(stage.name for stage in stages[:last] if stage.name in plan.stages)


def _numbers(m: Measurement, *, of_candidate: bool) -> _Numbers:
    """What a measurement knows of one of its sides."""
    rows = m.rows
    return _Numbers(
        samples=m.samples,
        is_float=np.dtype(m.alignment.dtype_b if of_candidate else m.alignment.dtype_a).kind == "f",
        is_finite=not (rows.nonfinite_a.any() or rows.nonfinite_b.any()),
        count=rows.count,
        low=rows.min_b if of_candidate else rows.min_a,
        high=rows.max_b if of_candidate else rows.max_a,
        mean=rows.mean_b if of_candidate else rows.mean_a,
        moment=rows.m2_b if of_candidate else rows.m2_a,
    )


def _floating(measurements: Sequence[Measurement]) -> list[tuple[Measurement, _Numbers]]:
    """The outputs that the candidate gives as floats."""
    told = ((m, _numbers(m, of_candidate=True)) for m in measurements)
    return [(m, numbers) for m, numbers in told if numbers.is_float]


def _unchanged(measurements: Sequence[Measurement]) -> float:
    """How many computed numbers the link left as they were; 0 where it changed any float."""
    told = _floating(measurements)
    if any(m.rows.max_abs.any() or m.rows.nonfinite_a.any() for m, _ in told):
        return 0.0
    return sum(float(m.rows.count.sum()) for m, numbers in told if numbers.is_computed)


def _returned(facts: Facts, stage: str, measurements: Sequence[Measurement]) -> float:
    """How many computed numbers are those of a stage further up although the link changed them; 0 where any float is
    another one. What the link leaves alone in most samples is decided and not computed, and tells nothing."""
    known: dict[str, list[_Numbers]] = {}
    sides = {
        link.name: link.candidate == stage for link in facts.plan.links if stage in (link.reference, link.candidate)
    }
    for m in facts.measurements:
        if m.link in sides and m.role is Role.OUTPUT:
            known.setdefault(m.output, []).append(_numbers(m, of_candidate=sides[m.link]))
    told = _floating(measurements)
    if not all(any(mine.are_those_of(other) for other in known.get(m.output, ())) for m, mine in told):
        return 0.0
    moved = (m for m, mine in told if mine.is_computed and 2 * (m.rows.max_abs > 0).sum() > len(m.rows))
    return sum(float(m.rows.count.sum()) for m in moved)
