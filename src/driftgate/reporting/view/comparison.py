"""A comparison with a baseline as reports show it: what it comes to, what else changed, and every number that moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftgate.comparing.trend import Trend
from driftgate.domain.comparisons import (
    Change,
    Changed,
    Comparison,
    Erosion,
    Moved,
    Row,
    RowKind,
    SubjectComparison,
    Thing,
)
from driftgate.domain.judgement import CELLS as OUTCOME_CELLS
from driftgate.domain.judgement import Outcome
from driftgate.judgement.gate import named
from driftgate.messages.message import Message, Param, message
from driftgate.messages.text import number

#: The order of rows, and what their cells look like elsewhere.
ORDER = (Change.WORSE, Change.UNKNOWN, Change.GONE, Change.DRIFT, Change.SAMPLES, Change.NEW, Change.BETTER)
CELLS = {
    Change.WORSE: "FAIL",
    Change.UNKNOWN: "ERROR",
    Change.GONE: "ERROR",
    Change.DRIFT: "ERROR",
    Change.SAMPLES: "-",
    Change.NEW: "-",
    Change.BETTER: "PASS",
    Change.SAME: "PASS",
}
MOST_ROWS, MOST_CHANGED, MOST_ERODED = 20, 12, 5


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A number that moved, or whose movement cannot be told."""

    cell: str
    change: Message
    what: Message
    base: Message | str
    head: Message | str
    how: Message | None


@dataclass(frozen=True, slots=True)
class ComparisonBlock:
    """One subject held against the baseline. `lines` are what moved, the worst first; `same` tells of the others, and
    `eroded` what has slid over many runs."""

    cell: str
    headline: Message
    samples: Message | None = None
    moved: Message | None = None
    changed: tuple[Message, ...] = ()
    lines: tuple[ComparedLine, ...] = ()
    same: Message | None = None
    cut: Message | None = None
    eroded: tuple[Message, ...] = ()


def comparison_block(compared: Comparison | None, key: tuple[str, str]) -> ComparisonBlock | None:
    """The block of one subject and target; None where there is no baseline, or none of it."""
    if compared is None:
        return None
    if compared.problem is not None:
        told = message("compare-baseline-absent", reason=compared.problem)
        return ComparisonBlock("ERROR", told)
    one = compared.of(key)
    if one is None:
        is_new = key in compared.new
        return ComparisonBlock("-", message("compare-new-subject")) if is_new else None
    return block(one, compared.base.label)


def block(one: SubjectComparison, base: str) -> ComparisonBlock:
    """One subject's comparison in words."""
    moved = sorted((row for row in one.rows if row.change is not Change.SAME), key=_rank)
    same = len(one.rows) - len(moved)
    return ComparisonBlock(
        cell=CELLS[one.change],
        headline=headline(one, base),
        samples=_samples(one),
        moved=None if one.moved is None else _moved(one.moved),
        changed=_changed(one.changed),
        lines=tuple(map(_line, moved[:MOST_ROWS])),
        same=message("compare-same", count=same) if same else None,
        cut=message("lines-left-out", count=len(moved) - MOST_ROWS) if len(moved) > MOST_ROWS else None,
        eroded=tuple(map(_eroded, one.slides[:MOST_ERODED])),
    )


def _eroded(slid: Erosion) -> Message:
    """A slide in one sentence."""
    first, second, third = (*slid.key, "", "")[:3]
    what = message(f"compared-{slid.kind.value}", first=first, second=second, third=third, criterion=slid.criterion)
    told: dict[str, Param] = {
        "what": what,
        "drop": f"{100 * slid.drop:.3g} %",
        "limit": f"{100 * slid.limit:g} %",
        "value": number(float(f"{slid.value:.5g}")),
        "level": number(float(f"{slid.level:.5g}")),
        "level_run": named(slid.level_run),
        "runs": slid.runs,
    }
    if slid.first_bad is None:
        return message("compare-slid-now", **told)
    return message("compare-slid", **told, first=named(slid.first_bad))


def headline(one: SubjectComparison, base: str) -> Message:
    """What the comparison comes to."""
    counts: dict[str, Param] = {"base": base, "worse": len(one.worse), "better": len(one.better)}
    if one.change is Change.WORSE and one.better:
        return message("compare-headline-mixed", **counts)
    return message(f"compare-headline-{one.change.value}", **counts)


def _rank(row: Row) -> tuple[int, int]:
    return ORDER.index(row.change), list(RowKind).index(row.kind)


def _samples(one: SubjectComparison) -> Message | None:
    if one.problem is not None:
        return one.problem
    paired = one.paired
    if paired.common == paired.base == paired.head:
        return None
    return message("compare-samples", common=paired.common, base=paired.base, head=paired.head)


def _moved(moved: Moved) -> Message:
    if moved.node:
        return message("compare-moved-node", at=moved.at, node=moved.node, op=moved.op)
    return message("compare-moved", at=moved.at)


def _changed(found: Sequence[Changed]) -> tuple[Message, ...]:
    """One sentence a thing; artifacts in one."""
    said = []
    for thing, code in ((Thing.ARTIFACT, "changed-artifacts"), (Thing.RECORDING, "changed-recordings")):
        stages = tuple(one.name for one in found if one.what is thing)
        said += [message(code, stages=stages)] if stages else []
    others = [one for one in found if one.what not in (Thing.ARTIFACT, Thing.RECORDING)]
    for one in others[:MOST_CHANGED]:
        said.append(message(f"changed-{one.what.value}", name=one.name, base=one.base, head=one.head))
    if len(others) > MOST_CHANGED:
        said.append(message("lines-left-out", count=len(others) - MOST_CHANGED))
    return tuple(said) if said else (message("changed-nothing"),)


def _line(row: Row) -> ComparedLine:
    return ComparedLine(
        cell=CELLS[row.change] if row.kind is not RowKind.BUILD else "-",
        change=message(f"change-{row.change.value}"),
        what=_what(row),
        base=_told(row, row.base_text),
        head=_told(row, row.head_text),
        how=row.note or _how(row),
    )


def _told(row: Row, told: str) -> Message | str:
    """A number as it stands there; words of ours in the reader's language."""
    if row.kind is RowKind.CHECK and told:
        return OUTCOME_CELLS[Outcome(told)]
    return message(f"explain-{told}") if row.kind is RowKind.FINDING and told else told


def _what(row: Row) -> Message:
    if row.kind is RowKind.CHECK:
        return message("compared-check", check=row.key[0])
    first, second, third = (*row.key, "", "")[:3]
    return message(f"compared-{row.kind.value}", first=first, second=second, third=third, criterion=row.criterion)


def _how(row: Row) -> Message | None:
    """How sure it is."""
    if row.low is None or row.high is None:
        return None
    if row.kind is RowKind.LINK:
        return message("compared-factor", low=_short(row.low), high=_short(row.high), n=row.n)
    if row.change is Change.BETTER:
        return message("compared-better-by", low=_short(-row.high), high=_short(-row.low), n=row.n)
    return message("compared-interval", low=_short(row.low), high=_short(row.high), n=row.n)


def _short(value: float) -> str:
    return number(float(f"{value:.3g}"))


@dataclass(frozen=True, slots=True)
class SubjectBlock:
    """One subject of a step between two versions."""

    subject: str
    target: str
    block: ComparisonBlock


@dataclass(frozen=True, slots=True)
class VersionStep:
    """Two versions: what they are called, every subject, those that are gone, and the cell of it all."""

    base: str
    head: str
    cell: str
    subjects: tuple[SubjectBlock, ...]
    gone: Message | None


@dataclass(frozen=True, slots=True)
class TrendLine:
    """One number from version to version, with bars where there are some."""

    cell: str
    subject: str
    target: str
    what: Message
    texts: tuple[str, ...]
    bars: str


def step_of(compared: Comparison) -> VersionStep:
    """A comparison as it is shown by itself."""
    shown = [SubjectBlock(one.subject, one.target, block(one, compared.base.label)) for one in compared.subjects]
    shown += [
        SubjectBlock(subject, target, found)
        for subject, target in compared.new
        if (found := comparison_block(compared, (subject, target))) is not None
    ]
    gone = tuple(f"{subject} {target}" for subject, target in compared.gone)
    return VersionStep(
        base=compared.base.label,
        head=compared.head.label,
        cell=CELLS[compared.change],
        subjects=tuple(shown),
        gone=message("compare-gone", base=compared.base.label, subjects=gone) if gone else None,
    )


def trend_line(one: Trend, bars: str) -> TrendLine:
    """A trend in words and bars."""
    return TrendLine(CELLS[one.worst], one.subject, one.target, _what(one.row), one.texts, bars)
