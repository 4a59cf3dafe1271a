"""Archives of arrays: the same arrays are the same bytes, and a failed write leaves what was there."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from driftgate.errors import StorageError
from driftgate.storage.npz import write_npz

ARRAYS = {
    "zeta": np.arange(12, dtype=np.int8).reshape(3, 4).T,
    "alpha": np.float32(0.5) * np.ones((2, 0, 3), np.float32),
    "scalar": np.array(7.25),
}


@pytest.mark.parametrize("compressed", [True, False])
def test_arrays_come_back_as_they_were_and_in_order(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "new" / "arrays.npz"
    write_npz(path, ARRAYS, compressed=compressed)
    with np.load(path, allow_pickle=False) as archive:
        assert archive.files == list(ARRAYS)
        for name, array in ARRAYS.items():
            assert archive[name].dtype == array.dtype
            assert np.array_equal(archive[name], array)


def test_the_same_arrays_are_the_same_bytes_and_carry_no_clock(tmp_path: Path) -> None:
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    write_npz(first, ARRAYS)
    write_npz(second, ARRAYS)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "arrays.npz"
    write_npz(path, ARRAYS)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="Object arrays"):
        write_npz(path, {"fine": np.zeros(3), "objects": np.array([{}])})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"file/arrays\.npz cannot be written"):
        write_npz(tmp_path / "file" / "arrays.npz", ARRAYS)
