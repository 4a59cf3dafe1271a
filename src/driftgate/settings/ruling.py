"""By which policies a change is judged: those of the base branch, so that none can loosen its own gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from driftgate.domain.comparisons import Changed, Thing
from driftgate.domain.judgement import Clauses, Policy, Standing
from driftgate.errors import ConfigError
from driftgate.messages.message import message
from driftgate.settings.load import Config


@dataclass(frozen=True, slots=True)
class Ruling:
    """Subject → the policy that holds; `pending` is what the change's own configuration says otherwise, which takes
    effect once it is merged."""

    policies: Mapping[str, Policy]
    pending: tuple[Changed, ...] = ()


def ruled(own: Config, base: Config | None, name: str | None, subjects: Iterable[str]) -> Ruling:
    """The policies of a change for its subjects: those of the base's configuration where there is one.

    A subject that only the change has is judged by the base's policy of that name, too, and has no waivers. Raises
    ConfigError where a configuration has no such policy.
    """
    wanted = tuple(dict.fromkeys(subjects))
    mine = {subject: own.policy(name, subject) for subject in wanted} if _has(own, name) or base is None else {}
    if base is None:
        return Ruling(mine)
    if not _has(base, name):
        known = tuple(base.settings.policies) or ("-",)
        raise ConfigError(message("base-policy-absent", name=str(name), known=known))
    theirs = {subject: base.policy(name, subject, own.chain(subject)) for subject in wanted}
    pending: dict[Changed, None] = {}
    for subject, policy in mine.items():
        theirs[subject] = replace(theirs[subject], calibration_tuned=policy.calibration_tuned)
        pending.update(dict.fromkeys(differences(theirs[subject], policy, subject)))
    if not mine:
        pending.update((Changed(Thing.POLICY, f"{subject} policy", str(name), ""), None) for subject in wanted)
    return Ruling(theirs, tuple(pending))


def _has(config: Config, name: str | None) -> bool:
    return name is None or name in config.settings.policies


def differences(base: Policy, head: Policy, subject: str) -> Iterator[Changed]:
    """Every word of two policies that is another one; empty where one of them says nothing."""
    before, after = dict(_words(base)), dict(_words(head))
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name, ""), after.get(name, "")
        if old != new:
            yield Changed(Thing.POLICY, f"{subject} {name}", old, new)


def _words(policy: Policy) -> Iterator[tuple[str, str]]:
    """Each thing that a policy says, by name."""
    for place, limits in policy.limits:
        yield from ((f"{place} {limit.criterion}", f"{limit.value:g}") for limit in limits)
    for place, limits in policy.tightened:
        yield from ((f"limits {place} {limit.criterion}", f"{limit.value:g}") for limit in limits)
    if policy.required is not None:
        yield "require", ", ".join(policy.required)
    yield "uncertainty", policy.uncertainty.value
    if policy.accepts:
        yield "accepts", ", ".join(sorted(policy.accepts))
    yield from ((f"speed {name}", f"{value:g}") for name, value in policy.declared_speed)
    yield from _clauses(policy.clauses)
    for waiver in policy.waivers:
        limits_said = "".join(f" {name} {value:g}" for name, value in waiver.limits)
        target = f" {waiver.target}" if waiver.target else ""
        yield f"waiver {waiver.on}{target}", f"{waiver.owner} {waiver.expires}{limits_said}"


def _clauses(clauses: Clauses) -> Iterator[tuple[str, str]]:
    if clauses.samples:
        yield "samples", str(clauses.samples)
    for name, standing in (("skipped", clauses.skipped), ("regressions", clauses.regressions)):
        if standing is not Standing.ALLOW:
            yield name, standing.value
    if clauses.history is not None:
        yield "history runs", str(clauses.history.runs)
        yield from ((f"history {slide.value}", f"{value:g}") for slide, value in clauses.history.limits)
    for name, is_asked in (
        ("same-commit", clauses.same_commit),
        ("same-artifacts", clauses.same_artifacts),
        ("same-versions", clauses.same_versions),
    ):
        if is_asked:
            yield name, "true"
    if clauses.board_days is not None:
        yield "board-days", str(clauses.board_days)
