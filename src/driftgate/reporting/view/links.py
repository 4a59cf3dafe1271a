"""Every link with its verdicts and metrics, and the first failure with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import CELLS, Judgement, Outcome, Summary, Verdict
from driftgate.judgement.criteria import PERFORMANCE
from driftgate.messages.message import Message, message
from driftgate.reporting.view.bars import Bars, error_bars
from driftgate.reporting.view.findings import FindingLine, findings
from driftgate.reporting.view.nodes import Nodes, nodes
from driftgate.reporting.view.readings import UNITS, Reading, as_written, long_texts, reading, shown
from driftgate.reporting.view.table import Place, first_failure, place, worst_first

CAUSES = 3
SHOWN = 5  # verdicts of the first failure; the rest stands in the details


@dataclass(frozen=True, slots=True)
class LinkName:
    """Two stages compared, or a check's own verdict, whose `candidate` is empty."""

    reference: str
    candidate: str
    kind: Message | None


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """One thing judged, with what the reader needs to act on it."""

    link: LinkName
    cell: str
    reading: Reading | None
    origin: Message | None
    place: Place
    reason: Message | None
    long_texts: tuple[str, ...]
    notes: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class MetricLine:
    """The metrics of one output on one link, in the order of the table's columns; empty where there is none."""

    link: LinkName
    output: str
    count: int
    values: tuple[str, ...]
    worst_sample: str | None
    dead_channels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A metric's column."""

    title: Message
    unit: Message | None


@dataclass(frozen=True, slots=True)
class Metrics:
    """A table of metrics."""

    columns: tuple[Column, ...]
    lines: tuple[MetricLine, ...]


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """What is broken where it breaks first: its verdicts, the metrics of the outputs concerned, what comes next, and
    the causes that experiments speak for, or what they ruled out."""

    title: str
    lines: tuple[VerdictLine, ...]
    metrics: Metrics
    notes: tuple[Message, ...]
    next: tuple[Message, ...]
    bars: Bars | None = None
    nodes: Nodes | None = None
    findings: tuple[FindingLine, ...] = ()
    unexplained: Message | None = None


def failure(judgement: Judgement, facts: Facts | None) -> FirstFailure | None:
    """The first failure; None where no check failed."""
    check = first_failure(judgement)
    if check is None:
        return None
    broken = worst_first(check)
    target = broken[0].target if broken else ""
    outputs = {verdict.output for verdict in broken[:SHOWN]}
    measured = [summary for summary in judgement.summaries if summary.link == target]
    concerned = [summary for summary in measured if summary.output in outputs] or measured[:SHOWN]
    causes, unexplained = findings(target, judgement, facts)
    found = nodes(target, judgement, facts)
    optional = () if check.required else (message("row-optional"),)
    more = (message("failure-more", count=len(broken) - SHOWN),) if len(broken) > SHOWN else ()
    return FirstFailure(
        title=check.title,
        lines=tuple(_line(verdict, judgement, facts) for verdict in broken[:SHOWN]),
        metrics=_metrics(concerned, facts),
        notes=(*more, *optional, *check.notes),
        next=(*judgement.advice, *_untried(broken, causes, unexplained, found)),
        bars=error_bars(target, broken[0].output if broken else None, facts),
        nodes=found,
        findings=causes[:CAUSES],
        unexplained=unexplained,
    )


def _untried(
    broken: Sequence[Verdict], causes: tuple[FindingLine, ...], unexplained: Message | None, found: Nodes | None
) -> tuple[Message, ...]:
    """Said where nobody looked for a cause; of speed and memory no experiment tells one."""
    if broken and all(verdict.criterion in PERFORMANCE for verdict in broken):
        return (message("performance-next"),)
    return () if causes or unexplained is not None or found is not None else (message("not-investigated"),)


def errors(judgement: Judgement, facts: Facts | None) -> tuple[tuple[str, tuple[VerdictLine, ...]], ...]:
    """What could not be established up to the first failure, as (title of the check, verdicts); a long text that
    several share is there once."""
    found: list[tuple[str, tuple[VerdictLine, ...]]] = []
    said: set[str] = set()
    for check in judgement.checks:
        lines = [_line(v, judgement, facts) for v in check.verdicts if v.outcome is Outcome.ERROR and not check.hidden]
        shown: list[VerdictLine] = []
        for line in lines[:SHOWN]:
            shown.append(replace(line, long_texts=tuple(long for long in line.long_texts if long not in said)))
            said.update(line.long_texts)
        if shown:
            found.append((check.title, tuple(shown)))
    return tuple(found)


def verdict_lines(judgement: Judgement, facts: Facts | None, *, hidden: bool) -> tuple[VerdictLine, ...]:
    """Everything judged, in order: up to the first failure, or behind it."""
    return tuple(
        _line(verdict, judgement, facts)
        for check in judgement.checks
        if check.hidden is hidden
        for verdict in check.verdicts
    )


def all_metrics(judgement: Judgement, facts: Facts | None) -> Metrics:
    """The metrics of every output on every link."""
    return _metrics(judgement.summaries, facts)


def link_name(target: str, facts: Facts | None) -> LinkName:
    """The two stages of a link by its name; a check's slug stands for itself."""
    for link in facts.plan.links if facts is not None else ():
        if link.name == target:
            return LinkName(link.reference, link.candidate, message(f"kind-{link.kind.value}"))
    reference, _, candidate = target.partition("..")
    return LinkName(reference, candidate, None)


def _line(verdict: Verdict, judgement: Judgement, facts: Facts | None) -> VerdictLine:
    specs = facts.plan.scores if facts is not None else ()
    return VerdictLine(
        link=link_name(verdict.target, facts),
        cell=CELLS[verdict.outcome],
        reading=as_written(reading(verdict), verdict, judgement.scores, specs),
        origin=None if verdict.origin is None else message(f"origin-{verdict.origin.value}"),
        place=place(verdict),
        reason=verdict.reason,
        long_texts=long_texts(verdict.reason),
        notes=verdict.notes,
    )


def _metrics(summaries: Sequence[Summary], facts: Facts | None) -> Metrics:
    names = tuple(dict.fromkeys(name for summary in summaries for name, _ in summary.metrics))
    lines = []
    for summary in summaries:
        have = dict(summary.metrics)
        values = tuple(shown(name, have[name]) if name in have else "" for name in names)
        lines.append(
            MetricLine(
                link_name(summary.link, facts),
                summary.output,
                summary.count,
                values,
                summary.worst_sample,
                summary.dead_channels,
            )
        )
    return Metrics(tuple(Column(message(f"metric-{name}"), UNITS.get(name)) for name in names), tuple(lines))
