"""The action's steps in workflows of another repository, run by act."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from support.act.rig import NotRun, Rig


def test_a_healthy_network_passes_the_job_and_uploads_nothing(rig: Rig, workflows: Path, tmp_path: Path) -> None:
    done = rig.run(tmp_path, workflows / "healthy.yml", {"gate": "success"})

    assert done.code == 0
    assert "outcome=[passed] first-failure=[] report=[/" in done.text
    assert row(done.summaries, "BC ↔ HBM").endswith("PASS")
    assert done.errors == ()
    assert uploads(tmp_path) == []


def test_a_broken_board_fails_the_job_and_uploads_the_evidence(rig: Rig, workflows: Path, tmp_path: Path) -> None:
    done = rig.run(tmp_path, workflows / "faulty.yml", {"gate": "failure", "release": "success"})

    assert done.code == 1
    assert "outcome=[failed] first-failure=[bc-hbm]" in done.text
    assert "after a failed gate" not in output_of(done.text)
    assert "gate=[failure] outcome=[failed]" in done.text
    assert row(done.summaries, "BC ↔ HBM").endswith("FAIL")
    assert "bc-hbm" in done.errors[0]
    assert "unequal integers" in done.errors[1]

    (artifact,) = uploads(tmp_path)
    names = {file.name for file in artifact.iterdir()}
    assert names >= {"results.json", "facts.npz", "junit.xml", "summary.md", "driftgate.log"}
    judgement = json.loads((artifact / "results.json").read_text("utf-8"))["judgement"]
    assert judgement["outcome"] == "failed"


def test_legs_that_start_together_share_the_tool_and_no_artifact(rig: Rig, workflows: Path, tmp_path: Path) -> None:
    fresh = replace(rig, runner=tmp_path / "runner")
    fresh.run(tmp_path, workflows / "legs.yml", {"gate-1": "success", "gate-2": "success"})

    assert len(uploads(tmp_path)) == 4
    assert len(list((tmp_path / "runner").glob("tool_cache/driftgate/*/installed"))) == 1


def test_inputs_that_cannot_be_used_are_errors(rig: Rig, workflows: Path, tmp_path: Path) -> None:
    done = rig.run(tmp_path, workflows / "inputs.yml", dict.fromkeys(["config", "python", "upload"], "failure"))

    assert output_of(done.text).count("outcome=[error]") == 3
    assert any("the input upload is sometimes" in error for error in done.errors)
    assert any("the input python is not on this runner" in error for error in done.errors)


def test_the_rig_sees_a_job_that_never_ran(rig: Rig, workflows: Path, tmp_path: Path) -> None:
    done = rig.attempt(tmp_path / "seen", workflows / "unmapped.yml")
    assert done.code == 0, "act calls it a success"

    with pytest.raises(NotRun, match="wanted: \\['gate'\\]"):
        rig.run(tmp_path / "refused", workflows / "unmapped.yml", {"gate": "failure"})


def uploads(folder: Path) -> list[Path]:
    return sorted((folder / "artifacts").iterdir())


def row(pages: tuple[str, ...], check: str) -> str:
    """The result's cell of one check, in the one page that the job summary shows."""
    (page,) = pages
    rows = [[cell.strip(" *") for cell in line.split("|")] for line in page.splitlines() if line.startswith("|")]
    return next(cells[2] for cells in rows if cells[1] == check)


def output_of(text: str) -> str:
    """What steps printed, without act's own lines, which quote the steps' scripts."""
    return "\n".join(line for line in text.splitlines() if "=[$" not in line and "Run " not in line)
