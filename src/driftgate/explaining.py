"""Looking for the cause of the first failing link: its worst samples as evidence, then the engine of trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.backends.recorded import RecordedBackend
from driftgate.backends.registry import backend
from driftgate.diagnosis.bench import Answer, OpenParts
from driftgate.diagnosis.engine import diagnose
from driftgate.diagnosis.unseen_planes import plane_names
from driftgate.domain.chain import Link
from driftgate.domain.evidence import Board, BoardInput, Evidence, LinkNote
from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Explanation, Investigation
from driftgate.domain.judgement import Judgement
from driftgate.domain.tensors import Quantization, Signature, TensorSpec
from driftgate.errors import BackendError, DriftgateError, LoadRefused, SampleError
from driftgate.investigating import failed_links, found_of
from driftgate.localisation.subject import Parts
from driftgate.messages.message import Message, message
from driftgate.messages.text import text
from driftgate.misplaced import odd_one_out, written_before
from driftgate.numerics.alignment import alike, all_equal, dequantised
from driftgate.numerics.outputs import common_names
from driftgate.pipeline import stage_feeds
from driftgate.plan import Job
from driftgate.sessions import Artifact, Session, Tensor, Tensors

SECONDS = 30.0
#: Stages in which calibration shows, and how many of its samples are looked at.
CALIBRATED = ("calibrated", "ptq", "quantized")
CALIBRATION_SAMPLES = 32


@dataclass(frozen=True, slots=True)
class _Side:
    """What one stage was fed and what it gave, its samples along axis 0 or one sample alone; `scales` say what the
    integers of some outputs stand for."""

    feeds: dict[str, Tensor]
    outputs: dict[str, Tensor]
    layers: dict[str, Tensor]
    model: Path | None
    recorded: bool
    refused: str | None = None
    scales: Mapping[str, Quantization] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, Tensor]:
        """The outputs with integers as what they stand for."""
        return {
            name: value if (scale := self.scales.get(name)) is None else dequantised(value, scale)
            for name, value in self.outputs.items()
        }


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing link, the samples that it is shown on, and what both of its sides gave for them; without `evidence`
    they could not be run again, and `notes` say why."""

    link: Link
    samples: tuple[str, ...]
    evidence: Evidence | None = None
    notes: tuple[Message, ...] = ()


def first_failed(job: Job, judgement: Judgement) -> Link | None:
    """The first link in the route that failed."""
    return next(iter(failed_links(job, judgement)), None)


def explain_link(job: Job, failure: Failure, facts: Facts, *, seconds: float = SECONDS) -> Investigation:
    """What experiments on a failing link's samples say of the cause, put to what an investigation found of its nodes.

    Where not even the samples could be run again, notes of the investigation say why.
    """
    link, evidence = failure.link, failure.evidence
    found = found_of(facts, link)
    if evidence is None:
        return replace(found, notes=(*found.notes, *failure.notes))
    try:
        with ExitStack() as stack:
            fed = (evidence.feeds_a, evidence.feeds_b or evidence.feeds_a)
            stages = (link.reference, link.candidate)
            a, b = (_answer(job, stage, feeds, stack) for stage, feeds in zip(stages, fed, strict=True))
            diagnosis = diagnose(evidence, _opener(job), seconds=seconds, answers=(a, b))
    except DriftgateError as error:
        return replace(found, notes=(*found.notes, *error.problems))
    explanations = diagnosis.explanations
    if not any(one.confirmed for one in explanations):
        explanations = (*explanations, *_misplaced(job, link, failure.samples))
    return replace(
        found,
        explained=True,
        explanations=explanations,
        trials=tuple(trial for one in explanations for trial in one.trials),
        ruled_out=diagnosis.ruled_out,
        runs=found.runs + diagnosis.runs,
        notes=(*found.notes, *diagnosis.notes),
    )


def _misplaced(job: Job, link: Link, samples: Sequence[str]) -> tuple[Explanation, ...]:
    """Whether the candidate is of another build, by the stage behind it or by when the files were written."""
    stages = job.plan.stages
    behind = stages[stages.index(link.candidate) + 1 :][:1]
    names = common_names(job.outputs.names)
    try:
        sides = [_side(job, stage, samples[:1], names) for stage in (link.reference, link.candidate, *behind)]
        told = [{} if side is None else side.numbers for side in sides]
        odd = tuple(odd_one_out(link, told[0], told[1], told[2])) if behind else ()
        files = [job.artifact(stage) for stage in (link.reference, link.candidate)]
        paths = [one.path if one.backend == "hbruntime" else None for one in files]
        return odd or tuple(written_before(link, paths[0], paths[1]))
    except (DriftgateError, OSError):
        return ()


def failure_of(job: Job, link: Link, samples: Sequence[str]) -> Failure:
    """A failing link with its evidence: both stages run once more on these samples, together where both take a batch,
    else on the first of them."""
    names = common_names(job.outputs.names)
    try:
        sides = [_side(job, stage, samples, names) for stage in (link.reference, link.candidate)]
    except DriftgateError as error:
        return Failure(link, tuple(samples), None, error.problems)
    a, b = sides
    if a is not None and b is not None:
        return Failure(link, tuple(samples), _evidence(job, link, a, b))
    if len(samples) > 1:
        return failure_of(job, link, samples[:1])
    return Failure(link, tuple(samples), None, (message("explain-samples-differ", link=link.name),))


def _named_alike(a: dict[str, Tensor], b: dict[str, Tensor]) -> dict[str, Tensor]:
    """The candidate's feeds by the reference's names: experiments feed both sides by one name. A single input is the
    other side's whatever it is called; of several every name counts."""
    return dict(zip(a, b.values(), strict=True)) if len(a) == len(b) == 1 else b


def _evidence(job: Job, link: Link, a: _Side, b: _Side) -> Evidence:
    fed_b = _named_alike(a.feeds, b.feeds)
    told_b = {} if b.recorded or all_equal(a.feeds, fed_b) else fed_b
    return Evidence(
        folder=Path(),
        feeds_a=a.feeds,
        feeds_b=told_b,
        outputs_a=_compared(job, a, b),
        outputs_b=_compared(job, b, a),
        layers_a=a.layers,
        layers_b=b.layers,
        order=tuple(name for name in b.layers if name in a.layers),
        model_a=a.model,
        model_b=b.model,
        load_error=b.refused,
        board=None if b.recorded else _input_of(told_b),
        buffers=_planes(told_b),
        calib=_calibrated_with(job, a.feeds) if link.candidate in CALIBRATED else {},
        post=_threshold(job),
        link=LinkNote(link.reference, link.candidate, link.kind.value, job.plan.target),
    )


def _compared(job: Job, own: _Side, other: _Side) -> dict[str, Tensor]:
    """A side's outputs as they are compared: integers as what they stand for unless both sides have the same scale;
    without those that the user leaves out."""
    return {
        name: value if alike(own.scales.get(name), other.scales.get(name)) else own.numbers[name]
        for name, value in own.outputs.items()
        if name not in job.outputs.ignored
    }


def _calibrated_with(job: Job, fed: Tensors) -> dict[str, Tensor]:
    """Calibration samples by input along axis 0, evenly spread; those that are as what was fed but for their number,
    and none where they cannot be read."""
    source = job.calibration
    if source is None:
        return {}
    ids = source.ids
    chosen = [ids[round(at)] for at in np.linspace(0, len(ids) - 1, min(len(ids), CALIBRATION_SAMPLES))]
    try:
        found = _stacked([source.read(sample) for sample in chosen]) or {}
    except SampleError:
        return {}
    return {name: value for name, value in found.items() if name in fed and value.shape[1:] == fed[name].shape[1:]}


def _planes(feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The bytes of the first NV12 picture among the candidate's feeds, as an evidence folder has them."""
    for luma, chroma in plane_names(feeds):
        if len(feeds[luma]) == 1:
            return {"y": feeds[luma].reshape(-1), "uv": feeds[chroma].reshape(-1)}
    return {}


def _input_of(feeds: Mapping[str, Tensor]) -> Board | None:
    """What is known of that picture; nothing where there are several."""
    found = next((feeds[luma].shape for luma, _ in plane_names(feeds) if len(feeds[luma]) == 1), None)
    return None if found is None else Board(BoardInput("nv12", found[1], found[2], found[2]))


def _side(job: Job, stage: str, samples: Sequence[str], names: Mapping[str, str]) -> _Side | None:
    """One stage's share; None where several samples do not go together."""
    artifact = job.artifact(stage)
    runs_it = backend(artifact.backend)
    model = artifact.path if artifact.backend == "onnxruntime" else None
    try:
        taps = _recorded_layers(artifact)
        with runs_it.open(artifact, taps) as session:
            if len(samples) > 1 and runs_it.needs_feeds and not _batches(session):
                return None
            given = stage_feeds(job, artifact, session)
            feeds = [_read(job, stage, sample) if not runs_it.needs_feeds else given(sample) for sample in samples]
            made = [session.infer(given(sample), sample=sample) for sample in samples]
            signature = session.signature
    except LoadRefused as error:
        return _Side({}, {}, {}, model, False, refused=text(error.problems[0]))
    stacked = _stacked(feeds), _stacked(made)
    if None in stacked:
        return None
    fed, outputs = stacked
    named = {names.get(name, name): value for name, value in (outputs or {}).items()}
    layers = {name: named.pop(name) for name in taps}
    specs = signature.outputs if signature is not None else ()
    scales = {names.get(s.name, s.name): s.quantization for s in specs if s.quantization is not None}
    integers = {name: scale for name, scale in scales.items() if name in named and named[name].dtype.kind in "iu"}
    return _Side(fed or {}, named, layers, model, not runs_it.needs_feeds, scales=integers)


def _recorded_layers(artifact: Artifact) -> tuple[str, ...]:
    """Intermediate tensors that a recording has beside its outputs."""
    if artifact.backend != "recorded":
        return ()
    with RecordedBackend().open(artifact) as session:
        return session.others


def _read(job: Job, stage: str, sample: str) -> dict[str, Tensor]:
    """What the stage would have been fed, where nothing is fed here."""
    kind = job.plan.chain.stage(stage).feeds
    have = job.data.read(sample)
    return dict(have.get(kind) or next(iter(have.values())))


def _batches(session: Session) -> bool:
    """Whether nothing says that only one sample at a time is taken."""
    signature: Signature | None = session.signature
    specs: tuple[TensorSpec, ...] = () if signature is None else (*signature.inputs, *signature.outputs)
    return all(spec.shape is None or (bool(spec.shape) and spec.shape[0] is None) for spec in specs)


def _stacked(several: Sequence[Tensors]) -> dict[str, Tensor] | None:
    """Samples along axis 0; None where they are not alike, or have no such axis."""
    if len(several) == 1:
        return dict(several[0])
    made: dict[str, Tensor] = {}
    for name, first in several[0].items():
        values = [one.get(name) for one in several]
        fitting = [v for v in values if v is not None and v.shape == first.shape and v.dtype == first.dtype]
        if len(fitting) != len(several) or not first.ndim or first.shape[0] != 1:
            return None
        made[name] = np.concatenate(fitting)
    return made


def _threshold(job: Job) -> dict[str, float]:
    """The confidence from which on a decision counts, where a score is declared with one."""
    for spec in job.plan.scores:
        told = dict(spec.params).get("confidence")
        if isinstance(told, int | float):
            return {"conf_threshold": float(told)}
    return {}


def _answer(job: Job, stage: str, fed: Tensors, stack: ExitStack) -> Answer | None:
    """Runs a stage of the vendor's runtime on other feeds, sample by sample; None for others, and for an .hbm, whose
    simulation takes too long. Opened when it is first asked."""
    artifact = job.artifact(stage)
    if artifact.backend != "hbruntime" or artifact.path is None or artifact.path.suffix == ".hbm":
        return None
    opened: list[Session] = []

    def answered(feeds: Tensors) -> Tensors:
        if not opened:
            opened.append(stack.enter_context(backend(artifact.backend).open(artifact)))
        given = _by_input(opened[0], {name: _as_fed(name, value, fed, stage) for name, value in feeds.items()})
        count = next(iter(fed.values())).shape[0] if _is_stack(fed) else 1
        parts = [{name: np.split(value, count)[at] for name, value in given.items()} for at in range(count)]
        made = _stacked([opened[0].infer(part, sample=str(at)) for at, part in enumerate(parts)])
        if made is None:
            raise BackendError(message("explain-samples-differ", link=stage))
        return made

    return answered


def _by_input(session: Session, feeds: dict[str, Tensor]) -> dict[str, Tensor]:
    """Feeds by the names of the session's inputs, where there is one of each."""
    names = [spec.name for spec in session.signature.inputs] if session.signature is not None else []
    return dict(zip(names, feeds.values(), strict=True)) if len(names) == len(feeds) == 1 else feeds


def _as_fed(name: str, value: Tensor, fed: Tensors, stage: str) -> Tensor:
    """A feed in the type that the stage was fed. Raises SampleError where the numbers are none of that type."""
    wanted = fed[name].dtype if name in fed else value.dtype
    made = value.astype(wanted)
    if wanted.kind in "iu" and not np.array_equal(made.astype(np.float64), value.astype(np.float64), equal_nan=True):
        told = {"found": value.dtype.name, "wanted": wanted.name, "sample": "0"}
        raise SampleError(message("feed-dtype", name=name, stage=stage, **told))
    return made


def _is_stack(fed: Tensors) -> bool:
    """Whether feeds are several samples along axis 0."""
    lengths = {value.shape[0] for value in fed.values() if value.ndim}
    return len(lengths) == 1 and all(value.ndim for value in fed.values())


def _opener(job: Job) -> OpenParts:
    """Opens the models of the evidence as the stages are opened."""
    artifacts: dict[Path, Artifact] = {a.path: a for a in job.artifacts if a.path is not None}

    def opened(path: Path) -> Parts:
        return OnnxRuntimeBackend().take_apart(artifacts[path])

    return opened
