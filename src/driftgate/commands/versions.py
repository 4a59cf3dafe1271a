"""Results of other versions: read from where they lie, and held against today's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import click

from driftgate.commands.believing import of_file
from driftgate.commands.speaking import log
from driftgate.comparing.compare import compare_results
from driftgate.comparing.history import Slid, continued, slid
from driftgate.comparing.levels import levels
from driftgate.domain.comparisons import Comparison, PastRun, Version
from driftgate.domain.history import History, Level
from driftgate.domain.judgement import SLIDES, Policy, Slides
from driftgate.domain.results import Results
from driftgate.errors import ConfigError, DriftgateError, StorageError
from driftgate.messages.message import message
from driftgate.settings.load import Config, load
from driftgate.storage.baselines import read_note
from driftgate.storage.bundle import looks_like_bundle, unpacked_bundle
from driftgate.storage.document import read_results
from driftgate.storage.history import read_history
from driftgate.storage.planfile import read_origin

NO_POLICIES: Mapping[str, Policy] = MappingProxyType({})
#: What is told of a slide where no policy says how far numbers may slide.
WORTH_A_WORD = Slides(limits=tuple(SLIDES.items()))

baseline_option = click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="Results of another version (folder, results.json or bundle.zip) that the reports compare with.",
)

base_option = click.option(
    "--base-config",
    type=click.Path(path_type=Path),
    help="The base branch's configuration: its policies and waivers hold, and what this one changes of them is shown.",
)


@dataclass(frozen=True, slots=True)
class Known:
    """A version that was read: its results, commit and run where they are known, and the runs before it."""

    label: str
    results: Results
    commit: str
    run: str = ""
    history: History | None = None

    @property
    def runs(self) -> History:
        """The history up to this version, itself the last; without a history it is the only one."""
        if self.history is not None:
            return self.history
        return continued(History(), PastRun(self.commit, self.run), levels(self.results))


@dataclass(frozen=True, slots=True)
class Past:
    """What results are held against: the comparison with a baseline where there is one, and the runs before."""

    comparison: Comparison | None = None
    history: History = field(default_factory=History)


@contextmanager
def read_version(path: Path) -> Iterator[Known]:
    """Judged results of a folder, a results.json or a bundle. Raises StorageError, also for a shard, and with the
    reason where a folder says why nothing could be fetched into it."""
    if looks_like_bundle(path):
        with unpacked_bundle(path) as (_, folder), of_file(path):
            yield _known(path, folder)
        return
    with of_file(path):
        yield _known(path, path)


def _known(path: Path, place: Path) -> Known:
    folder = place if place.is_dir() else place.parent
    note = read_note(folder)
    if note is not None and note.problem is not None:
        raise StorageError(note.problem)
    results = read_results(place)
    if results.judgements is None:
        raise StorageError(message("compare-shard", path=str(path)))
    origin = read_origin(folder)
    label = label_of(path) if note is None else note.label
    return Known(label, results, origin.sha, origin.run, read_history(folder))


def label_of(path: Path) -> str:
    """What a version is called: the folder it lies in, or the file."""
    resolved = path.resolve()
    named = resolved.parent if resolved.name == "results.json" else resolved
    return named.stem if named.suffix == ".zip" else named.name


def held_against(
    baseline: Path | None,
    results: Results,
    now: Sequence[Level],
    *,
    commit: str = "",
    policies: Mapping[str, Policy] = NO_POLICIES,
) -> Past:
    """Results, and their numbers, against a baseline and the runs before it; nothing without one. A baseline that
    cannot be used is told in the comparison, and is no reason for these results not to be judged."""
    if baseline is None:
        return Past()
    try:
        with read_version(baseline) as known:
            found = compare_results(
                known.results, results, labels=(known.label, "head"), commits=(known.commit, commit)
            )
            return Past(with_eroded(found, now, known.runs, policies), known.runs)
    except DriftgateError as error:
        log(message("compare-baseline-absent", reason=error.problems[0]))
        head = Version("head", results.tool.version, commit)
        return Past(Comparison(Version(_called(baseline), ""), head, (), problem=error.problems[0]))


def with_eroded(
    found: Comparison, now: Sequence[Level], history: History, policies: Mapping[str, Policy]
) -> Comparison:
    """The comparison with what has slid since the level that was reached before; by what the policies allow, else by
    what is worth a word."""
    made = past_of(now, history, policies)
    subjects = (
        replace(one, eroded=made[one.subject, one.target].erosions, past_runs=made[one.subject, one.target].runs)
        if (one.subject, one.target) in made
        else one
        for one in found.subjects
    )
    return replace(found, subjects=tuple(subjects))


def past_of(now: Sequence[Level], history: History, policies: Mapping[str, Policy]) -> dict[tuple[str, str], Slid]:
    """Subject and target → what has slid among the numbers of a run, held against the runs before."""
    together: dict[Slides, list[Level]] = {}
    for level in now:
        policy = policies.get(level.subject)
        slides = None if policy is None else policy.clauses.history
        together.setdefault(slides or WORTH_A_WORD, []).append(level)
    return {key: one for slides, found in together.items() for key, one in slid(history, found, slides).items()}


def base_configuration(path: Path | None) -> Config | None:
    """The base branch's configuration; None without one, and, which is logged, where it is not valid: what holds on no
    branch can judge nothing."""
    if path is None:
        return None
    try:
        return load(path, for_policy=True)
    except ConfigError as error:
        log(message("base-config-broken", reason=error.problems[0]))
        return None


def _called(baseline: Path) -> str:
    """What a baseline is called that cannot be read."""
    try:
        note = read_note(baseline)
    except StorageError:
        note = None
    return label_of(baseline) if note is None else note.label
