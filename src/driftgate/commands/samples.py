"""`driftgate samples`: make and check the sample manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from driftgate.commands.speaking import EXIT_ERROR, LogText, guarded, progress, say, stderr, stdout, verbose_option
from driftgate.domain.chain import FeedKind
from driftgate.domain.samples import BLOCK, Origin
from driftgate.errors import SampleError, UsageError
from driftgate.messages.message import message
from driftgate.settings.load import Config, load
from driftgate.settings.samples import SampleSettings
from driftgate.storage.manifest import Listing, read_listing, write_manifest
from driftgate.storage.npz import write_npz
from driftgate.storage.sampledata import Order, SampleData, changes, gaps, listed
from driftgate.storage.tensorfiles import open_source

#: Options that a configuration says itself, with their defaults.
SAID_BY_CONFIG = ("runtime", "manifest", "name", "origin", "block")
MANIFEST = Path("samples.json")


@dataclass(frozen=True, slots=True)
class Task:
    """A data set, and the manifest of it; None where only its tensors are asked for."""

    data: SampleData
    manifest: Path | None
    name: str
    origin: Origin
    block: int
    order: Order = Order.NAME
    stamped: bool = False
    profiles: Mapping[str, int] = field(default_factory=dict)


@click.command("samples")
@click.argument("raw", type=click.Path(path_type=Path), required=False)
@click.option("-c", "--config", type=click.Path(path_type=Path), help="Take data set and manifest from this.")
@click.option("--subject", "subjects", multiple=True, help="With --config: only this subject; may be repeated.")
@click.option("--runtime", type=click.Path(path_type=Path), help="What the deployed model eats, with the same ids.")
@click.option("--manifest", type=click.Path(path_type=Path), help=f"The manifest; {MANIFEST} by default.")
@click.option("--name", help="The data set's name; the file's by default.")
@click.option("--origin", type=click.Choice([o.value for o in Origin]), help="Where they come from; real by default.")
@click.option("--block", type=click.IntRange(min=1), help=f"Samples in the smallest share of work; {BLOCK} by default.")
@click.option("--check", "checking", is_flag=True, help="Compare with the manifest instead of writing it.")
@click.option("--materialise", type=click.Path(path_type=Path), help="Write the tensors too, as .npz in this folder.")
@verbose_option
@guarded
def command(
    raw: Path | None,
    config: Path | None,
    subjects: tuple[str, ...],
    runtime: Path | None,
    manifest: Path | None,
    name: str | None,
    origin: str | None,
    block: int | None,
    checking: bool,
    materialise: Path | None,
    verbose: bool,
) -> int:
    """Note which samples there are and what is in them.

    RAW is a stacked .npz, a folder of .npz, or of ID/TENSOR.npy. Without RAW, --config names raw and runtime
    samples, how images become them, and the manifest.
    """
    LogText(verbose=verbose)
    if raw is not None and config is None:
        if subjects:
            raise UsageError(message("samples-subject"))
        data = SampleData(open_source(raw), None if runtime is None else open_source(runtime))
        tasks: tuple[Task, ...] = (
            Task(data, manifest or MANIFEST, name or raw.stem, Origin(origin or Origin.REAL), block or BLOCK),
        )
    elif config is not None and raw is None:
        given = (runtime, manifest, name, origin, block)
        said = tuple(f"--{key}" for key, value in zip(SAID_BY_CONFIG, given, strict=True) if value is not None)
        if said:
            raise UsageError(message("samples-said-twice", options=said))
        tasks = _tasks(load(config, for_samples=True), subjects, tensors_too=materialise is not None)
    else:
        raise UsageError(message("samples-which"))
    if materialise is not None and len(tasks) > 1:
        raise UsageError(message("samples-one-folder", count=len(tasks)))
    codes = [_check(task) if checking else _make(task) for task in tasks]
    if materialise is not None and not any(codes):
        _materialise(tasks[0].data, materialise)
    return max(codes)


def _tasks(config: Config, subjects: Sequence[str], *, tensors_too: bool) -> tuple[Task, ...]:
    """One for each manifest that the configuration names; those without one too, where their tensors are wanted."""
    known = config.settings.subjects
    unknown = tuple(name for name in subjects if name not in known)
    if unknown:
        raise UsageError(message("subject-unknown", names=unknown, known=tuple(known)))
    chosen = {name: known[name].samples for name in subjects or known}
    without = tuple(name for name, settings in chosen.items() if settings.manifest is None)
    if without and not tensors_too and (subjects or len(without) == len(chosen)):
        raise UsageError(message("samples-no-manifest", subjects=without))
    makers: dict[Path, str] = {}
    mine: list[str] = []
    for name, settings in chosen.items():
        path = settings.manifest
        first = name if path is None else makers.setdefault(path, name)
        if first != name and not _same_data(chosen[first], settings):
            raise UsageError(message("samples-shared", manifest=str(path), first=first, second=name))
        if first == name and (path is not None or tensors_too):
            mine.append(name)
    return tuple(_task(config, name) for name in mine)


def _same_data(one: SampleSettings, other: SampleSettings) -> bool:
    plain: dict[str, object] = {"profiles": {}}
    return one.model_copy(update=plain) == other.model_copy(update=plain)


def _task(config: Config, name: str) -> Task:
    settings = config.settings.subjects[name].samples
    if settings.raw is None:
        raise UsageError(message("samples-no-raw", subject=name))
    return Task(
        data=settings.data(config.root),
        manifest=None if settings.manifest is None else config.root / settings.manifest,
        name=settings.raw.stem,
        origin=settings.origin,
        block=settings.block,
        order=settings.order,
        stamped=True,
        profiles=settings.profiles,
    )


def _make(task: Task) -> int:
    """Write the manifest; samples whose files nobody touched keep what the one before says."""
    manifest = task.manifest
    if manifest is None:
        return 0
    if manifest.is_dir():
        raise UsageError(message("manifest-folder", path=str(manifest)))
    with progress(message("progress-samples")) as advance:
        found = listed(
            task.data,
            task.name,
            origin=task.origin,
            block=task.block,
            order=task.order,
            folder=manifest.parent if task.stamped else None,
            before=_before(manifest),
            progress=advance,
        )
    count = len(found.samples.ids)
    too_large = {name: wanted for name, wanted in task.profiles.items() if wanted > count}
    if too_large:
        raise SampleError(*(message("profile-size", name=n, wanted=w, found=count) for n, w in too_large.items()))
    write_manifest(manifest, found)
    stdout().print(say(message("manifest-written", path=str(manifest), count=count)), markup=False)
    for name, wanted in task.profiles.items():
        stdout().print(say(message("manifest-profile", name=name, count=wanted)), markup=False)
    return 0


def _before(manifest: Path) -> Listing | None:
    """What the manifest said until now, where it can be understood."""
    try:
        return read_listing(manifest)
    except SampleError:
        return None


def _check(task: Task) -> int:
    manifest = task.manifest
    if manifest is None:
        return 0
    listing = read_listing(manifest)
    with progress(message("progress-samples")) as advance:
        missing = gaps(task.data, listing, manifest=str(manifest))
        ids = listing.samples.ids
        changed = changes(task.data, listing, ids, manifest=manifest, trusting=False, progress=advance)
    problems = (*missing, *changed)
    for problem in problems:
        stderr().print(f"driftgate: {say(problem)}", markup=False, style="red")
    if problems:
        return EXIT_ERROR
    stdout().print(say(message("manifest-kept", path=str(manifest), count=len(ids))), markup=False)
    return 0


def _materialise(data: SampleData, folder: Path) -> None:
    """Write each sample's tensors: folder/raw/<id>.npz, and folder/runtime/<id>.npz where runtime has its own.

    Raises UsageError where the folder is not empty, SampleError, StorageError.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(message("samples-folder-taken", path=str(folder)))
    kinds = [
        kind for kind, source in ((FeedKind.RAW, data.raw), (FeedKind.RUNTIME, data.runtime)) if source is not None
    ]
    ids = data.ids()
    with progress(message("progress-tensors")) as advance:
        for done, sample in enumerate(ids, 1):
            feeds = data.read(sample)
            for kind in kinds:
                write_npz(folder / kind.value / f"{sample}.npz", feeds[kind], compressed=False)
            advance(done, len(ids))
    stdout().print(say(message("samples-materialised", path=str(folder), count=len(ids))), markup=False)
