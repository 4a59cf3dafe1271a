"""Labels in every form they are kept in, and what is said where they and the samples do not belong together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgate.errors import SampleError
from driftgate.settings.labels import LabelSettings
from driftgate.storage.imagefolder import image_files
from driftgate.storage.labels import class_names, labels_digest, read_labels
from support.images import coco, picture, save

IDS = ("a", "b", "c")


def plain(labels: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {sample: label.tolist() for sample, label in labels.items()}


def problems(path: Path, task: str, ids: Sequence[str] = IDS) -> dict[str, tuple[str, ...]]:
    """Code → the samples or ids it names, of everything that is wrong."""
    with pytest.raises(SampleError) as caught:
        read_labels(path, ids, task=task)
    found = {}
    for problem in caught.value.problems:
        assert str(path) in str(SampleError(problem))
        named = problem.get("samples") or problem.get("ids") or problem.get("lists") or ()
        found[problem.code] = named if isinstance(named, tuple) else (str(named),)
    return found


def table(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


# --- classification


def test_classes_of_a_table_and_of_an_npz(tmp_path: Path) -> None:
    written = table(tmp_path / "l.csv", "label,id,note", "2,c,x", "0,a,y", "1,b,z")
    wanted = {"a": [0], "b": [1], "c": [2]}
    assert plain(read_labels(written, IDS)) == wanted
    assert plain(read_labels(npz(tmp_path / "l.npz", labels=np.array([0, 1, 2], np.uint8)), IDS)) == wanted
    named = npz(tmp_path / "n.npz", labels=np.array([2, 0, 1]), ids=np.array(["c", "a", "b"]))
    assert plain(read_labels(named, IDS)) == wanted
    rows = npz(tmp_path / "r.npz", labels=np.array([[0, 1], [2, 3], [4, 5]]))
    assert plain(read_labels(rows, IDS)) == {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    assert {label.dtype for label in read_labels(rows, IDS).values()} == {np.dtype(np.int64)}


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    """The sorted names are the classes, those without images too, as the training code counted them."""
    for name in ("dog/1.png", "cat/1.png", "cat/deep/2.png"):
        save(tmp_path / name, picture(3, 3))
    (tmp_path / "bird").mkdir()
    ids = tuple(image_files(tmp_path))
    assert ids == ("cat__1", "cat__deep__2", "dog__1")
    assert plain(read_labels(tmp_path, ids)) == {"cat__1": [1], "cat__deep__2": [1], "dog__1": [2]}
    assert class_names(tmp_path) == ("bird", "cat", "dog")
    save(tmp_path / "loose.png", picture(3, 3))
    assert problems(tmp_path, "classification", (*ids, "loose")) == {"labels-loose": ("loose",)}


def test_the_digest_of_a_folder_is_that_of_what_lies_where(tmp_path: Path) -> None:
    save(tmp_path / "cat" / "1.png", picture(3, 3))
    before = labels_digest(tmp_path)
    save(tmp_path / "cat" / "1.png", picture(5, 5))
    assert labels_digest(tmp_path) == before
    (tmp_path / "ant").mkdir()
    assert labels_digest(tmp_path) != before


def test_everything_wrong_with_a_table_is_said_at_once(tmp_path: Path) -> None:
    path = table(tmp_path / "l.csv", "id,label", "a,1", "a,2", "x,3", "c,cat", "y,")
    assert problems(path, "classification") == {
        "labels-value": (),
        "labels-twice": ("a",),
        "labels-missing": ("b",),
        "labels-extra": ("x",),
    }
    with pytest.raises(SampleError) as caught:
        read_labels(path, IDS)
    lines = [problem.get("line") for problem in caught.value.problems if problem.code == "labels-value"]
    assert lines == [5, 6]


def test_labels_of_a_larger_set_may_be_ignored(tmp_path: Path) -> None:
    path = table(tmp_path / "l.csv", "id,label", "a,1", "b,2", "c,0", "d,5")
    assert problems(path, "classification") == {"labels-extra": ("d",)}
    assert plain(read_labels(path, IDS, allow_extra=True)) == {"a": [1], "b": [2], "c": [0]}
    assert LabelSettings.model_validate("l.csv") == LabelSettings(path=Path("l.csv"), extra="refuse")


# --- detection


def test_coco_boxes_stay_as_they_are_and_categories_become_classes(tmp_path: Path) -> None:
    objects: list[tuple[int, int, list[float], int]] = [
        (1, 90, [0.1, 0.2, 30.7, 40.9], 0),
        (3, 3, [5, 6, 7, 8], 0),
        (1, 7, [1.5, 2.5, 0, 9], 1),
    ]
    path = coco(tmp_path / "l.json", ["a.jpg", "val/b.jpg", "c.jpeg"], objects)
    labels = read_labels(path, IDS, task="detection")
    assert plain(labels) == {
        "a": [[0.1, 0.2, 30.7, 40.9, 2, 0], [1.5, 2.5, 0, 9, 1, 1]],
        "b": [],
        "c": [[5, 6, 7, 8, 0, 0]],
    }
    assert {label.shape[1:] for label in labels.values()} == {(6,)}
    assert {label.dtype for label in labels.values()} == {np.dtype(np.float64)}
    assert class_names(path) == ("cat", "dog", "brush")


def test_coco_images_in_folders_are_the_samples_of_these_folders(tmp_path: Path) -> None:
    path = coco(tmp_path / "l.json", ["x/1.jpg", "y/1.jpg"], [(2, 3, [0, 0, 1, 1], 0)])
    assert [len(label) for label in read_labels(path, ("x__1", "y__1"), task="detection").values()] == [0, 1]


def test_everything_wrong_with_a_coco_file_is_said_at_once(tmp_path: Path) -> None:
    path = coco(
        tmp_path / "l.json",
        ["a.jpg", "d.jpg", "a.png", "c.jpg"],
        [
            (9, 3, [0, 0, 1, 1], 0),
            (1, 4, [0, 0, 1, 1], 0),
            (1, 3, [0, 0, 1], 0),
            (1, 3, [0, 0, float("nan"), 1], 0),
            (1, 3, [0, 0, 10**400, 1], 0),
            (4, 3, [0, 0, -1, 1], 0),
        ],
    )
    document = json.loads(path.read_text())
    document["images"] += [{"id": 1, "file_name": "b.jpg"}, {"id": 77}]
    document["annotations"] += [{"id": 10, "image_id": [1], "category_id": {}, "bbox": None}]
    path.write_text(json.dumps(document))
    assert problems(path, "detection") == {
        "labels-coco-images": ("77",),
        "labels-coco-twice": ("1",),
        "labels-coco-of-no-image": ("1", "10"),
        "labels-coco-of-no-category": ("2",),
        "labels-coco-boxes": ("3", "4", "5"),
        "labels-boxes": ("c",),
        "labels-twice": ("a",),
        "labels-missing": ("b",),
        "labels-extra": ("d",),
    }


@pytest.mark.parametrize(
    ("content", "code", "named"),
    [
        ("{", "labels-garbled", ()),
        ("[" * 100_000, "labels-garbled", ()),
        ("[]", "labels-coco-lists", ("images", "annotations", "categories")),
        ('{"images": [], "annotations": {}, "categories": [1]}', "labels-coco-lists", ("annotations", "categories")),
    ],
)
def test_a_file_that_is_no_coco_file(tmp_path: Path, content: str, code: str, named: tuple[str, ...]) -> None:
    path = tmp_path / "l.json"
    path.write_text(content)
    assert problems(path, "detection") == {code: named}


def test_boxes_of_a_table_and_of_an_npz(tmp_path: Path) -> None:
    wanted = {"a": [[1, 2, 3, 4, 5, 0], [0, 0, 9, 9, 1, 1]], "b": [], "c": [[2, 2, 1, 1, 0, 0]]}
    sides = table(
        tmp_path / "s.csv",
        "id,class,x,y,width,height,crowd",
        "a,5,1,2,3,4,0",
        "c,0,2,2,1,1,",
        "a,1,0,0,9,9,1",
        "b,,,,,,",
    )
    assert plain(read_labels(sides, IDS, task="detection")) == wanted
    corners = table(tmp_path / "c.csv", "id,x1,y1,x2,y2,class", "a,1,2,4,6,5", "c,2,2,3,3,0", "b,,,,,")
    assert plain(read_labels(corners, IDS, task="detection")) == {**wanted, "a": [[1, 2, 3, 4, 5, 0]]}
    stacked = npz(
        tmp_path / "l.npz",
        counts=np.array([2, 0, 1]),
        boxes=np.array([[1, 2, 3, 4], [0, 0, 9, 9], [2, 2, 1, 1]], np.float32),
        classes=np.array([5, 1, 0]),
        crowd=np.array([False, True, False]),
    )
    assert plain(read_labels(stacked, IDS, task="detection")) == wanted


def test_everything_wrong_with_a_table_of_boxes(tmp_path: Path) -> None:
    path = table(
        tmp_path / "l.csv",
        "id,class,x,y,width,height",
        "a,0,1,2,3,wide",
        "b,0.5,1,2,3,4",
        "x,0,1,2,3,4",
    )
    assert problems(path, "detection") == {
        "labels-value-box": (),
        "labels-boxes": ("b",),
        "labels-missing": ("c",),
        "labels-extra": ("x",),
    }
    assert problems(table(tmp_path / "k.csv", "id,class,x1", "a,0,1"), "detection") == {"labels-columns-boxes": ()}


@pytest.mark.parametrize(
    "wrong",
    [
        {"counts": np.array([1, 0, 0])},
        {"counts": np.array([3, -1, 0])},
        {"boxes": np.zeros((2, 5))},
        {"classes": np.array(["cat", "dog"])},
        {"crowd": np.zeros(3)},
    ],
)
def test_an_npz_whose_objects_do_not_add_up(tmp_path: Path, wrong: Mapping[str, Any]) -> None:
    sound = {"counts": np.array([1, 0, 1]), "boxes": np.zeros((2, 4)), "classes": np.array([0, 1])}
    path = npz(tmp_path / "l.npz", **{**sound, **wrong})
    assert problems(path, "detection") == {"labels-kind-detection": ()}


# --- other tasks


def test_maps_and_numbers(tmp_path: Path) -> None:
    maps = npz(tmp_path / "m.npz", labels=np.arange(12).reshape(3, 2, 2).astype(np.uint8))
    assert plain(read_labels(maps, IDS, task="segmentation"))["b"] == [[4, 5], [6, 7]]
    numbers = npz(tmp_path / "n.npz", labels=np.array([0.5, 1.5, 2.5], np.float32))
    assert plain(read_labels(numbers, IDS, task="regression")) == {"a": [0.5], "b": [1.5], "c": [2.5]}
    assert problems(numbers, "segmentation") == {"labels-kind-segmentation": ()}
    assert problems(npz(tmp_path / "t.npz", labels=np.array(["x"] * 3)), "regression") == {"labels-kind-regression": ()}


@pytest.mark.parametrize(
    ("name", "task"),
    [("l.json", "classification"), ("l.txt", "detection"), ("l.csv", "regression"), (".", "detection")],
)
def test_a_form_that_a_task_does_not_have(tmp_path: Path, name: str, task: str) -> None:
    (tmp_path / "l.x").touch()
    assert problems(tmp_path / name, task) == {"labels-format": ()}


@pytest.mark.parametrize(
    ("name", "task"), [("l.json", "detection"), ("l.csv", "detection"), ("l.csv", "classification")]
)
def test_labels_that_are_not_there(tmp_path: Path, name: str, task: str) -> None:
    assert problems(tmp_path / name, task) == {"labels-absent": ()}
