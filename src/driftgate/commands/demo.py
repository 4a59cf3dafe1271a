"""`driftgate demo`: the embedded network, healthy or with a planted fault."""

from __future__ import annotations

from pathlib import Path

import click

from driftgate.commands.bundles import Wish
from driftgate.commands.checking import STALE, check
from driftgate.commands.speaking import LogText, guarded, verbose_option
from driftgate.demo.build import build
from driftgate.investigating import Effort
from driftgate.storage.folder import remove_all


@click.command("demo")
@click.option("--fault", help="Plant a fault: input-scale, optimizer-fold, calibration-range, board-padding, …")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("demo-out"), help="Folder for project and reports."
)
@click.option("--json", "as_json", is_flag=True, help="Print the judgement as JSON instead of the table.")
@verbose_option
@guarded
def command(fault: str | None, out: Path, as_json: bool, verbose: bool) -> int:
    """Check a small network that comes with driftgate, through all stages; needs no board and no torch."""
    log_text = LogText(verbose=verbose)
    remove_all(out, STALE)
    return check(build(out / "project", fault), out, as_json=as_json, log_text=log_text, effort=Effort(), wish=Wish())
