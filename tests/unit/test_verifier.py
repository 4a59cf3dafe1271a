"""hb_verifier as a second opinion, through a STAND-IN of it: what it says, and every way it can fail."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from driftgate.domain.toolchain.comparisons import ConsistencyReport, CosineReport
from driftgate.errors import ArtifactError, BackendError
from driftgate.storage.document import read_results
from driftgate.verifying import Verifier, run_verifier
from support.commandline import call
from support.models import save, tiny
from support.project import Project, biased, inputs
from support.vendor.models import interpreter, write

TOOL = Path(__file__).parents[1] / "support" / "vendor" / "bin" / "hb_verifier"
FEEDS = {"x": np.array([[1.0, -2.0, 0.5]], np.float32)}


def tool(fault: str = "") -> tuple[str, ...]:
    return ("env", f"STAND_IN_FAULT={fault}", sys.executable, str(TOOL))


def verifier(fault: str = "", seconds: float = 60.0) -> Verifier:
    return Verifier(tool(fault), 5, seconds)


def test_onnx_and_bc_are_compared_by_cosine(tmp_path: Path) -> None:
    files = [save(tiny(), tmp_path / "a.onnx"), write(tmp_path / "b.bc", biased(0.3))]
    report = run_verifier(files, [FEEDS, FEEDS], verifier())
    assert isinstance(report, CosineReport)
    assert [row.tensor for row in report.rows] == ["y"]
    assert report.rows[0].cosine is not None
    assert report.rows[0].cosine < 1
    assert report.versions.tool == "3.5.16"


@pytest.mark.parametrize(("shift", "agrees"), [(0.0, True), (0.01, False)])
def test_bc_and_hbm_get_a_verdict(shift: float, agrees: bool, tmp_path: Path) -> None:
    files = [write(tmp_path / "a.bc", tiny()), write(tmp_path / "b.hbm", biased(shift))]
    report = run_verifier(files, [FEEDS, FEEDS], verifier())
    assert isinstance(report, ConsistencyReport)
    assert report.is_consistent is agrees
    assert report.rows_agree


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("die", BackendError, "exit code 255 without a word"),
        ("hang", BackendError, "did not end within 2 s"),
        ("silent", ArtifactError, "hb_verifier"),
        ("layout", ArtifactError, "hb_verifier"),
        ("nothing", ArtifactError, "nothing|No output|compared"),
    ],
)
def test_a_tool_that_fails_or_prints_something_new_is_named(
    fault: str, kind: type[Exception], said: str, tmp_path: Path
) -> None:
    files = [write(tmp_path / "a.bc", tiny()), write(tmp_path / "b.hbm", tiny())]
    with pytest.raises(kind, match=said):
        run_verifier(files, [FEEDS, FEEDS], verifier(fault, 2.0 if fault == "hang" else 60.0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bc", "b.hbm"]


def test_a_tool_that_is_not_there_is_named(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.bc", tiny()), write(tmp_path / "b.hbm", tiny())]
    with pytest.raises(BackendError, match="cannot be started"):
        run_verifier(files, [FEEDS, FEEDS], Verifier(("/nowhere/hb_verifier",)))


@pytest.mark.parametrize(("command", "said"), [(tool(), "calls both files inconsistent"), (["/nowhere"], "cannot be")])
def test_a_check_asks_it_about_the_first_failing_link(command: list[str], said: str, tmp_path: Path) -> None:
    write(tmp_path / "net.bc", tiny())
    write(tmp_path / "net.hbm", biased(0.3))
    project = Project(tmp_path)
    project.subject = {
        "artifacts": {"quantized": "net.bc", "hbm": "net.hbm"},
        "samples": {"raw": project.npz("eval.npz", x=inputs(4))},
    }
    runtime = {"python": interpreter(), "timeout": 60}
    config = project.write(defaults={"hbruntime": runtime, "verifier": {"command": list(command)}})
    answer = call("check", "-c", config, "--out", tmp_path / "out")
    assert answer.code == 1
    assert said in " ".join(answer.out.split())
    assert read_results(tmp_path / "out").outcome == "failed"
