"""Files of the vendor's as artifacts: a .bc or .hbm, with the signature.json that may lie beside it."""

from __future__ import annotations

from pathlib import Path

from driftgate.backends.artifactfiles import files_digest
from driftgate.backends.quantfile import FILE_NAME, signature_path
from driftgate.errors import ArtifactError
from driftgate.messages.message import message
from driftgate.sessions import Artifact


def vendor_path(artifact: Artifact) -> Path:
    """Where the file is. Raises ArtifactError where it is not there."""
    if artifact.path is None:
        raise ArtifactError(message("artifact-no-path", stage=artifact.stage, backend=artifact.backend))
    if not artifact.path.is_file():
        raise ArtifactError(message("artifact-missing", path=str(artifact.path)))
    return artifact.path


def vendor_digest(artifact: Artifact) -> str:
    """SHA-256 over the file, and the signature.json where there is one. Raises ArtifactError."""
    path = vendor_path(artifact)
    signature = signature_path(path)
    return files_digest([("", path), *([(FILE_NAME, signature)] if signature.exists() else [])])
