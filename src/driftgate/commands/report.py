"""`driftgate report`: merge shards, judge again, write the reports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from driftgate.commands.believing import of_file
from driftgate.commands.bundles import (
    ALWAYS,
    NEVER,
    ON_FAILURE,
    Failing,
    Ground,
    content_options,
    jobs_here,
    leave_bundle,
    wish,
)
from driftgate.commands.checking import (
    REPRO,
    STALE,
    cross_checked,
    deliver,
    explained,
    investigated,
    judged,
    own_folder,
    private_folder,
)
from driftgate.commands.effort import effort, effort_options
from driftgate.commands.links import run_links
from driftgate.commands.provenance import provenance
from driftgate.commands.speaking import LogText, configured, guarded, log, verbose_option
from driftgate.commands.versions import base_configuration, base_option, baseline_option
from driftgate.domain.facts import Facts, merge
from driftgate.domain.judgement import Policy
from driftgate.errors import UsageError
from driftgate.gathering import gather
from driftgate.investigating import Effort
from driftgate.joining import Recorded, joined
from driftgate.messages.message import Message, message
from driftgate.plan import Job, planned_job
from driftgate.settings.load import Config, load
from driftgate.settings.ruling import Ruling, ruled
from driftgate.storage.bundle import looks_like_bundle, unpacked_bundle
from driftgate.storage.document import read_results
from driftgate.storage.folder import remove_all, remove_tree
from driftgate.storage.planfile import Manifest, Provenance, read_manifest, read_origin, read_shard_note, write_origin
from driftgate.unchanged import UNCHANGED, kept


@click.command("report")
@click.argument("shards", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("driftgate-out"), help="Folder for the reports.")
@click.option("-c", "--config", type=click.Path(path_type=Path), help="The configuration that holds the policy.")
@click.option("--plan", "planned", type=click.Path(path_type=Path), help="The plan.json of what must have reported.")
@click.option("--policy", help="The policy to judge by.")
@baseline_option
@base_option
@click.option("--json", "as_json", is_flag=True, help="Print the judgement as JSON instead of the table.")
@effort_options
@click.option(
    "--bundle",
    type=click.Choice((ON_FAILURE, ALWAYS, NEVER)),
    help="When to write bundle.zip; with --plan on failure, without it never.",
)
@content_options
@verbose_option
@guarded
def command(
    shards: tuple[Path, ...],
    out: Path,
    config: Path | None,
    planned: Path | None,
    policy: str | None,
    baseline: Path | None,
    base_config: Path | None,
    as_json: bool,
    node_samples: int,
    memory: str,
    repro: bool,
    bundle: str | None,
    include_models: bool,
    full_bundle: Path | None,
    bundle_size: str,
    verbose: bool,
) -> int:
    """Merge SHARDS (folders, results.json or a bundle.zip), judge them by today's policy and write the reports.

    A bundle is judged by the policies that it holds, unless a configuration is given.

    With --plan what is planned and was not brought is an error that names its leg; links between hosts and boards are
    measured from what both recorded, and the first failing link is looked into where this machine has its stages.
    """
    log_text = LogText(verbose=verbose)
    if not shards and planned is None:
        raise UsageError(message("report-nothing"))
    if out.resolve() not in {(shard if shard.is_dir() else shard.parent).resolve() for shard in shards}:
        remove_all(out, STALE)
    if policy is not None and config is None:
        raise UsageError(message("policy-without-config", policy=policy))
    loaded = None if config is None else load(config)
    if loaded is not None:
        configured(loaded)
    given = effort(memory, node_samples, repro=repro)
    wished = wish(bundle or (NEVER if planned is None else ON_FAILURE), include_models, full_bundle, bundle_size)
    work = _Work(Failing(given.samples), given, loaded, policy, base_configuration(base_config))
    held: dict[str, Policy] = {}
    origin = provenance(os.environ)
    with private_folder(out, given, wished) as repros:
        if planned is None:
            origin = _origin_of(shards)
            merged, held = _merged(shards)
        else:
            remove_tree(out / REPRO)
            manifest = read_manifest(planned)
            work.prepare(manifest)
            merged = (*_of_plan(manifest, shards, work, repros), *kept(manifest, planned.parent / UNCHANGED))
        subjects = [facts.plan.subject for facts in merged]
        ruling = Ruling({one: held.get(one, Policy()) for one in subjects}) if loaded is None else work.ruling(subjects)
        with of_file(out if not shards else shards[0]):
            done = deliver(
                merged,
                ruling.policies,
                out,
                as_json=as_json,
                log_text=log_text,
                config=loaded,
                links=run_links(os.environ),
                baseline=baseline,
                pending=ruling.pending,
                origin=origin,
            )
        if planned is not None or origin.sha:
            write_origin(out, origin)
        folders = {} if repros is None else {job.plan.key: own_folder(repros, job, work.jobs) for job in work.jobs}
        ground = Ground(done.results, out, work.jobs, ruling.policies, work.failing, loaded, folders, work.absent)
        leave_bundle(ground, wished, quiet=as_json)
    return done.code


@dataclass(slots=True)
class _Work:
    """What an investigation may take, and the jobs that this machine has the stages of."""

    failing: Failing
    effort: Effort
    config: Config | None
    policy: str | None
    base: Config | None
    jobs: tuple[Job, ...] = ()
    absent: tuple[Message, ...] = ()

    def prepare(self, manifest: Manifest) -> None:
        """The jobs of the configuration; none where this machine lacks what they are made of, which is told."""
        prepared, self.absent = jobs_here(self.config, manifest.plans, manifest.profile)
        found = (planned_job(prepared, plan) for plan in manifest.plans)
        self.jobs = tuple(job for job in found if job is not None)

    def ruling(self, subjects: Sequence[str]) -> Ruling:
        """The policies of these subjects; none without a configuration."""
        return Ruling({}) if self.config is None else ruled(self.config, self.base, self.policy, subjects)

    def job(self, facts: Facts) -> Job | None:
        """The job that made these facts."""
        return next((job for job in self.jobs if job.plan.key == facts.plan.key), None)


def _origin_of(shards: Sequence[Path]) -> Provenance:
    """The commit and run that all of them say they are of; judging results anew makes them those of no other commit."""
    folders = (shard if shard.is_dir() else shard.parent for shard in shards if not looks_like_bundle(shard))
    found = {_said_by(folder) for folder in folders}
    (only,) = found if len(found) == 1 else (Provenance(),)
    return only


def _said_by(folder: Path) -> Provenance:
    """What a report says of itself, or the leg of a shard."""
    leg = read_shard_note(folder)
    return read_origin(folder) if leg is None else leg.provenance


def _merged(shards: Sequence[Path]) -> tuple[tuple[Facts, ...], dict[str, Policy]]:
    """The facts of all shards, by subject and target, and the policies of those that are bundles."""
    subjects: dict[tuple[str, str], list[Facts]] = {}
    policies: dict[str, Policy] = {}
    for shard in shards:
        with ExitStack() as stack:
            folder = shard
            if looks_like_bundle(shard):
                manifest, folder = stack.enter_context(unpacked_bundle(shard))
                policies |= {one.subject: one.policy for one in manifest.policies}
            with of_file(shard):
                for facts in read_results(folder).facts:
                    subjects.setdefault(facts.plan.key, []).append(facts)
    with of_file(shards[0]):
        return tuple(merge(subjects[key]) for key in sorted(subjects)), policies


def _of_plan(manifest: Manifest, shards: Sequence[Path], work: _Work, repros: Path | None) -> tuple[Facts, ...]:
    """The facts of a manifest's plans, with what is missing in them, joined and looked into as far as this machine
    has what that needs."""
    gathered = gather(manifest, shards)
    for problem in gathered.problems:
        log(problem)
    found: list[Facts] = []
    for facts in gathered.facts:
        job = work.job(facts)
        folders = gathered.recordings.get(facts.plan.key, ())
        one = joined(facts, folders, job)
        work.failing.recorded[facts.plan.key] = Recorded(one, folders)
        if job is not None and work.config is not None:
            judgements = judged([one], work.ruling([facts.plan.subject]).policies)
            own = None if repros is None else own_folder(repros, job, work.jobs)
            (one,) = investigated([job], [one], judgements, work.effort, own)
            (one,) = explained([job], [one], judgements, work.effort, work.failing)
            (one,) = cross_checked([job], [one], judgements)
        found.append(one)
    return tuple(found)
