"""What became of a board's speed and memory, and of what the build says."""

from __future__ import annotations

from collections.abc import Iterator

from driftgate.comparing.side import unless_drift
from driftgate.domain.comparisons import Change, Row, RowKind
from driftgate.domain.facts import OF_ARTIFACT, Facts
from driftgate.domain.runs import Performance
from driftgate.judgement.criteria import FPS, LATENCY, MEMORY
from driftgate.judgement.performance import Spread, frame_rate, latency, memory
from driftgate.messages.message import message
from driftgate.messages.text import number

#: A speed that was measured once may be off by so much.
ONCE = 0.05
#: Criterion → the number of a board, and whether more is better.
SPEEDS = ((LATENCY, latency, False), (FPS, frame_rate, True), (MEMORY, memory, False))
#: What a build tells, by the kind of report: less is better.
BUILD = (
    ("node_info", "nodes"),
    ("node_info", "cpu"),
    ("perf", "ddr-bytes"),
    ("perf", "memory-bytes"),
    ("perf", "estimated-latency-us"),
    (OF_ARTIFACT, "bytes"),
)


def speed_rows(base: Facts, head: Facts) -> Iterator[Row]:
    """What a board said of a stage, under the same number of threads on the same core."""
    old, new = (dict(performances(facts)) for facts in (base, head))
    for key, told in new.items():
        known = old.get(key)
        if known is None:
            continue
        for criterion, read, is_more_better in SPEEDS:
            first, second = read(known), read(told)
            if first is None or second is None or not first.is_sound or not second.is_sound:
                continue
            change = _speed_change(first, second, is_more_better=is_more_better)
            change = unless_drift(change, base, head, key[0])
            note = message("compare-measured-once") if first.runs == 1 or second.runs == 1 else None
            yield Row(
                RowKind.SPEED,
                key,
                change,
                criterion,
                first.middle,
                second.middle,
                number(round(first.middle, 3)),
                number(round(second.middle, 3)),
                n=min(first.runs, second.runs),
                note=note,
            )


def performances(facts: Facts) -> Iterator[tuple[tuple[str, str, str], Performance]]:
    """What a board said, by stage, number of threads and core."""
    stage_of = {run.id: run.stage for run in facts.runs}
    for told in facts.performance:
        if told.run in stage_of:
            yield (stage_of[told.run], str(told.threads or "-"), told.core or "-"), told


def _speed_change(old: Spread, new: Spread, *, is_more_better: bool) -> Change:
    """Beyond the spread of both; what was measured once is given the room of ONCE."""
    room = ONCE * old.middle if old.runs == 1 or new.runs == 1 else 0.0
    if new.least > old.most + room:
        return Change.BETTER if is_more_better else Change.WORSE
    if new.most < old.least - room:
        return Change.WORSE if is_more_better else Change.BETTER
    return Change.SAME


def build_rows(base: Facts, head: Facts) -> Iterator[Row]:
    """What the reports of a build and the artifacts say of size and effort."""
    old = {(one.kind, one.source, name): value for one in base.tool_facts for name, value in one.values}
    for one in head.tool_facts:
        for name, value in one.values:
            known = old.get((one.kind, one.source, name))
            if (one.kind, name) not in BUILD or known is None:
                continue
            before, after = _amount(known), _amount(value)
            if before is None or after is None:
                continue
            change = Change.SAME if before == after else Change.WORSE if after > before else Change.BETTER
            key = (one.source, name) if one.kind == OF_ARTIFACT else (one.kind, name)
            yield Row(RowKind.BUILD, key, change, name, before, after, number(before), number(after))


def _amount(value: object) -> float | None:
    """A number, or how many names there are."""
    if isinstance(value, tuple):
        return float(len(value))
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
