"""Runs the vendor's stages in a worker under the vendor's interpreter or container: Hz ONNX, .bc, simulated .hbm."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from driftgate.backends.artifactfiles import files_digest
from driftgate.backends.foreign import WORKERS, ForeignSession, WorkerCall, open_foreign
from driftgate.backends.quantfile import FILE_NAME, read_quantization, signature_path
from driftgate.errors import ArtifactError
from driftgate.messages.message import message
from driftgate.sessions import Artifact

SCRIPT = WORKERS / "hbruntime_worker.py"
#: An .hbm is simulated cycle by cycle on the host: tens of seconds for a small network (toolchain facts §1.6).
DEFAULT_SECONDS = 3600.0


class HbRuntimeBackend:
    """The artifact is a file that HBRuntime loads.

    Options: `python` (command of the vendor's interpreter, such as `docker run …`), `timeout` (seconds an answer
    may take), `model` (the network, where a packed .hbm has several). Nothing can be tapped: HBRuntime gives the
    network's outputs only. The scales of integer inputs and outputs, those of removed quantise and dequantise nodes,
    are what hbdk4.compiler tells where it is installed; `<name>.signature.json` beside the file goes before it.
    """

    needs_feeds = True

    def digest(self, artifact: Artifact) -> str:
        """SHA-256 over the file, and the signature.json."""
        if artifact.path is None:
            raise ArtifactError(message("artifact-no-path", stage=artifact.stage, backend=artifact.backend))
        signature = signature_path(artifact.path)
        parts = [("", artifact.path), *([(FILE_NAME, signature)] if signature.exists() else [])]
        return files_digest(parts)

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> ForeignSession:
        """Start the worker and let it load the file. Raises LoadRefused for what the runtime does not load."""
        if artifact.path is None:
            raise ArtifactError(message("artifact-no-path", stage=artifact.stage, backend=artifact.backend))
        if not artifact.path.is_file():
            raise ArtifactError(message("artifact-missing", path=str(artifact.path)))
        options = artifact.options
        return open_foreign(
            WorkerCall(
                stage=artifact.stage,
                interpreter=tuple(options.get("python") or (sys.executable,)),
                script=SCRIPT,
                request={"path": str(artifact.path.absolute()), "model": options.get("model")},
                seconds=float(options.get("timeout") or DEFAULT_SECONDS),
                taps=tuple(taps),
                quantization=read_quantization(signature_path(artifact.path)) or {},
            )
        )
