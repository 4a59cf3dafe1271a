"""Tensor sources: three forms, one behaviour; whatever is wrong with a file is said, and nothing is unpickled."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from driftgate.errors import SampleError
from driftgate.sessions import Tensor
from driftgate.storage.tensorfiles import open_source, tensors_digest
from support.contract import assert_speaks

X = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
LABEL = np.array([3, 1, 2], np.int64)


def stacked(folder: Path) -> Path:
    np.savez(folder / "data.npz", x=X, label=LABEL)
    return folder / "data.npz"


def compressed(folder: Path) -> Path:
    np.savez_compressed(folder / "data.npz", x=X, label=LABEL)
    return folder / "data.npz"


def folder_of_npz(folder: Path) -> Path:
    for n in range(3):
        np.savez(folder / f"000{n}.npz", x=X[n : n + 1], label=LABEL[n : n + 1])
    return folder


def folder_of_npy(folder: Path) -> Path:
    for n in range(3):
        (folder / f"000{n}").mkdir()
        np.save(folder / f"000{n}" / "x.npy", X[n : n + 1])
        np.save(folder / f"000{n}" / "label.npy", LABEL[n : n + 1])
    return folder


FORMS: list[Callable[[Path], Path]] = [stacked, compressed, folder_of_npz, folder_of_npy]


class Explosive:
    """Pickled, it would make a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return open, (str(self.path), "w")


def failure(path: Path, sample: str | None = None) -> SampleError:
    """The error of opening the source, or of reading a sample."""
    with pytest.raises(SampleError) as caught:
        source = open_source(path)
        source.read(sample if sample is not None else source.ids[0])
    assert_speaks(caught.value, str(path))
    return caught.value


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_same_samples(form: Callable[[Path], Path], tmp_path: Path) -> None:
    source = open_source(form(tmp_path))
    assert source.ids == ("0000", "0001", "0002")
    for n, sample in enumerate(source.ids):
        tensors = source.read(sample)
        assert sorted(tensors) == ["label", "x"]
        np.testing.assert_array_equal(tensors["x"], X[n : n + 1])
        np.testing.assert_array_equal(tensors["label"], LABEL[n : n + 1])
        assert {name: tensor.dtype.name for name, tensor in tensors.items()} == {"x": "float32", "label": "int64"}
        assert all(file.is_file() for file in source.files(sample))


@pytest.mark.parametrize("form", FORMS)
def test_a_sample_is_the_callers_own(form: Callable[[Path], Path], tmp_path: Path) -> None:
    source = open_source(form(tmp_path))
    source.read("0001")["x"].fill(-1)
    np.testing.assert_array_equal(source.read("0001")["x"], X[1:2])


@pytest.mark.parametrize("form", FORMS)
def test_an_unknown_sample_is_named_with_the_number_of_known_ones(form: Callable[[Path], Path], tmp_path: Path) -> None:
    error = failure(form(tmp_path), "0003")
    assert_speaks(error, "0003", "among its 3")


def test_ids_get_as_many_digits_as_they_need(tmp_path: Path) -> None:
    np.savez(tmp_path / "many.npz", x=np.zeros(10_001, np.uint8))
    source = open_source(tmp_path / "many.npz")
    assert (source.ids[0], source.ids[-1]) == ("00000", "10000")
    assert list(source.ids) == sorted(source.ids)


def test_names_of_samples_and_tensors_may_have_dots_and_folders(tmp_path: Path) -> None:
    (tmp_path / "rain.v2" / "model").mkdir(parents=True)
    np.save(tmp_path / "rain.v2" / "model" / "head.0.npy", LABEL)
    source = open_source(tmp_path)
    assert source.ids == ("rain.v2",)
    assert list(source.read("rain.v2")) == ["model/head.0"]


@pytest.mark.parametrize("array", [np.asfortranarray(X), X.astype(">f4"), X[:, :, ::-1], X > 3, X[:, :0]])
@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_layout_and_byte_order_of_the_file_do_not_show(
    array: Tensor, write: Callable[..., None], tmp_path: Path
) -> None:
    write(tmp_path / "data.npz", x=array)
    tensor = open_source(tmp_path / "data.npz").read("0002")["x"]
    np.testing.assert_array_equal(tensor, array[2:3])
    assert tensor.flags.c_contiguous
    assert tensor.dtype.isnative
    assert tensors_digest({"x": tensor}) == tensors_digest({"x": array[2:3]})


def test_hidden_files_are_no_samples(tmp_path: Path) -> None:
    (folder_of_npz(tmp_path) / ".0009.npz").write_bytes(b"an editor's copy")
    assert len(open_source(tmp_path).ids) == 3


def test_python_objects_are_refused_and_never_loaded(tmp_path: Path) -> None:
    trace = tmp_path / "exploded"
    objects = np.array([Explosive(trace)], dtype=object)
    for form in ("stacked", "npz", "npy"):
        folder = tmp_path / form
        (folder / "0000").mkdir(parents=True)
        target = {"stacked": folder / "a.npz", "npz": folder / "a.npz", "npy": folder / "0000" / "boxes.npy"}[form]
        if form == "npy":
            np.save(target, objects)
        else:
            np.savez(target, boxes=objects)
        error = failure(target if form == "stacked" else folder) if form != "npy" else _folder_failure(folder)
        assert error.problems[0].code == "tensor-pickled"
        assert_speaks(error, "boxes", "np.asarray")
    assert not trace.exists()


def _folder_failure(folder: Path) -> SampleError:
    with pytest.raises(SampleError) as caught:
        open_source(folder).read("0000")
    return caught.value


def test_a_pickle_with_the_name_of_an_npz_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.npz").write_bytes(pickle.dumps({"x": X}))
    assert failure(tmp_path / "data.npz").problems[0].code == "npz-damaged"


@pytest.mark.parametrize("array", [np.array(["a", "b"]), np.zeros(2, "V2"), np.zeros(2, complex), np.zeros(2, "M8[s]")])
def test_what_is_no_number_is_refused_by_its_type(array: Tensor, tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", x=array)
    error = failure(tmp_path / "data.npz")
    assert error.problems[0].code == "tensor-no-numbers"
    assert error.problems[0].get("dtype") == str(array.dtype)


def test_all_bad_arrays_of_a_file_are_reported_together(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", a=np.array(["x"]), b=np.array([None]), c=X[:1])
    error = failure(tmp_path / "data.npz")
    assert [problem.get("tensor") for problem in error.problems] == ["a", "b"]


@pytest.mark.parametrize("form", [stacked, compressed])
@pytest.mark.parametrize("keep", [0, 20, 200, -30])
def test_a_cut_off_file_is_refused(form: Callable[[Path], Path], keep: int, tmp_path: Path) -> None:
    path = form(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    assert failure(path).problems[0].code == "npz-damaged"


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_a_flipped_bit_is_noticed(write: Callable[..., None], tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (2, 1 << 17), np.uint8)  # deflate stores it as it is
    path = tmp_path / "data.npz"
    write(path, x=noise)
    content = bytearray(path.read_bytes())
    windows = (noise.ravel()[at : at + 16].tobytes() for at in range(0, noise.size, 997))
    content[next(at for window in windows if (at := content.find(window)) > 0)] ^= 0x10
    path.write_bytes(content)
    assert failure(path).problems[0].code == "tensor-damaged"


def test_a_cut_off_npy_is_refused(tmp_path: Path) -> None:
    folder_of_npy(tmp_path)
    path = tmp_path / "0000" / "x.npy"
    for keep in (0, 5, 40, -4):
        whole = path.read_bytes()
        path.write_bytes(whole[:keep])
        assert failure(tmp_path, "0000").problems[0].code == "tensor-damaged"
        path.write_bytes(whole)


def test_stacked_arrays_of_unequal_length_are_listed(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", x=X, label=LABEL[:2])
    assert_speaks(failure(tmp_path / "data.npz"), "x: 3", "label: 2")


def test_a_scalar_cannot_be_stacked(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", x=X, rate=np.float32(16000))
    assert failure(tmp_path / "data.npz").problems[0].get("tensors") == ("rate",)


def test_sources_without_a_sample_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "hollow" / "0000").mkdir(parents=True)
    np.savez(tmp_path / "none.npz")
    np.savez(tmp_path / "zero.npz", x=X[:0])
    for name in ("empty", "hollow", "none.npz", "zero.npz"):
        assert failure(tmp_path / name).problems[0].code == "tensors-empty"


def test_a_sample_that_lost_its_files_is_named(tmp_path: Path) -> None:
    folder_of_npy(tmp_path)
    for file in (tmp_path / "0001").iterdir():
        file.unlink()
    assert failure(tmp_path).problems[0].get("samples") == ("0001",)


def test_two_forms_in_one_folder_are_not_chosen_between(tmp_path: Path) -> None:
    folder_of_npy(folder_of_npz(tmp_path))
    assert failure(tmp_path).problems[0].code == "tensors-mixed"


def test_other_paths_say_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1,2")
    for name, code in (
        ("data.csv", "tensors-kind"),
        ("nowhere", "tensors-missing"),
        ("nowhere.npz", "tensors-missing"),
    ):
        error = failure(tmp_path / name)
        assert error.problems[0].code == code
        assert_speaks(error, "<id>.npz")


def test_an_uncompressed_stack_is_mapped_and_not_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "large.npz", x=np.zeros((64, 1 << 18), np.float32))
    source = open_source(tmp_path / "large.npz")
    tracemalloc.start()
    for sample in source.ids:
        source.read(sample)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20  # one sample is 1 MiB, all of them 64 MiB


def test_the_digest_is_that_of_names_types_shapes_and_values() -> None:
    base: dict[str, Tensor] = {"x": X, "label": LABEL}
    assert tensors_digest(base) == tensors_digest(dict(reversed(base.items())))
    others: list[dict[str, Tensor]] = [
        {"y": X, "label": LABEL},
        {"x": X.reshape(3, 8), "label": LABEL},
        {"x": X.view(np.int32), "label": LABEL},
        {"x": X + 1, "label": LABEL},
        {"x": X},
        {},
    ]
    digests = [tensors_digest(tensors) for tensors in (base, *others)]
    assert len(set(digests)) == len(digests)
    assert len(bytes.fromhex(digests[0])) == 32
