"""The digest of the files that make an artifact."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from driftgate.errors import ArtifactError
from driftgate.messages.message import message
from driftgate.storage.hashing import file_digest


def files_digest(files: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 over names and contents, sorted by name; a lone unnamed file gives the SHA-256 of its content.

    Names are those by which the files know each other: the artifact's own name and folder do not matter.
    Raises ArtifactError for a file that cannot be read.
    """
    named = sorted(files)
    if len(named) == 1 and not named[0][0]:
        return _content(named[0][1])
    sha = hashlib.sha256()
    for name, path in named:
        sha.update(f"{name}\0{_content(path)}\n".encode("utf-8", "surrogatepass"))
    return sha.hexdigest()


def _content(path: Path) -> str:
    try:
        return file_digest(path)
    except FileNotFoundError as error:
        raise ArtifactError(message("artifact-missing", path=str(path))) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArtifactError(message("artifact-unreadable", path=str(path), reason=reason)) from error
