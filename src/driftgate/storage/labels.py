"""Labels of classification: a file that gives each sample the class of each of its rows."""

from __future__ import annotations

import csv
import hashlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.errors import SampleError
from driftgate.messages.message import message

Label = NDArray[Any]


def read_labels(path: Path, ids: Sequence[str]) -> Mapping[str, Label]:
    """Labels by sample id, integers of shape (rows,).

    `.npz` holds `labels` of shape (samples,) or (samples, rows) and `ids`, or `labels` in the order of all
    samples; `.csv` has the columns id and label. Raises SampleError: unreadable, or not matching the samples.
    """
    readers = {".npz": _npz, ".csv": _csv}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise SampleError(message("labels-format", path=str(path), wanted=tuple(readers)))
    labels = reader(path, ids)
    missing = tuple(sample for sample in ids if sample not in labels)
    if missing:
        raise SampleError(message("labels-missing", path=str(path), samples=missing))
    return labels


def labels_digest(path: Path) -> str:
    """SHA-256 of the file. Raises SampleError."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise SampleError(message("labels-absent", path=str(path), reason=error.strerror or "")) from error


def _npz(path: Path, ids: Sequence[str]) -> dict[str, Label]:
    try:
        with zipfile.ZipFile(path) as archive:
            values = _array(archive, "labels")
            named = [str(i) for i in _array(archive, "ids")] if "ids.npy" in archive.namelist() else None
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        raise SampleError(message("labels-garbled", path=str(path), reason=str(reason))) from error
    if not np.issubdtype(values.dtype, np.integer) or not 1 <= values.ndim <= 2:
        raise SampleError(message("labels-kind", path=str(path), dtype=str(values.dtype), shape=str(values.shape)))
    names = list(ids) if named is None else named
    if len(values) != len(names):
        raise SampleError(message("labels-count", path=str(path), found=len(values), wanted=len(names)))
    if len(set(names)) != len(names):
        raise SampleError(message("labels-twice", path=str(path)))
    return {name: np.atleast_1d(values[n]) for n, name in enumerate(names)}


def _array(archive: zipfile.ZipFile, name: str) -> Label:
    with archive.open(f"{name}.npy") as stream:
        array: Label = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read()  # the checksum is compared at the end of the member only
    return array


def _csv(path: Path, ids: Sequence[str]) -> dict[str, Label]:
    labels: dict[str, Label] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            columns = tuple(rows.fieldnames or ("-",))
            if not {"id", "label"} <= {*columns}:
                raise SampleError(message("labels-columns", path=str(path), columns=columns))
            for row in rows:
                if row["id"] in labels:
                    raise SampleError(message("labels-twice", path=str(path)))
                labels[row["id"]] = _class(row["label"], path, rows.line_num)
    except OSError as error:
        raise SampleError(message("labels-absent", path=str(path), reason=error.strerror or "")) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SampleError(message("labels-garbled", path=str(path), reason=str(error))) from error
    return labels


def _class(written: str | None, path: Path, line: int) -> Label:
    try:
        return np.array([int(written or "")])
    except ValueError as error:
        raise SampleError(message("labels-value", path=str(path), line=line, value=written or "-")) from error
