"""Archives of named arrays that numpy reads, with the same bytes for the same arrays whenever they are written."""

from __future__ import annotations

import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from driftgate.sessions import Tensor
from driftgate.storage.atomic import replacing

#: What a zip archive would say of its making, held still: the format's first day, a file of Unix, rw-r--r--.
DATE = (1980, 1, 1, 0, 0, 0)
UNIX = 3
REGULAR_FILE = 0o100644 << 16


def write_npz(path: Path, arrays: Mapping[str, Tensor], *, compressed: bool = True) -> None:
    """Write the arrays in the order of the mapping, atomically; `np.load` gives them back.

    Raises StorageError if the file cannot be written, ValueError for arrays of Python objects.
    """
    with replacing(path) as stream:
        write_arrays(stream, arrays, compressed=compressed)


def npz_bytes(arrays: Mapping[str, Tensor], *, compressed: bool = True) -> bytes:
    """The same archive in memory."""
    stream = io.BytesIO()
    write_arrays(stream, arrays, compressed=compressed)
    return stream.getvalue()


def write_arrays(stream: BinaryIO, arrays: Mapping[str, Tensor], *, compressed: bool) -> None:
    """Write the archive to a stream, which need not be seekable. Raises ValueError for arrays of Python objects."""
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", DATE)
            entry.compress_type = method
            entry.create_system = UNIX
            entry.external_attr = REGULAR_FILE
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


#: What a damaged archive, or one that somebody made by hand, can raise in the libraries that read it.
DAMAGES = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RuntimeError,  # encrypted; nested too deeply
    SyntaxError,
    TypeError,
    ValueError,
)
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
NUMBERS = "biuf"


def member_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """What an array says of itself: shape, whether it lies in Fortran's order, type. Raises one of DAMAGES."""
    shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
    if min(shape, default=0) < 0:
        raise ValueError(f"shape {shape}")
    return shape, fortran, dtype


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Tensor:
    """An array of numbers out of an archive, its checksum compared. Nothing is allocated for one that the file is too
    short for. Raises one of DAMAGES or OSError."""
    with archive.open(info) as stream:
        shape, fortran, dtype = member_header(stream)
        size = math.prod(shape) * dtype.itemsize
        if size > info.file_size:
            raise ValueError(f"an array of {size} bytes in a file of {info.file_size}")
        if dtype.hasobject or dtype.kind not in NUMBERS:
            raise ValueError(f"no numbers but {dtype}")
        content = bytearray(size)
        if stream.readinto(content) != size:  # type: ignore[attr-defined]
            raise EOFError
        if stream.read(1):
            raise ValueError(f"more than an array of {size} bytes")
    array: Tensor = np.frombuffer(content, dtype, count=math.prod(shape))
    ordered = array.reshape(shape[::-1]).transpose() if fortran else array.reshape(shape)
    return np.ascontiguousarray(ordered, dtype.newbyteorder("=")).reshape(shape)
