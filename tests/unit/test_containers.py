"""Workers in a container: what must be mounted, and what is said where it is not. `docker` is a STAND-IN here."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from driftgate.backends.hbruntime_backend import HbRuntimeBackend
from driftgate.errors import BackendError, LoadRefused
from driftgate.sessions import Artifact
from support.models import answer, tiny
from support.vendor.models import interpreter, write

DOCKER = Path(__file__).parents[1] / "support" / "container" / "docker"
X = np.array([[1.0, -2.0, 0.5]], np.float32)


@pytest.fixture(scope="module", autouse=True)
def _namespaces() -> None:
    made = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], check=False, capture_output=True)
    if made.returncode and os.environ.get("DRIFTGATE_REQUIRE_TOOLS"):
        pytest.fail(f"no namespaces here: {made.stderr.decode()}")
    if made.returncode:
        pytest.skip("this machine gives ordinary users no namespaces")


#: What the machine's own interpreter needs, wherever it lies.
OWN = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[1])


def artifact(path: Path, *mounts: Path) -> Artifact:
    asked = [word for mount in (*OWN, *mounts) for word in ("-v", f"{mount}:{mount}")]
    python = [str(DOCKER), "run", "--rm", "-i", *asked, "openexplorer", *interpreter()]
    return Artifact("quantized", "hbruntime", path, {"python": python, "timeout": 60.0})


def test_a_stage_runs_in_a_container_that_sees_the_temporary_folder_and_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "net.bc", tiny())
    with HbRuntimeBackend().open(artifact(path, Path(tempfile.gettempdir()))) as session:
        np.testing.assert_allclose(session.infer({"x": X}, sample="0000")["y"], answer(X), rtol=1e-6)


def test_without_the_temporary_folder_the_worker_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "net.bc", tiny())
    with pytest.raises(BackendError, match=r"mount .* under their own names"):
        HbRuntimeBackend().open(artifact(path, tmp_path))


def test_without_its_own_folder_the_file_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "net.bc", tiny())
    workers = tmp_path.parent / f"{tmp_path.name}-workers"
    workers.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(workers))
    with pytest.raises(LoadRefused, match=r"does not load .*net\.bc"):
        HbRuntimeBackend().open(artifact(path, workers))
