"""Outputs that an earlier run of the same artifact on the same sample in the same environment gave, kept in a folder
within a budget of bytes: a run that changed nothing is not made again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from driftgate.backends.registry import backend
from driftgate.domain.digest import digest
from driftgate.domain.runs import BOARD_BACKENDS
from driftgate.errors import SampleError, StorageError
from driftgate.messages.message import message
from driftgate.sessions import Artifact, Session, Tensor, Tensors
from driftgate.sharing import Around, Opener
from driftgate.storage.npz import write_npz
from driftgate.storage.tensorfiles import read_npz, tensors_digest

BUDGET_BYTES = 2 << 30


class Recall:
    """A folder of outputs by what they depend on. Of a full one what was not used for longest goes first.

    Raises StorageError where the folder cannot be made.
    """

    def __init__(self, folder: Path, *, budget_bytes: int = BUDGET_BYTES) -> None:
        self._folder = folder
        self._budget = budget_bytes
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                message("folder-not-written", path=str(folder), reason=error.strerror or str(error))
            ) from error

    def around(self, opener: Opener) -> Opener:
        """Opens sessions that remember; what a board says now is what is asked of it, and never recalled."""

        @contextmanager
        def remembering(artifact: Artifact) -> Iterator[Session]:
            identity = (backend(artifact.backend).digest(artifact), repr(sorted(artifact.options.items())))
            with opener(artifact) as session:
                yield _Remembering(session, self, identity)

        return lambda artifact: (opener if artifact.backend in BOARD_BACKENDS else remembering)(artifact)

    def find(self, key: str) -> dict[str, Tensor] | None:
        """The outputs of a key; None where there are none, or they are damaged."""
        path = self._folder / f"{key}.npz"
        if not path.is_file():
            return None
        try:
            made = read_npz(path)
        except SampleError:
            path.unlink(missing_ok=True)
            return None
        os.utime(path)
        return made

    def keep(self, key: str, outputs: Tensors) -> None:
        """Keep outputs; a folder that cannot be written keeps nothing."""
        with suppress(StorageError, OSError):
            write_npz(self._folder / f"{key}.npz", dict(outputs), compressed=False)

    def prune(self) -> None:
        """Remove what the budget has no room for."""
        files = sorted(self._folder.glob("*.npz"), key=lambda path: path.stat().st_mtime, reverse=True)
        held = 0
        for path in files:
            held += path.stat().st_size
            if held > self._budget:
                path.unlink(missing_ok=True)


class _Remembering(Around):
    """A session that runs only what it never ran."""

    def __init__(self, session: Session, recall: Recall, artifact: tuple[str, str]) -> None:
        super().__init__(session)
        self._recall = recall
        self._identity = digest((*artifact, session.environment.id))
        self._is_trusted: bool | None = None  # None: nothing was compared yet

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """The outputs, recalled where these feeds of this sample were run before.

        The first that could be recalled is run all the same: only where it gives what is kept, to the bit, the others
        are recalled. An artifact's files do not tell everything that it loads.
        """
        key = digest((self._identity, sample, tensors_digest(feeds)))
        known = None if self._is_trusted is False else self._recall.find(key)
        if known is not None and self._is_trusted:
            return known
        made = self._session.infer(feeds, sample=sample)
        if known is not None:
            self._is_trusted = tensors_digest(known) == tensors_digest(made)
        self._recall.keep(key, made)
        return made
