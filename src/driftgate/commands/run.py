"""`driftgate run`: one leg of a plan, as a shard for `report`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click

from driftgate.commands.checking import STALE, captured, write_shard
from driftgate.commands.effort import cache_options, recall_of
from driftgate.commands.provenance import provenance
from driftgate.commands.speaking import (
    EXIT_ERROR,
    LogText,
    configured,
    guarded,
    hide,
    stopped_while_waiting,
    verbose_option,
)
from driftgate.domain.legs import leg_of
from driftgate.domain.runs import RunOutcome
from driftgate.errors import UsageError
from driftgate.gathering import RECORDINGS
from driftgate.keeping import write_outputs
from driftgate.messages.message import message
from driftgate.packing import hidden, unpacked
from driftgate.plan import Job, known_legs, only_leg, planned_job, prepare
from driftgate.settings.load import Config, load
from driftgate.storage.folder import remove_all, remove_tree
from driftgate.storage.pack import read_pack
from driftgate.storage.planfile import LEG, Provenance, Shard, read_manifest, write_shard_note


@click.command("run")
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), default=Path("driftgate.yaml"), help="The configuration."
)
@click.option("--leg", help="The leg's id, as `driftgate plan` prints it.")
@click.option("--plan", "planned", type=click.Path(path_type=Path), help="The plan.json that the leg is of.")
@click.option("--pack", "packed", type=click.Path(path_type=Path), help="The pack of a leg on a board, and no more.")
@click.option("--profile", help="The subset of samples to use, as for the plan; plan.json knows it.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the shard.")
@cache_options
@verbose_option
@guarded
def command(
    config: Path,
    leg: str | None,
    planned: Path | None,
    packed: Path | None,
    profile: str | None,
    out: Path,
    cache: Path | None,
    cache_size: str,
    verbose: bool,
) -> int:
    """Run one leg and write its facts, without judging them.

    A pack needs neither a configuration nor anything else of the repository: addresses and passwords of boards come
    from the environment.
    """
    log_text = LogText(verbose=verbose)
    remove_all(out, (*STALE, LEG))
    remove_tree(out / RECORDINGS)
    job, origin = _chosen(config, leg, planned, packed, profile)
    recorder = partial(write_outputs, folder=out / RECORDINGS)
    with stopped_while_waiting() as breakable:
        recall = recall_of(cache, cache_size)
        facts, interrupted = captured([job], breakable, recorder=recorder, recall=recall)
        if recall is not None:
            recall.prune()
        write_shard(facts, out, log_text)
        write_shard_note(out, Shard(job.plan.legs[0].id, job.plan.digest, origin))
    whole = all(run.outcome in (RunOutcome.PASSED, RunOutcome.REFUSED) for one in facts for run in one.runs)
    return EXIT_ERROR if interrupted or not whole else 0


def _chosen(
    config: Path, leg: str | None, planned: Path | None, packed: Path | None, profile: str | None
) -> tuple[Job, Provenance]:
    """The job with its one leg, and the commit and run that it is of."""
    if packed is not None:
        if leg is not None or planned is not None:
            raise UsageError(message("run-pack-alone"))
        found = read_pack(packed)
        hide(hidden(found, os.environ))
        return unpacked(found, os.environ), found.stored.provenance
    if leg is None:
        raise UsageError(message("run-no-leg"))
    if planned is not None:
        return _of_manifest(config, leg, planned)
    jobs = prepare(_loaded(config), subjects=(), profile=profile)
    chosen = [only_leg(job, one) for job in jobs if (one := leg_of(job.plan, leg)) is not None]
    if not chosen:
        raise UsageError(message("leg-unknown", leg=leg, known=known_legs(jobs)))
    return chosen[0], provenance(os.environ)


def _loaded(path: Path) -> Config:
    """The configuration, with nothing shown of what it hides."""
    config = load(path)
    configured(config)
    return config


def _of_manifest(config: Path, leg: str, planned: Path) -> tuple[Job, Provenance]:
    """The leg of a manifest. Raises UsageError where the configuration makes another plan here than it did there."""
    manifest = read_manifest(planned)
    found = manifest.plan_of(leg)
    if found is None:
        known = tuple(one.id for plan in manifest.plans for one in plan.legs)
        raise UsageError(message("leg-unknown", leg=leg, known=known))
    plan, one = found
    job = planned_job(prepare(_loaded(config), subjects=(plan.subject,), profile=manifest.profile), plan)
    if job is None:
        raise UsageError(message("plan-other", leg=leg, path=str(planned)))
    return only_leg(job, one), manifest.provenance
