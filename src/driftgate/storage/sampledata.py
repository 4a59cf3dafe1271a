"""The data set on disk: raw and runtime feeds of each sample, checked against the digests of the plan."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from driftgate.domain.chain import FeedKind
from driftgate.domain.samples import Origin, SampleSet
from driftgate.errors import SampleError
from driftgate.messages.message import Message, message
from driftgate.sessions import Tensor
from driftgate.storage.imagefolder import ImageFolder
from driftgate.storage.manifest import Listing, Stamp
from driftgate.storage.tensorfiles import TensorSource, is_text, tensors_digest
from driftgate.transforms.geometry import Geometry
from driftgate.transforms.images import decoder

RUNTIME_PREFIX = "runtime:"
Advance = Callable[[int, int], None]


class Order(str, Enum):
    """The order of samples, of which a profile takes the first ones."""

    NAME = "name"
    SPREAD = "spread"  # as if shuffled, always the same way; a sample that is added moves no other


@dataclass(frozen=True, slots=True)
class SampleData:
    """Sources of feeds. `runtime` None: the deployed model eats the raw samples too.

    Where they are made of images, `images` is their folder and `preprocess` the declaration, as JSON values.
    """

    raw: TensorSource | None
    runtime: TensorSource | None
    images: ImageFolder | None = None
    preprocess: Mapping[str, Any] | None = None

    @property
    def decoder(self) -> str | None:
        """What decodes the images; None where there are none."""
        return None if self.images is None else decoder()

    def read(self, sample: str) -> dict[FeedKind, dict[str, Tensor]]:
        """One sample's feeds of both kinds. Raises SampleError."""
        raw = {} if self.raw is None else self.raw.read(sample)
        runtime = raw if self.runtime is None else self.runtime.read(sample)
        return {FeedKind.RAW: raw, FeedKind.RUNTIME: runtime}

    def checked(self, sample: str, digest: str) -> dict[FeedKind, dict[str, Tensor]]:
        """The same; raises SampleError where it is not what the plan has. Without sources there are no feeds."""
        feeds = self.read(sample)
        if (self.raw is not None or self.runtime is not None) and self._digest(feeds) != digest:
            raise SampleError(message("sample-changed", sample=sample))
        return feeds

    def geometry(self, sample: str) -> Geometry | None:
        """Where a sample's image lies in the network's input; None where it is none. Raises SampleError."""
        return None if self.images is None else self.images.geometry(sample)

    def files(self, sample: str) -> dict[str, Path]:
        """The files that a sample is made of, by what a manifest calls them: the path, runtime ones with a prefix."""
        raw = () if self.raw is None else self.raw.files(sample)
        runtime = () if self.runtime is None else self.runtime.files(sample)
        return {**{str(file): file for file in raw}, **{RUNTIME_PREFIX + str(file): file for file in runtime}}

    def ids(self) -> tuple[str, ...]:
        """All samples. Raises SampleError where raw and runtime samples are not the same."""
        sources = [source for source in (self.raw, self.runtime) if source is not None]
        if len(sources) == 2 and sources[0].ids != sources[1].ids:
            only = tuple(sorted(set(sources[0].ids) ^ set(sources[1].ids)))
            raise SampleError(message("samples-differ", raw=len(sources[0].ids), runtime=len(sources[1].ids), ids=only))
        return sources[0].ids if sources else ()

    def sample_set(
        self,
        name: str,
        *,
        origin: Origin,
        block: int,
        order: Order = Order.NAME,
        known: Mapping[str, str] | None = None,
        progress: Advance | None = None,
    ) -> SampleSet:
        """Read every sample once and note what is in it, but for those whose digest is known already.

        Raises SampleError where there is none, or with all those that cannot be read.
        """
        ids = ordered(self.ids(), order)
        if not ids:
            raise SampleError(message("samples-none"))
        digests: list[str] = []
        problems: list[Message] = []
        for done, sample in enumerate(ids, 1):
            try:
                digests.append((known or {}).get(sample) or self._digest(self.read(sample)))
            except SampleError as error:
                problems.extend(error.problems)
            if progress is not None:
                progress(done, len(ids))
        if problems:
            raise SampleError(*problems)
        return SampleSet(name, ids, tuple(digests), origin, block)

    def _digest(self, feeds: dict[FeedKind, dict[str, Tensor]]) -> str:
        tensors = dict(feeds[FeedKind.RAW]) if self.raw is not None else {}
        if self.runtime is not None:
            tensors.update({RUNTIME_PREFIX + name: t for name, t in feeds[FeedKind.RUNTIME].items()})
        return tensors_digest(tensors)


def ordered(ids: Iterable[str], order: Order) -> tuple[str, ...]:
    """Samples in an order that depends on their ids alone."""
    return tuple(sorted(ids, key=_KEYS[order]))


_KEYS: Mapping[Order, Callable[[str], str]] = {
    Order.NAME: str,
    Order.SPREAD: lambda sample: hashlib.sha256(sample.encode("utf-8", "surrogatepass")).hexdigest(),
}


def listed(
    data: SampleData,
    name: str,
    *,
    origin: Origin,
    block: int,
    order: Order,
    folder: Path | None,
    before: Listing | None = None,
    progress: Advance | None = None,
) -> Listing:
    """What a manifest in `folder` says of the data; without a folder, it has no stamps.

    Samples whose files have the stamps of the manifest `before` are not read again. Raises SampleError.
    """
    stamps = {} if folder is None else {sample: _stamps(data, sample, folder) for sample in data.ids()}
    known = {} if before is None else _unchanged(data, before, stamps)
    samples = data.sample_set(name, origin=origin, block=block, order=order, known=known, progress=progress)
    geometry = {sample: data.geometry(sample) for sample in samples.ids}
    return Listing(
        samples=samples,
        geometry={sample: found for sample, found in geometry.items() if found is not None},
        files=stamps,
        preprocess=data.preprocess,
        decoder=data.decoder,
    )


def gaps(data: SampleData, listing: Listing, *, manifest: str) -> tuple[Message, ...]:
    """Samples that only the manifest has, and those that only the data have. Raises SampleError."""
    there, here = {*data.ids()}, {*listing.samples.ids}
    lost = tuple(sample for sample in listing.samples.ids if sample not in there)
    extra = tuple(sorted(there - here))
    return (
        *((message("samples-lost", manifest=manifest, ids=lost),) if lost else ()),
        *((message("samples-extra", manifest=manifest, ids=extra),) if extra else ()),
    )


def changes(
    data: SampleData,
    listing: Listing,
    samples: Sequence[str],
    *,
    manifest: Path,
    trusting: bool,
    progress: Advance | None = None,
) -> tuple[Message, ...]:
    """What of these samples is not what the manifest has, or cannot be read; those that the data lack are left out.

    Trusting, a sample is read only where a file's size or time of change is not that of the manifest, and none
    where the manifest has no stamps. Raises SampleError where raw and runtime samples are not the same.
    """
    if data.preprocess is not None and listing.preprocess not in (None, data.preprocess):
        return (message("manifest-preprocess", manifest=str(manifest), keys=_different(data, listing)),)
    if trusting and not listing.files:
        return ()
    there = {*data.ids()}
    ids = tuple(sample for sample in samples if sample in there)
    stamps = {sample: _stamps(data, sample, manifest.parent) for sample in ids} if trusting else {}
    unchanged = _unchanged(data, listing, stamps)
    digests = dict(zip(listing.samples.ids, listing.samples.digests, strict=True))
    problems: list[Message] = []
    changed: list[str] = []
    for done, sample in enumerate(ids, 1):
        try:
            if sample not in unchanged:
                data.checked(sample, digests[sample])
        except SampleError as error:
            problems.extend(problem for problem in error.problems if problem.code != "sample-changed")
            changed.extend(sample for problem in error.problems if problem.code == "sample-changed")
        if progress is not None:
            progress(done, len(ids))
    if changed:
        problems.append(message("samples-changed", manifest=str(manifest), ids=tuple(changed)))
    here = data.decoder
    if changed and here is not None and listing.decoder not in (None, here):
        problems.append(message("manifest-decoder", manifest=str(manifest), made=listing.decoder or "", here=here))
    return tuple(problems)


def _different(data: SampleData, listing: Listing) -> tuple[str, ...]:
    """The keys of two declarations that differ, as `part.key`."""
    here, there = ({**(declared or {})} for declared in (data.preprocess, listing.preprocess))
    parts = sorted({*here, *there})
    return tuple(
        f"{part}.{key}"
        for part in parts
        for key in sorted({*(here.get(part) or {}), *(there.get(part) or {})})
        if (here.get(part) or {}).get(key) != (there.get(part) or {}).get(key)
    )


def _stamps(data: SampleData, sample: str, folder: Path) -> dict[str, Stamp]:
    """Size and time of change of a sample's files, by their path from `folder`.

    Files that are not there or whose names are no text have none, so that their samples are read.
    """
    found: dict[str, Stamp] = {}
    for name, file in data.files(sample).items():
        prefix = name.removesuffix(str(file))
        path = prefix + Path(os.path.relpath(file, folder)).as_posix()
        try:
            status = file.stat()
        except OSError:
            return {}
        if not is_text(path):
            return {}
        found[path] = (status.st_size, status.st_mtime_ns)
    return found


def _unchanged(data: SampleData, listing: Listing, stamps: Mapping[str, Mapping[str, Stamp]]) -> dict[str, str]:
    """Digests of the samples whose files are those that the manifest was made of."""
    if (listing.preprocess, listing.decoder) != (data.preprocess, data.decoder):
        return {}
    digests = dict(zip(listing.samples.ids, listing.samples.digests, strict=True))
    return {
        sample: digests[sample]
        for sample, files in stamps.items()
        if sample in digests and files and listing.files.get(sample) == files
    }
