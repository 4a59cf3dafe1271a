"""Tensor sources: samples and recordings on disk, read one sample at a time and without ever unpickling."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import numpy as np

from driftgate.errors import SampleError
from driftgate.messages.message import Message, message
from driftgate.sessions import Tensor

MINIMUM_DIGITS = 4
_CHUNK_BYTES = 1 << 20
_LOCAL_HEADER_BYTES = 30
_NUMBERS = "biuf"
_HEADER_READERS: dict[tuple[int, int], Callable[..., tuple[tuple[int, ...], bool, np.dtype]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class TensorSource(Protocol):
    """Named tensors of many samples."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The samples, sorted."""

    def read(self, sample_id: str) -> dict[str, Tensor]:
        """The tensors of one sample, by name; fresh arrays in C order and native byte order.

        Raises SampleError for an unknown sample and for files that hold anything but numbers.
        """

    def files(self, sample_id: str) -> tuple[Path, ...]:
        """The files that hold a sample (all samples share the one file of a stacked source)."""


def open_source(path: Path) -> TensorSource:
    """Open a stacked `.npz`, a folder of `<id>.npz`, or a folder of `<id>/<tensor>.npy`.

    Nothing but names and array headers is read here. Raises SampleError if there is no sample to be had.
    """
    if path.is_dir():
        return _open_folder(path)
    if not path.exists():
        raise SampleError(message("tensors-missing", path=str(path)))
    if path.suffix != ".npz":
        raise SampleError(message("tensors-kind", path=str(path)))
    return _open_stacked(path)


def tensors_digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over name, dtype, shape and C-order bytes of each tensor, by sorted name; files do not matter."""
    sha = hashlib.sha256()
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(_native(tensors[name]))
        shape = ",".join(str(length) for length in tensors[name].shape)
        sha.update(f"{name}\0{tensor.dtype.name}\0{shape}\0".encode("utf-8", "surrogatepass"))
        sha.update(tensor.tobytes())
    return sha.hexdigest()


def _native(tensor: Tensor) -> Tensor:
    return tensor.astype(tensor.dtype.newbyteorder("="), copy=False)


def _fresh(tensor: Tensor) -> Tensor:
    return np.array(tensor, dtype=tensor.dtype.newbyteorder("="), order="C", copy=True)


def sample_unknown(path: Path, sample_id: str, ids: tuple[str, ...]) -> SampleError:
    """What is said of a sample that a source does not have."""
    return SampleError(message("sample-unknown", sample=sample_id, path=str(path), count=len(ids), ids=ids))


@dataclass(frozen=True, slots=True)
class _Header:
    """One array of a file: `at` is where its bytes start within the file, None where they are compressed."""

    name: str
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype
    at: int | None


def _header(stream: IO[bytes], name: str, path: Path) -> tuple[_Header | None, Message | None]:
    """The header of one `.npy` stream, or what is wrong with it; leaves the stream at the first data byte."""
    try:
        version = np.lib.format.read_magic(stream)
        reader = _HEADER_READERS.get(version)
        if reader is None:
            return None, message("tensor-no-numbers", path=str(path), tensor=name, dtype=f"npy {version[0]}")
        shape, fortran, dtype = reader(stream)
    except ValueError as error:
        return None, message("tensor-damaged", path=str(path), tensor=name, reason=str(error))
    if dtype.hasobject:
        return None, message("tensor-pickled", path=str(path), tensor=name)
    if dtype.kind not in _NUMBERS:
        return None, message("tensor-no-numbers", path=str(path), tensor=name, dtype=str(dtype))
    return _Header(name, shape, fortran, dtype, None), None


def _data_start(file: IO[bytes], member: zipfile.ZipInfo) -> int:
    """Where a member's bytes start: after its local header, whose two variable lengths are at 26 and 28."""
    file.seek(member.header_offset)
    local = file.read(_LOCAL_HEADER_BYTES)
    name_length, extra_length = (int.from_bytes(local[at : at + 2], "little") for at in (26, 28))
    return member.header_offset + _LOCAL_HEADER_BYTES + name_length + extra_length


def _npz_headers(path: Path) -> tuple[_Header, ...]:
    """The headers of all arrays; raises SampleError with everything that is wrong in the file."""
    headers: list[_Header] = []
    problems: list[Message] = []
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                name = member.filename
                if not name.endswith(".npy"):
                    problems.append(message("npz-stranger", path=str(path), member=name))
                    continue
                with archive.open(member) as stream:
                    header, problem = _header(stream, name[:-4], path)
                    start = stream.tell()
                if header is None:
                    problems.extend([problem] if problem else [])
                    continue
                if member.compress_type == zipfile.ZIP_STORED:
                    at = _data_start(file, member) + start
                    header = _Header(header.name, header.shape, header.fortran, header.dtype, at)
                headers.append(header)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise SampleError(message("npz-damaged", path=str(path), reason=str(error))) from error
    except OSError as error:
        raise SampleError(message("tensors-unreadable", path=str(path), reason=error.strerror or str(error))) from error
    if problems:
        raise SampleError(*problems)
    if len({header.name for header in headers}) != len(headers):
        raise SampleError(message("npz-damaged", path=str(path), reason="two arrays of one name"))
    return tuple(headers)


def _checked_bytes(path: Path, name: str) -> None:
    """Read a member once in small pieces, so that its checksum is compared: a memory map never looks at it."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
            while stream.read(_CHUNK_BYTES):
                pass
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise SampleError(message("tensor-damaged", path=str(path), tensor=name, reason=str(error))) from error


def _load(path: Path, header: _Header) -> Tensor:
    """One array: mapped where it lies uncompressed in the file, else read into memory."""
    if header.at is not None:
        _checked_bytes(path, header.name)
        if 0 in header.shape:
            return np.empty(header.shape, header.dtype)
        order = "F" if header.fortran else "C"
        try:
            return np.memmap(path, header.dtype, "r", header.at, header.shape, order)  # type: ignore[call-overload, no-any-return]
        except ValueError as error:
            raise SampleError(
                message("tensor-damaged", path=str(path), tensor=header.name, reason=str(error))
            ) from error
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{header.name}.npy") as stream:
            array: Tensor = np.lib.format.read_array(stream, allow_pickle=False)
            stream.read()  # the checksum is compared at the end of the member only
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError) as error:
        raise SampleError(message("tensor-damaged", path=str(path), tensor=header.name, reason=str(error))) from error
    return array


class StackedFile:
    """One `.npz` whose arrays are stacked on axis 0; a sample keeps that axis with length 1.

    Each array is opened at its first use and kept: mapped if the file is not compressed, in memory if it is.
    """

    def __init__(self, path: Path, headers: tuple[_Header, ...]) -> None:
        count = headers[0].shape[0]
        digits = max(MINIMUM_DIGITS, len(str(count - 1)))
        self._path = path
        self._headers = headers
        self._arrays: dict[str, Tensor] = {}
        self._ids = tuple(f"{position:0{digits}d}" for position in range(count))
        self._positions = {sample_id: position for position, sample_id in enumerate(self._ids)}

    @property
    def ids(self) -> tuple[str, ...]:
        """`0000`, `0001` and so on."""
        return self._ids

    def read(self, sample_id: str) -> dict[str, Tensor]:
        """One row of each array."""
        position = self._position(sample_id)
        return {header.name: _fresh(self._array(header)[position : position + 1]) for header in self._headers}

    def files(self, sample_id: str) -> tuple[Path, ...]:
        """The one file of all samples."""
        self._position(sample_id)
        return (self._path,)

    def _position(self, sample_id: str) -> int:
        if sample_id not in self._positions:
            raise sample_unknown(self._path, sample_id, self._ids)
        return self._positions[sample_id]

    def _array(self, header: _Header) -> Tensor:
        if header.name not in self._arrays:
            self._arrays[header.name] = _load(self._path, header)
        return self._arrays[header.name]


def _open_stacked(path: Path) -> StackedFile:
    headers = _npz_headers(path)
    if not headers:
        raise SampleError(message("tensors-empty", path=str(path)))
    flat = tuple(header.name for header in headers if not header.shape)
    if flat:
        raise SampleError(message("stack-scalar", path=str(path), tensors=flat))
    if len({header.shape[0] for header in headers}) != 1:
        lengths = tuple(f"{header.name}: {header.shape[0]}" for header in headers)
        raise SampleError(message("stack-unequal", path=str(path), lengths=lengths))
    if headers[0].shape[0] == 0:
        raise SampleError(message("tensors-empty", path=str(path)))
    return StackedFile(path, headers)


class SampleFolder:
    """A folder with one `<id>.npz`, or one folder `<id>` of `.npy` files, a sample; nothing stays in memory."""

    def __init__(self, path: Path, samples: Mapping[str, tuple[Path, ...]]) -> None:
        self._path = path
        self._samples = dict(samples)
        self._ids = tuple(sorted(samples))

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the files or folders, sorted."""
        return self._ids

    def read(self, sample_id: str) -> dict[str, Tensor]:
        """The arrays of a sample's files; within a folder, a tensor is named by its path without `.npy`."""
        files = self.files(sample_id)
        if files[0].suffix == ".npz":
            return read_npz(files[0])
        root = self._path / sample_id
        return {file.relative_to(root).as_posix()[:-4]: _read_npy(file) for file in files}

    def files(self, sample_id: str) -> tuple[Path, ...]:
        """A sample's own files, sorted."""
        if sample_id not in self._samples:
            raise sample_unknown(self._path, sample_id, self._ids)
        return self._samples[sample_id]


def read_npz(path: Path) -> dict[str, Tensor]:
    """The arrays of one file, without pickles. Raises SampleError where it is empty, damaged or unreadable."""
    headers = _npz_headers(path)
    if not headers:
        raise SampleError(message("tensors-empty", path=str(path)))
    return {header.name: _fresh(_load(path, header)) for header in headers}


def _read_npy(path: Path) -> Tensor:
    name = path.name[:-4]
    try:
        with path.open("rb") as stream:
            _, problem = _header(stream, name, path)
            if problem is not None:
                raise SampleError(problem)
            stream.seek(0)
            return _fresh(np.lib.format.read_array(stream, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise SampleError(message("tensor-damaged", path=str(path), tensor=name, reason=str(error))) from error
    except OSError as error:
        raise SampleError(message("tensors-unreadable", path=str(path), reason=error.strerror or str(error))) from error


def _visible(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if not path.name.startswith("."))


def is_text(name: str) -> bool:
    """Whether a file's name is UTF-8; what is not comes as lone surrogates, which no document can hold."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _open_folder(path: Path) -> SampleFolder:
    try:
        entries = _visible(path.iterdir())
    except OSError as error:
        raise SampleError(message("tensors-unreadable", path=str(path), reason=error.strerror or str(error))) from error
    foreign = tuple(ascii(entry.name) for entry in entries if not is_text(entry.name))
    if foreign:
        raise SampleError(message("samples-names", path=str(path), names=foreign))
    files = {entry.stem: (entry,) for entry in entries if entry.suffix == ".npz" and entry.is_file()}
    folders = {entry.name: tuple(_visible(entry.rglob("*.npy"))) for entry in entries if entry.is_dir()}
    if files and any(folders.values()):
        raise SampleError(message("tensors-mixed", path=str(path)))
    if files:
        return SampleFolder(path, files)
    hollow = tuple(name for name, arrays in folders.items() if not arrays)
    if hollow and len(hollow) < len(folders):
        raise SampleError(message("samples-hollow", path=str(path), samples=hollow))
    if not folders or hollow:
        raise SampleError(message("tensors-empty", path=str(path)))
    return SampleFolder(path, folders)
