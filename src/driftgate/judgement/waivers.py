"""Waivers: known failures that somebody answers for until a day. They excuse a check, and turn no verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from driftgate.domain.judgement import (
    CheckResult,
    Finding,
    Outcome,
    Policy,
    Verdict,
    Waiver,
    WaiverKind,
    WaiverState,
    WaiverUse,
)
from driftgate.judgement.criteria import CRITERIA, PERFORMANCE
from driftgate.judgement.staleness import STALE
from driftgate.messages.message import Message, message

#: Confirmed causes by which a failure is none of the network's: what was measured is another thing, or nothing at all.
NEVER = (STALE, "incomplete-evidence")


def waived(
    checks: Sequence[CheckResult], findings: Sequence[Finding], policy: Policy, subject: str, target: str
) -> tuple[tuple[CheckResult, ...], tuple[WaiverUse, ...]]:
    """The checks with those excused whose every failure has a waiver that holds today, and what became of each waiver
    of this subject. A check of which something could not be established is never excused, nor is one of another
    artifact than the one that was built."""
    own = [one for one in policy.waivers if one.subject == subject and one.target in ("", target)]
    valid = [one for one in own if policy.today <= one.expires]
    used: set[Waiver] = set()
    hit: set[Waiver] = set()  # expired ones that would have excused something
    made: list[CheckResult] = []
    for check in checks:
        failing = [verdict for verdict in check.verdicts if verdict.outcome is Outcome.FAILED]
        hit.update(one for one in own if one not in valid and any(_covers(one, v, check, findings) for v in failing))
        covering = [[one for one in valid if _covers(one, verdict, check, findings)] for verdict in failing]
        used.update(one for found in covering for one in found)
        is_open = any(verdict.outcome is Outcome.ERROR for verdict in check.verdicts)
        if check.outcome is not Outcome.FAILED or not failing or is_open or not all(covering):
            made.append(check)
            continue
        taken = dict.fromkeys(one for found in covering for one in found)
        made.append(replace(check, waived=True, notes=(*map(told, taken), *check.notes)))
    return tuple(made), tuple(WaiverUse(one, _state(one, used, hit, valid)) for one in own)


def told(waiver: Waiver) -> Message:
    """Who answers for it, why and until when."""
    return message("waived", owner=waiver.owner, expires=waiver.expires, reason=waiver.reason)


def _state(one: Waiver, used: set[Waiver], hit: set[Waiver], valid: Iterable[Waiver]) -> WaiverState:
    if one in used:
        return WaiverState.USED
    if one not in valid:
        return WaiverState.EXPIRED_IN_USE if one in hit else WaiverState.EXPIRED
    return WaiverState.UNUSED


def _covers(waiver: Waiver, verdict: Verdict, check: CheckResult, findings: Sequence[Finding]) -> bool:
    if any(one.code in NEVER and one.link == verdict.target and one.confirmed for one in findings):
        return False
    if waiver.kind is WaiverKind.CHECK:
        is_meant = waiver.on == check.slug
    elif waiver.kind is WaiverKind.LINK:
        is_meant = waiver.on == verdict.target
    else:
        is_meant = any(one.code == waiver.on and one.link == verdict.target and one.confirmed for one in findings)
    return is_meant and _within(waiver, verdict)


def _within(waiver: Waiver, verdict: Verdict) -> bool:
    """Whether the failure is no worse than the waiver allows; without limits however bad it is."""
    if not waiver.limits:
        return True
    limit = dict(waiver.limits).get(verdict.criterion or "")
    if limit is None or verdict.value is None:
        return False
    criterion = CRITERIA.get(verdict.criterion or "")
    better = criterion.better if criterion is not None else PERFORMANCE.get(verdict.criterion or "", "lower")
    return verdict.value <= limit if better == "lower" else verdict.value >= limit
