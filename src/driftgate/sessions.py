"""The boundary between driftgate and whatever runs an artifact: the Backend and Session protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from numpy.typing import NDArray

from driftgate.domain.runs import Environment
from driftgate.domain.tensors import Signature
from driftgate.messages.message import Message

Tensor = NDArray[Any]
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Artifact:
    """What stands for a stage: which backend runs it, its file or folder, and the backend's own options.

    `options` has plain values (strings, numbers, booleans, tuples of strings), or a Boards; each backend documents
    its own.
    """

    stage: str
    backend: str
    path: Path | None
    options: Mapping[str, Any] = field(default_factory=dict)


class Session(Protocol):
    """One opened artifact. `infer` runs it once, on one sample; close it by leaving its `with` block."""

    @property
    def signature(self) -> Signature | None:
        """Inputs and outputs; None where a recording cannot know its inputs' types before it is read."""

    @property
    def environment(self) -> Environment:
        """What it runs on."""

    @property
    def notes(self) -> tuple[Message, ...]:
        """What the reader of a report should know of this session."""

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """The outputs for one sample, raw as the artifact gives them, taps included, each a fresh array.

        Raises BackendError if it cannot run, SampleError if the feeds do not fit.
        """

    def __enter__(self) -> Session: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Backend(Protocol):
    """Opens artifacts of one kind. Third parties register one under the entry point `driftgate.backends`."""

    #: Whether sessions eat feeds; a recording does not.
    needs_feeds: bool

    def digest(self, artifact: Artifact) -> str:
        """SHA-256 over the content of all files that make the artifact. Raises ArtifactError."""

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> Session:
        """Open it, with intermediate tensors `taps` as further outputs.

        Raises ArtifactError if it cannot be read, LoadRefused if the runtime meant for it refuses it,
        BackendError if the runtime is not there or cannot tap.
        """
