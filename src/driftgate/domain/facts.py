"""Facts: all that was collected for one subject on one target, and how the shares of several legs are united."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from driftgate.domain.investigations import Investigation
from driftgate.domain.measurements import Alignment, Array, Measurement, Moments, concatenate
from driftgate.domain.plan import Plan
from driftgate.domain.runs import Environment, Performance, Recording, Run
from driftgate.domain.samples import SampleSet
from driftgate.domain.scores import ScoreRecords
from driftgate.errors import MergeConflict
from driftgate.messages.message import Message, Param, message

T = TypeVar("T")
#: Kind of what an artifact says of itself; its source is the stage.
OF_ARTIFACT = "artifact"
#: What is told of its file besides.
BYTES, SHA256 = "bytes", "sha256"


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What a vendor tool wrote, as values."""

    source: str
    kind: str
    values: tuple[tuple[str, Param], ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something planned that could not be measured: which link or stage, which output, and why."""

    where: str
    output: str | None
    reason: Message


@dataclass(frozen=True, slots=True)
class Facts:
    """A shard holds the facts of some legs; merged facts hold those of all. No judgement is in here."""

    plan: Plan
    runs: tuple[Run, ...] = ()
    environments: tuple[Environment, ...] = ()
    performance: tuple[Performance, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    scores: tuple[ScoreRecords, ...] = ()
    recordings: tuple[Recording, ...] = ()
    investigations: tuple[Investigation, ...] = ()
    tool_facts: tuple[ToolFacts, ...] = ()
    problems: tuple[Problem, ...] = ()

    def told(self, kind: str, name: str, source: str | None = None) -> Param | None:
        """A value that a vendor's file of this kind says, or only that `source`; None where none does."""
        found = (one for one in self.tool_facts if one.kind == kind and source in (None, one.source))
        return next((dict(one.values).get(name) for one in found), None)

    def runs_of(self, stage: str) -> tuple[Run, ...]:
        """The runs of one stage, in all legs."""
        return tuple(run for run in self.runs if run.stage == stage)


def merge(shards: Sequence[Facts]) -> Facts:
    """Unite shards of one plan: equal facts collapse, unequal ones under one key are a MergeConflict.

    The order of the shards does not matter, and the result equals the unsharded one to the bit, but for the
    runs, of which each leg has its own. Raises MergeConflict for shards of different plans.
    """
    plans = {shard.plan.digest: shard.plan for shard in shards}
    if len(plans) != 1:
        raise MergeConflict(message("merge-plans", digests=tuple(sorted(digest[:12] for digest in plans))))
    samples = shards[0].plan.samples
    plan = replace(
        shards[0].plan, legs=_union((leg for shard in shards for leg in shard.plan.legs), lambda leg: leg.id)
    )
    return Facts(
        plan=plan,
        runs=_join_runs(run for shard in shards for run in shard.runs),
        environments=_union((e for shard in shards for e in shard.environments), lambda e: e.id),
        performance=_union((p for shard in shards for p in shard.performance), lambda p: p.key),
        measurements=tuple(
            _join_measurements(samples, group)
            for group in _groups((m for shard in shards for m in shard.measurements), lambda m: m.key)
        ),
        scores=tuple(
            _join_scores(samples, group)
            for group in _groups((s for shard in shards for s in shard.scores), lambda s: s.key)
        ),
        recordings=_union((r for shard in shards for r in shard.recordings), lambda r: (r.stage, r.run, r.sample)),
        investigations=_union((i for shard in shards for i in shard.investigations), lambda i: i.link),
        tool_facts=_union((t for shard in shards for t in shard.tool_facts), lambda t: (t.source, t.kind)),
        problems=tuple(sorted({p for shard in shards for p in shard.problems}, key=repr)),
    )


def _groups(items: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return [groups[k] for k in sorted(groups, key=repr)]


def _union(items: Iterable[T], key: Callable[[T], Hashable]) -> tuple[T, ...]:
    united: list[T] = []
    for group in _groups(items, key):
        if any(item != group[0] for item in group[1:]):
            raise _conflict(group[0], key(group[0]))
        united.append(group[0])
    return tuple(united)


def _join_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """A leg that was run twice to the same end took another time, which is no disagreement: the longest is kept, and
    the first day, so that nothing counts as newer than all of it is."""
    united: list[Run] = []
    for group in _groups(runs, lambda run: (run.leg, run.stage, run.how.value, run.environment)):
        longest = max(group, key=lambda run: run.seconds)
        kept = replace(longest, day=min(run.day for run in group))
        if any(replace(run, seconds=kept.seconds, day=kept.day) != kept for run in group):
            raise _conflict(longest, (longest.leg, longest.stage))
        united.append(kept)
    return tuple(united)


def _conflict(item: object, key: Hashable) -> MergeConflict:
    name = " ".join(str(part) for part in key) if isinstance(key, tuple) else str(key)
    return MergeConflict(message("merge-conflict", fact=type(item).__name__, key=name))


def _rank(samples: SampleSet) -> dict[str, int]:
    return {sample: position for position, sample in enumerate(samples.ids)}


def _overlap(kind: str, key: tuple[str, ...], sample: str) -> MergeConflict:
    return MergeConflict(message("merge-conflict", fact=kind, key=" ".join((*key, sample))))


def _join_measurements(samples: SampleSet, parts: Sequence[Measurement]) -> Measurement:
    if len(parts) == 1:
        return parts[0]
    rank = _rank(samples)
    parts = sorted(parts, key=lambda part: rank[part.samples[0]])
    first = parts[0]
    for part in parts[1:]:
        if _comparable(part.alignment) != _comparable(first.alignment) or part.step != first.step:
            raise MergeConflict(message("merge-conflict", fact="Measurement", key=" ".join(first.key)))
    rows: dict[str, Moments] = {}
    for part in parts:
        for index, sample in enumerate(part.samples):
            row = part.rows.take(slice(index, index + 1))
            if rows.setdefault(sample, row) != row:
                raise _overlap("Measurement", first.key, sample)
    ids = tuple(sorted(rows, key=lambda sample: rank[sample]))
    channels = _join_channels(parts)
    ties = {part.blocks: part.alignment.ties for part in parts}
    return replace(
        first,
        alignment=replace(
            first.alignment, ties=sum(ties.values()), axis=first.alignment.axis if channels is not None else None
        ),
        samples=ids,
        rows=concatenate([rows[sample] for sample in ids]),
        blocks=tuple(sorted({block for part in parts for block in part.blocks})),
        channels=channels,
    )


def _comparable(alignment: Alignment) -> Alignment:
    """What must be the same in every share; shapes and so channels may differ from sample to sample."""
    return replace(alignment, ties=0, shape=(), axis=None)


def _join_channels(parts: Sequence[Measurement]) -> Moments | None:
    """The channel tables of all blocks; None where not all shares have the same channels."""
    kinds = {
        (part.alignment.axis, len(part.channels) // len(part.blocks)) if part.channels is not None else None
        for part in parts
    }
    if len(kinds) != 1 or None in kinds:
        return None
    tables: dict[int, Moments] = {}
    for part in parts:
        if part.channels is None:
            return None
        width = len(part.channels) // len(part.blocks)
        for index, block in enumerate(part.blocks):
            table = part.channels.take(slice(index * width, (index + 1) * width))
            if tables.setdefault(block, table) != table:
                raise _overlap("Measurement", part.key, f"block {block}")
    return concatenate([tables[block] for block in sorted(tables)])


def _join_scores(samples: SampleSet, parts: Sequence[ScoreRecords]) -> ScoreRecords:
    rank = _rank(samples)
    rows: dict[str, Array] = {}
    for part in parts:
        if part.columns != parts[0].columns:
            raise MergeConflict(message("merge-conflict", fact="ScoreRecords", key=" ".join(part.key)))
        for sample, values in part.by_sample().items():
            if not np.array_equal(rows.setdefault(sample, values), values, equal_nan=True):
                raise _overlap("ScoreRecords", parts[0].key, sample)
    return parts[0].with_rows((sample, rows[sample]) for sample in sorted(rows, key=lambda sample: rank[sample]))
