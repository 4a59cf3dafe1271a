"""`driftgate plan`: what would be measured, and how it can be divided into legs."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.table import Column, Table

from driftgate.commands.speaking import LogText, guarded, stdout, verbose_option
from driftgate.domain.digest import plain
from driftgate.domain.legs import divide
from driftgate.escaping.commands import disarmed_json
from driftgate.escaping.terminal import markup
from driftgate.plan import prepare
from driftgate.settings.load import load

#: Columns for what stands beside a leg's id, which must be shown in full: the next command wants it.
BESIDE_LEG = 60


@click.command("plan")
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), default=Path("driftgate.yaml"), help="The configuration."
)
@click.option("--subject", "subjects", multiple=True, help="Only this subject; may be repeated.")
@click.option("--profile", help="The subset of samples to use.")
@click.option("--legs", type=click.IntRange(min=1), default=1, help="Divide each subject into so many legs.")
@click.option("--json", "as_json", is_flag=True, help="Print the plans as JSON.")
@verbose_option
@guarded
def command(
    config: Path, subjects: tuple[str, ...], profile: str | None, legs: int, as_json: bool, verbose: bool
) -> int:
    """Show what must be measured, from the configuration and the sample manifests."""
    LogText(verbose=verbose)
    jobs = prepare(load(config), subjects=subjects, profile=profile)
    plans = [divide(job.plan, legs) for job in jobs]
    console = stdout()
    if as_json:
        document = {
            "schema": "driftgate.plan",
            "version": 1,
            "subjects": [{"digest": plan.digest, **_object(plain(plan))} for plan in plans],
        }
        console.print(disarmed_json(json.dumps(document, ensure_ascii=False, indent=1)), markup=False)
        return 0
    table = Table(Column("leg", no_wrap=True), "samples", "plan", "stages", box=None)
    longest = max(len(leg.id) for plan in plans for leg in plan.legs)
    for plan in plans:
        for leg in plan.legs:
            count = len(plan.samples.of_blocks(leg.blocks))
            cells = (leg.id, str(count), plan.digest[:12], " → ".join(leg.stages))
            table.add_row(*(markup(cell) for cell in cells))
    console.width = max(console.width, longest + BESIDE_LEG)
    console.print(table)
    return 0


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
