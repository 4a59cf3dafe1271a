"""Capturing facts: one leg runs its stages over its samples, each artifact once a sample, and measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

from driftgate.artifactfacts import artifact_facts
from driftgate.aside import Aside
from driftgate.backends.registry import backend
from driftgate.backends.stateful import StatefulSession
from driftgate.buildfacts import build_facts
from driftgate.domain.chain import FeedKind
from driftgate.domain.facts import Facts, ToolFacts, merge
from driftgate.domain.plan import Leg
from driftgate.domain.runs import Environment, Performance, Recording, Run, RunOutcome, run_id
from driftgate.errors import ArtifactError, BackendError, ConfigError, DriftgateError, LoadRefused, SampleError
from driftgate.messages.message import Message, message
from driftgate.numerics.comparator import Comparator
from driftgate.numerics.outputs import plan_feeds
from driftgate.plan import Job
from driftgate.recall import Recall
from driftgate.scorekeeping import Functions, ScoreTrack
from driftgate.sessions import Artifact, Session, Tensor, Tensors
from driftgate.sharing import Opener, Shared, open_alone

#: Opens a stretch of waiting, for a model or a worker, in which KeyboardInterrupt may come.
Breakable = Callable[[], AbstractContextManager[None]]

#: Of several legs that run one artifact the one with this block measures its speed.
FIRST_BLOCK = 0
STAGE_ERRORS = (ArtifactError, BackendError, ConfigError, SampleError)


#: Keeps what a stage gave for a sample: stage, run, sample, outputs.
Recorder = Callable[[str, str, str, Tensors], Recording]


class Progress(Protocol):
    """Told after each sample how many are done, of how many."""

    def __call__(self, done: int, total: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Capture:
    """What a leg brought home; `interrupted` where it was told to stop before its end."""

    facts: Facts
    interrupted: bool = False


@dataclass(slots=True)
class _Runner:
    """One stage at work: its session while it lives, and what has become of it."""

    stage: str
    artifact: Artifact
    digest: str
    feeds: FeedKind
    needs_feeds: bool
    session: Session | None = None
    environment: Environment | None = None
    optional: tuple[str, ...] = ()
    told: Mapping[str, str] = field(default_factory=dict)  # what the artifact says of itself
    inputs: tuple[tuple[str, str], ...] | None = None
    speed: Performance | None = None
    done: int = 0
    seconds: float = 0.0
    outcome: RunOutcome = RunOutcome.PASSED
    reason: Message | None = None
    notes: list[Message] = field(default_factory=list)

    @property
    def run(self) -> str:
        """The id of this run; a stage that never opened has no environment in it."""
        return run_id(self.stage, self.digest, self.environment.id if self.environment else "")

    def fail(self, error: DriftgateError) -> None:
        """The stage is over; the others go on."""
        self.outcome = RunOutcome.REFUSED if isinstance(error, LoadRefused) else RunOutcome.ERROR
        self.reason = error.problems[0]
        self.notes.extend(error.problems[1:])
        self.session = None


def capture(
    job: Job,
    leg: Leg,
    *,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
    breakable: Breakable = nullcontext,
    aside: Aside | None = None,
    recorder: Recorder | None = None,
) -> Capture:
    """Run a leg and return its facts, which hold what there is even if it was interrupted; outputs are put `aside`, and
    those that others need are kept by the `recorder`.

    The facts are whole samples only if nothing interrupts outside of `breakable`.

    A stage that breaks takes only its own links with it. Raises SampleError where the data set itself is
    wrong: a sample that changed or cannot be read, or a feed that no stage takes.
    """
    work = _capturing(
        job,
        leg,
        recorder=recorder,
        progress=progress,
        clock=clock,
        breakable=breakable,
        aside=aside,
        opener=open_alone,
    )
    (captured,) = _side_by_side([work])
    return captured


def capture_together(
    legs: Sequence[tuple[Job, Leg, Aside | None]],
    *,
    recorder: Recorder | None = None,
    recall: Recall | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
    breakable: Breakable = nullcontext,
) -> tuple[Capture, ...]:
    """The same for legs of one network on several targets, sample by sample side by side: a stage that they have in
    common runs once. Raises SampleError likewise."""
    with Shared(open_alone if recall is None else recall.around(open_alone)) as shared:
        works = [
            _capturing(
                job,
                leg,
                recorder=recorder,
                progress=progress if number == 0 else None,
                clock=clock,
                breakable=breakable,
                aside=aside,
                opener=shared.open,
            )
            for number, (job, leg, aside) in enumerate(legs)
        ]
        return _side_by_side(works)


#: Work that pauses behind each sample.
Work = Generator[None, None, Capture]


def _side_by_side(works: Sequence[Work]) -> tuple[Capture, ...]:
    """What all of them bring home; where one is interrupted, the others are too."""
    done: dict[int, Capture] = {}
    try:
        while len(done) < len(works):
            for number, work in enumerate(works):
                if number in done:
                    continue
                try:
                    if any(capture.interrupted for capture in done.values()):
                        work.throw(KeyboardInterrupt)
                    else:
                        next(work)
                except StopIteration as end:
                    done[number] = end.value
    finally:
        for work in works:
            work.close()
    return tuple(done[number] for number in range(len(works)))


def _capturing(
    job: Job,
    leg: Leg,
    *,
    recorder: Recorder | None = None,
    progress: Progress | None,
    clock: Callable[[], float],
    breakable: Breakable,
    aside: Aside | None,
    opener: Opener,
) -> Work:
    """A capture that pauses once its stages are open, and after each sample."""
    plan = job.plan
    chain_order = [stage.name for stage in plan.chain.stages]
    by_stage = {artifact.stage: artifact for artifact in job.artifacts}
    digests = {artifact.stage: artifact.digest for artifact in plan.artifacts}
    interrupted = False
    with ExitStack() as stack:
        runners: dict[str, _Runner] = {}
        comparators: dict[str, Comparator] = {}
        scorers: list[ScoreTrack] = []
        recordings: list[Recording] = []
        try:
            for stage in sorted(leg.stages, key=chain_order.index):
                runners[stage] = _open(
                    job, by_stage[stage], digests[stage], stack, clock=clock, breakable=breakable, opener=opener
                )
            if job.state:
                _remember(job, runners, stack)
            comparators = _comparators(job, runners)
            scorers = _score_tracks(job, runners, stack)
            yield
            for sample, outputs in _run_samples(
                job, leg, runners, comparators, scorers, progress=progress, clock=clock, breakable=breakable
            ):
                if aside is not None:
                    aside.add(sample, outputs)
                for stage in leg.records if recorder is not None else ():
                    if recorder is not None and stage in outputs:
                        recordings.append(recorder(stage, runners[stage].run, sample, outputs[stage]))
                yield
            for runner in runners.values():
                _measure_speed(runner, breakable)
        except KeyboardInterrupt:
            interrupted = True
        records = tuple(found for track in scorers if (found := track.records(runners[track.stage].run)) is not None)
    for runner in runners.values():
        if interrupted and runner.outcome is RunOutcome.PASSED:
            runner.outcome, runner.reason = RunOutcome.PARTIAL, message("interrupted", done=runner.done)
    for link in plan.links:
        if link.name in comparators:
            runners[link.candidate].notes.extend(comparators[link.name].notes)
    facts = Facts(
        plan=plan,
        tool_facts=(
            *(() if job.build is None else build_facts(job.build, plan.target)),
            *(fact for runner in runners.values() for fact in _of_artifact(job, runner)),
        ),
        runs=tuple(_run(runner, leg) for runner in runners.values()),
        performance=tuple(runner.speed for runner in runners.values() if runner.speed is not None),
        environments=tuple({r.environment.id: r.environment for r in runners.values() if r.environment}.values()),
        measurements=tuple(
            measurement
            for link in plan.links
            if link.name in comparators
            for measurement in comparators[link.name].measurements(
                runners[link.reference].run, runners[link.candidate].run
            )
        ),
        scores=records,
        recordings=tuple(recordings),
        problems=tuple(
            [problem for comparator in comparators.values() for problem in comparator.problems]
            + [problem for track in scorers for problem in track.problems]
        ),
    )
    return Capture(merge([facts]), interrupted)


def _open(
    job: Job,
    artifact: Artifact,
    digest: str,
    stack: ExitStack,
    *,
    clock: Callable[[], float],
    breakable: Breakable,
    opener: Opener,
) -> _Runner:
    stage = job.plan.chain.stage(artifact.stage)
    started = clock()
    runner = _Runner(artifact.stage, artifact, digest, stage.feeds, needs_feeds=True)
    try:
        runs_it = backend(artifact.backend)
        runner.needs_feeds = runs_it.needs_feeds
        with breakable():
            session = stack.enter_context(opener(artifact))
        runner.optional = getattr(session, "optional_inputs", ())
        runner.told = getattr(session, "told", {})
        runner.session = session
        runner.environment = session.environment
        runner.notes.extend((*session.notes, *job.notes.get(artifact.stage, ())))
    except STAGE_ERRORS as error:
        runner.fail(error)
    if runner.needs_feeds and stage.feeds is FeedKind.RUNTIME and job.data.runtime is None:
        runner.notes.append(message("runtime-from-raw", stage=runner.stage))
        runner.feeds = FeedKind.RAW
    runner.seconds += clock() - started
    return runner


def _remember(job: Job, runners: Mapping[str, _Runner], stack: ExitStack) -> None:
    """Let networks with memory run sequences; what a stage does not say of its inputs, another one does."""
    common = {alias: name for name, aliases in job.inputs.items() for alias in aliases}
    told = {
        runner.stage: signature.inputs
        for runner in runners.values()
        if runner.session is not None and runner.needs_feeds and (signature := runner.session.signature) is not None
    }
    for stage, inputs in told.items():
        runner = runners[stage]
        session = runner.session
        own = {common.get(spec.name, spec.name): spec.name for spec in inputs}
        like = [
            replace(spec, name=own[name])
            for other, specs in told.items()
            for spec in specs
            if other != stage and (name := common.get(spec.name, spec.name)) in own
        ]
        if session is None:
            continue
        try:
            remembering = stack.enter_context(StatefulSession(session, job.state, stage=stage, like=like))
        except STAGE_ERRORS as error:
            runner.fail(error)
            continue
        runner.session, runner.optional = remembering, remembering.optional_inputs
        runner.notes.extend(note for note in remembering.notes if note not in runner.notes)


def _score_tracks(job: Job, runners: Mapping[str, _Runner], stack: ExitStack) -> list[ScoreTrack]:
    """One track a stage: all scores of a subject are of one task."""
    if job.keeping is None or not job.plan.scores:
        return []
    functions = Functions(job.keeping, stack)
    return [
        ScoreTrack(
            job.plan.scores[0],
            stage=runner.stage,
            signature=None if runner.session is None else runner.session.signature,
            keeping=job.keeping,
            functions=functions,
        )
        for runner in runners.values()
    ]


def _comparators(job: Job, runners: Mapping[str, _Runner]) -> dict[str, Comparator]:
    found: dict[str, Comparator] = {}
    for link in job.plan.links:
        if link.reference not in runners or link.candidate not in runners:
            continue  # of another leg, where it is recorded
        a, b = runners[link.reference].session, runners[link.candidate].session
        if a is not None and b is not None:
            found[link.name] = Comparator(
                link.name,
                stages=(link.reference, link.candidate),
                signatures=(a.signature, b.signature),
                outputs=job.outputs,
            )
    return found


def _run_samples(
    job: Job,
    leg: Leg,
    runners: Mapping[str, _Runner],
    comparators: Mapping[str, Comparator],
    scorers: Sequence[ScoreTrack],
    *,
    progress: Progress | None,
    clock: Callable[[], float],
    breakable: Breakable,
) -> Iterator[tuple[str, Mapping[str, Tensors]]]:
    """Run and measure sample by sample; each with its outputs by stage once it is measured."""
    samples = job.plan.samples
    expected = dict(zip(samples.ids, samples.digests, strict=True))
    total = len(samples.of_blocks(leg.blocks))
    done = 0
    assigned: dict[FeedKind, tuple[str, ...]] | None = None
    for block in leg.blocks:
        for sample in samples.of_blocks([block]):
            feeds = job.data.checked(sample, expected[sample])
            names = {kind: tuple(given) for kind, given in feeds.items()}
            if names != assigned:
                if assigned is not None:
                    _same_feeds(job, runners, assigned, names, sample=sample)
                _assign_feeds(job, runners, names, sample)
                if assigned is None:
                    _announce(job, leg, runners)
                assigned = names
            outputs: dict[str, dict[str, Tensor]] = {}
            for runner in runners.values():
                result = _infer(runner, feeds, sample, clock=clock, breakable=breakable)
                if result is not None:
                    outputs[runner.stage] = result
            for link in job.plan.links:
                if link.reference in outputs and link.candidate in outputs:
                    comparators[link.name].add(block, sample, outputs[link.reference], outputs[link.candidate])
            for track in scorers:
                if track.stage in outputs:
                    track.add(sample, outputs[track.stage])
            for stage in outputs:
                runners[stage].done += 1
            done += 1
            if progress is not None:
                progress(done, total)
            yield sample, outputs


def _announce(job: Job, leg: Leg, runners: Mapping[str, _Runner]) -> None:
    """Tell stages that run elsewhere which samples follow, so that they need not wait for the others."""
    for runner in runners.values():
        ahead = getattr(runner.session, "ahead", None)
        if ahead is not None and runner.inputs is not None:
            inputs, kind = runner.inputs, runner.feeds

            def feeds(sample: str, inputs: tuple[tuple[str, str], ...] = inputs, kind: FeedKind = kind) -> Tensors:
                have = job.data.read(sample)[kind]
                return {name: have[feed] for name, feed in inputs if feed in have}

            ahead(job.plan.samples.of_blocks(leg.blocks), feeds, measures=FIRST_BLOCK in leg.blocks)


def _measure_speed(runner: _Runner, breakable: Breakable) -> None:
    """What a board says of its speed, behind all samples; that it could not be measured takes nothing from them."""
    measured = getattr(runner.session, "speed", None)
    if measured is None:
        return
    try:
        with breakable():
            runner.speed = measured(runner.run)
    except STAGE_ERRORS as error:
        runner.notes.extend(error.problems)


def _same_feeds(
    job: Job,
    runners: Mapping[str, _Runner],
    before: Mapping[FeedKind, tuple[str, ...]],
    now: Mapping[FeedKind, tuple[str, ...]],
    *,
    sample: str,
) -> None:
    """Only feeds of optional inputs may come and go. Raises SampleError."""
    free = {name for runner in runners.values() for name in runner.optional}
    free |= {feed for feed, names in job.inputs.items() if free.intersection(names)}
    for kind, names in now.items():
        if set(names) - free != set(before[kind]) - free:
            raise SampleError(message("sample-feeds", sample=sample, found=names or ("-",), wanted=before[kind]))


def _assign_feeds(
    job: Job, runners: Mapping[str, _Runner], feeds: Mapping[FeedKind, tuple[str, ...]], sample: str
) -> None:
    """Decide, from this sample on, which feed goes into which input; a feed that nobody takes is a wrong data set."""
    taken: dict[FeedKind, set[str]] = {FeedKind.RAW: set(), FeedKind.RUNTIME: set()}
    unfed: list[Message] = []
    certain = True
    for runner in runners.values():
        if runner.session is None:
            certain = certain and not runner.needs_feeds
            continue
        signature = runner.session.signature
        if not runner.needs_feeds:
            continue
        have = feeds[runner.feeds]
        if signature is None:
            runner.inputs = tuple((name, name) for name in have)
        else:
            plan = plan_feeds(
                [spec.name for spec in signature.inputs], have, names=job.inputs, optional=runner.optional
            )
            if plan.missing:
                stage, have = runner.stage, have or ("-",)
                unfed.append(message("input-unfed", stage=stage, sample=sample, inputs=plan.missing, feeds=have))
                runner.fail(SampleError(unfed[-1]))
            elif plan.unused:
                note = message("feeds-unused", stage=runner.stage, feeds=plan.unused)
                runner.notes.extend([note] if note not in runner.notes else [])
            runner.inputs = plan.inputs
        taken[runner.feeds].update(feed for _, feed in runner.inputs)
    asked = {runner.feeds for runner in runners.values() if runner.needs_feeds}
    idle = tuple(sorted(name for kind in asked for name in feeds[kind] if name not in taken[kind]))
    if certain and idle:
        raise SampleError(*unfed, message("feed-unwanted", sample=sample, feeds=idle))


def stage_feeds(job: Job, artifact: Artifact, session: Session) -> Callable[[str], dict[str, Tensor]]:
    """The feeds of one stage by sample, assigned as in a capture; empty for what eats none."""
    if not backend(artifact.backend).needs_feeds:
        return lambda sample: {}
    stage = job.plan.chain.stage(artifact.stage)
    kind = stage.feeds if job.data.runtime is not None else FeedKind.RAW
    signature = session.signature
    names = [spec.name for spec in signature.inputs] if signature is not None else []

    def feeds(sample: str) -> dict[str, Tensor]:
        have = job.data.read(sample)[kind]
        return {name: have[feed] for name, feed in plan_feeds(names, tuple(have), names=job.inputs).inputs}

    return feeds


def _infer(
    runner: _Runner,
    feeds: Mapping[FeedKind, Mapping[str, Tensor]],
    sample: str,
    *,
    clock: Callable[[], float],
    breakable: Breakable,
) -> dict[str, Tensor] | None:
    if runner.session is None:
        return None
    chosen = {name: feeds[runner.feeds][feed] for name, feed in runner.inputs or ()}
    started = clock()
    try:
        with breakable():
            return runner.session.infer(chosen, sample=sample)
    except STAGE_ERRORS as error:
        runner.fail(error)
        return None
    finally:
        runner.seconds += clock() - started


def _of_artifact(job: Job, runner: _Runner) -> tuple[ToolFacts, ...]:
    return artifact_facts(runner.stage, runner.told, job.plan.target, job.artifact(runner.stage).path)


def _run(runner: _Runner, leg: Leg) -> Run:
    session = runner.session
    return Run(
        id=runner.run,
        leg=leg.id,
        stage=runner.stage,
        backend=runner.artifact.backend,
        artifact=runner.digest,
        environment=runner.environment.id if runner.environment else "",
        samples_done=runner.done,
        outcome=runner.outcome,
        reason=runner.reason,
        seconds=round(runner.seconds, 3),
        feeds=runner.feeds,
        signature=None if session is None else session.signature,
        notes=tuple(runner.notes),
        day=time.strftime("%Y-%m-%d", time.gmtime()),
    )
