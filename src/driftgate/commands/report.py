"""`driftgate report`: merge shards, judge again, write the reports."""

from __future__ import annotations

import os
from pathlib import Path

import click

from driftgate.commands.checking import OUTPUTS, deliver
from driftgate.commands.links import run_links
from driftgate.commands.speaking import LogText, guarded, verbose_option
from driftgate.domain.facts import Facts, merge
from driftgate.domain.judgement import Policy
from driftgate.errors import UsageError
from driftgate.messages.message import message
from driftgate.settings.load import load
from driftgate.storage.document import read_results
from driftgate.storage.folder import remove_all


@click.command("report")
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("driftgate-out"), help="Folder for the reports.")
@click.option("-c", "--config", type=click.Path(path_type=Path), help="The configuration that holds the policy.")
@click.option("--policy", help="The policy to judge by.")
@click.option("--json", "as_json", is_flag=True, help="Print the judgement as JSON instead of the table.")
@verbose_option
@guarded
def command(
    shards: tuple[Path, ...], out: Path, config: Path | None, policy: str | None, as_json: bool, verbose: bool
) -> int:
    """Merge SHARDS (folders or results.json), judge them by today's policy and write the reports."""
    log_text = LogText(verbose=verbose)
    if out.resolve() not in {(shard if shard.is_dir() else shard.parent).resolve() for shard in shards}:
        remove_all(out, OUTPUTS)
    if policy is not None and config is None:
        raise UsageError(message("policy-without-config", policy=policy))
    read = [read_results(shard) for shard in shards]
    subjects: dict[tuple[str, str], list[Facts]] = {}
    for results in read:
        for facts in results.facts:
            subjects.setdefault(facts.plan.key, []).append(facts)
    merged = [merge(subjects[key]) for key in sorted(subjects)]
    loaded = None if config is None else load(config)
    policies = {
        facts.plan.subject: Policy() if loaded is None else loaded.policy(policy, facts.plan.subject)
        for facts in merged
    }
    return deliver(
        merged, policies, out, as_json=as_json, log_text=log_text, config=loaded, links=run_links(os.environ)
    )
