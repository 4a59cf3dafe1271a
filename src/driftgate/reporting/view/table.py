"""The headline and the rows of the one table that a reader looks at first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftgate.domain.judgement import CELLS, CheckResult, Judgement, Outcome, Verdict
from driftgate.domain.plan import ScoreSpec
from driftgate.domain.results import Results
from driftgate.messages.message import Message, message
from driftgate.reporting.view.readings import Reading, as_written, reading, severity


@dataclass(frozen=True, slots=True)
class Place:
    """Where the worst value stands; None where the verdict is on the whole."""

    output: str | None = None
    sample: str | None = None
    channel: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table; `cell` is PASS, FAIL, ERROR or -."""

    slug: str
    title: str
    cell: str
    reading: Reading | None
    place: Place
    notes: tuple[Message, ...]


def place(verdict: Verdict) -> Place:
    """Where a verdict's worst value stands; a difference of zero stands nowhere."""
    if verdict.value == 0:
        return Place(verdict.output)
    return Place(verdict.output, verdict.sample, verdict.channel)


def headline(judgement: Judgement) -> Message:
    """One line: at which check it fails, or how much of what there is passes."""
    if judgement.outcome is Outcome.FAILED:
        failing = first_failure(judgement)
        return message("headline-fail", check=failing.title if failing is not None else judgement.first_failure or "-")
    if judgement.outcome is Outcome.ERROR:
        errors = [c.title for c in judgement.checks if c.outcome is Outcome.ERROR and c.required]
        errors = errors or [c.title for c in judgement.checks if c.outcome is Outcome.ERROR]
        return message("headline-error", checks=tuple(errors)) if errors else message("headline-nothing")
    if judgement.outcome is Outcome.SKIPPED:
        return message("headline-nothing")
    counts = {outcome: sum(check.outcome is outcome for check in judgement.checks) for outcome in Outcome}
    passed, skipped, total = counts[Outcome.PASSED], counts[Outcome.SKIPPED], len(judgement.checks)
    waived = sum(check.waived for check in judgement.checks)
    optional = total - passed - skipped - waived
    if waived:
        return message("headline-pass-waived", passed=passed, total=total, waived=waived)
    if optional:
        return message("headline-pass-optional", passed=passed, total=total, skipped=skipped, optional=optional)
    if skipped:
        return message("headline-pass-skipped", passed=passed, total=total, skipped=skipped)
    return message("headline-pass", passed=passed, total=total)


def overall(results: Results) -> Message:
    """The headline over several subjects."""
    outcomes = [judgement.outcome for judgement in results.judgements or ()]
    total = len(outcomes)
    if not total:
        return message("overall-nothing")
    failed, passed = outcomes.count(Outcome.FAILED), outcomes.count(Outcome.PASSED)
    if failed:
        return message("overall-fail", failed=failed, total=total)
    if passed < total:
        return message("overall-error", errors=total - passed, total=total)
    return message("overall-pass", total=total)


def first_failure(judgement: Judgement) -> CheckResult | None:
    """The row where it breaks first, None where nothing does."""
    return next((check for check in judgement.checks if check.slug == judgement.first_failure), None)


def rows(judgement: Judgement, specs: Sequence[ScoreSpec] = ()) -> tuple[Row, ...]:
    """One row a check, in the chain's order; those behind the first failure print `-`."""
    return tuple(_row(check, judgement, specs) for check in judgement.checks)


def worst_first(check: CheckResult) -> list[Verdict]:
    """The verdicts that make a row what it is: of its first link that is so, unless it passes; the worst first."""
    alike = [verdict for verdict in check.verdicts if verdict.outcome is check.outcome]
    if check.outcome is not Outcome.PASSED:
        alike = [verdict for verdict in alike if verdict.target == alike[0].target]
    return sorted(alike, key=severity, reverse=True)


def _row(check: CheckResult, judgement: Judgement, specs: Sequence[ScoreSpec]) -> Row:
    if check.hidden:
        return Row(check.slug, check.title, CELLS[Outcome.SKIPPED], None, Place(), (message("row-behind"),))
    cell, verdicts = CELLS[check.outcome], worst_first(check)
    if not verdicts:
        return Row(check.slug, check.title, cell, None, Place(), check.notes)
    verdict = verdicts[0]
    number = as_written(reading(verdict), verdict, judgement.scores, specs)
    reason = () if verdict.reason is None else (verdict.reason,)
    optional = () if check.required or check.outcome is Outcome.PASSED else (message("row-optional"),)
    own_first = check.outcome is Outcome.PASSED or check.waived
    told = (*check.notes, *verdict.notes) if own_first else (*verdict.notes, *check.notes)
    return Row(
        slug=check.slug,
        title=check.title,
        cell=cell,
        reading=number,
        place=place(verdict),
        notes=tuple(dict.fromkeys((*reason, *optional, *told))),
    )
