"""Labels of a detection data set as COCO keeps them: images, categories and annotations in one JSON file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from driftgate.errors import SampleError
from driftgate.messages.message import Message, message
from driftgate.scoring.detection import OBJECT
from driftgate.storage.imagefolder import sample_of
from driftgate.storage.labelentries import Entries
from driftgate.storage.labeltables import checked_objects

LISTS = ("images", "annotations", "categories")


def coco_objects(path: Path, ids: Sequence[str]) -> Entries:
    """Every image with its objects, those without any too. Raises SampleError where the file is no COCO file.

    An image is the sample whose id its file name makes, with its folders or, where there is none, without them.
    """
    document = _read(path)
    known = {*ids}
    classes = {category: number for number, category in enumerate(sorted(_categories(document)))}
    wrong = _Wrong()
    samples: dict[Any, str] = {}
    for image in document["images"]:
        key, name = image.get("id"), image.get("file_name")
        if not isinstance(key, (int, str)) or not isinstance(name, str) or not name:
            wrong.images.append(str(key))
        elif key in samples:
            wrong.twice.append(str(key))
        else:
            whole = sample_of(name)
            samples[key] = whole if whole in known else sample_of(Path(name).name)
    objects: dict[Any, list[tuple[float, ...]]] = {image: [] for image in samples}
    for annotation in document["annotations"]:
        of, category, box = (annotation.get(name) for name in ("image_id", "category_id", "bbox"))
        number, sides = str(annotation.get("id")), _sides(box)
        if not isinstance(of, (int, str)) or of not in objects:
            wrong.of_no_image.append(number)
        elif not isinstance(category, int) or category not in classes:
            wrong.of_no_category.append(number)
        elif sides is None:
            wrong.boxes.append(number)
        else:
            objects[of].append((*sides, float(classes[category]), float(bool(annotation.get("iscrowd", 0)))))
    tables = [(samples[image], np.array(rows, np.float64).reshape(-1, len(OBJECT))) for image, rows in objects.items()]
    made = checked_objects(path, tables)
    return Entries(made.labels, (*wrong.messages(path), *made.problems), made.broken)


def coco_classes(path: Path) -> tuple[str, ...]:
    """The names of the classes, of which 0 is the category with the smallest id. Raises SampleError."""
    categories = _categories(_read(path))
    return tuple(categories[number] for number in sorted(categories))


@dataclass(slots=True)
class _Wrong:
    """Ids of entries that cannot be understood, by what is wrong with them."""

    images: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    of_no_image: list[str] = field(default_factory=list)
    of_no_category: list[str] = field(default_factory=list)
    boxes: list[str] = field(default_factory=list)

    def messages(self, path: Path) -> tuple[Message, ...]:
        kinds = {
            "labels-coco-images": self.images,
            "labels-coco-twice": self.twice,
            "labels-coco-of-no-image": self.of_no_image,
            "labels-coco-of-no-category": self.of_no_category,
            "labels-coco-boxes": self.boxes,
        }
        return tuple(
            message(code, path=str(path), count=len(numbers), ids=tuple(numbers))
            for code, numbers in kinds.items()
            if numbers
        )


def _read(path: Path) -> Mapping[str, list[Mapping[str, Any]]]:
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise SampleError(message("labels-absent", path=str(path), reason=error.strerror or "")) from error
    except (ValueError, RecursionError) as error:
        raise SampleError(message("labels-garbled", path=str(path), reason=str(error))) from error
    found = document if isinstance(document, dict) else {}
    lacking = tuple(name for name in LISTS if not _is_list_of_objects(found.get(name)))
    if lacking:
        raise SampleError(message("labels-coco-lists", path=str(path), lists=lacking))
    return found


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _categories(document: Mapping[str, list[Mapping[str, Any]]]) -> dict[int, str]:
    return {
        category["id"]: str(category.get("name", category["id"]))
        for category in document["categories"]
        if isinstance(category.get("id"), int)
    }


def _sides(box: object) -> tuple[float, ...] | None:
    """x, y, width and height, where these are four finite numbers."""
    if not isinstance(box, list) or len(box) != 4 or not all(isinstance(value, (int, float)) for value in box):
        return None
    try:
        values = tuple(float(value) for value in box)
    except OverflowError:
        return None
    return values if all(math.isfinite(value) for value in values) else None
