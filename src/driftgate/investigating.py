"""Investigating the first failing link that can be tapped; what is found are facts, to be judged again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.backends.registry import backend
from driftgate.domain.chain import FeedKind, Link
from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Investigation
from driftgate.domain.judgement import Judgement, Outcome
from driftgate.errors import DriftgateError
from driftgate.localisation.investigate import DEFAULT_MEMORY, investigate
from driftgate.localisation.subject import Subject, read_subject
from driftgate.numerics.outputs import plan_feeds
from driftgate.plan import Job
from driftgate.sessions import Artifact, Tensor

SAMPLES = 4


@dataclass(frozen=True, slots=True)
class Effort:
    """How much an investigation may take: samples that are run, bytes of tapped tensors that are held."""

    samples: int = SAMPLES
    memory: int = DEFAULT_MEMORY


Progress = Callable[[int, int], None]


def with_investigation(
    job: Job, facts: Facts, judgement: Judgement, effort: Effort, *, progress: Progress | None = None
) -> Facts:
    """The facts with what was found on the first failing link; unchanged where no failing link can be tapped."""
    link = first_tappable(job, judgement)
    if link is None:
        return facts
    found = look_into(job, link, worst_samples(facts, judgement, link, effort.samples), effort, progress=progress)
    return replace(facts, investigations=(*(i for i in facts.investigations if i.link != link.name), found))


def first_tappable(job: Job, judgement: Judgement) -> Link | None:
    """The first link in the route that failed and whose two sides can both be tapped."""
    if job.state:
        return None
    failed = {
        verdict.target for check in judgement.checks for verdict in check.verdicts if verdict.outcome is Outcome.FAILED
    }
    return next((link for link in job.plan.links if link.name in failed and can_tap(job, link)), None)


def can_tap(job: Job, link: Link) -> bool:
    """Whether both sides of a link can be tapped."""
    backends = {artifact.stage: artifact.backend for artifact in job.artifacts}
    return all(backends[stage] in SIDES for stage in (link.reference, link.candidate))


def worst_samples(facts: Facts, judgement: Judgement, link: Link, count: int) -> tuple[str, ...]:
    """The link's worst samples, then the first ones."""
    worst = [
        verdict.sample
        for check in judgement.checks
        for verdict in check.verdicts
        if verdict.target == link.name and verdict.sample is not None
    ]
    worst += [s.worst_sample for s in judgement.summaries if s.link == link.name and s.worst_sample is not None]
    return tuple(dict.fromkeys((*worst, *facts.plan.samples.ids)))[:count]


def look_into(
    job: Job, link: Link, samples: tuple[str, ...], effort: Effort, *, progress: Progress | None = None
) -> Investigation:
    """Investigate one link; what goes wrong is a note of the investigation, never the end of the check."""
    try:
        a, b = _side(job, link.reference), _side(job, link.candidate)
        return investigate(
            link.name,
            a,
            b,
            samples,
            outputs=_outputs(job, link, a, b),
            memory=effort.memory,
            progress=progress,
        )
    except DriftgateError as error:
        return Investigation(link.name, notes=error.problems)


def _onnx_side(job: Job, artifact: Artifact) -> Subject:
    runs_it = OnnxRuntimeBackend()
    return read_subject(artifact.stage, artifact, runs_it, runs_it, _feeder(job, artifact))


#: What can be tapped, by backend.
SIDES: Mapping[str, Callable[[Job, Artifact], Subject]] = {"onnxruntime": _onnx_side}


def _side(job: Job, stage: str) -> Subject:
    artifact = next(artifact for artifact in job.artifacts if artifact.stage == stage)
    return SIDES[artifact.backend](job, artifact)


def _feeder(job: Job, artifact: Artifact) -> Callable[[str], dict[str, Tensor]]:
    """The feeds of one stage, assigned as in the capture."""
    stage = job.plan.chain.stage(artifact.stage)
    kind = stage.feeds if job.data.runtime is not None else FeedKind.RAW
    with backend(artifact.backend).open(artifact) as session:
        signature = session.signature
    names = [spec.name for spec in signature.inputs] if signature is not None else []

    def feeds(sample: str) -> dict[str, Tensor]:
        have = job.data.read(sample)[kind]
        plan = plan_feeds(names, tuple(have), names=job.inputs)
        return {name: have[feed] for name, feed in plan.inputs}

    return feeds


def _outputs(job: Job, link: Link, a: Subject, b: Subject) -> dict[str, str]:
    """The reference's outputs and the candidate's, by the names and the map of the settings."""
    ends_a = a.graph.outputs if a.graph is not None else ()
    ends_b = b.graph.outputs if b.graph is not None else ()
    common = {alias: name for name, aliases in job.outputs.names.items() for alias in (*aliases, name)}
    by_common = {common.get(name, name): name for name in ends_b}
    found = {name: by_common[common.get(name, name)] for name in ends_a if common.get(name, name) in by_common}
    if not found and len(ends_a) == len(ends_b) == 1:
        return {ends_a[0]: ends_b[0]}
    return found
