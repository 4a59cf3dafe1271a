"""Results against every clause of their policies: one line each, and nothing that was not proven passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from driftgate.domain.comparisons import Change, Comparison
from driftgate.domain.facts import Facts
from driftgate.domain.gates import Clause, GateLine
from driftgate.domain.judgement import CheckResult, Judgement, Outcome, Policy, Standing, WaiverState, WaiverUse
from driftgate.domain.results import Results
from driftgate.domain.samples import Origin
from driftgate.judgement.judge import judge
from driftgate.messages.message import Message, message

SHOWN = 12  # characters of a commit


@dataclass(frozen=True, slots=True)
class Gated:
    """What is gated: results, the commit that they say they are of and the one that is gated, empty where unknown."""

    results: Results
    commit: str = ""
    wanted_commit: str = ""


def gate(gated: Gated, policies: Mapping[str, Policy], comparison: Comparison | None = None) -> tuple[GateLine, ...]:
    """Every clause of every subject, judged anew by its policy; a comparison stands for the baseline."""
    made: list[GateLine] = []
    for facts in gated.results.facts:
        policy = policies[facts.plan.subject]
        made.extend(lines_of(facts, judge(facts, policy), policy, gated, comparison))
    return tuple(made)


def lines_of(
    facts: Facts, judgement: Judgement, policy: Policy, gated: Gated, comparison: Comparison | None
) -> Iterator[GateLine]:
    """Every clause of one subject and target, whose facts were judged by that policy."""
    blank = GateLine(facts.plan.subject, facts.plan.target, Clause.CHECK, Outcome.ERROR)
    yield from _checks(judgement, blank)
    if policy.clauses.skipped is Standing.FAIL:
        yield from _skipped(judgement, blank)
    if policy.clauses.samples:
        yield _samples(facts, policy.clauses.samples, blank)
    if policy.clauses.regressions is Standing.FAIL:
        yield _regressions(facts, comparison, blank)
    if policy.clauses.same_commit:
        yield _commit(gated, blank)
    for use in judgement.waivers:
        yield _waiver(use, blank)


def _checks(judgement: Judgement, blank: GateLine) -> Iterator[GateLine]:
    """The checks that count; of a network of which none does there is a line, too."""
    counted = [check for check in judgement.checks if check.required]
    for check in counted:
        verdicts = tuple(one for one in check.verdicts if one.outcome is check.outcome)
        outcome = Outcome.PASSED if check.waived else check.outcome
        yield replace(blank, name=check.slug, outcome=outcome, reason=_why(check), verdicts=verdicts)
    if not counted:
        yield replace(blank, reason=message("gate-no-check"))


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
            yield replace(blank, clause=Clause.SKIPPED, name=check.slug, outcome=Outcome.FAILED, reason=reason)


def _samples(facts: Facts, wanted: int, blank: GateLine) -> GateLine:
    """Samples that every stage ran on; random ones and those of the calibration count as none."""
    done = min((sum(run.samples_done for run in facts.runs_of(stage)) for stage in facts.plan.stages), default=0)
    real = facts.plan.samples.origin is Origin.REAL
    found = min(done, len(set(facts.plan.samples.digests)))
    line = replace(blank, clause=Clause.SAMPLES, value=str(found), limit=f"≥ {wanted}")
    if not real:
        return replace(line, reason=message("gate-samples-origin", origin=facts.plan.samples.origin.value))
    return replace(line, outcome=Outcome.PASSED if found >= wanted else Outcome.FAILED)


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
    return replace(line, value=str(worse), outcome=Outcome.FAILED if failed else Outcome.PASSED, reason=reason)


def _commit(gated: Gated, blank: GateLine) -> GateLine:
    line = replace(
        blank,
        clause=Clause.COMMIT,
        value=gated.commit[:SHOWN],
        limit=f"= {gated.wanted_commit[:SHOWN]}" if gated.wanted_commit else "",
    )
    if not gated.commit or not gated.wanted_commit:
        return replace(line, reason=message("gate-no-commit" if not gated.commit else "gate-no-wanted-commit"))
    return replace(line, outcome=Outcome.PASSED if gated.commit == gated.wanted_commit else Outcome.FAILED)
