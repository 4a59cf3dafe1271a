"""`driftgate gate`: whether results keep every clause of a policy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from driftgate.commands.provenance import provenance, today
from driftgate.commands.speaking import configured, guarded, stdout
from driftgate.commands.versions import (
    Known,
    base_configuration,
    base_option,
    baseline_option,
    held_against,
    read_version,
    with_eroded,
)
from driftgate.comparing.history import before
from driftgate.comparing.levels import levels
from driftgate.domain.comparisons import Comparison
from driftgate.domain.gates import outcome_of
from driftgate.domain.judgement import Policy
from driftgate.domain.results import EXIT_CODES
from driftgate.errors import UsageError
from driftgate.escaping.commands import disarmed_json
from driftgate.judgement.gate import Gated, gate
from driftgate.messages.message import message
from driftgate.reporting.versionlines import show_gate
from driftgate.reporting.versions import gate_summary
from driftgate.settings.load import Config, load
from driftgate.settings.ruling import ruled
from driftgate.storage.built import PROVENANCE, built_files
from driftgate.storage.folder import write_all
from driftgate.storage.gate import GATE, encode_gate

GATED = "gate.md"


@click.command("gate")
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), required=True, help="The configuration with the policy."
)
@click.option("--policy", required=True, help="The policy whose clauses must hold.")
@baseline_option
@base_option
@click.option("--subject", "subjects", multiple=True, help="Only this subject of the configuration; may be repeated.")
@click.option("--commit", help="The commit that is gated; without it, that of the CI's run.")
@click.option(
    "--built",
    type=click.Path(path_type=Path),
    help="What was built: a folder of files, or a provenance.json; without it, the one beside RESULTS.",
)
@click.option("--out", type=click.Path(path_type=Path), help=f"Folder for {GATE} and {GATED}.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines as JSON.")
@guarded
def command(
    results: Path,
    config: Path,
    policy: str,
    baseline: Path | None,
    base_config: Path | None,
    subjects: tuple[str, ...],
    commit: str | None,
    built: Path | None,
    out: Path | None,
    as_json: bool,
) -> int:
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
        wanted_keys = tuple(_wanted(loaded, subjects))
        names = dict.fromkeys(subject for subject, _ in wanted_keys)
        policies = ruled(loaded, base_configuration(base_config), policy, names).policies
        compared = _compared(baseline, known, policies)
        beside = results / PROVENANCE if results.is_dir() else results.with_name(PROVENANCE)
        made = built_files(built or beside) if built is not None or beside.is_file() else None
        gated = Gated(known.results, known.commit, wanted, made, today(), wanted_keys)
        lines = gate(gated, policies, compared)
    encoded = encode_gate(lines, policy)
    if out is not None:
        write_all(out, {GATE: encoded, GATED: gate_summary(lines, policy).encode("utf-8", "backslashreplace")})
    if as_json:
        stdout().print(disarmed_json(encoded.decode()), markup=False, end="")
    else:
        show_gate(lines, policy, stdout())
    return EXIT_CODES[outcome_of(lines)]


def _wanted(loaded: Config, subjects: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every subject and target that there must be results of. Raises UsageError for one that is not there."""
    known = loaded.settings.subjects
    if absent := tuple(name for name in subjects if name not in known):
        raise UsageError(message("subject-unknown", names=absent, known=tuple(known)))
    for name, subject in known.items():
        if not subjects or name in subjects:
            yield from ((name, target) for target in subject.platforms(loaded.settings.defaults.platform))


def _compared(baseline: Path | None, known: Known, policies: Mapping[str, Policy]) -> Comparison | None:
    """With the baseline that is given, else as the results have it; what slid is told anew, by these policies."""
    now = tuple(levels(known.results))
    if baseline is not None:
        return held_against(baseline, known.results, now, commit=known.commit, policies=policies).comparison
    found = known.results.comparison
    if found is None or found.problem is not None or known.history is None:
        return found
    return with_eroded(found, now, before(known.history), policies)
