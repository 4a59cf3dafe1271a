"""Runs an .hbm on the board that this program itself runs on, with the vendor's hbm_runtime."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from driftgate.backends.artifactfiles import files_digest
from driftgate.backends.board.cores import runtime_cores
from driftgate.backends.foreign import WORKERS, ForeignSession, WorkerCall, open_foreign
from driftgate.backends.quantfile import FILE_NAME, read_quantization, signature_path
from driftgate.errors import ArtifactError
from driftgate.messages.message import message
from driftgate.sessions import Artifact

SCRIPT = WORKERS / "hbm_runtime_worker.py"
DEFAULT_SECONDS = 600.0


class HbmRuntimeBackend:
    """The artifact is an .hbm, the machine a board with HB_HBMRuntime (toolchain facts §8).

    Options: `python` (command of an interpreter that has hbm_runtime), `timeout` (seconds an answer may take), `model`
    (the network, where a packed .hbm has several), `core` (counted from 0), `priority` (of its tasks). Nothing can be
    tapped. Scales are what the runtime tells; `<name>.signature.json` beside the file goes before it.
    """

    needs_feeds = True

    def digest(self, artifact: Artifact) -> str:
        """SHA-256 over the file, and the signature.json."""
        return hbm_digest(artifact)

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> ForeignSession:
        """Start the worker and let it load the file. Raises LoadRefused for what the runtime does not load."""
        path, options = hbm_path(artifact), artifact.options
        priority = options.get("priority")
        request = {
            "path": str(path.absolute()),
            "model": options.get("model"),
            "cores": list(runtime_cores(options.get("core"))),
            "priority": None if priority is None else int(priority),
        }
        return open_foreign(
            WorkerCall(
                stage=artifact.stage,
                interpreter=tuple(options.get("python") or (sys.executable,)),
                script=SCRIPT,
                request=request,
                seconds=float(options.get("timeout") or DEFAULT_SECONDS),
                taps=tuple(taps),
                quantization=read_quantization(signature_path(path)) or {},
            )
        )


def hbm_path(artifact: Artifact) -> Path:
    """Where the .hbm is. Raises ArtifactError where it is not there."""
    if artifact.path is None:
        raise ArtifactError(message("artifact-no-path", stage=artifact.stage, backend=artifact.backend))
    if not artifact.path.is_file():
        raise ArtifactError(message("artifact-missing", path=str(artifact.path)))
    return artifact.path


def hbm_digest(artifact: Artifact) -> str:
    """SHA-256 over an .hbm, and the signature.json where there is one. Raises ArtifactError."""
    path = hbm_path(artifact)
    signature = signature_path(path)
    return files_digest([("", path), *([(FILE_NAME, signature)] if signature.exists() else [])])
