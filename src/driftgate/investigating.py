"""Investigating the first failing link that can be tapped; what is found are facts, to be judged again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from driftgate.aside import Aside
from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.backends.registry import backend
from driftgate.domain.chain import Link
from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Investigation
from driftgate.domain.judgement import Judgement, Outcome
from driftgate.errors import DriftgateError
from driftgate.judgement.nodes import by_badness, first_divergence
from driftgate.localisation.histograms import histograms
from driftgate.localisation.investigate import DEFAULT_MEMORY, UNTAPPED_SHARE, investigate
from driftgate.localisation.repro import write_repro
from driftgate.localisation.subject import Subject, read_subject
from driftgate.messages.message import message
from driftgate.numerics.outputs import common_names
from driftgate.pipeline import stage_feeds
from driftgate.plan import Job
from driftgate.sessions import Artifact, Tensor
from driftgate.vendor.nodetables import read_node_table

SAMPLES = 4
WORST = 200  # nodes whose channels are kept and whose values are counted
WHOLE = 5  # of them those of whose values every one is


@dataclass(frozen=True, slots=True)
class Effort:
    """How much an investigation may take: samples that are run, bytes of tapped tensors that are held, seconds of
    experiments for a cause (0: none); and whether a part of the model, weights and all, may be written as a repro."""

    samples: int = SAMPLES
    memory: int = DEFAULT_MEMORY
    repro: bool = True
    seconds: float = 30.0

    def aside(self) -> Aside:
        """Room for outputs that a capture puts aside."""
        return Aside(self.samples, self.memory // UNTAPPED_SHARE)


Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """An investigation with the two sides it was made on, from which a repro can be cut."""

    found: Investigation
    sides: tuple[Subject, Subject] | None
    samples: tuple[str, ...]

    def write_repro(self, folder: Path) -> Investigation:
        """Write the smallest part around the first diverging node; what cannot be written is a note."""
        node = first_divergence(self.found.nodes)
        if node is None or node.own is None or self.sides is None:
            return self.found
        try:
            made = write_repro(folder, *self.sides, self.found, node, self.samples[0])
            note = message("repro-written", folder=folder.name, error=made.error)
        except DriftgateError as error:
            note = message("repro-not-written", reason=error.problems[0])
        return replace(self.found, notes=(*self.found.notes, note))


def with_found(facts: Facts, found: Investigation) -> Facts:
    """The facts with one link's investigation, in place of an older one."""
    return replace(facts, investigations=(*(i for i in facts.investigations if i.link != found.link), found))


def found_of(facts: Facts, link: Link) -> Investigation:
    """What was found of a link so far."""
    return next((i for i in facts.investigations if i.link == link.name), Investigation(link.name))


def first_to_look_into(job: Job, judgement: Judgement) -> Link | None:
    """The first link in the route that failed and of whose nodes something can be known: both of its sides can be
    tapped, or the vendor's tool wrote a table."""
    failed = failed_links(job, judgement)
    return next((link for link in failed if can_tap(job, link) or node_table(job, link)), None)


def failed_links(job: Job, judgement: Judgement) -> tuple[Link, ...]:
    """The links that failed and are not waived, in the order of the route; none for networks with memory, whose samples
    are sequences."""
    if job.state:
        return ()
    failed = {
        verdict.target
        for check in judgement.checks
        for verdict in check.verdicts
        if verdict.outcome is Outcome.FAILED and not check.waived
    }
    return tuple(link for link in job.plan.links if link.name in failed)


def node_table(job: Job, link: Link) -> Path | None:
    """The file with the vendor's numbers on a link's candidate."""
    told = job.artifact(link.candidate).options.get("node_table")
    return Path(str(told)) if told else None


def can_tap(job: Job, link: Link) -> bool:
    """Whether both sides of a link can be tapped."""
    return all(job.artifact(stage).backend in SIDES for stage in (link.reference, link.candidate))


def worst_samples(facts: Facts, judgement: Judgement, link: Link, count: int) -> tuple[str, ...]:
    """The link's worst samples, then the first ones; the very first, whose outputs a capture puts aside, is among
    them where there is more than one."""
    worst = [
        verdict.sample
        for check in judgement.checks
        for verdict in check.verdicts
        if verdict.target == link.name and verdict.sample is not None
    ]
    worst += [s.worst_sample for s in judgement.summaries if s.link == link.name and s.worst_sample is not None]
    found = tuple(dict.fromkeys((*worst, *facts.plan.samples.ids)))[:count]
    first = facts.plan.samples.ids[:1]
    return found if count < 2 or set(first) <= {*found} else (*found[:-1], *first)


def look_into(
    job: Job,
    link: Link,
    samples: tuple[str, ...],
    effort: Effort,
    *,
    aside: Aside | None = None,
    progress: Progress | None = None,
) -> Inquiry:
    """Investigate one link; what goes wrong is a note of the investigation, never the end of the check.

    The candidate runs untapped only if none of its outputs for these samples was put `aside`.
    """
    table = node_table(job, link)
    if table is not None and not can_tap(job, link):
        return _as_told(link, table)
    untapped = {} if aside is None else {s: made for s, made in aside.of(link.candidate).items() if s in samples}
    try:
        a, b = _side(job, link.reference, samples[0]), _side(job, link.candidate, samples[0])
        found = investigate(
            link.name,
            a,
            b,
            samples,
            outputs=_outputs(job, link, a, b),
            memory=effort.memory,
            untapped=untapped or None,
            progress=progress,
        )
        worst = by_badness(found.nodes)[:WORST]
        spread = histograms(a, b, worst, samples, whole=WHOLE, memory=effort.memory)
        kept = {node.order for node in worst}
        nodes = tuple(node if node.order in kept else replace(node, channel_excess=()) for node in found.nodes)
        return Inquiry(replace(found, nodes=nodes, histograms=spread), (a, b), samples)
    except DriftgateError as error:
        return Inquiry(Investigation(link.name, notes=error.problems), None, samples)


def _as_told(link: Link, table: Path) -> Inquiry:
    """What the vendor's tool wrote of a link that cannot be tapped."""
    try:
        return Inquiry(Investigation(link.name, vendor=read_node_table(table, link.candidate)), None, ())
    except DriftgateError as error:
        return Inquiry(Investigation(link.name, notes=error.problems), None, ())


def _onnx_side(job: Job, artifact: Artifact, sample: str) -> Subject:
    runs_it = OnnxRuntimeBackend()
    return read_subject(artifact.stage, artifact, runs_it, runs_it, _feeder(job, artifact))


def _module_side(job: Job, artifact: Artifact, sample: str) -> Subject:
    return read_subject(
        artifact.stage, artifact, backend(artifact.backend), None, _feeder(job, artifact), sample=sample
    )


#: What can be tapped, by backend.
SIDES: Mapping[str, Callable[[Job, Artifact, str], Subject]] = {"onnxruntime": _onnx_side, "torch": _module_side}


def _side(job: Job, stage: str, sample: str) -> Subject:
    artifact = job.artifact(stage)
    return SIDES[artifact.backend](job, artifact, sample)


def _feeder(job: Job, artifact: Artifact) -> Callable[[str], dict[str, Tensor]]:
    """The feeds of one stage, assigned as in the capture."""
    with backend(artifact.backend).open(artifact) as session:
        return stage_feeds(job, artifact, session)


def _outputs(job: Job, link: Link, a: Subject, b: Subject) -> dict[str, str]:
    """The reference's outputs and the candidate's, by the names and the map of the settings."""
    common = common_names(job.outputs.names)
    by_common = {common.get(name, name): name for name in b.outputs}
    found = {name: by_common[common.get(name, name)] for name in a.outputs if common.get(name, name) in by_common}
    if not found and len(a.outputs) == len(b.outputs) == 1:
        return {a.outputs[0]: b.outputs[0]}
    return found
