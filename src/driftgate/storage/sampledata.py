"""The data set on disk: raw and runtime feeds of each sample, checked against the digests of the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driftgate.domain.chain import FeedKind
from driftgate.domain.samples import Origin, SampleSet
from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.sessions import Tensor
from driftgate.storage.tensorfiles import TensorSource, tensors_digest

RUNTIME_PREFIX = "runtime:"


@dataclass(frozen=True, slots=True)
class SampleData:
    """Sources of feeds. `runtime` None: the deployed model eats the raw samples too."""

    raw: TensorSource | None
    runtime: TensorSource | None

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

    def ids(self) -> tuple[str, ...]:
        """All samples. Raises SampleError where raw and runtime samples are not the same."""
        sources = [source for source in (self.raw, self.runtime) if source is not None]
        if len(sources) == 2 and sources[0].ids != sources[1].ids:
            only = tuple(sorted(set(sources[0].ids) ^ set(sources[1].ids)))
            raise SampleError(message("samples-differ", raw=len(sources[0].ids), runtime=len(sources[1].ids), ids=only))
        return sources[0].ids if sources else ()

    def sample_set(
        self, name: str, *, origin: Origin, block: int, progress: Callable[[int, int], None] | None = None
    ) -> SampleSet:
        """Read every sample once and note what is in it. Raises SampleError where there is none."""
        ids = self.ids()
        if not ids:
            raise SampleError(message("samples-none"))
        digests = []
        for done, sample in enumerate(ids, 1):
            digests.append(self._digest(self.read(sample)))
            if progress is not None:
                progress(done, len(ids))
        return SampleSet(name, ids, tuple(digests), origin, block)

    def _digest(self, feeds: dict[FeedKind, dict[str, Tensor]]) -> str:
        tensors = dict(feeds[FeedKind.RAW]) if self.raw is not None else {}
        if self.runtime is not None:
            tensors.update({RUNTIME_PREFIX + name: t for name, t in feeds[FeedKind.RUNTIME].items()})
        return tensors_digest(tensors)
