"""The action's first step on a runner without a network: everything comes from a folder of wheels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Where nobody answers: an attempt to use a network is an error at once.
NOBODY = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def wheelhouse() -> Path:
    """Made as docs/pull-requests.md says, from the working tree; what is there already is not fetched again."""
    folder = ROOT / ".cache" / "wheelhouse"
    for old in folder.glob("driftgate-*.whl"):
        old.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    known = ("--find-links", str(folder))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", *known, "--wheel-dir", str(folder), str(ROOT)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_a_runner_without_a_network_installs_and_checks(wheelhouse: Path, tmp_path: Path) -> None:
    done = first_step(tmp_path, wheelhouse)
    assert done.returncode == 0, done.stdout
    python = next(line for line in (tmp_path / "output").read_text("utf-8").splitlines() if line.startswith("/"))
    demo = subprocess.run(
        [python, "-I", "-m", "driftgate", "check", "-c", "demo", "--out", str(tmp_path / "out")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr


def test_a_wheel_of_another_state_is_refused(wheelhouse: Path, tmp_path: Path) -> None:
    """The same version number, another content."""
    other = tmp_path / "wheels"
    shutil.copytree(wheelhouse, other)
    (wheel,) = other.glob("driftgate-*.whl")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("driftgate/added.py", '"""Not ours."""\n')
    done = first_step(tmp_path, other)
    assert done.returncode == 2
    assert "is not the one of this action" in done.stdout
    assert list((tmp_path / "tools").rglob("installed")) == []


def test_a_wheelhouse_that_lacks_a_wheel_is_told(wheelhouse: Path, tmp_path: Path) -> None:
    other = tmp_path / "wheels"
    shutil.copytree(wheelhouse, other, ignore=shutil.ignore_patterns("numpy-*"))
    done = first_step(tmp_path, other)
    assert done.returncode == 2
    assert "numpy" in done.stdout
    assert "pip wheel --wheel-dir" in done.stdout


def first_step(folder: Path, wheelhouse: Path) -> subprocess.CompletedProcess[str]:
    """As a runner starts it, with nothing of this machine's pip and a network that refuses everything."""
    return subprocess.run(
        ["bash", str(ROOT / "src" / "install.sh")],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), NOBODY),
            "DRIFTGATE_PYTHON": sys.executable,
            "DRIFTGATE_WHEELHOUSE": str(wheelhouse),
            "RUNNER_TOOL_CACHE": str(folder / "tools"),
            "GITHUB_OUTPUT": str(folder / "output"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
