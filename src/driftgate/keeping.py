"""Keeping what every stage gave for the samples that matter: the declared bad cases, and those that flipped worst."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from driftgate.backends.registry import backend
from driftgate.domain.facts import Problem
from driftgate.domain.judgement import Judgement
from driftgate.domain.runs import Recording
from driftgate.errors import DriftgateError
from driftgate.messages.message import message
from driftgate.pipeline import stage_feeds
from driftgate.plan import Job
from driftgate.sessions import Tensors
from driftgate.storage.npz import write_npz
from driftgate.storage.tensorfiles import tensors_digest

FOLDER = "recordings"
WORST = 4
BUDGET = 64 * 1024 * 1024


def chosen(job: Job, judgement: Judgement) -> tuple[str, ...]:
    """The bad cases that were declared, then the samples whose decisions lost most."""
    worst = dict.fromkeys(flip.sample for flip in judgement.flips if flip.lost)
    return tuple(dict.fromkeys((*job.badcases, *tuple(worst)[:WORST])))


def record(
    job: Job, samples: Sequence[str], folder: Path, *, budget: int = BUDGET
) -> tuple[tuple[Recording, ...], tuple[Problem, ...]]:
    """Run every stage once more on these samples and write `folder/<stage>/<sample>.npz`, within a budget of bytes.

    These runs decide nothing. A stage that cannot run, and what the budget leaves out, is told.
    """
    found: list[Recording] = []
    problems: list[Problem] = []
    digests = {artifact.stage: artifact.digest for artifact in job.plan.artifacts}
    for artifact in job.artifacts:
        try:
            with backend(artifact.backend).open(artifact) as session:
                feeds = stage_feeds(job, artifact, session)
                for sample in samples:
                    outputs = session.infer(feeds(sample), sample=sample)
                    size = sum(value.nbytes for value in outputs.values())
                    if size > budget:
                        problems.append(Problem(artifact.stage, None, message("recording-budget", sample=sample)))
                        continue
                    budget -= size
                    found.append(write_outputs(artifact.stage, digests[artifact.stage][:12], sample, outputs, folder))
        except DriftgateError as error:
            reason = message("recording-failed", reason=error.problems[0])
            problems.append(Problem(artifact.stage, None, reason))
    return tuple(found), tuple(problems)


def write_outputs(stage: str, run: str, sample: str, outputs: Tensors, folder: Path) -> Recording:
    """Write what a stage gave for a sample to `folder/<stage>/<sample>.npz`."""
    write_npz(folder / stage / f"{sample}.npz", outputs)
    files = tuple((name, tensors_digest({name: value})) for name, value in sorted(outputs.items()))
    return Recording(stage, run, sample, files)
