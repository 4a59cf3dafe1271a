"""Subjects that are as they were in an earlier run: they rest, and that run's results stand for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from driftgate import __version__
from driftgate.domain.facts import Facts
from driftgate.domain.results import Results, Tool
from driftgate.domain.runs import UNCHANGED_SINCE, RunOutcome
from driftgate.errors import StorageError
from driftgate.messages.message import message
from driftgate.plan import Job
from driftgate.storage.document import encode_results, read_results
from driftgate.storage.folder import remove_tree, write_all
from driftgate.storage.planfile import Manifest, Unchanged, read_origin

UNCHANGED = "unchanged"
Kept = tuple[Unchanged, Facts]


def apart(jobs: Sequence[Job], base: Path) -> tuple[tuple[Job, ...], tuple[Kept, ...]]:
    """The jobs that must run, and those whose plan, which every digest is in, is that of a former report, with its
    facts. Facts that a run left unfinished stand for nothing. Raises StorageError where the report cannot be read."""
    former = {facts.plan.digest: facts for facts in read_results(base).facts if _is_whole(facts)}
    origin = read_origin(base)
    run = origin.run or origin.sha[:12] or base.name
    changed: list[Job] = []
    rest: list[Kept] = []
    for job in jobs:
        facts = former.get(job.plan.digest)
        if facts is None:
            changed.append(job)
        else:
            rest.append((Unchanged(job.plan.subject, job.plan.target, job.plan.digest, _since(facts) or run), facts))
    return tuple(changed), tuple(rest)


def keep(folder: Path, rest: Sequence[Kept]) -> None:
    """Write the former facts where a report finds them. Raises StorageError."""
    remove_tree(folder)
    if rest:
        write_all(folder, encode_results(Results(Tool("driftgate", __version__), tuple(facts for _, facts in rest))))


def kept(manifest: Manifest, folder: Path) -> tuple[Facts, ...]:
    """The former facts, each run with a note that says of when they are. Raises StorageError where they are not those
    of the manifest."""
    if not manifest.unchanged:
        return ()
    former = {facts.plan.digest: facts for facts in read_results(folder).facts}
    found: list[Facts] = []
    for one in manifest.unchanged:
        facts = former.get(one.digest)
        if facts is None or facts.plan.key != (one.subject, one.target):
            raise StorageError(message("unchanged-other", path=str(folder), subject=one.subject, target=one.target))
        note = message(UNCHANGED_SINCE, run=one.run)
        runs = tuple(replace(run, notes=tuple(dict.fromkeys((*run.notes, note)))) for run in facts.runs)
        found.append(replace(facts, runs=runs))
    return tuple(found)


def _since(facts: Facts) -> str | None:
    """The run whose facts they are, where the report had them from one before it."""
    notes = (note for run in facts.runs for note in run.notes if note.code == UNCHANGED_SINCE)
    return next((str(note.get("run")) for note in notes), None)


def _is_whole(facts: Facts) -> bool:
    """Whether every stage was run on every sample, and nothing stood in the way of what was to be measured."""
    planned = len(facts.plan.samples.ids)
    done = {stage: sum(run.samples_done for run in facts.runs_of(stage)) for stage in facts.plan.stages}
    if facts.problems or any(run.outcome is not RunOutcome.PASSED for run in facts.runs):
        return False
    return all(count >= planned for count in done.values())
