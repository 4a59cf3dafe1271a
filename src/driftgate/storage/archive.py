"""Zip archives: written as a stream, the same bytes for the same content; read as if an enemy had made them."""

from __future__ import annotations

import hashlib
import io
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

from driftgate.errors import ArtifactError, StorageError
from driftgate.messages.message import message
from driftgate.sessions import Tensors
from driftgate.storage.hashing import CHUNK_BYTES
from driftgate.storage.npz import DAMAGES, DATE, REGULAR_FILE, UNIX, write_arrays

MOST_ENTRIES = 4096
MOST_BYTES = 8 << 30
NAME_BYTES, DEPTH = 240, 8
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: What no file is called everywhere.
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})


@dataclass(frozen=True, slots=True)
class Content:
    """What is to be written under a name: about how many bytes, and how."""

    size_bytes: int
    write: Callable[[BinaryIO], None]


def of_bytes(content: bytes) -> Content:
    """What is in memory."""

    def write(stream: BinaryIO) -> None:
        stream.write(content)

    return Content(len(content), write)


def of_file(path: Path) -> Content:
    """A file's content, read when it is written. Raises OSError where it is not there."""

    def write(stream: BinaryIO) -> None:
        try:
            source = path.open("rb")
        except OSError as error:
            reason = error.strerror or str(error)
            raise ArtifactError(message("artifact-unreadable", path=str(path), reason=reason)) from error
        with source:
            while chunk := source.read(CHUNK_BYTES):
                stream.write(chunk)

    return Content(path.stat().st_size, write)


def named(text: str) -> str:
    """A user's name as a part of file names that are safe everywhere."""
    kept = "".join(one if one.isalnum() or one in "-_." else "-" for one in unicodedata.normalize("NFC", text))
    short = kept.encode("utf-8")[:60].decode("utf-8", "ignore").strip(".- ") or "-"
    return short if is_safe(short) else f"_{short}"


def of_arrays(arrays: Tensors) -> Content:
    """Arrays as an .npz that is not compressed by itself: the archive around it is."""

    def write(stream: BinaryIO) -> None:
        write_arrays(stream, arrays, compressed=False)

    return Content(sum(array.nbytes + 512 for array in arrays.values()), write)


class Names:
    """Names that are taken, in whatever case they are written."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def take(self, name: str) -> bool:
        """Take a name; False where a file or a folder has it already, or a file is where it needs a folder."""
        own = name.casefold()
        above = {own[:at] for at, one in enumerate(own) if one == "/"}
        if own in self._files or own in self._folders or above & self._files:
            return False
        self._files.add(own)
        self._folders |= above
        return True


@dataclass(frozen=True, slots=True)
class Written:
    """What was written under a name."""

    name: str
    size_bytes: int
    sha256: str


class _Hashing(io.RawIOBase):
    """Passes on what is written to it and counts and hashes it."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._sha = hashlib.sha256()
        self.size_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        view = memoryview(cast(bytes, data)).cast("B")
        self._sha.update(view)
        self.size_bytes += len(view)
        self._target.write(view)
        return len(view)

    @property
    def sha256(self) -> str:
        return self._sha.hexdigest()


class Writer:
    """Adds one file after the other to an archive on its way out."""

    def __init__(self, stream: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=6)

    def add(self, name: str, content: Content) -> Written:
        """Write one file. Raises OSError."""
        entry = zipfile.ZipInfo(name, DATE)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = UNIX
        entry.external_attr = REGULAR_FILE
        with self._zip.open(entry, "w", force_zip64=content.size_bytes >= 1 << 30) as member:
            hashing = _Hashing(cast(BinaryIO, member))
            content.write(cast(BinaryIO, hashing))
        return Written(name, hashing.size_bytes, hashing.sha256)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the directory, without which it is no archive; none where something went wrong. Raises OSError."""
        if error is not None:
            self._zip.fp = None  # nothing more is written, not even when it is forgotten
        self._zip.close()


class Archive:
    """An archive that was opened for reading; nothing in it is believed before it was looked at.

    Raises StorageError for what is none, or holds what no archive of ours does: names that lead elsewhere, links,
    devices, folders, encrypted files, two files of one name, too many of them, or too large ones.
    """

    def __init__(self, path: Path, *, limit_bytes: int = MOST_BYTES) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            reason = error.strerror or str(error)
            raise StorageError(message("archive-unreadable", path=str(path), reason=reason)) from error
        except DAMAGES as error:
            raise StorageError(message("archive-damaged", path=str(path), reason=_reason(error))) from error
        try:
            self._entries = self._checked(limit_bytes)
        except BaseException:
            self._zip.close()
            raise

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all files, in the archive's order."""
        return tuple(self._entries)

    def chunks(self, name: str) -> Iterator[bytes]:
        """A file's content, never more than it says it has. Raises StorageError."""
        info = self._entries[name]
        left = info.file_size
        try:
            with self._zip.open(info) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    left -= len(chunk)
                    if left < 0:
                        raise self._refused("archive-longer", name)
                    yield chunk
        except OSError as error:
            raise StorageError(
                message("archive-unreadable", path=str(self.path), reason=error.strerror or str(error))
            ) from error
        except DAMAGES as error:
            raise StorageError(message("archive-damaged", path=str(self.path), reason=_reason(error))) from error
        if left:
            raise self._refused("archive-shorter", name)

    def size_bytes(self, name: str) -> int:
        """How long a file says it is."""
        return self._entries[name].file_size

    def close(self) -> None:
        """Close it."""
        self._zip.close()

    def _checked(self, limit_bytes: int) -> Mapping[str, zipfile.ZipInfo]:
        infos = self._zip.infolist()
        if len(infos) > MOST_ENTRIES:
            raise StorageError(message("archive-entries", path=str(self.path), found=len(infos), limit=MOST_ENTRIES))
        total = sum(info.file_size for info in infos)
        if total > limit_bytes:
            raise StorageError(message("archive-too-large", path=str(self.path), bytes=total, limit_bytes=limit_bytes))
        found: dict[str, zipfile.ZipInfo] = {}
        names = Names()
        for info in infos:
            name = info.filename
            if info.orig_filename != name or not is_safe(name):
                raise self._refused("archive-name", info.orig_filename)
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG) or info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
                raise self._refused("archive-kind", name)
            if not names.take(name):
                raise self._refused("archive-twice", name)
            found[name] = info
        return found

    def _refused(self, code: str, name: str) -> StorageError:
        return StorageError(message(code, path=str(self.path), name=name))


def is_safe(name: str) -> bool:
    """Whether a name is that of a file below the folder it is unpacked into, on every system."""
    parts = name.split("/")
    return (
        0 < len(name.encode("utf-8", "surrogatepass")) <= NAME_BYTES
        and len(parts) <= DEPTH
        and unicodedata.normalize("NFC", name) == name
        and not any(unicodedata.category(one) in ("Cc", "Cs", "Cf", "Zl", "Zp") for one in name)
        and not set(name) & set('\\:*?"<>|')
        and all(
            part not in ("", ".", "..")
            and part[-1] not in ". "
            and part[0] != " "
            and part.split(".")[0].casefold() not in _DEVICES
            for part in parts
        )
    )


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
