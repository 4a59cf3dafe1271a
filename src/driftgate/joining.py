"""What meets only once all legs are home: links between a host and a board, measured from what both recorded, and the
scores of a board's stages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from driftgate.backends.quantfile import quantization_document, signature_path
from driftgate.domain.chain import Link
from driftgate.domain.facts import Facts, Problem
from driftgate.domain.measurements import Measurement
from driftgate.domain.plan import Where
from driftgate.domain.runs import Recording
from driftgate.domain.scores import ScoreRecords
from driftgate.domain.tensors import Signature
from driftgate.errors import SampleError
from driftgate.messages.message import Param, message
from driftgate.numerics.comparator import Comparator, OutputMap
from driftgate.plan import Job
from driftgate.scorekeeping import Functions, ScoreTrack
from driftgate.sessions import Artifact, Tensors
from driftgate.storage.atomic import write_bytes
from driftgate.storage.npz import write_npz
from driftgate.storage.tensorfiles import open_source, tensors_digest


class Recorded:
    """What legs recorded, in the folders of their shards, read by stage and sample; one that is not as the facts say is
    a problem."""

    def __init__(self, facts: Facts, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._plan = facts.plan
        self._known = {(one.stage, one.sample): one for one in facts.recordings}
        self.problems: list[Problem] = []

    def of(self, stage: str, sample: str) -> tuple[Recording, Tensors] | None:
        """A recording and its tensors; None where there is none that can be trusted."""
        known = self._known.get((stage, sample))
        if known is None:
            return None
        for folder in self._folders:
            if (folder / stage / f"{sample}.npz").is_file():
                return self._read(known, folder / stage)
        self._lack(known, "recording-absent")
        return None

    def _read(self, known: Recording, folder: Path) -> tuple[Recording, Tensors] | None:
        try:
            tensors = open_source(folder).read(known.sample)
        except SampleError as error:
            self._lack(known, "recording-other", reason=error.problems[0])
            return None
        found = tuple((name, tensors_digest({name: value})) for name, value in sorted(tensors.items()))
        if found != known.files:
            self._lack(known, "recording-other", reason="digest")
            return None
        return known, tensors

    def _lack(self, known: Recording, code: str, **said: Param) -> None:
        legs = (leg for leg in self._plan.legs if known.stage in leg.stages)
        leg = next((leg.id for leg in legs if known.sample in self._plan.samples.of_blocks(leg.blocks)), "-")
        reason = message(code, leg=leg, stage=known.stage, sample=known.sample, **said)
        self.problems.append(Problem(known.stage, None, reason))


def joined(facts: Facts, folders: Sequence[Path], job: Job | None) -> Facts:
    """The facts with the links across legs measured, and with scores of stages that were only recorded.

    With the `job` outputs are paired as its configuration says, and its labels and post-processing score; without one
    nothing is scored.
    """
    legs = facts.plan.legs
    apart = {stage for leg in legs if leg.where is Where.BOARD for stage in leg.stages}
    links = [link for link in facts.plan.links if (link.reference in apart) != (link.candidate in apart)]
    recorded = Recorded(facts, folders)
    outputs = OutputMap() if job is None else job.outputs
    problems: list[Problem] = []
    measurements: list[Measurement] = []
    for link in links:
        made, wrong = _measured(facts, link, recorded, outputs)
        measurements += made
        problems += wrong
    scores, wrong = _scored(facts, sorted(apart), recorded, job)
    told = dict.fromkeys((*facts.problems, *problems, *wrong, *recorded.problems))
    return replace(
        facts,
        measurements=(*facts.measurements, *measurements),
        scores=(*facts.scores, *scores),
        problems=tuple(told),
    )


def recorded_instead(job: Job, facts: Facts, recorded: Recorded, samples: Sequence[str], folder: Path) -> Job:
    """The job with what its boards gave for these samples in the place of the boards themselves, as recordings that are
    written into a folder of our own; a stage of which some sample was not recorded stays as it is."""
    apart = {stage for leg in facts.plan.legs if leg.where is Where.BOARD for stage in leg.stages}
    made = []
    for artifact in job.artifacts:
        found = [recorded.of(artifact.stage, sample) for sample in samples] if artifact.stage in apart else []
        if not found or None in found:
            made.append(artifact)
            continue
        place = folder / artifact.stage
        for sample, one in zip(samples, found, strict=True):
            if one is not None:
                write_npz(place / f"{sample}.npz", one[1])
        signature = next((run.signature for run in facts.runs_of(artifact.stage) if run.signature is not None), None)
        if signature is not None:
            write_bytes(signature_path(place), json.dumps(quantization_document(signature)).encode())
        made.append(Artifact(artifact.stage, "recorded", place))
    return replace(job, artifacts=tuple(made))


def _measured(
    facts: Facts, link: Link, recorded: Recorded, outputs: OutputMap
) -> tuple[list[Measurement], list[Problem]]:
    """A link's measurements: one comparator for each pair of runs, samples in the plan's order, block by block."""
    comparators: dict[tuple[str, str], Comparator] = {}
    samples = facts.plan.samples
    for block in samples.blocks:
        for sample in samples.of_blocks([block]):
            a, b = recorded.of(link.reference, sample), recorded.of(link.candidate, sample)
            if a is None or b is None:
                continue
            runs = (a[0].run, b[0].run)
            if runs not in comparators:
                comparators[runs] = Comparator(
                    link.name,
                    stages=(link.reference, link.candidate),
                    signatures=(_signature(facts, runs[0]), _signature(facts, runs[1])),
                    outputs=outputs,
                )
            comparators[runs].add(block, sample, a[1], b[1])
    found = [one for runs, each in comparators.items() for one in each.measurements(*runs)]
    return found, [problem for each in comparators.values() for problem in each.problems]


def _scored(
    facts: Facts, stages: Sequence[str], recorded: Recorded, job: Job | None
) -> tuple[list[ScoreRecords], list[Problem]]:
    """Scores of recorded stages, as a capture would have made them."""
    if job is None or job.keeping is None or not facts.plan.scores:
        return [], []
    found: list[ScoreRecords] = []
    problems: list[Problem] = []
    with ExitStack() as stack:
        functions = Functions(job.keeping, stack)
        for stage in stages:
            tracks: dict[str, ScoreTrack] = {}
            for sample in facts.plan.samples.ids:
                one = recorded.of(stage, sample)
                if one is None:
                    continue
                run = one[0].run
                if run not in tracks:
                    tracks[run] = ScoreTrack(
                        facts.plan.scores[0],
                        stage=stage,
                        signature=_signature(facts, run),
                        keeping=job.keeping,
                        functions=functions,
                    )
                tracks[run].add(sample, one[1])
            found += [records for run, track in tracks.items() if (records := track.records(run)) is not None]
            problems += [problem for track in tracks.values() for problem in track.problems]
    return found, problems


def _signature(facts: Facts, run: str) -> Signature | None:
    """What a run says of its outputs."""
    found: Mapping[str, Signature | None] = {one.id: one.signature for one in facts.runs}
    return found.get(run)
