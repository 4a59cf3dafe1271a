"""From settings to plans: what must be measured, and everything at hand that is needed to measure it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from driftgate.backends.functions import Function
from driftgate.backends.registry import backend
from driftgate.backends.routing import on_board, routed
from driftgate.domain.digest import digest
from driftgate.domain.legs import divide, omitting
from driftgate.domain.plan import Leg, Plan, PlannedArtifact, ScoreSpec
from driftgate.domain.platforms import PLATFORMS
from driftgate.domain.runs import BOARD, ON_BOARDS
from driftgate.domain.samples import SampleSet
from driftgate.domain.toolchain.build import CompiledFiles
from driftgate.errors import ConfigError, DriftgateError, SampleError, UsageError
from driftgate.messages.message import Message, message
from driftgate.numerics.comparator import OutputMap
from driftgate.scorekeeping import Keeping, Ready
from driftgate.scoring.tasks import OWN, TASKS, own_scorer
from driftgate.sessions import Artifact
from driftgate.settings.artifacts import TARGET
from driftgate.settings.build import calibration_of, conflict_notes, made_artifacts, overlap_notes
from driftgate.settings.load import Config
from driftgate.settings.scores import ScoreSettings
from driftgate.settings.subjects import SubjectSettings
from driftgate.storage.labels import labels_digest, read_labels
from driftgate.storage.manifest import Listing, read_listing
from driftgate.storage.pack import PackedData
from driftgate.storage.sampledata import SampleData, changes, listed
from driftgate.storage.tensorfiles import TensorSource
from driftgate.vendor.derived import march_fits


@dataclass(frozen=True, slots=True)
class Job:
    """A plan with what a leg needs to carry it out on this machine."""

    plan: Plan
    artifacts: tuple[Artifact, ...]
    data: SampleData | PackedData
    keeping: Keeping | None
    inputs: Mapping[str, tuple[str, ...]]
    outputs: OutputMap
    state: Mapping[str, str]
    badcases: tuple[str, ...] = ()
    build: CompiledFiles | None = None
    calibration: TensorSource | None = None
    notes: Mapping[str, tuple[Message, ...]] = field(default_factory=dict)  # by stage

    def artifact(self, stage: str) -> Artifact:
        """The artifact of a stage that is planned."""
        return next(artifact for artifact in self.artifacts if artifact.stage == stage)


def prepare(config: Config, *, subjects: Sequence[str] = (), profile: str | None = None) -> tuple[Job, ...]:
    """The jobs of all subjects, or of those named. All problems are reported together."""
    unknown = tuple(name for name in subjects if name not in config.settings.subjects)
    if unknown:
        raise UsageError(message("subject-unknown", names=unknown, known=tuple(config.settings.subjects)))
    jobs: list[Job] = []
    problems: list[DriftgateError] = []
    for name in subjects or config.settings.subjects:
        for target in targets_of(config, name):
            try:
                jobs.append(_job(config, name, target, profile))
            except DriftgateError as error:
                problems.append(error)
    if problems:
        raise type(problems[0])(*dict.fromkeys(problem for error in problems for problem in error.problems))
    return tuple(jobs)


def targets_of(config: Config, name: str) -> tuple[str, ...]:
    """The platforms of a subject."""
    return config.settings.subjects[name].platforms(config.settings.defaults.platform)


def artifacts_of(config: Config, name: str, target: str) -> tuple[Artifact, ...]:
    """A subject's artifacts for one target, each with the backend that runs it."""
    subject = config.settings.subjects[name]
    defaults = config.settings.defaults
    given = [
        section.on(target).artifact(stage, root=config.root, threads=defaults.threads, custom_ops=subject.custom_ops)
        for stage, section in subject.artifacts.items()
    ]
    files = build_of(config, name, target)
    if files is not None:
        order = [stage.name for stage in config.chain(name).stages]
        built = made_artifacts(files, subject.artifacts, threads=defaults.threads)
        given += [artifact for artifact in built if artifact.stage in order]
        given.sort(key=lambda artifact: order.index(artifact.stage))
    python, timeout = defaults.hbruntime.python, defaults.hbruntime.timeout
    placed = (on_board(artifact, defaults.board) for artifact in given)
    found = (routed(artifact, python=python, timeout=timeout) for artifact in placed)
    return tuple(_with_boards(config, artifact, target) for artifact in found)


def _with_boards(config: Config, artifact: Artifact, target: str) -> Artifact:
    """An artifact that runs on a board, with what is known of that pool. Raises ConfigError."""
    if artifact.backend not in ON_BOARDS:
        return artifact
    name = str(artifact.options.get("board") or config.settings.defaults.board or "").replace(TARGET, target)
    settings = config.settings.boards.get(name)
    if settings is None:
        known = tuple(config.settings.boards) or ("-",)
        raise ConfigError(message("board-unknown", stage=artifact.stage, name=name or "-", known=known))
    if settings.march is not None and march_fits(settings.march, target) is False:
        raise ConfigError(message("board-target", board=name, march=settings.march, target=target))
    boards = settings.boards(name, root=config.root, w_stride=PLATFORMS[target].w_stride)
    options = {key: value for key, value in artifact.options.items() if key != "board"}
    vendor = {"vendor_python": config.settings.defaults.hbruntime.python} if artifact.backend == BOARD else {}
    return replace(artifact, options={**options, **vendor, "boards": boards})


def build_of(config: Config, name: str, target: str) -> CompiledFiles | None:
    """The files of a subject's build for one target; None where it names none. Raises ArtifactError."""
    subject = config.settings.subjects[name]
    return None if subject.build is None else subject.build.files(config.root, target)


def _job(config: Config, name: str, target: str, profile: str | None) -> Job:
    subject = config.settings.subjects[name]
    artifacts = artifacts_of(config, name, target)
    planned, problems = _digests(artifacts)
    if problems:
        raise type(problems[0])(*(problem for error in problems for problem in error.problems))
    data = subject.samples.data(config.root)
    listing = _listing(config, name, subject, data)
    samples = _profiled(listing.samples, subject, profile)
    if subject.samples.manifest is not None:
        stale = changes(data, listing, samples.ids, manifest=config.root / subject.samples.manifest, trusting=True)
        if stale:
            raise SampleError(*stale)
    plan = Plan(
        subject=name,
        target=target,
        chain=config.chain(name),
        artifacts=planned,
        samples=samples,
        scores=_scores(config, subject),
    )
    if len(plan.stages) < 2 and not plan.scores:
        raise UsageError(message("too-few-stages", subject=name, stages=plan.stages))
    build = build_of(config, name, target)
    calibration = calibration_of(subject.samples.calibration, build, root=config.root)
    return Job(
        plan=divide(plan, 1),
        artifacts=artifacts,
        data=data,
        keeping=_keeping(config, subject, listing, samples),
        inputs=subject.inputs,
        outputs=_output_map(subject),
        state=subject.state,
        badcases=_badcases(subject, samples),
        build=build,
        calibration=calibration,
        notes=_notes(subject, plan, calibration, build),
    )


#: Stages that a note on calibration, and one on inputs, belongs to, the first that is planned.
CALIBRATED, DEPLOYED = ("calibrated", "ptq", "quantized", "hbm"), ("quantized", "quantized_removed", "hbm")


def _notes(
    subject: SubjectSettings, plan: Plan, calibration: TensorSource | None, build: CompiledFiles | None
) -> dict[str, tuple[Message, ...]]:
    """What should be known of how a stage is fed, by stage."""
    told = (
        (CALIBRATED, overlap_notes(plan.samples, calibration)),
        (DEPLOYED, conflict_notes(subject.samples.declared, build)),
    )
    found: dict[str, tuple[Message, ...]] = {}
    for stages, notes in told:
        stage = next((stage for stage in stages if stage in plan.stages), None)
        if stage is not None and notes:
            found[stage] = (*found.get(stage, ()), *notes)
    return found


def _badcases(subject: SubjectSettings, samples: SampleSet) -> tuple[str, ...]:
    """The declared bad cases of this profile. Raises SampleError for one that no sample is."""
    unknown = tuple(sample for sample in subject.badcases if sample not in samples.ids)
    if unknown:
        raise SampleError(message("badcase-unknown", names=unknown, count=len(samples.ids)))
    return subject.badcases


def _digests(artifacts: Sequence[Artifact]) -> tuple[tuple[PlannedArtifact, ...], list[DriftgateError]]:
    planned: list[PlannedArtifact] = []
    problems: list[DriftgateError] = []
    for artifact in artifacts:
        try:
            found = backend(artifact.backend).digest(artifact)
            planned.append(PlannedArtifact(artifact.stage, artifact.backend, found))
        except DriftgateError as error:
            problems.append(error)
    return tuple(planned), problems


def _listing(config: Config, name: str, subject: SubjectSettings, data: SampleData) -> Listing:
    settings = subject.samples
    if settings.manifest is None:
        return listed(data, name, origin=settings.origin, block=settings.block, order=settings.order, folder=None)
    listing = read_listing(config.root / settings.manifest)
    there = set(data.ids())
    lost = tuple(sample for sample in listing.samples.ids if sample not in there)
    if there and lost:
        raise SampleError(message("samples-lost", manifest=str(settings.manifest), ids=lost))
    return listing


def _profiled(samples: SampleSet, subject: SubjectSettings, profile: str | None) -> SampleSet:
    if profile is None:
        return samples
    count = subject.samples.profiles.get(profile)
    if count is None:
        known = tuple(subject.samples.profiles) or ("-",)
        raise UsageError(message("profile-unknown", name=profile, known=known))
    if not 0 < count <= len(samples.ids):
        raise SampleError(message("profile-size", name=profile, wanted=count, found=len(samples.ids)))
    return samples.first(count)


def _scores(config: Config, subject: SubjectSettings) -> tuple[ScoreSpec, ...]:
    settings = subject.score
    if settings is None:
        return ()
    labels = labels_digest(config.root / settings.labels.path)
    declared: Mapping[str, str] = dict(settings.baseline)
    scorers = (own_scorer(OWN, better=settings.better),) if settings.task == OWN else TASKS[settings.task].scorers
    params = {"detection": (("confidence", settings.confidence),), "segmentation": (("ignored", settings.ignored),)}
    return tuple(
        ScoreSpec(
            name=scorer.name,
            task=settings.task,
            better=scorer.better,
            output=settings.output,
            labels=labels,
            declared=declared.get(scorer.name),
            params=params.get(settings.task, ()),
            post=_post_digest(config, settings),
        )
        for scorer in scorers
        if scorer.judged or scorer.name in declared
    )


def _post_digest(config: Config, settings: ScoreSettings) -> str:
    """What the outputs go through before they are scored, by content; empty where they are scored as they are."""
    functions = [
        _post(config, settings),
        _function(config, settings, settings.scorer),
        _function(config, settings, settings.whole),
    ]
    said = [part.digest() if isinstance(part, Function) else digest(part) for part in functions if part is not None]
    return digest(tuple(said)) if said else ""


def _post(config: Config, settings: ScoreSettings) -> Function | Ready | None:
    post = settings.postprocess
    if post is None:
        return None
    if post.function is not None:
        folders = tuple(str(config.root / folder) for folder in post.search_path) or (str(config.root),)
        return Function(post.function, folders, post.python)
    return Ready(post.ready or "", post.classes or 1, post.objectness, post.confidence, post.overlap, post.most)


def _function(config: Config, settings: ScoreSettings, name: str | None) -> Function | None:
    return None if name is None else Function(name, (str(config.root),), settings.python)


def _keeping(config: Config, subject: SubjectSettings, listing: Listing, samples: SampleSet) -> Keeping | None:
    settings = subject.score
    if settings is None:
        return None
    read = read_labels(
        config.root / settings.labels.path,
        listing.samples.ids,
        task="regression" if settings.task == OWN else settings.task,
        allow_extra=settings.labels.extra == "ignore",
    )
    return Keeping(
        labels={sample: read[sample] for sample in samples.ids},
        names={name: found.names for name, found in subject.outputs.items() if found is not None},
        post=_post(config, settings),
        scorer=_function(config, settings, settings.scorer),
        whole=_function(config, settings, settings.whole),
        geometry=dict(listing.geometry),
    )


def _output_map(subject: SubjectSettings) -> OutputMap:
    named = {name: found for name, found in subject.outputs.items() if found is not None}
    return OutputMap(
        names={name: found.names for name, found in named.items()},
        ignored=tuple(name for name, found in subject.outputs.items() if found is None),
        permute={(name, stage): axes for name, found in named.items() for stage, axes in found.permute.items()},
    )


def planned_job(jobs: Sequence[Job], plan: Plan) -> Job | None:
    """The job that makes this plan, which may have left something out and been divided; None where none does."""
    for job in jobs:
        made = omitting(job.plan, plan.omitted) if plan.omitted else job.plan
        if made.digest == plan.digest:
            left_out = {one.stage for one in plan.omitted}
            artifacts = tuple(artifact for artifact in job.artifacts if artifact.stage not in left_out)
            return replace(job, plan=plan, artifacts=artifacts)
    return None


def only_leg(job: Job, leg: Leg) -> Job:
    """The job with this one leg."""
    return replace(job, plan=replace(job.plan, legs=(leg,)))


def known_legs(jobs: Sequence[Job]) -> tuple[str, ...]:
    """The ids of all legs, for a message."""
    return tuple(leg.id for job in jobs for leg in job.plan.legs)
