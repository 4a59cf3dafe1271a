"""What a board gave and nobody has asked for yet: beyond a limit it lies on disk, and comes back as it was."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from driftgate.backends.board.shelf import Shelf


def test_outputs_come_back_once_from_memory_or_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shelf = Shelf(held_bytes=100)
    made = {f"s{n}": {"y": np.full(10, n, np.int32), "z/w": np.array([n], np.float32)} for n in range(5)}
    for name, outputs in made.items():
        shelf.put(name, outputs)
    assert shelf.samples == set(made)
    (folder,) = tmp_path.iterdir()
    assert len(list(folder.iterdir())) == 3
    for name in reversed(made):
        found = shelf.take(name)
        for output, value in made[name].items():
            np.testing.assert_array_equal(found[output], value)
            assert found[output].dtype == value.dtype
        assert name not in shelf
    assert list(folder.iterdir()) == []
    with pytest.raises(KeyError):
        shelf.take("s0")
    shelf.put("big", {"y": np.zeros(1000)})
    shelf.clear()
    assert list(tmp_path.iterdir()) == []
