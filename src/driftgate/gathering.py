"""Shards held against the plan that they are of: a leg that is missing, stale or unreadable is an error by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from driftgate.domain.facts import Facts, merge
from driftgate.domain.plan import Leg, Plan
from driftgate.domain.runs import Run, RunOutcome, run_id
from driftgate.errors import DriftgateError, MergeConflict
from driftgate.messages.message import Message, message
from driftgate.storage.document import read_results
from driftgate.storage.planfile import Manifest, Provenance, Shard, read_shard_note

RECORDINGS = "recordings"


@dataclass(frozen=True, slots=True)
class Gathered:
    """The facts of every plan, whole or not, and the folders of recordings that may be used with them."""

    facts: tuple[Facts, ...]
    recordings: Mapping[tuple[str, str], tuple[Path, ...]]  # by the plan's key
    problems: tuple[Message, ...]  # of shards that belong to nothing


def gather(manifest: Manifest, folders: Iterable[Path]) -> Gathered:
    """Read the shards of a plan's legs. What a leg did not bring home stands in its facts as an error that names it."""
    brought: dict[str, list[Facts]] = {}
    wrong: dict[str, Message] = {}
    recordings: dict[tuple[str, str], list[Path]] = {}
    strays: list[Message] = []
    for folder in folders:
        try:
            shard = read_shard_note(folder)
            if shard is None:
                leg = slug_leg(manifest, folder.name)
                told = message("leg-unmarked", leg=leg or "-", folder=folder.name)
                _note(wrong, strays, manifest, leg, told)
                continue
            leg = shard.leg
            if (other := _is_other(manifest, shard)) is not None:
                _note(wrong, strays, manifest, leg, other)
                continue
            facts = [one for one in read_results(folder).facts if any(one_leg.id == leg for one_leg in one.plan.legs)]
            if len(facts) != 1 or facts[0].plan.digest != shard.plan:
                _note(wrong, strays, manifest, leg, message("leg-other-plan", leg=leg))
                continue
        except (DriftgateError, OSError) as error:
            leg = slug_leg(manifest, folder.name)
            reason = error.problems[0] if isinstance(error, DriftgateError) else str(error)
            told = message("leg-unreadable", leg=leg or "-", folder=folder.name, reason=reason)
            _note(wrong, strays, manifest, leg, told)
            continue
        brought.setdefault(leg, []).append(facts[0])
        recordings.setdefault(facts[0].plan.key, []).append(folder / RECORDINGS)
    whole = tuple(_of_plan(plan, brought, wrong) for plan in manifest.plans)
    return Gathered(whole, {key: tuple(found) for key, found in recordings.items()}, tuple(strays))


def slug_of(leg: str) -> str:
    """A leg's id as a name for files and artifacts."""
    return "".join(one if one.isalnum() or one in "-_." else "-" for one in leg)


def slug_leg(manifest: Manifest, name: str) -> str:
    """The leg that a folder is named for, its artifact's prefix before that; empty where it is none's."""
    legs = [leg.id for plan in manifest.plans for leg in plan.legs]
    named = [leg for leg in legs if name == slug_of(leg) or name.endswith(f"-{slug_of(leg)}")]
    return max(named, key=len, default="")


def _note(wrong: dict[str, Message], strays: list[Message], manifest: Manifest, leg: str, told: Message) -> None:
    if leg and manifest.plan_of(leg) is not None:
        wrong.setdefault(leg, told)
    else:
        strays.append(told)


def _is_other(manifest: Manifest, shard: Shard) -> Message | None:
    """Why a shard is not of this plan, commit or run; None where it is."""
    known = manifest.plan_of(shard.leg)
    if known is None or known[0].digest != shard.plan:
        return message("leg-other-plan", leg=shard.leg)
    ours, theirs = manifest.provenance, shard.provenance
    if ours != theirs:
        return message("leg-stale", leg=shard.leg, **_told(ours, theirs))
    return None


def _told(ours: Provenance, theirs: Provenance) -> dict[str, str]:
    return {
        "found": f"{theirs.sha[:12] or '-'} run {theirs.run or '-'} attempt {theirs.attempt or '-'}",
        "wanted": f"{ours.sha[:12] or '-'} run {ours.run or '-'} attempt {ours.attempt or '-'}",
    }


def _of_plan(plan: Plan, brought: dict[str, list[Facts]], wrong: dict[str, Message]) -> Facts:
    shards: list[Facts] = []
    for leg in plan.legs:
        try:
            shards.append(merge(brought.pop(leg.id)) if leg.id in brought else _missing(plan, leg, wrong))
        except MergeConflict as error:
            shards.append(_missing(plan, leg, {leg.id: error.problems[0]}))
    try:
        return replace(merge(shards), plan=plan)
    except MergeConflict as error:
        return _missing_all(plan, error.problems[0])


def _missing(plan: Plan, leg: Leg, wrong: dict[str, Message]) -> Facts:
    """A leg that brought nothing home: every one of its stages is an error that says so."""
    reason = wrong.get(leg.id, message("leg-missing", leg=leg.id))
    return Facts(plan=replace(plan, legs=(leg,)), runs=tuple(_lost(plan, leg, leg.stages, reason)))


def _missing_all(plan: Plan, reason: Message) -> Facts:
    runs: Sequence[Run] = [run for leg in plan.legs for run in _lost(plan, leg, leg.stages, reason)]
    return Facts(plan=plan, runs=tuple(runs))


def _lost(plan: Plan, leg: Leg, stages: Sequence[str], reason: Message) -> Iterable[Run]:
    planned = {artifact.stage: artifact for artifact in plan.artifacts}
    for stage in stages:
        artifact = planned[stage]
        yield Run(
            id=run_id(stage, artifact.digest, ""),
            leg=leg.id,
            stage=stage,
            backend=artifact.backend,
            artifact=artifact.digest,
            environment="",
            samples_done=0,
            outcome=RunOutcome.ERROR,
            reason=reason,
            seconds=0.0,
        )
