"""Archives of named arrays that numpy reads, with the same bytes for the same arrays whenever they are written."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

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
