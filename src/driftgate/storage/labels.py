"""Labels of a data set, from whichever form they are kept in, matched with its samples."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from driftgate.errors import SampleError
from driftgate.messages.message import Message, message
from driftgate.storage.cocolabels import coco_classes, coco_objects
from driftgate.storage.imagefolder import image_files
from driftgate.storage.labelentries import Entries, Label
from driftgate.storage.labeltables import csv_classes, csv_objects, npz_labels, npz_objects

Reader = Callable[[Path, Sequence[str]], Entries]
FOLDER = "a folder of classes"


def read_labels(
    path: Path, ids: Sequence[str], *, task: str = "classification", allow_extra: bool = False
) -> Mapping[str, Label]:
    """Labels by sample id, in the order of `ids`.

    classification: int64 (rows,), from `.npz`, `.csv`, or a folder with one folder of images a class (the sorted
    names of these folders are the classes 0, 1, …). detection: float64 (objects, 6), x, y, width, height in pixels
    of the upright image, class, 1 where it is a crowd; from COCO `.json` (class n is the category with the n-th
    smallest id), `.csv`, `.npz`. segmentation: int64 (height, width), regression: float64 of any shape; from `.npz`.

    Raises SampleError with all problems: unreadable entries, ids that stand twice, samples without label, and
    labels without sample unless `allow_extra`.
    """
    readers = READERS[task]
    reader = readers.get(FOLDER if path.is_dir() else path.suffix.lower())
    if reader is None:
        raise SampleError(message("labels-format", path=str(path), wanted=tuple(readers)))
    found = reader(path, ids)
    problems = [*found.problems, *_unmatched(path, found, ids, allow_extra=allow_extra)]
    if problems:
        raise SampleError(*problems)
    labels = dict(found.labels)
    return {sample: labels[sample] for sample in ids}


def class_names(path: Path) -> tuple[str, ...]:
    """The names of the classes 0, 1, …, where the labels have names: COCO and folders. Raises SampleError."""
    if path.is_dir():
        return _class_folders(path)
    return coco_classes(path) if path.suffix.lower() == ".json" else ()


def labels_digest(path: Path) -> str:
    """SHA-256 of the file; of a folder, that of its images' paths. Raises SampleError."""
    if path.is_dir():
        names = sorted(file.relative_to(path).as_posix() for file in image_files(path).values())
        return hashlib.sha256("\n".join((*_class_folders(path), "", *names)).encode()).hexdigest()
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise SampleError(message("labels-absent", path=str(path), reason=error.strerror or "")) from error


def _unmatched(path: Path, found: Entries, ids: Sequence[str], *, allow_extra: bool) -> list[Message]:
    """Ids that stand twice, and those that are on one side only; none where entries could not be read at all."""
    given, wanted = Counter(sample for sample, _ in found.labels), {*ids}
    kinds = {
        "labels-twice": [sample for sample, count in given.items() if count > 1],
        "labels-missing": [sample for sample in ids if sample not in given and sample not in found.broken],
        "labels-extra": [] if allow_extra else [sample for sample in given if sample not in wanted],
    }
    return [
        message(code, path=str(path), samples=tuple(samples), count=len(samples))
        for code, samples in kinds.items()
        if samples
    ]


def _class_folders(path: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(entry.name for entry in path.iterdir() if entry.is_dir() and entry.name[0] != "."))
    except OSError as error:
        raise SampleError(message("labels-absent", path=str(path), reason=error.strerror or "")) from error


def _folder(path: Path, ids: Sequence[str]) -> Entries:
    classes = {name: number for number, name in enumerate(_class_folders(path))}
    files = {sample: file.relative_to(path).parts for sample, file in image_files(path).items()}
    loose = tuple(sample for sample, parts in files.items() if len(parts) == 1)
    labels = [(sample, np.array([classes[parts[0]]])) for sample, parts in files.items() if len(parts) > 1]
    problems = (message("labels-loose", path=str(path), samples=loose),) if loose else ()
    return Entries(tuple(labels), problems, frozenset(loose))


READERS: Mapping[str, Mapping[str, Reader]] = {
    "classification": {".npz": npz_labels("classification"), ".csv": csv_classes, FOLDER: _folder},
    "detection": {".json": coco_objects, ".csv": csv_objects, ".npz": npz_objects},
    "segmentation": {".npz": npz_labels("segmentation")},
    "regression": {".npz": npz_labels("regression")},
}
