"""Everything that a page shows of one subject, and of several together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from driftgate.domain.comparisons import Changed
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import CELLS, Judgement, WaiverUse
from driftgate.domain.results import Results, Tool
from driftgate.messages.message import Message, message
from driftgate.reporting.view.comparison import ComparisonBlock, comparison_block
from driftgate.reporting.view.links import (
    FirstFailure,
    Metrics,
    VerdictLine,
    all_metrics,
    errors,
    failure,
    verdict_lines,
)
from driftgate.reporting.view.nodes import Nodes, nodes
from driftgate.reporting.view.performance import PerformanceLine, performance_lines
from driftgate.reporting.view.runs import (
    EnvironmentLine,
    Note,
    RunLine,
    environment_lines,
    measured_on,
    notes,
    run_lines,
    unchanged,
)
from driftgate.reporting.view.scores import Losses, ScoreLine, ScoreTable, losses, score_lines, score_table
from driftgate.reporting.view.table import Row, first_failure, headline, overall, rows, worst_first

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Subject:
    """One subject on one target; `waivers` has what becomes of them, and of a policy that waits for its merge."""

    name: str
    target: str
    cell: str
    headline: Message
    rows: tuple[Row, ...]
    measured_on: Message
    unchanged: Message | None
    scores: tuple[ScoreLine, ...]
    failure: FirstFailure | None
    errors: tuple[tuple[str, tuple[VerdictLine, ...]], ...]
    judged: tuple[VerdictLine, ...]
    behind: tuple[VerdictLine, ...]
    metrics: Metrics
    score_table: ScoreTable
    runs: tuple[RunLine, ...]
    environments: tuple[EnvironmentLine, ...]
    notes: tuple[Note, ...]
    plan: str
    losses: Losses
    advice: tuple[Message, ...] = ()
    investigated: tuple[tuple[str, Nodes], ...] = ()
    performance: tuple[PerformanceLine, ...] = ()
    left_out: int = 0
    comparison: ComparisonBlock | None = None
    waivers: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """All subjects of a run."""

    tool: Tool
    cell: str
    headline: Message
    subjects: tuple[Subject, ...]


def page(results: Results) -> Page:
    """The page of a run; a shard without judgements has no subjects."""
    subjects = []
    for judgement in results.judgements or ():
        one = subject(judgement, facts_of(results, judgement))
        pending = _pending(results.pending, judgement.subject)
        compared = comparison_block(results.comparison, judgement.key)
        subjects.append(replace(one, comparison=compared, waivers=(*one.waivers, *pending)))
    return Page(results.tool, CELLS[results.outcome], overall(results), tuple(subjects))


def facts_of(results: Results, judgement: Judgement) -> Facts | None:
    """The facts a judgement was made from; None where only the judgement was kept."""
    for facts in results.facts:
        if facts.plan.key == judgement.key:
            return facts
    return None


def subject(judgement: Judgement, facts: Facts | None) -> Subject:
    """Everything about one subject."""
    specs = facts.plan.scores if facts is not None else ()
    return Subject(
        name=judgement.subject,
        target=judgement.target,
        cell=CELLS[judgement.outcome],
        headline=headline(judgement),
        rows=rows(judgement, specs),
        measured_on=measured_on(judgement, facts),
        unchanged=unchanged(facts),
        scores=score_lines(judgement.scores),
        failure=failure(judgement, facts),
        errors=errors(judgement, facts),
        judged=verdict_lines(judgement, facts, hidden=False),
        behind=verdict_lines(judgement, facts, hidden=True),
        metrics=all_metrics(judgement, facts),
        score_table=score_table(judgement.scores),
        runs=run_lines(facts) if facts is not None else (),
        environments=environment_lines(facts) if facts is not None else (),
        notes=notes(judgement, facts),
        plan=judgement.plan,
        losses=losses(judgement),
        advice=judgement.advice,
        investigated=_investigated(judgement, facts),
        performance=performance_lines(facts) if facts is not None else (),
        waivers=tuple(map(_waiver, judgement.waivers)),
    )


def _waiver(use: WaiverUse) -> Message:
    """What became of a waiver."""
    one = use.waiver
    told = {"on": one.on, "owner": one.owner, "expires": one.expires, "reason": one.reason}
    return message(f"waiver-{use.state.value}", **told)


def _pending(found: Iterable[Changed], subject: str) -> tuple[Message, ...]:
    """What a change would alter of the policy that it is judged by, in one sentence; nothing where it alters none."""
    own = f"{subject} "
    said = tuple(
        f"{one.name.removeprefix(own)} {one.base or NOTHING} → {one.head or NOTHING}"
        for one in found
        if one.name.startswith(own)
    )
    return (message("policy-pending", changes=said),) if said else ()


def _investigated(judgement: Judgement, facts: Facts | None) -> tuple[tuple[str, Nodes], ...]:
    """What is known of the nodes of links beside that of the first failure, which shows its own."""
    check = first_failure(judgement)
    broken = worst_first(check) if check is not None else []
    shown = broken[0].target if broken else ""
    links = [i.link for i in facts.investigations if i.link != shown] if facts is not None else []
    return tuple((link, found) for link in links if (found := nodes(link, judgement, facts)) is not None)


def shortened(whole: Page, limit: int) -> Page:
    """The page with at most `limit` lines in each folded table; `left_out` says how many each subject lost."""
    return replace(whole, subjects=tuple(_shortened(subject, limit) for subject in whole.subjects))


def _shortened(whole: Subject, limit: int) -> Subject:
    cut = replace(
        whole,
        judged=whole.judged[:limit],
        behind=whole.behind[:limit],
        metrics=replace(whole.metrics, lines=whole.metrics.lines[:limit]),
        runs=whole.runs[:limit],
        environments=whole.environments[:limit],
        notes=whole.notes[:limit],
        performance=whole.performance[:limit],
    )
    return replace(cut, left_out=_size(whole) - _size(cut))


def _size(subject: Subject) -> int:
    tables = (subject.judged, subject.behind, subject.metrics.lines, subject.runs, subject.environments, subject.notes)
    return sum(len(table) for table in tables) + len(subject.performance)
