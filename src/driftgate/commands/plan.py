"""`driftgate plan`: what would be measured, how it is divided into legs, and what a leg on a board needs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.table import Column, Table

from driftgate.commands.provenance import provenance
from driftgate.commands.speaking import LogText, guarded, log, stdout, verbose_option
from driftgate.domain.digest import plain
from driftgate.domain.legs import distribute, divide, omitting
from driftgate.domain.plan import Leg, Omission, Plan, Where
from driftgate.errors import UsageError
from driftgate.escaping.commands import disarmed_json
from driftgate.escaping.terminal import markup
from driftgate.gathering import slug_of
from driftgate.messages.message import message
from driftgate.packing import board_stages, pack, pool_of
from driftgate.plan import Job, prepare
from driftgate.settings.load import Config, load
from driftgate.storage.atomic import write_bytes
from driftgate.storage.folder import remove_tree
from driftgate.storage.planfile import PLAN, Manifest, Unchanged, write_manifest
from driftgate.unchanged import UNCHANGED, apart, keep

#: Columns for what stands beside a leg's id, which must be shown in full: the next command wants it.
BESIDE_LEG = 60
MATRIX, PACKS = "matrix.json", "packs"
#: What a matrix of GitHub's takes, all its legs together.
MOST_LEGS = 256


@click.command("plan")
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), default=Path("driftgate.yaml"), help="The configuration."
)
@click.option("--subject", "subjects", multiple=True, help="Only this subject; may be repeated.")
@click.option("--profile", help="The subset of samples to use.")
@click.option("--legs", type=click.IntRange(min=1), default=1, help="Divide each subject into so many legs.")
@click.option("--json", "as_json", is_flag=True, help="Print the plans as JSON.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the manifest, a CI's matrix and packs for boards.")
@click.option("--host-legs", type=click.IntRange(min=1), default=1, help="With --out: legs on hosts, for each plan.")
@click.option("--board-legs", type=click.IntRange(min=1), default=1, help="With --out: legs on boards, for each plan.")
@click.option("--no-boards", metavar="REASON", help="With --out: leave out what runs on boards, and say why.")
@click.option(
    "--changed", "base", type=click.Path(path_type=Path), help="With --out: a former report; what is as there rests."
)
@verbose_option
@guarded
def command(
    config: Path,
    subjects: tuple[str, ...],
    profile: str | None,
    legs: int,
    as_json: bool,
    out: Path | None,
    host_legs: int,
    board_legs: int,
    no_boards: str | None,
    base: Path | None,
    verbose: bool,
) -> int:
    """Show what must be measured, from the configuration and the sample manifests.

    With --out it is written down for legs on many machines: plan.json is what must report, matrix.json what a CI
    starts, and each folder of packs/ all that a leg on a board needs.
    """
    LogText(verbose=verbose)
    loaded = load(config)
    jobs = prepare(loaded, subjects=subjects, profile=profile)
    if out is None:
        plans = [divide(job.plan, legs) for job in jobs]
    else:
        jobs = tuple(_distributed(job, host_legs, board_legs, no_boards) for job in jobs)
        jobs, rest = (jobs, ()) if base is None else apart(jobs, base)
        keep(out / UNCHANGED, rest)
        plans = [job.plan for job in jobs]
        _write(out, loaded, jobs, profile, tuple(one for one, _ in rest))
    if as_json:
        document = {
            "schema": "driftgate.plan",
            "version": 1,
            "subjects": [{"digest": plan.digest, **_object(plain(plan))} for plan in plans],
        }
        stdout().print(disarmed_json(json.dumps(document, ensure_ascii=False, indent=1)), markup=False)
    else:
        _show(plans)
    return 0


def _distributed(job: Job, host_legs: int, board_legs: int, no_boards: str | None) -> Job:
    """The job with its legs; without what runs on boards where that is asked for."""
    boards = board_stages(job)
    reason = message("omitted-on-request", reason=no_boards or "")
    plan = job.plan if no_boards is None else omitting(job.plan, [Omission(stage, reason) for stage in boards])
    return replace(job, plan=distribute(plan, boards, host_legs=host_legs, board_legs=board_legs))


def _write(
    out: Path, config: Config, jobs: Sequence[Job], profile: str | None, unchanged: tuple[Unchanged, ...]
) -> None:
    legs = [(job, leg) for job in jobs for leg in job.plan.legs]
    if len(legs) > MOST_LEGS:
        raise UsageError(message("plan-too-many-legs", found=len(legs), most=MOST_LEGS))
    _require_names(legs)
    remove_tree(out / PACKS)
    origin = provenance(os.environ)
    matrix: dict[str, list[dict[str, object]]] = {"host": [], "board": []}
    for job, leg in legs:
        matrix[leg.where.value].append(_entry(config, job, leg))
        if leg.where is Where.BOARD:
            pack(job, leg, config, out / PACKS / slug_of(leg.id), origin)
            log(message("plan-packed", leg=leg.id, count=len(job.plan.samples.of_blocks(leg.blocks))))
    write_manifest(out / PLAN, Manifest(tuple(job.plan for job in jobs), origin, profile, unchanged))
    write_bytes(out / MATRIX, json.dumps(matrix, ensure_ascii=False, indent=1).encode())


def _require_names(legs: Sequence[tuple[Job, Leg]]) -> None:
    """Raises UsageError for legs whose names as files are one."""
    named: dict[str, str] = {}
    for _, leg in legs:
        other = named.setdefault(slug_of(leg.id), leg.id)
        if other != leg.id:
            raise UsageError(message("plan-same-name", one=other, other=leg.id))


def _entry(config: Config, job: Job, leg: Leg) -> dict[str, object]:
    """A leg for the CI: its id, its name for files, for people, and where it may run."""
    entry: dict[str, object] = {"leg": leg.id, "slug": slug_of(leg.id), "name": leg.id}
    if leg.where is Where.BOARD:
        pool = next((name for stage in leg.stages if (name := pool_of(job.artifact(stage)))), None)
        section = None if pool is None else config.settings.boards[pool]
        entry["board"] = pool or ""
        entry["labels"] = ["self-hosted"] if section is None else list(section.labels)
    return entry


def _show(plans: Sequence[Plan]) -> None:
    console = stdout()
    table = Table(Column("leg", no_wrap=True), "samples", "plan", "stages", box=None)
    longest = max((len(leg.id) for plan in plans for leg in plan.legs), default=0)
    for plan in plans:
        for leg in plan.legs:
            count = len(plan.samples.of_blocks(leg.blocks))
            cells = (leg.id, str(count), plan.digest[:12], " → ".join(leg.stages))
            table.add_row(*(markup(cell) for cell in cells))
    console.width = max(console.width, longest + BESIDE_LEG)
    console.print(table)


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
