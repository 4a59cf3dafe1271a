"""`driftgate run`: one leg of a plan, as a shard for `report`."""

from __future__ import annotations

from pathlib import Path

import click

from driftgate.commands.checking import OUTPUTS, captured, write_shard
from driftgate.commands.speaking import EXIT_ERROR, LogText, guarded, stopped_while_waiting, verbose_option
from driftgate.domain.legs import leg_of
from driftgate.domain.runs import RunOutcome
from driftgate.errors import UsageError
from driftgate.messages.message import message
from driftgate.plan import known_legs, only_leg, prepare
from driftgate.settings.load import load
from driftgate.storage.folder import remove_all


@click.command("run")
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), default=Path("driftgate.yaml"), help="The configuration."
)
@click.option("--leg", required=True, help="The leg's id, as `driftgate plan` prints it.")
@click.option("--profile", help="The subset of samples to use, as for the plan.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the shard.")
@verbose_option
@guarded
def command(config: Path, leg: str, profile: str | None, out: Path, verbose: bool) -> int:
    """Run one leg and write its facts, without judging them."""
    log_text = LogText(verbose=verbose)
    remove_all(out, OUTPUTS)
    jobs = prepare(load(config), subjects=(), profile=profile)
    chosen = [only_leg(job, found) for job in jobs if (found := leg_of(job.plan, leg)) is not None]
    if not chosen:
        raise UsageError(message("leg-unknown", leg=leg, known=known_legs(jobs)))
    with stopped_while_waiting() as breakable:
        facts, interrupted = captured(chosen, breakable)
        write_shard(facts, out, log_text)
    whole = all(run.outcome in (RunOutcome.PASSED, RunOutcome.REFUSED) for one in facts for run in one.runs)
    return EXIT_ERROR if interrupted or not whole else 0
