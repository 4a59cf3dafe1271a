"""`driftgate report`: merge shards, judge again, write the reports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from driftgate.commands.checking import OUTPUTS, REPRO, cross_checked, deliver, explained, investigated, judged
from driftgate.commands.effort import effort, effort_options
from driftgate.commands.links import run_links
from driftgate.commands.provenance import provenance
from driftgate.commands.speaking import LogText, guarded, log, verbose_option
from driftgate.domain.facts import Facts, merge
from driftgate.domain.judgement import Policy
from driftgate.errors import DriftgateError, UsageError
from driftgate.gathering import gather
from driftgate.investigating import Effort
from driftgate.joining import joined
from driftgate.messages.message import message
from driftgate.plan import Job, planned_job, prepare
from driftgate.settings.load import Config, load
from driftgate.storage.document import read_results
from driftgate.storage.folder import remove_all, remove_tree
from driftgate.storage.planfile import ORIGIN, Manifest, read_manifest, write_origin
from driftgate.unchanged import UNCHANGED, kept


@click.command("report")
@click.argument("shards", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("driftgate-out"), help="Folder for the reports.")
@click.option("-c", "--config", type=click.Path(path_type=Path), help="The configuration that holds the policy.")
@click.option("--plan", "planned", type=click.Path(path_type=Path), help="The plan.json of what must have reported.")
@click.option("--policy", help="The policy to judge by.")
@click.option("--json", "as_json", is_flag=True, help="Print the judgement as JSON instead of the table.")
@effort_options
@verbose_option
@guarded
def command(
    shards: tuple[Path, ...],
    out: Path,
    config: Path | None,
    planned: Path | None,
    policy: str | None,
    as_json: bool,
    node_samples: int,
    memory: str,
    repro: bool,
    verbose: bool,
) -> int:
    """Merge SHARDS (folders or results.json), judge them by today's policy and write the reports.

    With --plan what is planned and was not brought is an error that names its leg; links between hosts and boards are
    measured from what both recorded, and the first failing link is looked into where this machine has its stages.
    """
    log_text = LogText(verbose=verbose)
    if not shards and planned is None:
        raise UsageError(message("report-nothing"))
    if out.resolve() not in {(shard if shard.is_dir() else shard.parent).resolve() for shard in shards}:
        remove_all(out, (*OUTPUTS, ORIGIN))
    if policy is not None and config is None:
        raise UsageError(message("policy-without-config", policy=policy))
    loaded = None if config is None else load(config)
    if planned is None:
        merged = _merged(shards)
    else:
        remove_tree(out / REPRO)
        effort_given = effort(memory, node_samples, repro=repro)
        manifest = read_manifest(planned)
        merged = _of_plan(manifest, shards, loaded, policy, _Ground(out, effort_given))
        merged = (*merged, *kept(manifest, planned.parent / UNCHANGED))
    policies = {
        facts.plan.subject: Policy() if loaded is None else loaded.policy(policy, facts.plan.subject)
        for facts in merged
    }
    code = deliver(
        merged, policies, out, as_json=as_json, log_text=log_text, config=loaded, links=run_links(os.environ)
    )
    write_origin(out, provenance(os.environ))
    return code


@dataclass(frozen=True, slots=True)
class _Ground:
    """Where an investigation writes, and what it may take."""

    out: Path
    effort: Effort


def _merged(shards: Sequence[Path]) -> tuple[Facts, ...]:
    """The facts of all shards, by subject and target."""
    subjects: dict[tuple[str, str], list[Facts]] = {}
    for shard in shards:
        for facts in read_results(shard).facts:
            subjects.setdefault(facts.plan.key, []).append(facts)
    return tuple(merge(subjects[key]) for key in sorted(subjects))


def _of_plan(
    manifest: Manifest, shards: Sequence[Path], config: Config | None, policy: str | None, ground: _Ground
) -> tuple[Facts, ...]:
    """The facts of a manifest's plans, with what is missing in them, joined and looked into as far as this machine
    has what that needs."""
    gathered = gather(manifest, shards)
    for problem in gathered.problems:
        log(problem)
    jobs = _jobs(manifest, config)
    found: list[Facts] = []
    for facts in gathered.facts:
        job = planned_job(jobs, facts.plan)
        one = joined(facts, gathered.recordings.get(facts.plan.key, ()), job)
        if job is not None and config is not None:
            judgements = judged([one], {facts.plan.subject: config.policy(policy, facts.plan.subject)})
            (one,) = investigated([job], [one], judgements, ground.effort, ground.out)
            (one,) = explained([job], [one], judgements, ground.effort)
            (one,) = cross_checked([job], [one], judgements)
        found.append(one)
    return tuple(found)


def _jobs(manifest: Manifest, config: Config | None) -> tuple[Job, ...]:
    """The jobs of the configuration; none where this machine lacks what they are made of, which is logged."""
    if config is None:
        return ()
    subjects = tuple(dict.fromkeys(plan.subject for plan in manifest.plans))
    try:
        return prepare(config, subjects=subjects, profile=manifest.profile)
    except DriftgateError as error:
        for problem in error.problems:
            log(problem)
        return ()
