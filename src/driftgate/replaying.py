"""Running a bundle's failing link again: both sides where they can be, judged as then, beside what they gave then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from driftgate.backends.registry import backend
from driftgate.domain.bundles import BundledLink, Side
from driftgate.domain.evidence import Evidence
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Outcome, Policy, Verdict
from driftgate.domain.plan import Plan
from driftgate.domain.runs import Environment, Run, RunOutcome
from driftgate.domain.samples import SampleSet
from driftgate.domain.scores import ScoreRecords
from driftgate.domain.tensors import Signature
from driftgate.errors import DriftgateError, LoadRefused, StorageError
from driftgate.evidencing import OPTIONS
from driftgate.judgement.criteria import CRITERIA
from driftgate.judgement.judge import judge
from driftgate.messages.message import Message, message
from driftgate.numerics.alignment import dequantised
from driftgate.numerics.comparator import Comparator, OutputMap
from driftgate.numerics.outputs import common_names
from driftgate.sessions import Artifact, Tensor, Tensors

#: The artifact that stands for a side today, or why there is none.
Source = Callable[[Side], Artifact | Message]


@dataclass(frozen=True, slots=True)
class Line:
    """A number that decided, then and now; None where there is none."""

    output: str
    criterion: str
    before: float | None
    after: float | None
    limit: float | None


@dataclass(frozen=True, slots=True)
class Replay:
    """One link: `failed` where it still fails, `passed` where it does no longer, `error` where that cannot be told."""

    subject: str
    target: str
    link: str
    outcome: Outcome
    notes: tuple[Message, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class _Gave:
    """What one side gave for each sample, whether it was run for that now and gave the same, and what is to be said."""

    stage: str
    outputs: Mapping[str, Tensors]
    signature: Signature | None
    ran: bool = False
    same: bool = True
    environment: Environment | None = None
    refused: Message | None = None
    notes: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class _Judged:
    outcome: Outcome
    verdicts: tuple[Verdict, ...] = ()
    reasons: tuple[Message, ...] = ()


def replay_link(told: BundledLink, evidence: Evidence, facts: Facts, policy: Policy, source: Source) -> Replay:
    """Run a link again on the samples of its evidence folder. What cannot be run again stands as it was recorded."""
    sides = told.sides
    fed = (evidence.feeds_a, evidence.feeds_b or evidence.feeds_a)
    gave = (evidence.outputs_a, evidence.outputs_b)
    outputs = OutputMap(
        dict(told.outputs.names),
        told.outputs.ignored,
        {(name, stage): axes for name, stage, axes in told.outputs.permute},
    )
    refused = None if evidence.load_error is None else message("replay-refused", reason=evidence.load_error)
    try:
        before = tuple(
            _recorded(side, facts, outputs, made, told.samples, refused if side is sides[1] else None)
            for side, made in zip(sides, gave, strict=True)
        )
        after = tuple(
            _again(side, source(side), old, _split(feeds, told.samples), outputs)
            for side, old, feeds in zip(sides, before, fed, strict=True)
        )
        then, now = (_judged(told, facts, policy, outputs, pair) for pair in (before, after))
    except DriftgateError as error:
        return Replay(told.subject, told.target, told.link or "-", Outcome.ERROR, error.problems)
    notes = [note for side in after for note in side.notes]
    outcome = now.outcome
    if not any(side.ran for side in after):
        notes.append(message("replay-none-ran"))
        outcome = Outcome.ERROR
    elif outcome is Outcome.PASSED and then.outcome is not Outcome.FAILED:
        same = all(side.same for side in after)
        outcome = Outcome.FAILED if same else Outcome.ERROR
        notes.append(message("replay-same" if same else "replay-not-by-samples"))
    return Replay(
        subject=told.subject,
        target=told.target,
        link=told.link or "-",
        outcome=outcome,
        notes=(*notes, *now.reasons),
        lines=_lines(then, now),
    )


def _recorded(
    side: Side, facts: Facts, outputs: OutputMap, made: Tensors, samples: Sequence[str], refused: Message | None
) -> _Gave:
    """A side as the bundle has it, under the common names of its outputs."""
    common = common_names(outputs.names)
    signature = next((run.signature for run in facts.runs_of(side.stage) if run.signature is not None), None)
    if signature is not None:
        specs = tuple(replace(spec, name=common.get(spec.name, spec.name)) for spec in signature.outputs)
        signature = Signature(signature.inputs, tuple(spec for spec in specs if spec.name in made))
    return _Gave(side.stage, _split(made, samples), signature, refused=refused)


def _again(
    side: Side, artifact: Artifact | Message, old: _Gave, feeds: Mapping[str, Tensors], outputs: OutputMap
) -> _Gave:
    """The side run now; as it was where there is nothing to run. Raises what the session raises."""
    if isinstance(artifact, Message):
        return replace(old, notes=(message("replay-recorded", stage=side.stage, reason=artifact),))
    runs_it = backend(artifact.backend)
    try:
        with runs_it.open(artifact) as session:
            made = {
                sample: session.infer(given if runs_it.needs_feeds else {}, sample=sample)
                for sample, given in feeds.items()
            }
            signature, environment = session.signature, session.environment
    except LoadRefused as error:
        return _Gave(side.stage, {}, None, ran=True, refused=error.problems[0], notes=error.problems[:1])
    same, total, largest = _change(old, made, signature, outputs)
    told = {"stage": side.stage, "backend": artifact.backend, "change": f"{largest:.3g}"}
    notes = [] if old.refused is not None else [message("replay-ran", count=same, total=total, **told)]
    if runs_it.digest(artifact) != side.digest:
        notes.append(message("replay-other-artifact", stage=side.stage))
    return _Gave(
        side.stage,
        made,
        signature,
        ran=True,
        same=old.refused is None and same == total > 0,
        environment=environment,
        notes=tuple(notes),
    )


def _change(
    old: _Gave, made: Mapping[str, Tensors], signature: Signature | None, outputs: OutputMap
) -> tuple[int, int, float]:
    """Of how many outputs how many are what they were to the bit, and the largest change as a share of the range."""
    common = common_names(outputs.names)
    scales = {} if signature is None else {spec.name: spec.quantization for spec in signature.outputs}
    same, total, largest = 0, 0, 0.0
    for sample, before in old.outputs.items():
        now = {common.get(name, name): (name, value) for name, value in made.get(sample, {}).items()}
        for name, was in before.items():
            total += 1
            own, value = now.get(name, ("", None))
            if value is None or value.shape != was.shape:
                largest = float("inf")
                continue
            if was.dtype.kind == "f" and value.dtype.kind in "iu" and (scale := scales.get(own)) is not None:
                value = dequantised(value, scale)
            same += bool(np.array_equal(was, value, equal_nan=was.dtype.kind == "f"))
            largest = max(largest, _share(was, value))
    return same, total, largest


def _share(was: Tensor, value: Tensor) -> float:
    """The largest change of a number, as a share of the range that they had."""
    a, b = np.asarray(was, np.float64), np.asarray(value, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(a - b)
        difference[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        if not np.isfinite(difference).all():
            return float("inf")
        finite = a[np.isfinite(a)]
        spread = float(np.ptp(finite)) if finite.size else 0.0
    most = float(difference.max(initial=0.0))
    return most / spread if spread > 0 else most


def _judged(told: BundledLink, facts: Facts, policy: Policy, outputs: OutputMap, gave: tuple[_Gave, ...]) -> _Judged:
    """The link's verdicts on these samples alone, but for those on scores."""
    a, b = gave
    plan = _plan(told, facts)
    (link,) = plan.links
    if a.refused is not None or b.refused is not None:
        reason = a.refused or b.refused
        outcome = Outcome.FAILED if a.refused is None else Outcome.ERROR
        return _Judged(outcome, reasons=() if reason is None else (reason,))
    comparator = Comparator(
        link.name, stages=(a.stage, b.stage), signatures=(a.signature, b.signature), outputs=outputs
    )
    for sample in told.samples:
        comparator.add(0, sample, a.outputs[sample], b.outputs[sample])
    runs = tuple(_run(one, facts, len(told.samples)) for one in gave)
    made = Facts(
        plan=plan,
        runs=runs,
        environments=tuple({one.environment.id: one.environment for one in gave if one.environment}.values()),
        measurements=comparator.measurements(runs[0].id, runs[1].id),
        # Scores are not made anew; that there are some is what the limits of outputs depend on.
        scores=tuple(_of_samples(one, plan) for one in facts.scores if one.stage in (a.stage, b.stage)),
        tool_facts=tuple(one for one in facts.tool_facts if one.kind == "node_info"),
        problems=comparator.problems,
    )
    check = plan.chain.check_of(link)
    if check is None:
        raise StorageError(message("replay-nothing", path=told.folder))
    verdicts = tuple(
        verdict
        for verdict in judge(made, policy).check(check.slug).verdicts
        if verdict.target == link.name and (verdict.criterion is None or verdict.criterion in CRITERIA)
    )
    outcomes = {verdict.outcome for verdict in verdicts}
    outcome = next((o for o in (Outcome.FAILED, Outcome.ERROR) if o in outcomes), Outcome.PASSED)
    reasons = tuple(v.reason for v in verdicts if v.reason is not None and v.outcome is outcome)
    return _Judged(outcome if verdicts else Outcome.ERROR, verdicts, reasons)


def _plan(told: BundledLink, facts: Facts) -> Plan:
    """The plan of the two stages on these samples. Raises StorageError where they are not of these facts."""
    samples = facts.plan.samples
    digests = dict(zip(samples.ids, samples.digests, strict=True))
    stages = {side.stage for side in told.sides}
    artifacts = tuple(one for one in facts.plan.artifacts if one.stage in stages)
    if not set(told.samples) <= digests.keys() or len(artifacts) != 2 or not told.samples:
        raise StorageError(message("replay-nothing", path=told.folder))
    return Plan(
        subject=told.subject,
        target=told.target,
        chain=facts.plan.chain,
        artifacts=artifacts,
        samples=SampleSet(
            samples.name,
            told.samples,
            tuple(digests[sample] for sample in told.samples),
            samples.origin,
            max(samples.block, len(told.samples)),
        ),
        scores=facts.plan.scores,
    )


def _of_samples(records: ScoreRecords, plan: Plan) -> ScoreRecords:
    rows = records.by_sample()
    return records.with_rows((sample, rows[sample]) for sample in plan.samples.ids if sample in rows)


def _run(one: _Gave, facts: Facts, done: int) -> Run:
    was = facts.runs_of(one.stage)[0]
    environment = was.environment if one.environment is None else one.environment.id
    return replace(was, environment=environment, samples_done=done, outcome=RunOutcome.PASSED, reason=None, notes=())


def _lines(then: _Judged, now: _Judged) -> tuple[Line, ...]:
    """Output by output what decided; where another criterion decides now, the new one alone."""
    before = {(verdict.output, verdict.criterion): verdict for verdict in then.verdicts}
    return tuple(
        Line(
            verdict.output or "-",
            verdict.criterion,
            before[key].value if (key := (verdict.output, verdict.criterion)) in before else None,
            verdict.value,
            verdict.limit,
        )
        for verdict in now.verdicts
        if verdict.criterion is not None
    )


def _split(tensors: Tensors, samples: Sequence[str]) -> dict[str, dict[str, Tensor]]:
    """By sample what lies along axis 0. Raises StorageError where it is not as many."""
    if len(samples) == 1:
        return {samples[0]: dict(tensors)}
    found: dict[str, dict[str, Tensor]] = {sample: {} for sample in samples}
    for name, value in tensors.items():
        if not value.ndim or value.shape[0] % len(samples):
            raise StorageError(message("replay-samples", tensor=name, shape=str(value.shape), count=len(samples)))
        for sample, part in zip(samples, np.split(value, len(samples)), strict=True):
            found[sample][name] = part
    return found


def artifact_in(side: Side, folder: Path) -> Artifact | None:
    """The side's artifact as the bundle has it; None where it was kept back. Raises StorageError for options that no
    bundle of ours has."""
    file = None if side.file is None else folder / side.file
    if file is None or not file.is_file():
        return None
    return artifact_of(side, file)


def artifact_of(side: Side, file: Path) -> Artifact:
    """The side with a file that stands for it. What a bundle asks for is a stranger's word: nothing but numbers and
    names that change a result, and no more threads than a machine has. Raises StorageError."""
    for name, value in side.options:
        if name not in OPTIONS or not OPTIONS[name](value):
            raise StorageError(message("replay-option", stage=side.stage, name=name, value=str(value)))
    return Artifact(side.stage, side.backend, file, dict(side.options))
