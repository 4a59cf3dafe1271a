"""What the torch backend knows of its files before any torch is started (the rest: tests/field)."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from driftgate.backends.torch_backend import TorchBackend
from driftgate.errors import ArtifactError, BackendError, ConfigError, LoadRefused
from driftgate.sessions import Artifact
from support.contract import assert_speaks

BACKEND = TorchBackend()
#: Python without site-packages: there is neither numpy nor torch in it.
BARE = (sys.executable, "-I", "-S")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """nets/tiny.py, other.py and tiny.pth."""
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "tiny.py").write_text("def load(): ...\n")
    (tmp_path / "other.py").write_text("")
    (tmp_path / "tiny.pth").write_bytes(b"weights")
    return tmp_path


def loaded(project: Path, load: str = "nets.tiny:load") -> Artifact:
    options = {"load": load, "weights": str(project / "tiny.pth"), "search_path": (str(project),), "python": BARE}
    return Artifact("pytorch", "torch", None, options)


@pytest.mark.parametrize(
    "change",
    [
        lambda project: (project / "nets" / "tiny.py").write_text("def load(): pass\n"),
        lambda project: (project / "nets" / "blocks.py").write_text(""),
        lambda project: (project / "nets.py").write_text(""),
        lambda project: (project / "tiny.pth").write_bytes(b"other"),
    ],
)
def test_the_digest_covers_the_package_of_load_and_its_weights(change: Callable[[Path], object], project: Path) -> None:
    before = BACKEND.digest(loaded(project))
    change(project)
    assert BACKEND.digest(loaded(project)) != before


def test_the_digest_leaves_other_files_alone_but_not_the_function(project: Path) -> None:
    before = BACKEND.digest(loaded(project))
    (project / "other.py").write_text("changed = True\n")
    assert BACKEND.digest(loaded(project)) == before
    assert BACKEND.digest(loaded(project, "nets.tiny:other")) != before


@pytest.mark.parametrize(
    ("members", "code"),
    [
        (("net/data.pkl", "net/version", "net/data/0"), "torchscript-state-dict"),
        (("net/something",), "torchscript-no-zip"),
        ((), "torchscript-no-zip"),
    ],
)
def test_files_that_are_no_torchscript_are_told_apart(members: tuple[str, ...], code: str, tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    if members:
        with zipfile.ZipFile(path, "w") as archive:
            for member in members:
                archive.writestr(member, "")
    else:
        path.write_bytes(b"\x80\x02 an old pickle")
    with pytest.raises(ArtifactError) as caught:
        BACKEND.open(Artifact("pytorch", "torch", path, {"python": BARE}))
    assert not isinstance(caught.value, LoadRefused)
    assert caught.value.problems[0].code == code
    assert_speaks(caught.value, "net.pt")


@pytest.mark.parametrize(
    ("path", "options", "code"),
    [
        (None, {}, "torch-either"),
        ("net.pt", {"load": "a:b"}, "torch-either"),
        ("net.pt", {"weights": "a.pth"}, "torch-weights-alone"),
        (None, {"load": "nets.tiny"}, "torch-load-form"),
        (None, {"load": ":load"}, "torch-load-form"),
    ],
)
def test_options_that_make_no_model(path: str | None, options: dict[str, str], code: str) -> None:
    artifact = Artifact("pytorch", "torch", None if path is None else Path(path), options)
    for attempt in (BACKEND.digest, BACKEND.open):
        with pytest.raises(ConfigError) as caught:
            attempt(artifact)
        assert caught.value.problems[0].code == code
        assert_speaks(caught.value, "pytorch")


def test_missing_weights_are_told_without_starting_anything(project: Path) -> None:
    (project / "tiny.pth").unlink()
    with pytest.raises(ArtifactError) as caught:
        BACKEND.open(loaded(project))
    assert_speaks(caught.value, "tiny.pth")


def test_an_interpreter_without_the_stack_is_told(project: Path) -> None:
    with pytest.raises(BackendError) as caught:
        BACKEND.open(loaded(project))
    assert caught.value.problems[0].code == "worker-package"
    assert_speaks(caught.value, "pytorch", "numpy", sys.executable)
