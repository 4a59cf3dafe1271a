"""`driftgate compare`: what became better or worse from version to version."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import click

from driftgate.commands.speaking import guarded, stdout
from driftgate.commands.versions import Known, read_version
from driftgate.comparing.compare import compare_results
from driftgate.comparing.trend import trends
from driftgate.domain.comparisons import Comparison
from driftgate.errors import UsageError
from driftgate.escaping.commands import disarmed_json
from driftgate.messages.message import message
from driftgate.reporting.versionlines import show_comparison, show_trends
from driftgate.reporting.versions import versions_summary
from driftgate.storage.comparison import COMPARISON, encode_comparison
from driftgate.storage.folder import write_all

COMPARED = "comparison.md"


@click.command("compare")
@click.argument("versions", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help=f"Folder for {COMPARISON} and {COMPARED}.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON instead of the table.")
@guarded
def command(versions: tuple[Path, ...], out: Path | None, as_json: bool) -> int:
    """Hold VERSIONS (folders of results, results.json or bundle.zip; BASE HEAD, or more from old to new) against each
    other: checks, scores, losses, links, nodes, causes, speed and build.

    Samples are paired by their content. Exit code 0: the last is the same as the first or better; 1: worse; 2: they
    cannot be compared.
    """
    if len(versions) < 2:
        raise UsageError(message("compare-few"))
    with ExitStack() as stack:
        known = [stack.enter_context(read_version(path)) for path in versions]
        steps = [_compared(base, head) for base, head in pairwise(known)]
        whole = steps[0] if len(steps) == 1 else _compared(known[0], known[-1])
        found = trends(_along(known, steps)) if len(steps) > 1 else ()
    encoded = encode_comparison(steps, whole)
    if out is not None:
        text = versions_summary(steps, found)
        write_all(out, {COMPARISON: encoded, COMPARED: text.encode("utf-8", "backslashreplace")})
    if as_json:
        stdout().print(disarmed_json(encoded.decode()), markup=False, end="")
    else:
        for step in steps:
            show_comparison(step, stdout())
        show_trends(found, [one.label for one in known], stdout())
    return whole.exit_code


def _compared(base: Known, head: Known) -> Comparison:
    return compare_results(
        base.results, head.results, labels=(base.label, head.label), commits=(base.commit, head.commit)
    )


def _along(known: Sequence[Known], steps: list[Comparison]) -> list[Comparison]:
    """The steps over the samples that every version has, so that a line of numbers is of one set of them; those that
    were made where all versions have the same."""
    if all(one.paired.common == one.paired.base == one.paired.head for step in steps for one in step.subjects):
        return steps
    common: dict[tuple[str, str], set[str]] = {}
    for version in known:
        for facts in version.results.facts:
            digests = set(facts.plan.samples.digests)
            common[facts.plan.key] = common.get(facts.plan.key, digests) & digests
    return [
        compare_results(base.results, head.results, labels=(base.label, head.label), among=common)
        for base, head in pairwise(known)
    ]
