"""Findings: what speaks for a cause, in the order in which a reader should look at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from driftgate.domain.investigations import Explanation
from driftgate.domain.judgement import Finding, Outcome
from driftgate.domain.judgement import Verdict as LinkVerdict
from driftgate.judgement.codes import CODES, Verdict
from driftgate.messages.message import Message, message

RANDOM_INPUT = "invalid-test-input"


def ranked(link: str, found: Sequence[Explanation]) -> tuple[Finding, ...]:
    """Confirmed before suspected, faults before what is none, the more specific, the larger share; a code once."""
    order = sorted(
        found,
        key=lambda one: (
            not one.confirmed,
            CODES[one.code].verdict is Verdict.PASS,
            CODES[one.code].generality,
            -round(one.share, 1),
        ),
    )
    if order and order[0].confirmed and CODES[order[0].code].verdict is Verdict.PASS:
        # What is explained as harmless is not suspected of a fault beside it.
        order = [one for one in order if one.confirmed or CODES[one.code].verdict is Verdict.PASS]
    findings: dict[str, Finding] = {}
    for one in order:
        evidence = tuple((name, float(value), unit) for name, value, unit in one.evidence)
        subjects = tuple(subject for subject in one.subjects if subject)
        findings.setdefault(one.code, Finding(one.code, link, one.confirmed, evidence, subjects, CODES[one.code].next))
    return tuple(findings.values())


def settled(
    link: str, verdicts: Sequence[LinkVerdict], findings: Sequence[Finding], accepts: Sequence[str]
) -> list[LinkVerdict]:
    """Verdicts after the findings: a confirmed fault fails a link that passed its limits; a confirmed harmless cause
    passes one that failed where the policy accepts it; where nothing can be concluded, a failure is none."""
    first = next((finding for finding in findings if finding.confirmed), None)
    if first is None:
        return list(verdicts)
    code = CODES[first.code]
    failed = any(verdict.outcome is Outcome.FAILED for verdict in verdicts)
    if code.verdict is Verdict.FAIL and not failed:
        return [*verdicts, LinkVerdict(link, None, Outcome.FAILED, reason=code.cause)]
    if not failed or first != findings[0]:
        return list(verdicts)
    if code.verdict is Verdict.PASS and first.code in accepts:
        note = message("finding-accepted", code=first.code)
        return [_turned(verdict, Outcome.PASSED, note) for verdict in verdicts]
    if code.verdict is Verdict.ERROR or first.code == RANDOM_INPUT:
        return [_turned(verdict, Outcome.ERROR, code.cause) for verdict in verdicts]
    return list(verdicts)


def _turned(verdict: LinkVerdict, outcome: Outcome, note: Message) -> LinkVerdict:
    if verdict.outcome is not Outcome.FAILED:
        return verdict
    reason = note if outcome is Outcome.ERROR else verdict.reason
    return replace(verdict, outcome=outcome, reason=reason, notes=(*verdict.notes, note))
