"""Results of other versions: read from where they lie, and held against today's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from driftgate.commands.believing import of_file
from driftgate.commands.speaking import log
from driftgate.comparing.compare import compare_results
from driftgate.domain.comparisons import Comparison, Version
from driftgate.domain.results import Results
from driftgate.errors import DriftgateError, StorageError
from driftgate.messages.message import message
from driftgate.storage.bundle import looks_like_bundle, unpacked_bundle
from driftgate.storage.document import read_results
from driftgate.storage.planfile import read_origin

baseline_option = click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="Results of another version (folder, results.json or bundle.zip) that the reports compare with.",
)


@dataclass(frozen=True, slots=True)
class Known:
    """A version that was read: its results, and the commit where that is known."""

    label: str
    results: Results
    commit: str


@contextmanager
def read_version(path: Path) -> Iterator[Known]:
    """Judged results of a folder, a results.json or a bundle. Raises StorageError, also for a shard."""
    if looks_like_bundle(path):
        with unpacked_bundle(path) as (_, folder), of_file(path):
            yield _known(path, folder)
        return
    with of_file(path):
        yield _known(path, path)


def _known(path: Path, place: Path) -> Known:
    results = read_results(place)
    if results.judgements is None:
        raise StorageError(message("compare-shard", path=str(path)))
    folder = place if place.is_dir() else place.parent
    return Known(label_of(path), results, read_origin(folder).sha)


def label_of(path: Path) -> str:
    """What a version is called: the folder it lies in, or the file."""
    resolved = path.resolve()
    named = resolved.parent if resolved.name == "results.json" else resolved
    return named.stem if named.suffix == ".zip" else named.name


def compared_with(baseline: Path | None, results: Results, commit: str = "") -> Comparison | None:
    """Results against a baseline; None without one. A baseline that cannot be used is told in the comparison, and is
    no reason for these results not to be judged."""
    if baseline is None:
        return None
    try:
        with read_version(baseline) as known:
            return compare_results(known.results, results, labels=(known.label, "head"), commits=(known.commit, commit))
    except DriftgateError as error:
        log(message("compare-baseline-absent", reason=error.problems[0]))
        head = Version("head", results.tool.version, commit)
        return Comparison(Version(label_of(baseline), ""), head, (), problem=error.problems[0])
