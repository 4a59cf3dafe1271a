"""`driftgate gate`: whether results keep every clause of a policy."""

from __future__ import annotations

import os
from pathlib import Path

import click

from driftgate.commands.provenance import provenance
from driftgate.commands.speaking import configured, guarded, stdout
from driftgate.commands.versions import baseline_option, compared_with, read_version
from driftgate.domain.gates import outcome_of
from driftgate.domain.results import EXIT_CODES
from driftgate.errors import UsageError
from driftgate.escaping.commands import disarmed_json
from driftgate.judgement.gate import Gated, gate
from driftgate.messages.message import message
from driftgate.reporting.versionlines import show_gate
from driftgate.settings.load import load
from driftgate.storage.gate import encode_gate


@click.command("gate")
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), required=True, help="The configuration with the policy."
)
@click.option("--policy", required=True, help="The policy whose clauses must hold.")
@baseline_option
@click.option("--commit", help="The commit that is gated; without it, that of the CI's run.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines as JSON.")
@guarded
def command(results: Path, config: Path, policy: str, baseline: Path | None, commit: str | None, as_json: bool) -> int:
    """Judge RESULTS (a folder, results.json or bundle.zip) anew and print one line for each clause of the policy.

    Exit code 0: every clause holds; 1: one is broken; 2: one could not be established.
    """
    loaded = load(config, for_policy=True)
    configured(loaded)
    wanted = commit or provenance(os.environ).sha
    with read_version(results) as known:
        unknown = tuple(f.plan.subject for f in known.results.facts if f.plan.subject not in loaded.settings.subjects)
        if unknown:
            raise UsageError(message("gate-unknown-subject", path=str(config), subjects=unknown))
        policies = {f.plan.subject: loaded.policy(policy, f.plan.subject) for f in known.results.facts}
        compared = compared_with(baseline, known.results, known.commit)
        lines = gate(Gated(known.results, known.commit, wanted), policies, compared or known.results.comparison)
    if as_json:
        stdout().print(disarmed_json(encode_gate(lines, policy).decode()), markup=False, end="")
    else:
        show_gate(lines, policy, stdout())
    return EXIT_CODES[outcome_of(lines)]
