"""Files that appear complete or not at all: written beside their place, then moved there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from driftgate.errors import StorageError
from driftgate.messages.message import message

MODE = 0o644  # temporary files are private; what they become is not


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A seekable stream that becomes `path` when the block ends well, and vanishes when it does not.

    Missing folders are made. Raises StorageError if the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise _not_written(path, error) from error
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield cast(BinaryIO, stream)
        part.chmod(MODE)
        part.replace(path)
    except OSError as error:
        raise _not_written(path, error) from error
    finally:
        part.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file. Raises StorageError."""
    with replacing(path) as stream:
        stream.write(content)


def _not_written(path: Path, error: OSError) -> StorageError:
    return StorageError(message("file-not-written", path=str(path), reason=error.strerror or str(error)))
