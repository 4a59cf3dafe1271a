"""`driftgate samples`: make and check the sample manifest."""

from __future__ import annotations

from pathlib import Path

import click

from driftgate.commands.speaking import EXIT_ERROR, LogText, guarded, progress, say, stderr, stdout, verbose_option
from driftgate.domain.samples import BLOCK, Origin
from driftgate.errors import SampleError, UsageError
from driftgate.messages.message import Message, message
from driftgate.storage.manifest import read_manifest, write_manifest
from driftgate.storage.sampledata import SampleData
from driftgate.storage.tensorfiles import open_source


@click.command("samples")
@click.argument("raw", type=click.Path(path_type=Path))
@click.option("--runtime", type=click.Path(path_type=Path), help="What the deployed model eats, with the same ids.")
@click.option("--manifest", type=click.Path(path_type=Path), default=Path("samples.json"), help="The manifest.")
@click.option("--name", help="The data set's name; the file's by default.")
@click.option("--origin", type=click.Choice([o.value for o in Origin]), default="real", help="Where they come from.")
@click.option("--block", type=click.IntRange(min=1), default=BLOCK, help="Samples in the smallest share of work.")
@click.option("--check", "checking", is_flag=True, help="Compare with the manifest instead of writing it.")
@verbose_option
@guarded
def command(
    raw: Path,
    runtime: Path | None,
    manifest: Path,
    name: str | None,
    origin: str,
    block: int,
    checking: bool,
    verbose: bool,
) -> int:
    """Note which samples RAW holds (stacked .npz, folder of .npz, or of ID/TENSOR.npy) and what is in them."""
    LogText(verbose=verbose)
    data = SampleData(open_source(raw), None if runtime is None else open_source(runtime))
    if checking:
        return _check(data, manifest)
    if manifest.is_dir():
        raise UsageError(message("manifest-folder", path=str(manifest)))
    with progress(message("progress-samples")) as advance:
        found = data.sample_set(name or raw.stem, origin=Origin(origin), block=block, progress=advance)
    write_manifest(manifest, found)
    stdout().print(say(message("manifest-written", path=str(manifest), count=len(found.ids))), markup=False)
    return 0


def _check(data: SampleData, manifest: Path) -> int:
    listed = read_manifest(manifest)
    there = data.ids()
    problems: list[Message] = []
    lost = tuple(sample for sample in listed.ids if sample not in there)
    extra = tuple(sample for sample in there if sample not in listed.ids)
    if lost:
        problems.append(message("samples-lost", manifest=str(manifest), ids=lost))
    if extra:
        problems.append(message("samples-extra", manifest=str(manifest), ids=extra))
    changed: list[str] = []
    digests = dict(zip(listed.ids, listed.digests, strict=True))
    with progress(message("progress-samples")) as advance:
        for done, sample in enumerate((s for s in listed.ids if s in there), 1):
            try:
                data.checked(sample, digests[sample])
            except SampleError as error:
                problems.extend(problem for problem in error.problems if problem.code != "sample-changed")
                changed.extend(sample for problem in error.problems if problem.code == "sample-changed")
            advance(done, len(listed.ids))
    if changed:
        problems.append(message("samples-changed", manifest=str(manifest), ids=tuple(changed)))
    for problem in problems:
        stderr().print(f"driftgate: {say(problem)}", markup=False, style="red")
    if problems:
        return EXIT_ERROR
    stdout().print(say(message("manifest-kept", path=str(manifest), count=len(listed.ids))), markup=False)
    return 0
