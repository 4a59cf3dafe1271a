"""The registry: our backends by name, third parties' by entry point."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from driftgate.backends.registry import BACKENDS, backend, backend_names
from driftgate.errors import BackendError, ConfigError
from support.contract import assert_speaks


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_each_backend_of_ours_can_be_made(name: str) -> None:
    assert backend(name).needs_feeds == (name != "recorded")


def test_an_unknown_backend_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        backend("tensorrt")
    assert_speaks(caught.value, "tensorrt", *BACKENDS)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """Put a distribution with one entry point on the path."""
    (folder / "plugin-1.0.dist-info").mkdir()
    (folder / "plugin-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    points = f"[driftgate.backends]\nfancy = {target}\nrecorded = {target}\n"
    (folder / "plugin-1.0.dist-info" / "entry_points.txt").write_text(points)
    (folder / "fancy_plugin.py").write_text("class Fancy:\n    needs_feeds = True\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "fancy_plugin", raising=False)


def test_a_third_partys_backend_is_found_and_takes_no_name_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "fancy_plugin:Fancy")
    assert type(backend("fancy")).__name__ == "Fancy"
    assert type(backend("recorded")).__name__ == "RecordedBackend"
    ours = ("board", "hbm_infer", "hbm_runtime", "hbruntime", "onnxruntime", "recorded", "torch")
    assert backend_names() == tuple(sorted(("fancy", *ours)))


def test_a_third_partys_backend_that_does_not_import_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "fancy_plugin:Missing")
    with pytest.raises(BackendError) as caught:
        backend("fancy")
    assert_speaks(caught.value, "fancy_plugin:Missing")
