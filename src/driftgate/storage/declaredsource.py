"""Runtime samples that are made of raw ones by declaration, each when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.sessions import Tensor
from driftgate.storage.tensorfiles import TensorSource
from driftgate.transforms.declared import Declaration, DeclarationError, raw_of, roi_name, runtime_of


class DeclaredRuntime:
    """What the deployed model eats of each raw sample; inputs that are not declared are handed on."""

    def __init__(self, raw: TensorSource, declared: Mapping[str, Declaration]) -> None:
        self._raw = raw
        self._declared = declared

    @property
    def ids(self) -> tuple[str, ...]:
        """Those of the raw samples."""
        return self._raw.ids

    def read(self, sample_id: str) -> dict[str, Tensor]:
        """The runtime tensors by name. Raises SampleError where a tensor is not as declared."""
        feeds = self._raw.read(sample_id)
        missing = tuple(name for name in self._declared if name not in feeds)
        if missing:
            raise SampleError(message("declared-missing", sample=sample_id, inputs=missing, feeds=tuple(feeds)))
        made: dict[str, Tensor] = {}
        for name, value in feeds.items():
            with _told(sample_id, name):
                made.update(runtime_of(name, value, self._declared.get(name, Declaration())))
        return made

    def files(self, sample_id: str) -> tuple[Path, ...]:
        """None of its own."""
        self._raw.files(sample_id)
        return ()


class DeclaredRaw:
    """What the float model eats of each runtime sample (NV12 recordings, for instance)."""

    def __init__(self, runtime: TensorSource, declared: Mapping[str, Declaration]) -> None:
        self._runtime = runtime
        self._declared = declared

    @property
    def ids(self) -> tuple[str, ...]:
        """Those of the runtime samples."""
        return self._runtime.ids

    def read(self, sample_id: str) -> dict[str, Tensor]:
        """The float tensors by name. Raises SampleError where a tensor is not as declared."""
        feeds = self._runtime.read(sample_id)
        made: dict[str, Tensor] = {}
        for name, one in self._declared.items():
            with _told(sample_id, name):
                made[name] = raw_of(name, feeds, one)
        used = {f"{name}{ending}" for name in self._declared for ending in ("", "_y", "_uv")}
        used |= {roi_name(name, one) for name, one in self._declared.items() if one.roi is not None}
        return {**made, **{name: value for name, value in feeds.items() if name not in used}}

    def files(self, sample_id: str) -> tuple[Path, ...]:
        """None of its own."""
        self._runtime.files(sample_id)
        return ()


@contextmanager
def _told(sample: str, name: str) -> Iterator[None]:
    """What does not fit its declaration becomes an error of the sample."""
    try:
        yield
    except DeclarationError as error:
        raise SampleError(message("declared-otherwise", sample=sample, input=name, reason=str(error))) from error
