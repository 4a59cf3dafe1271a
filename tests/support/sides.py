"""Sides of a link for tests of localisation, and a runtime that is watched: what it was asked, what is held."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.backends.onnxruntime_backend import OnnxParts, OnnxRuntimeBackend
from driftgate.domain.runs import Environment
from driftgate.domain.tensors import Signature
from driftgate.localisation.subject import Subject, read_subject
from driftgate.messages.message import Message
from driftgate.sessions import Artifact, Session

Array = NDArray[Any]
Feeds = Mapping[str, Mapping[str, Array]]


def side(stage: str, model: onnx.ModelProto | Path, feeds: Feeds, folder: Path, **options: Any) -> Subject:
    """An ONNX model as one side."""
    return watched(stage, model, feeds, folder, **options)[0]


def watched(
    stage: str, model: onnx.ModelProto | Path, feeds: Feeds, folder: Path, watch: Watch | None = None, **options: Any
) -> tuple[Subject, Watch]:
    """The same, and what happens to it; several sides may be watched together."""
    path = model if isinstance(model, Path) else folder / f"{stage}.onnx"
    if not isinstance(model, Path):
        onnx.save(model, str(path))
    watch = watch or Watch()
    backend = WatchedBackend(watch)
    artifact = Artifact(stage, "onnxruntime", path, {"threads": 1, **options})
    return read_subject(stage, artifact, backend, backend, lambda sample: feeds[sample]), watch


@dataclass(slots=True)
class Watch:
    """`opened` has the outputs of every session; `held` the most bytes of outputs that were alive at once."""

    opened: list[tuple[str, ...]] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    held: int = 0
    _alive: list[weakref.ref[Array]] = field(default_factory=list)

    def note(self, outputs: Mapping[str, Array]) -> None:
        """A run gave these."""
        self._alive = [ref for ref in self._alive if ref() is not None]
        self._alive.extend(weakref.ref(output) for output in outputs.values())
        self.held = max(self.held, sum(value.nbytes for ref in self._alive if (value := ref()) is not None))


class WatchedBackend(OnnxRuntimeBackend):
    """ONNX Runtime, with `shift` added to every output of a tapped session."""

    def __init__(self, watch: Watch, shift: float = 0.0) -> None:
        self._watch = watch
        self._shift = shift

    def take_apart(self, artifact: Artifact) -> WatchedParts:  # type: ignore[override]
        """The parts, watched."""
        return WatchedParts(super().take_apart(artifact), self._watch, self._shift)


class WatchedParts:
    """Parts whose sessions are watched."""

    def __init__(self, parts: OnnxParts, watch: Watch, shift: float) -> None:
        self._parts = parts
        self._watch = watch
        self._shift = shift
        self.model = parts.model
        self.folder = parts.folder

    def open(self, model: onnx.ModelProto, taps: Sequence[str] = ()) -> Session:
        """Open it and look on."""
        session = self._parts.open(model, taps)
        self._watch.opened.append(tuple(spec.name for spec in session.signature.outputs))
        return WatchedSession(session, self._watch, self._shift if taps else 0.0)


class WatchedSession:
    """A session that tells what it gave."""

    def __init__(self, session: Session, watch: Watch, shift: float) -> None:
        self._session = session
        self._watch = watch
        self._shift = shift

    @property
    def signature(self) -> Signature | None:
        return self._session.signature

    @property
    def environment(self) -> Environment:
        return self._session.environment

    @property
    def notes(self) -> tuple[Message, ...]:
        return self._session.notes

    def infer(self, feeds: Mapping[str, Array], *, sample: str) -> dict[str, Array]:
        outputs = self._session.infer(feeds, sample=sample)
        if self._shift:
            outputs = {name: (value + np.float32(self._shift)).astype(value.dtype) for name, value in outputs.items()}
        self._watch.runs.append(sample)
        self._watch.note(outputs)
        return outputs

    def __enter__(self) -> WatchedSession:
        self._session.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.__exit__(kind, error, trace)
