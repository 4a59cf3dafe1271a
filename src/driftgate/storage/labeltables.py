"""Labels in tables: .npz files and .csv files."""

from __future__ import annotations

import csv
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np

from driftgate.errors import SampleError
from driftgate.messages.message import Message, message
from driftgate.scoring.detection import OBJECT
from driftgate.storage.labelentries import Entries, Label

#: Task → kinds of `labels` that an .npz may hold, numbers of its axes (None: any but 0), and the type of a label.
KINDS: Mapping[str, tuple[str, tuple[int, ...] | None, type[np.generic]]] = {
    "classification": ("iu", (1, 2), np.int64),
    "segmentation": ("iu", (3,), np.int64),
    "regression": ("iuf", None, np.float64),
}
#: How a .csv may give a box: its corners, or the first corner and the sides.
CORNERS, SIDES = ("x1", "y1", "x2", "y2"), OBJECT[:4]


def npz_labels(task: str) -> Callable[[Path, Sequence[str]], Entries]:
    """Reads `labels`, stacked on axis 0, and `ids`, without which they are in the order of all samples."""
    kinds, axes, dtype = KINDS[task]

    def read(path: Path, ids: Sequence[str]) -> Entries:
        with _archive(path) as archive:
            values, named = _array(archive, "labels"), _ids(archive, ids)
        if values.dtype.kind not in kinds or values.ndim == 0 or (axes is not None and values.ndim not in axes):
            code = f"labels-kind-{task}"
            raise SampleError(message(code, path=str(path), dtype=str(values.dtype), shape=str(values.shape)))
        _same_count(path, len(values), named)
        return Entries(tuple((sample, np.atleast_1d(values[n]).astype(dtype)) for n, sample in enumerate(named)))

    return read


def npz_objects(path: Path, ids: Sequence[str]) -> Entries:
    """Reads `counts` (samples,) of objects, and of all these together `boxes` (objects, 4), x, y, width, height,
    `classes` (objects,) and, if there are any, `crowd` (objects,); and `ids` as `npz_labels` does."""
    with _archive(path) as archive:
        counts, boxes, classes = (_array(archive, name) for name in ("counts", "boxes", "classes"))
        crowd = _array(archive, "crowd") if "crowd.npy" in archive.namelist() else np.zeros(len(classes), bool)
        named = _ids(archive, ids)
    _same_count(path, len(counts), named)
    total = int(counts.sum()) if counts.dtype.kind in "iu" and counts.ndim == 1 and (counts >= 0).all() else -1
    shapes = ((total, 4), (total,), (total,))
    numbers = all(array.dtype.kind in "biuf" for array in (boxes, classes, crowd))
    if not numbers or tuple(array.shape for array in (boxes, classes, crowd)) != shapes:
        found = tuple(
            f"{n} {a.dtype} {a.shape}" for n, a in zip(_OBJECTS, (counts, boxes, classes, crowd), strict=True)
        )
        raise SampleError(message("labels-kind-detection", path=str(path), found=found))
    table = np.column_stack([boxes, classes, crowd]).astype(np.float64)
    edges = [0, *np.cumsum(counts)]
    return checked_objects(path, tuple(zip(named, (table[a:b] for a, b in pairwise(edges)), strict=True)))


_OBJECTS = ("counts", "boxes", "classes", "crowd")


def csv_classes(path: Path, ids: Sequence[str]) -> Entries:
    """Reads a table with the columns id and label, the class of the sample."""
    labels: list[tuple[str, Label]] = []
    problems: list[Message] = []
    broken: set[str] = set()
    with _rows(path, ("id", "label")) as rows:
        for row in rows:
            try:
                labels.append((row["id"], np.array([int(row["label"] or "")])))
            except ValueError:
                value = row["label"] or "-"
                problems.append(message("labels-value", path=str(path), line=rows.line_num, value=value))
                broken.add(row["id"])
    return Entries(tuple(labels), tuple(problems), frozenset(broken))


def csv_objects(path: Path, ids: Sequence[str]) -> Entries:
    """Reads a table with a row an object: id, class, x, y, width and height or x1, y1, x2 and y2, and crowd (0 or 1)
    if there are any. A row with nothing but an id is a sample without objects."""
    objects: dict[str, list[list[float]]] = {}
    problems: list[Message] = []
    broken: set[str] = set()
    with _rows(path, ("id", "class")) as rows:
        columns = rows.fieldnames or ()
        box = next((box for box in (SIDES, CORNERS) if {*box} <= {*columns}), None)
        if box is None:
            wanted = (f"{', '.join(SIDES)}", f"{', '.join(CORNERS)}")
            raise SampleError(message("labels-columns-boxes", path=str(path), columns=tuple(columns), wanted=wanted))
        for row in rows:
            mine = objects.setdefault(row["id"], [])
            written = [row[name] or "" for name in (*box, "class")] + [row.get("crowd") or "0"]
            if not any(written[:-1]):
                continue
            try:
                values = [float(value) for value in written]
            except ValueError:
                found = ", ".join(value or "-" for value in written)
                problems.append(message("labels-value-box", path=str(path), line=rows.line_num, value=found))
                broken.add(row["id"])
                continue
            if box is CORNERS:
                values[2:4] = values[2] - values[0], values[3] - values[1]
            mine.append(values)
    made = checked_objects(path, tuple((sample, _table(mine)) for sample, mine in objects.items()))
    return Entries(made.labels, (*problems, *made.problems), made.broken | broken)


def checked_objects(path: Path, labels: Sequence[tuple[str, Label]]) -> Entries:
    """Labels of objects, with a problem that names the samples whose boxes or classes are none."""
    broken = tuple(sample for sample, table in labels if not _sound(table))
    problems = (message("labels-boxes", path=str(path), samples=broken),) if broken else ()
    return Entries(tuple(labels), problems, frozenset(broken))


def _sound(table: Label) -> bool:
    classes, crowd = table[:, 4], table[:, 5]
    indices = bool(((classes >= 0) & (classes == np.rint(classes))).all())
    return bool(np.isfinite(table).all()) and bool((table[:, 2:4] >= 0).all()) and indices and {*crowd} <= {0.0, 1.0}


def _table(rows: Sequence[Sequence[float]]) -> Label:
    return np.array(rows, np.float64).reshape(-1, len(OBJECT))


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        raise SampleError(message("labels-garbled", path=str(path), reason=str(reason))) from error


def _array(archive: zipfile.ZipFile, name: str) -> Label:
    with archive.open(f"{name}.npy") as stream:
        array: Label = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read()  # the checksum is compared at the end of the member only
    return array


def _ids(archive: zipfile.ZipFile, ids: Sequence[str]) -> Sequence[str]:
    return [str(i) for i in _array(archive, "ids")] if "ids.npy" in archive.namelist() else ids


def _same_count(path: Path, found: int, ids: Sequence[str]) -> None:
    if found != len(ids):
        raise SampleError(message("labels-count", path=str(path), found=found, wanted=len(ids)))


@contextmanager
def _rows(path: Path, needed: Sequence[str]) -> Iterator[csv.DictReader[str]]:
    """The rows of a .csv that has these columns."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            columns = tuple(rows.fieldnames or ("-",))
            if not {*needed} <= {*columns}:
                wanted = tuple(needed)
                raise SampleError(message("labels-columns", path=str(path), columns=columns, wanted=wanted))
            yield rows
    except OSError as error:
        raise SampleError(message("labels-absent", path=str(path), reason=error.strerror or "")) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SampleError(message("labels-garbled", path=str(path), reason=str(error))) from error
