"""Samples of two versions that have the same content, whatever they are called."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from driftgate.domain.comparisons import Paired
from driftgate.domain.measurements import Measurement, Moments, concatenate
from driftgate.domain.samples import SampleSet
from driftgate.domain.scores import ScoreRecords


@dataclass(frozen=True, slots=True)
class SamplePairs:
    """The base's name of a sample → the head's, in the base's order; and how many samples each has."""

    names: Mapping[str, str]
    counts: Paired

    @property
    def all_common(self) -> bool:
        """Whether both have the same samples."""
        return self.counts.common == self.counts.base == self.counts.head

    def base_records(self, records: ScoreRecords) -> ScoreRecords:
        """The base's records of the common samples, by the head's names."""
        rows = records.by_sample()
        return records.with_rows((mine, rows[theirs]) for theirs, mine in self.names.items() if theirs in rows)

    def head_records(self, records: ScoreRecords) -> ScoreRecords:
        """The head's records of the common samples, in the same order."""
        rows = records.by_sample()
        return records.with_rows((mine, rows[mine]) for mine in self.names.values() if mine in rows)

    def rows(self, base: Measurement, head: Measurement) -> tuple[Moments, Moments]:
        """The rows of the common samples of both, in one order."""
        at_base = {sample: place for place, sample in enumerate(base.samples)}
        at_head = {sample: place for place, sample in enumerate(head.samples)}
        places = [
            (at_base[theirs], at_head[mine])
            for theirs, mine in self.names.items()
            if theirs in at_base and mine in at_head
        ]
        first, second = (np.array([pair[side] for pair in places], np.intp) for side in (0, 1))
        return base.rows.take(first), head.rows.take(second)


def pair_samples(base: SampleSet, head: SampleSet, among: Set[str] | None = None) -> SamplePairs:
    """By digest; of several samples with one content each has one partner, in their order. Where digests are given,
    only samples `among` them."""
    waiting: defaultdict[str, deque[str]] = defaultdict(deque)
    for sample, digest in zip(head.ids, head.digests, strict=True):
        waiting[digest].append(sample)
    names: dict[str, str] = {}
    for sample, digest in zip(base.ids, base.digests, strict=True):
        if waiting[digest] and (among is None or digest in among):
            names[sample] = waiting[digest].popleft()
    return SamplePairs(names, Paired(len(names), len(base.ids), len(head.ids)))


def joined_by_samples(parts: Sequence[Measurement]) -> Measurement | None:
    """One output's measurements of several runs as one; None where a sample was measured twice."""
    samples = [sample for part in parts for sample in part.samples]
    if not parts or len(set(samples)) != len(samples):
        return None
    if len(parts) == 1:
        return parts[0]
    return replace(
        parts[0], samples=tuple(samples), rows=concatenate([part.rows for part in parts]), blocks=(), channels=None
    )
