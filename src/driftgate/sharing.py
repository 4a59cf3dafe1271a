"""Artifacts that several targets of one network have in common: each is opened once and runs once a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType

from driftgate.backends.registry import backend
from driftgate.domain.digest import digest
from driftgate.domain.runs import Environment, Performance
from driftgate.domain.tensors import Signature
from driftgate.errors import DriftgateError
from driftgate.messages.message import Message
from driftgate.numerics.alignment import all_equal
from driftgate.sessions import Artifact, Session, Tensor, Tensors

#: Opens an artifact for as long as the `with` block lasts.
Opener = Callable[[Artifact], AbstractContextManager[Session]]


def open_alone(artifact: Artifact) -> AbstractContextManager[Session]:
    """A session of its own."""
    return backend(artifact.backend).open(artifact)


class Shared:
    """Opens each artifact once with an `opener`, however often it is asked for; all are closed together with this.

    Those that share a session must go through their samples side by side: it knows the answers of one sample.
    """

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._resources = ExitStack()
        self._open: dict[str, _Once] = {}
        self._failed: dict[str, DriftgateError] = {}

    def open(self, artifact: Artifact) -> AbstractContextManager[Session]:
        """The session of an artifact. Raises what its backend raised the first time."""
        key = digest((artifact.stage, artifact.backend, str(artifact.path), repr(sorted(artifact.options.items()))))
        if key in self._failed:
            raise self._failed[key]
        if key not in self._open:
            try:
                self._open[key] = _Once(self._resources.enter_context(self._opener(artifact)))
            except DriftgateError as error:
                self._failed[key] = error
                raise
        return self._open[key]

    def __enter__(self) -> Shared:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()


class Around:
    """A session around another: what it says is what that one says. Who opened that one closes it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def signature(self) -> Signature | None:
        """That of the session."""
        return self._session.signature

    @property
    def optional_inputs(self) -> tuple[str, ...]:
        """Those of the session; none where it has no such thing."""
        found: tuple[str, ...] = getattr(self._session, "optional_inputs", ())
        return found

    @property
    def environment(self) -> Environment:
        """That of the session."""
        return self._session.environment

    @property
    def ahead(self) -> Callable[..., None] | None:
        """That of the session, whose samples can be announced; None for others."""
        found: Callable[..., None] | None = getattr(self._session, "ahead", None)
        return found

    @property
    def speed(self) -> Callable[[str], Performance | None] | None:
        """That of the session, which measures it; None for others."""
        found: Callable[[str], Performance | None] | None = getattr(self._session, "speed", None)
        return found

    @property
    def told(self) -> Mapping[str, str]:
        """What the artifact says of itself; nothing where the session has no such thing."""
        found: Mapping[str, str] = getattr(self._session, "told", {})
        return found

    @property
    def notes(self) -> tuple[Message, ...]:
        """Those of the session."""
        return self._session.notes

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """The outputs of the session."""
        return self._session.infer(feeds, sample=sample)

    def __enter__(self) -> Around:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class _Once(Around):
    """A session that runs the same feeds of a sample once; what came of the last sample is kept."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._sample: str | None = None
        self._answers: list[tuple[Tensors, dict[str, Tensor]]] = []
        self._failed: DriftgateError | None = None

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """The outputs, from the first time these feeds were given; a session that failed has failed for all."""
        if self._failed is not None:
            raise self._failed
        if sample != self._sample:
            self._sample, self._answers = sample, []
        for given, outputs in self._answers:
            if all_equal(given, feeds):
                return dict(outputs)
        try:
            made = self._session.infer(feeds, sample=sample)
        except DriftgateError as error:
            self._failed = error
            raise
        self._answers.append((dict(feeds), made))
        return dict(made)
