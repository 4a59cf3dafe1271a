"""What verbs share that leave an evidence bundle beside their reports."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

import click

from driftgate.boardcheck import infer_outputs
from driftgate.bundling import BUDGET, Bundled, Draft, notes_on, write_bundle
from driftgate.commands.effort import size_in_bytes
from driftgate.commands.speaking import complain, hiding, log, progress, say, stderr, stdout
from driftgate.domain.bundles import BundledLink, Role
from driftgate.domain.chain import Link
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Judgement, Outcome, Policy
from driftgate.domain.plan import Plan
from driftgate.domain.results import Results
from driftgate.errors import DriftgateError
from driftgate.evidencing import Item, LinkEvidence, folder_of, link_evidence
from driftgate.explaining import Failure, failure_of, first_failed
from driftgate.investigating import SAMPLES, worst_samples
from driftgate.joining import Recorded, recorded_instead
from driftgate.messages.message import Message, message
from driftgate.plan import Job, prepare
from driftgate.reporting.bundle import readmes
from driftgate.sessions import Tensors
from driftgate.settings.load import Config
from driftgate.storage.archive import of_bytes, of_file
from driftgate.storage.bundle import BUNDLE
from driftgate.storage.document import FACTS, RESULTS, encoded_json
from driftgate.storage.history import HISTORY
from driftgate.storage.planfile import ORIGIN

F = TypeVar("F", bound=Callable[..., object])
ON_FAILURE, ALWAYS, NEVER = "on-failure", "always", "never"
CONFIG, VERSIONS = "driftgate.yaml", "versions.json"
#: Files of the report folder → what they are for.
ROLES = {
    RESULTS: Role.FACTS,
    FACTS: Role.FACTS,
    ORIGIN: Role.FACTS,
    HISTORY: Role.FACTS,
    "junit.xml": Role.REPORT,
    "summary.md": Role.REPORT,
    "index.html": Role.REPORT,
    "comment.md": Role.REPORT,
    "annotations.json": Role.REPORT,
    "driftgate.log": Role.LOG,
}
PACKAGES = ("driftgate", "onnx", "onnxruntime", "numpy", "pillow", "paramiko")


@dataclass(frozen=True, slots=True)
class Wish:
    """When a bundle is made, what it may hold, how large it may be; `full` is where one with the models stays."""

    when: str = ON_FAILURE
    include_models: bool = False
    full: Path | None = None
    budget_bytes: int = BUDGET

    def wants(self, outcome: Outcome) -> bool:
        """Whether one is made for this outcome."""
        return self.when == ALWAYS or (self.when == ON_FAILURE and outcome is not Outcome.PASSED)


@dataclass(slots=True)
class Failing:
    """The failing links of a run, each with both sides run again once for all who ask; where legs ran elsewhere, what
    boards gave is `recorded`."""

    samples: int = SAMPLES
    recorded: dict[tuple[str, str], Recorded] = field(default_factory=dict)  # by the plan's key
    _inferred: dict[tuple[str, str], Tensors] = field(default_factory=dict)
    _known: dict[tuple[tuple[str, str], str], Failure] = field(default_factory=dict)

    def of(self, job: Job, facts: Facts, judgement: Judgement) -> Failure | None:
        """The first failing link of a job; None where none failed, or its samples are sequences."""
        link = first_failed(job, judgement)
        if link is None:
            return None
        key = (job.plan.key, link.name)
        if key not in self._known:
            self._known[key] = self._run(job, link, facts, worst_samples(facts, judgement, link, self.samples))
        return self._known[key]

    def inferred(self, job: Job, failure: Failure) -> Tensors:
        """What hbm_infer gives for the worst sample, asked once; nothing where it is not here or cannot be run."""
        if job.plan.key not in self._inferred:
            self._inferred[job.plan.key] = {}
            try:
                self._inferred[job.plan.key] = infer_outputs(job, failure.link, failure.samples[0])
            except DriftgateError as error:
                for problem in error.problems:
                    log(problem)
        return self._inferred[job.plan.key]

    def _run(self, job: Job, link: Link, facts: Facts, samples: Sequence[str]) -> Failure:
        recorded = self.recorded.get(job.plan.key)
        if recorded is None:
            return failure_of(job, link, samples)
        with tempfile.TemporaryDirectory(prefix="driftgate-") as folder:
            return failure_of(recorded_instead(job, facts, recorded, samples, Path(folder)), link, samples)


def bundle_options(verb: F) -> F:
    """--bundle, --include-models, --full-bundle and --bundle-size; give their values to `wish`."""
    when = click.option(
        "--bundle",
        type=click.Choice((ON_FAILURE, ALWAYS, NEVER)),
        default=ON_FAILURE,
        show_default=True,
        help="When to write bundle.zip, the evidence to hand on.",
    )
    return when(content_options(verb))


def content_options(verb: F) -> F:
    """The same without --bundle."""
    models = click.option(
        "--include-models", is_flag=True, help="The bundle may hold models, weights and the vendor's files."
    )
    full = click.option(
        "--full-bundle",
        type=click.Path(path_type=Path),
        help="Write one more bundle here, with the models, that stays on this machine.",
    )
    size = click.option(
        "--bundle-size", default="256MiB", show_default=True, help="What a bundle may hold, before it is packed."
    )
    return models(full(size(verb)))


def wish(when: str, include_models: bool, full: Path | None, size: str) -> Wish:
    """The options' values. Raises UsageError for what is no size."""
    return Wish(when, include_models, full, size_in_bytes(size))


@dataclass(frozen=True, slots=True)
class Ground:
    """What a bundle is made of: the results and the folder of their reports, jobs as far as this machine has their
    stages, the failing links that were run again, and the configuration."""

    results: Results
    out: Path
    jobs: Sequence[Job]
    policies: Mapping[str, Policy]
    failing: Failing
    config: Config | None
    repros: Mapping[tuple[str, str], Path]
    absent: tuple[Message, ...] = ()  # why this machine does not have the stages


def jobs_here(
    config: Config | None, plans: Sequence[Plan], profile: str | None
) -> tuple[tuple[Job, ...], tuple[Message, ...]]:
    """The jobs of the configuration for these plans' subjects, or why this machine has none."""
    if config is None:
        return (), (message("bundle-no-stages", reason="-c"),)
    try:
        subjects = tuple(dict.fromkeys(plan.subject for plan in plans))
        return prepare(config, subjects=subjects, profile=profile), ()
    except DriftgateError as error:
        for problem in error.problems:
            log(problem)
        return (), (message("bundle-no-stages", reason=error.problems[0]),)


def leave_bundle(ground: Ground, wish: Wish, *, quiet: bool) -> Bundled | None:
    """Write what the wish asks for beside the reports, and say so; that none could be written is said and is no error:
    the verdict stands without it."""
    if not wish.wants(ground.results.outcome):
        return None
    return write_wished(ground, wish, ground.out / BUNDLE, quiet=quiet)


def write_wished(ground: Ground, wish: Wish, path: Path, *, quiet: bool) -> Bundled | None:
    """The same, whatever the outcome is; None where there is no bundle now."""
    console = stderr() if quiet else stdout()

    def tell(said: Message) -> None:
        log(said)
        console.print(say(said), markup=False, style="dim")

    made = _write(ground, path, wish.budget_bytes, include_models=wish.include_models)
    for note in () if made is None else notes_on(made):
        tell(note)
    full = None if wish.full is None else _write(ground, wish.full, wish.budget_bytes, include_models=True)
    if full is not None:
        tell(message("bundle-full", path=str(full.path.absolute()), sha256=full.sha256))
    return made


def _write(ground: Ground, path: Path, budget_bytes: int, *, include_models: bool) -> Bundled | None:
    """One bundle; None, once it was said why, where it cannot be written."""
    try:
        return write_bundle(path, _draft(ground, budget_bytes, include_models), partial(readmes, ground.results))
    except DriftgateError as error:
        for problem in error.problems:
            complain(message("bundle-failed", reason=problem))
        return None


def _draft(ground: Ground, budget_bytes: int, include_models: bool) -> Draft:
    return Draft(
        tool=f"{ground.results.tool.name} {ground.results.tool.version}",
        items=tuple(_common(ground)),
        links=tuple(_links(ground, include_models=include_models)),
        policies=tuple(ground.policies.items()),
        models_included=include_models,
        budget_bytes=budget_bytes,
    )


def _common(ground: Ground) -> list[Item]:
    """What a bundle has whatever failed: facts, reports, log, configuration, versions."""
    found = [Item(name, role, of_file(file)) for name, role in ROLES.items() if (file := ground.out / name).is_file()]
    if ground.config is not None:
        found.append(Item(CONFIG, Role.CONFIG, of_bytes(_config(ground.config))))
    found.append(Item(VERSIONS, Role.VERSIONS, of_bytes(encoded_json(versions()))))
    return found


def _config(config: Config) -> bytes:
    """driftgate.yaml, masked."""
    try:
        told = config.lines.path.read_text("utf-8", "replace")
    except OSError as error:
        told = f"# {error.strerror}\n"
    return hiding().text(told).encode("utf-8", "backslashreplace")


def versions() -> dict[str, object]:
    """What made the bundle; what ran the stages stands in the facts."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "packages": packages,
    }


def _links(ground: Ground, *, include_models: bool) -> list[LinkEvidence]:
    """One for each subject and target that did not pass."""
    jobs = {job.plan.key: job for job in ground.jobs}
    facts = {one.plan.key: one for one in ground.results.facts}
    found = []
    for judgement in ground.results.judgements or ():
        if judgement.outcome is Outcome.PASSED:
            continue
        job = jobs.get(judgement.key)
        failure, notes = None, ground.absent
        if job is not None:
            with progress(message("progress-bundle", subject=judgement.subject)):
                failure = ground.failing.of(job, facts[judgement.key], judgement)
            notes = (message("bundle-stateful" if job.state else "bundle-no-link"),)
        if job is None or failure is None:
            told = BundledLink(judgement.subject, judgement.target, folder_of(*judgement.key), notes=notes)
            found.append(LinkEvidence(told))
            continue
        found.append(
            link_evidence(
                job,
                failure,
                policy=judgement.policy,
                mask=hiding(),
                include_models=include_models,
                repro=ground.repros.get(judgement.key),
                inferred=ground.failing.inferred(job, failure),
            )
        )
    return found
