"""`driftgate bundle`: the evidence of a finished check as one file to hand on."""

from __future__ import annotations

from pathlib import Path

import click

from driftgate.commands.bundles import ALWAYS, Failing, Ground, content_options, jobs_here, wish, write_wished
from driftgate.commands.checking import REPRO, own_folder
from driftgate.commands.speaking import EXIT_ERROR, LogText, configured, guarded, verbose_option
from driftgate.domain.judgement import Policy
from driftgate.domain.results import Results
from driftgate.errors import UsageError
from driftgate.messages.message import Message, message
from driftgate.plan import Job, planned_job
from driftgate.settings.load import Config, load
from driftgate.storage.bundle import BUNDLE
from driftgate.storage.document import read_results


@click.command("bundle")
@click.argument("report", metavar="REPORT_DIR", type=click.Path(path_type=Path))
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), help="The configuration that was checked; without it no stage."
)
@click.option("--policy", help="The policy that it was judged by.")
@click.option("--profile", help="The subset of samples that was used.")
@click.option("--out", type=click.Path(path_type=Path), help="The bundle; bundle.zip in REPORT_DIR where absent.")
@content_options
@verbose_option
@guarded
def command(
    report: Path,
    config: Path | None,
    policy: str | None,
    profile: str | None,
    out: Path | None,
    include_models: bool,
    full_bundle: Path | None,
    bundle_size: str,
    verbose: bool,
) -> int:
    """Write the bundle of the reports in REPORT_DIR anew; the failing link's two stages are run once more for it."""
    LogText(verbose=verbose)
    wished = wish(ALWAYS, include_models, full_bundle, bundle_size)
    if policy is not None and config is None:
        raise UsageError(message("policy-without-config", policy=policy))
    loaded = None if config is None else load(config)
    if loaded is not None:
        configured(loaded)
    results = read_results(report)
    if results.judgements is None:
        raise UsageError(message("bundle-of-shard", path=str(report)))
    jobs, absent = _jobs(results, loaded, profile, report)
    subjects = {one.plan.subject for one in results.facts}
    policies = {one: Policy() if loaded is None else loaded.policy(policy, one) for one in subjects}
    repros = {job.plan.key: own_folder(report / REPRO, job, jobs) for job in jobs}
    ground = Ground(results, report, jobs, policies, Failing(), loaded, repros, absent)
    made = write_wished(ground, wished, out or report / BUNDLE, quiet=False)
    return EXIT_ERROR if made is None else 0


def _jobs(
    results: Results, config: Config | None, profile: str | None, report: Path
) -> tuple[tuple[Job, ...], tuple[Message, ...]]:
    """The jobs that made these results, or why there are none. Raises UsageError for another plan."""
    prepared, absent = jobs_here(config, [one.plan for one in results.facts], profile)
    if absent:
        return (), absent
    found = []
    for one in results.facts:
        job = planned_job(prepared, one.plan)
        if job is None:
            told = {"subject": one.plan.subject, "target": one.plan.target}
            raise UsageError(message("bundle-other-plan", path=str(report), **told))
        found.append(job)
    return tuple(found), ()
