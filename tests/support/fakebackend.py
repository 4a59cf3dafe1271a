"""A backend whose worker is support/fake_worker.py: a real process that speaks the protocol with numpy alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from driftgate.backends.artifactfiles import files_digest
from driftgate.backends.foreign import ForeignSession, WorkerCall, open_foreign
from driftgate.errors import ArtifactError
from driftgate.messages.message import message
from driftgate.sessions import Artifact

FAKE_WORKER = Path(__file__).with_name("fake_worker.py")


class FakeBackend:
    """The tiny network of support.models, its weights in an `.npz`. Options: `fault`."""

    needs_feeds = True

    def digest(self, artifact: Artifact) -> str:
        """The SHA-256 of the weights."""
        return files_digest([("", _path(artifact))])

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> ForeignSession:
        """Start the worker."""
        request = {"path": str(_path(artifact)), **artifact.options}
        call = WorkerCall(artifact.stage, (sys.executable,), FAKE_WORKER, request, seconds=60, taps=tuple(taps))
        return open_foreign(call)


def _path(artifact: Artifact) -> Path:
    if artifact.path is None:
        raise ArtifactError(message("artifact-no-path", stage=artifact.stage, backend=artifact.backend))
    return artifact.path
