"""What was built: the digests of a folder's files, or those that provenance.json of the workflow's build lists."""

from __future__ import annotations

import json
from pathlib import Path

from driftgate.errors import StorageError
from driftgate.messages.message import message
from driftgate.storage.hashing import file_digest

PROVENANCE = "provenance.json"


def built_files(path: Path) -> frozenset[str]:
    """The SHA-256 of every file below a folder, or of every output in a provenance.json. Raises StorageError."""
    try:
        if path.is_dir():
            return frozenset(file_digest(file) for file in sorted(path.rglob("*")) if file.is_file())
        if path.suffix != ".json":
            return frozenset((file_digest(path),))
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(message("gate-built-garbled", path=str(path), reason=reason)) from error
    outputs = document.get("outputs") if isinstance(document, dict) else None
    if not isinstance(outputs, dict) or not all(isinstance(one, str) for one in outputs.values()):
        raise StorageError(message("gate-built-garbled", path=str(path), reason="outputs"))
    return frozenset(outputs.values())
