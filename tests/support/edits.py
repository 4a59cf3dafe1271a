"""Changes of facts, as another version of a network, a toolchain, a machine or a board would bring them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from driftgate.domain.facts import Facts, ToolFacts
from driftgate.domain.judgement import Policy
from driftgate.domain.results import Results
from driftgate.domain.runs import performance
from driftgate.domain.scores import ScoreRecords
from driftgate.judgement.judge import judge

Edit = Callable[[Facts], Facts]


def edited(results: Results, *edits: Edit) -> Results:
    """Results whose facts were changed, judged anew."""
    (facts,) = results.facts
    for edit in edits:
        facts = edit(facts)
    return replace(results, facts=(facts,), judgements=(judge(facts, Policy()),))


def other_artifacts(*stages: str) -> Edit:
    """Artifacts with another content."""

    def edit(facts: Facts) -> Facts:
        made = tuple(
            replace(one, digest="f" + one.digest[1:]) if one.stage in stages else one for one in facts.plan.artifacts
        )
        digests = {one.stage: one.digest for one in made}
        runs = tuple(replace(run, artifact=digests[run.stage]) for run in facts.runs)
        return replace(facts, plan=replace(facts.plan, artifacts=made), runs=runs)

    return edit


def wrong_on(count: int, *stages: str, right: bool = False) -> Edit:
    """That many samples which were right and are wrong at these stages, the first ones; or the other way round."""

    def records(one: ScoreRecords) -> ScoreRecords:
        if one.stage not in stages:
            return one
        rows = {sample: table.copy() for sample, table in one.by_sample().items()}
        column = one.columns.index("rank")
        left = count
        for table in rows.values():
            if left and bool(table[0, column] == 0) is not right:
                table[0, column] = 0 if right else 5
                left -= 1
        assert not left
        return one.with_rows(rows.items())

    return lambda facts: replace(facts, scores=tuple(map(records, facts.scores)))


def environment(stage: str, **changes: object) -> Edit:
    """A stage that ran elsewhere."""

    def edit(facts: Facts) -> Facts:
        (run,) = facts.runs_of(stage)
        old = next(one for one in facts.environments if one.id == run.environment)
        new = replace(old, **changes)  # type: ignore[arg-type] # fields by name
        runs = tuple(replace(one, environment=new.id) if one.stage == stage else one for one in facts.runs)
        return replace(facts, runs=runs, environments=(*facts.environments, new))

    return edit


def told(kind: str, source: str = "report", **values: object) -> Edit:
    """What a report of the build says."""
    made = tuple((name.replace("_", "-"), value) for name, value in values.items())
    return lambda facts: replace(facts, tool_facts=(*facts.tool_facts, ToolFacts(source, kind, made)))  # type: ignore[arg-type] # values by name


def error_times(factor: float, link: str) -> Edit:
    """The error of a link, sample by sample."""

    def edit(facts: Facts) -> Facts:
        made = tuple(
            replace(m, rows=replace(m.rows, sum_dd=m.rows.sum_dd * factor**2)) if m.link == link else m
            for m in facts.measurements
        )
        return replace(facts, measurements=made)

    return edit


def undeclared(facts: Facts) -> Facts:
    """Without the score that the network is said to have, which is of certain samples."""
    specs = tuple(replace(spec, declared=None) for spec in facts.plan.scores)
    return replace(facts, plan=replace(facts.plan, scores=specs))


def speed(*milliseconds: float) -> Edit:
    """What a board said of latency, each time it was asked."""

    def edit(facts: Facts) -> Facts:
        (run,) = facts.runs_of("hbm")
        return replace(facts, performance=(performance(run.id, milliseconds, [], source="perf", threads=1, core="0"),))

    return edit
