"""Writing several files of one folder together: all of them, or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from driftgate.errors import StorageError
from driftgate.messages.message import message
from driftgate.storage.atomic import MODE


def write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write every file beside its place first, then move them there, in the order of the mapping.

    Nothing is left behind where there is no room for all of them. Raises StorageError.
    """
    parts: dict[Path, Path] = {}
    whole = False
    fresh = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            handle, part = tempfile.mkstemp(dir=folder, prefix=f".{name}.", suffix=".part")
            parts[Path(part)] = folder / name
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
        for written, place in parts.items():
            written.chmod(MODE)
            written.replace(place)
        whole = True
    except OSError as error:
        raise StorageError(
            message("folder-not-written", path=str(folder), reason=error.strerror or str(error))
        ) from error
    finally:
        if not whole:
            _clear(parts, folder, fresh=fresh)


def _clear(parts: Iterable[Path], folder: Path, *, fresh: bool) -> None:
    for part in parts:
        part.unlink(missing_ok=True)
    if fresh and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def remove_all(folder: Path, names: Iterable[str]) -> None:
    """Remove what an earlier run left under these names, so that nobody takes it for this one's.

    Raises StorageError.
    """
    for name in names:
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                message("folder-not-written", path=str(folder), reason=error.strerror or str(error))
            ) from error


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours with all that is in it; nothing happens where there is none. Raises StorageError."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(
            message("folder-not-written", path=str(folder), reason=error.strerror or str(error))
        ) from error
