"""`driftgate check`: the whole chain of every subject, the table, the reports."""

from __future__ import annotations

import os
from pathlib import Path

import click

from driftgate.commands.bundles import bundle_options, wish
from driftgate.commands.checking import STALE, check
from driftgate.commands.effort import cache_options, effort, effort_options, recall_of
from driftgate.commands.links import run_links
from driftgate.commands.speaking import LogText, guarded, verbose_option
from driftgate.commands.versions import base_option, baseline_option
from driftgate.demo.build import build
from driftgate.storage.folder import remove_all

DEMO = "demo"


@click.command("check")
@click.option("-c", "--config", default="driftgate.yaml", help="The configuration; demo or demo:FAULT for the demo.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("driftgate-out"), help="Folder for the reports.")
@click.option("--subject", "subjects", multiple=True, help="Only this subject; may be repeated.")
@click.option("--policy", help="The policy to judge by.")
@click.option("--profile", help="The subset of samples to use.")
@baseline_option
@base_option
@click.option("--json", "as_json", is_flag=True, help="Print the judgement as JSON instead of the table.")
@click.option("--nodes/--no-nodes", default=True, help="Look for the first diverging node of the first failing link.")
@effort_options
@cache_options
@bundle_options
@verbose_option
@guarded
def command(
    config: str,
    out: Path,
    subjects: tuple[str, ...],
    policy: str | None,
    profile: str | None,
    baseline: Path | None,
    base_config: Path | None,
    as_json: bool,
    nodes: bool,
    memory: str,
    node_samples: int,
    repro: bool,
    cache: Path | None,
    cache_size: str,
    bundle: str,
    include_models: bool,
    full_bundle: Path | None,
    bundle_size: str,
    verbose: bool,
) -> int:
    """Run the chain of every subject, find the first stage that changed, and write the reports."""
    log_text = LogText(verbose=verbose)
    wished = wish(bundle, include_models, full_bundle, bundle_size)
    wanted = effort(memory, node_samples, repro=repro) if nodes else None
    name, _, fault = config.partition(":")
    path = Path(config)
    remove_all(out, STALE)
    if name == DEMO and not path.exists():
        path = build(out / "project", fault or None)
    return check(
        path,
        out,
        subjects=subjects,
        policy=policy,
        profile=profile,
        as_json=as_json,
        log_text=log_text,
        links=run_links(os.environ),
        effort=wanted,
        recall=recall_of(cache, cache_size),
        wish=wished,
        baseline=baseline,
        base_config=base_config,
    )
