"""Results against every clause of their policies: one line each, and nothing that was not proven passes."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from driftgate.domain.comparisons import Change, Comparison, Erosion, PastRun, RowKind
from driftgate.domain.facts import OF_ARTIFACT, SHA256, Facts
from driftgate.domain.gates import Clause, GateLine
from driftgate.domain.judgement import (
    REACHED_BY,
    CheckResult,
    Judgement,
    Outcome,
    Policy,
    Standing,
    WaiverState,
    WaiverUse,
)
from driftgate.domain.results import Results
from driftgate.domain.runs import BOARD_BACKENDS, UNCHANGED_SINCE, Run
from driftgate.domain.samples import Origin
from driftgate.judgement.judge import judge
from driftgate.judgement.staleness import SHOWN, STALE, other_runs
from driftgate.messages.message import Message, Param, message

#: Codes of what is wrong with the evidence itself.
REGRESSION, DRIFT = "regression-vs-baseline", "environment-drift"
INCOMPLETE, SKEW = "incomplete-evidence", "toolchain-version-mismatch"


@dataclass(frozen=True, slots=True)
class Gated:
    """What is gated: results, the commit that they say they are of and the one that is gated, empty where unknown;
    `built` is the SHA-256 of every file that was built, None where nobody says; `wanted` are the subjects and targets
    that there must be results of."""

    results: Results
    commit: str = ""
    wanted_commit: str = ""
    built: frozenset[str] | None = None
    today: str = ""
    wanted: tuple[tuple[str, str], ...] = ()


def gate(gated: Gated, policies: Mapping[str, Policy], comparison: Comparison | None = None) -> tuple[GateLine, ...]:
    """Every clause of every subject, judged anew by its policy; a comparison stands for the baseline, and what slid
    since the runs before it."""
    made: list[GateLine] = []
    there = {facts.plan.key for facts in gated.results.facts}
    for facts in gated.results.facts:
        if gated.wanted and facts.plan.key not in gated.wanted:
            continue
        policy = policies[facts.plan.subject]
        made.extend(lines_of(facts, judge(facts, policy), policy, gated, comparison))
    for subject, target in gated.wanted:
        if (subject, target) not in there:
            absent = GateLine(subject, target, Clause.CHECK, Outcome.ERROR, codes=(INCOMPLETE,))
            made.append(replace(absent, reason=message("gate-no-results")))
    return tuple(made)


def lines_of(
    facts: Facts, judgement: Judgement, policy: Policy, gated: Gated, comparison: Comparison | None
) -> Iterator[GateLine]:
    """Every clause of one subject and target, whose facts were judged by that policy."""
    blank = GateLine(facts.plan.subject, facts.plan.target, Clause.CHECK, Outcome.ERROR)
    yield from _checks(facts, judgement, blank)
    clauses = policy.clauses
    if clauses.skipped is Standing.FAIL:
        yield from _skipped(judgement, blank)
    if clauses.samples:
        yield _samples(facts, clauses.samples, blank)
    if clauses.regressions is Standing.FAIL:
        yield _regressions(facts, comparison, blank)
    if clauses.history is not None:
        yield from _history(facts, comparison, blank)
    if clauses.same_commit:
        yield _commit(facts, gated, blank)
    if clauses.same_artifacts:
        yield _artifacts(facts, gated.built, blank)
    if clauses.same_versions:
        yield from _versions(facts, blank)
    if clauses.board_days is not None:
        yield from _board_age(facts, clauses.board_days, gated.today, blank)
    for use in judgement.waivers:
        yield _waiver(use, blank)


def _checks(facts: Facts, judgement: Judgement, blank: GateLine) -> Iterator[GateLine]:
    """The checks that count; of a network of which none does there is a line, too."""
    counted = [check for check in judgement.checks if check.required]
    for check in counted:
        verdicts = tuple(one for one in check.verdicts if one.outcome is check.outcome)
        outcome = Outcome.PASSED if check.waived else check.outcome
        codes = _codes(facts, judgement, check)
        yield replace(blank, name=check.slug, outcome=outcome, reason=_why(check), verdicts=verdicts, codes=codes)
    if not counted:
        yield replace(blank, reason=message("gate-no-check"))


def _codes(facts: Facts, judgement: Judgement, check: CheckResult) -> tuple[str, ...]:
    """Of the confirmed causes on the check's links, where it does not pass; that evidence is missing where it is an
    error of no known cause."""
    if check.outcome is Outcome.PASSED:
        return ()
    places = {check.slug, *(link.name for link in facts.plan.links_of(check.slug))}
    found = (one.code for one in judgement.findings if one.confirmed and one.link in places)
    known = tuple(dict.fromkeys(found))
    return known if known or check.outcome is Outcome.FAILED else (INCOMPLETE,)


def _why(check: CheckResult) -> Message | None:
    """What keeps a check from passing, where it is no number."""
    told = [one.reason for one in check.verdicts if one.outcome is check.outcome and one.reason is not None]
    if check.waived:
        return check.notes[0]
    if check.outcome is Outcome.PASSED:
        return None
    return told[0] if told else next(iter(check.notes), None) if not check.verdicts else None


def _waiver(use: WaiverUse, blank: GateLine) -> GateLine:
    """One that is over fails until it is removed; one that excuses nothing is only said."""
    one = use.waiver
    holds = use.state in (WaiverState.USED, WaiverState.UNUSED)
    return replace(
        blank,
        clause=Clause.WAIVER,
        name=one.on,
        outcome=Outcome.PASSED if holds else Outcome.FAILED,
        value=one.expires,
        reason=message(f"waiver-{use.state.value}", on=one.on, owner=one.owner, expires=one.expires, reason=one.reason),
    )


def _skipped(judgement: Judgement, blank: GateLine) -> Iterator[GateLine]:
    for check in judgement.checks:
        if check.outcome is Outcome.SKIPPED:
            reason = check.notes[0] if check.notes else None
            yield replace(
                blank,
                clause=Clause.SKIPPED,
                name=check.slug,
                outcome=Outcome.FAILED,
                reason=reason,
                codes=(INCOMPLETE,),
            )


def _samples(facts: Facts, wanted: int, blank: GateLine) -> GateLine:
    """Samples that every stage ran on; random ones and those of the calibration count as none."""
    done = min((_done(facts.runs_of(stage)) for stage in facts.plan.stages), default=0)
    real = facts.plan.samples.origin is Origin.REAL
    found = min(done, len(set(facts.plan.samples.digests)))
    line = replace(blank, clause=Clause.SAMPLES, value=str(found), limit=f"≥ {wanted}")
    if not real:
        return replace(line, reason=message("gate-samples-origin", origin=facts.plan.samples.origin.value))
    return replace(line, outcome=Outcome.PASSED if found >= wanted else Outcome.FAILED)


def _done(runs: Sequence[Run]) -> int:
    """Samples that a stage ran on: those of a leg once, in however many environments it ran."""
    legs: dict[str, int] = {}
    for run in runs:
        legs[run.leg] = max(legs.get(run.leg, 0), run.samples_done)
    return sum(legs.values())


def _regressions(facts: Facts, comparison: Comparison | None, blank: GateLine) -> GateLine:
    line = replace(blank, clause=Clause.REGRESSIONS, limit="≤ 0")
    if comparison is None:
        return replace(line, reason=message("gate-no-baseline"))
    one = comparison.of(facts.plan.key)
    if comparison.problem is not None or one is None:
        return replace(line, reason=comparison.problem or message("compare-new-subject"))
    if one.change is Change.UNKNOWN:
        return replace(line, reason=one.problem or message("gate-incomparable", base=comparison.base.label))
    worse = len(one.worse)
    failed = one.change is Change.WORSE
    reason = message("gate-moved", at=one.moved.at) if failed and one.moved is not None else None
    drifted = any(row.change is Change.DRIFT for row in one.rows)
    codes = (REGRESSION,) if failed else (DRIFT,) if drifted else ()
    return replace(
        line,
        value=str(worse),
        outcome=Outcome.FAILED if failed else Outcome.PASSED,
        reason=message("gate-drifted") if drifted and not failed else reason,
        codes=codes,
    )


def _history(facts: Facts, comparison: Comparison | None, blank: GateLine) -> Iterator[GateLine]:
    """One line for each number that has slid, else one for all of them."""
    line = replace(blank, clause=Clause.HISTORY)
    one = None if comparison is None else comparison.of(facts.plan.key)
    if one is None or one.past_runs < REACHED_BY:
        problem = None if comparison is None else comparison.problem
        runs = 0 if one is None else one.past_runs
        yield replace(line, reason=problem or message("gate-no-history", runs=runs, wanted=REACHED_BY))
    elif not one.slides:
        yield replace(line, outcome=Outcome.PASSED, reason=message("gate-history-holds", runs=one.past_runs))
    else:
        yield from (_slide(slid, line) for slid in one.slides)


def _slide(slid: Erosion, line: GateLine) -> GateLine:
    return replace(
        line,
        name=" ".join((*slid.key, *((slid.criterion,) if slid.kind is RowKind.SPEED else ()))),
        outcome=Outcome.FAILED,
        value=f"{100 * slid.drop:.3g} %",
        limit=f"≤ {100 * slid.limit:g} %",
        reason=slid_since(slid),
        codes=(REGRESSION,),
    )


def slid_since(slid: Erosion) -> Message:
    """From which level a number has slid, and which run was the first that was as bad."""
    told: dict[str, Param] = {
        "value": f"{slid.value:.5g}",
        "level": f"{slid.level:.5g}",
        "level_run": named(slid.level_run),
        "runs": slid.runs,
    }
    if slid.first_bad is None:
        return message("slid-now", **told)
    return message("slid-since", **told, first=named(slid.first_bad))


def named(run: PastRun) -> str:
    """A former run as people know it: its number and commit, else the day."""
    parts = [run.run, run.sha[:SHOWN]]
    return " ".join(part for part in parts if part) or run.day or "-"


def _commit(facts: Facts, gated: Gated, blank: GateLine) -> GateLine:
    line = replace(
        blank,
        clause=Clause.COMMIT,
        value=gated.commit[:SHOWN],
        limit=f"= {gated.wanted_commit[:SHOWN]}" if gated.wanted_commit else "",
    )
    if not gated.commit or not gated.wanted_commit:
        return replace(line, reason=message("gate-no-commit" if not gated.commit else "gate-no-wanted-commit"))
    since = next((note.get("run") for run in facts.runs for note in run.notes if note.code == UNCHANGED_SINCE), None)
    if since is not None:
        return replace(line, outcome=Outcome.FAILED, reason=message("gate-at-rest", run=str(since)), codes=(STALE,))
    is_same = gated.commit == gated.wanted_commit
    return replace(line, outcome=Outcome.PASSED if is_same else Outcome.FAILED, codes=() if is_same else (STALE,))


def _artifacts(facts: Facts, built: frozenset[str] | None, blank: GateLine) -> GateLine:
    """Every run had the artifact that was planned, and that of the last stage is among the files that were built."""
    line = replace(blank, clause=Clause.ARTIFACTS)
    ran = dict.fromkeys(run.stage for run in facts.runs)
    others = [(stage, found, wanted) for stage in ran for found, wanted in other_runs(facts, stage)]
    if others:
        stage, found, wanted = others[0]
    elif built is None:
        return replace(line, reason=message("gate-no-built"))
    elif not facts.plan.stages:
        return replace(line, reason=message("gate-no-check"))
    else:
        stage = facts.plan.stages[-1]
        planned = next(artifact.digest for artifact in facts.plan.artifacts if artifact.stage == stage)
        found = str(facts.told(OF_ARTIFACT, SHA256, stage) or planned)
        if found in built:
            return replace(line, name=stage, outcome=Outcome.PASSED, value=found[:SHOWN])
        wanted = ""
    reason = message("gate-other-artifact" if wanted else "gate-not-built", stage=stage)
    limit = f"= {wanted[:SHOWN]}" if wanted else ""
    return replace(
        line, name=stage, outcome=Outcome.FAILED, value=found[:SHOWN], limit=limit, reason=reason, codes=(STALE,)
    )


def _versions(facts: Facts, blank: GateLine) -> Iterator[GateLine]:
    """A stage that ran in several places had the same software in all of them."""
    known = {environment.id: environment for environment in facts.environments}
    line = replace(blank, clause=Clause.VERSIONS, outcome=Outcome.PASSED)
    wrong: list[GateLine] = []
    for stage in facts.plan.stages:
        seen: dict[str, set[str]] = {}
        for run in facts.runs_of(stage):
            environment = known.get(run.environment)
            if environment is None:
                wrong.append(replace(line, name=stage, outcome=Outcome.ERROR, reason=message("gate-no-versions")))
                break
            for name, version in environment.versions:
                seen.setdefault(name, set()).add(version)
        several = {name: tuple(sorted(found)) for name, found in seen.items() if len(found) > 1}
        for name, versions in several.items():
            reason = message("gate-versions", name=name, versions=versions)
            wrong.append(replace(line, name=stage, outcome=Outcome.FAILED, reason=reason, codes=(SKEW,)))
    yield from wrong or [line]


def _board_age(facts: Facts, days: int, today: str, blank: GateLine) -> Iterator[GateLine]:
    """How old the newest result of a board is that every stage on it has; a simulation or a recording is none."""
    line = replace(blank, clause=Clause.BOARD_AGE, limit=f"≤ {days}")
    ran = {
        stage: [run for run in facts.runs_of(stage) if run.backend in BOARD_BACKENDS and run.samples_done]
        for stage in facts.plan.stages
    }
    stages = [stage for stage, runs in ran.items() if runs]
    if not stages:
        yield replace(line, reason=message("gate-no-board"), codes=(INCOMPLETE,))
    for stage in stages:
        oldest = min(run.day for run in ran[stage])
        age = _days(oldest, today)
        if age is None:
            yield replace(line, name=stage, reason=message("gate-no-day"), codes=(INCOMPLETE,))
            continue
        is_kept = 0 <= age <= days
        codes = () if is_kept else (INCOMPLETE,)
        outcome = Outcome.PASSED if is_kept else Outcome.FAILED
        yield replace(
            line, name=stage, outcome=outcome, value=str(age), reason=message("gate-day", day=oldest), codes=codes
        )


def _days(day: str, today: str) -> int | None:
    """From one day to the other; None where one of them is none."""
    try:
        return (datetime.date.fromisoformat(today) - datetime.date.fromisoformat(day)).days
    except ValueError:
        return None
