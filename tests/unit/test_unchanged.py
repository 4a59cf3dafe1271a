"""`plan --changed`: a subject that is as a former report has it rests, and is told with that report's results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from driftgate.domain.judgement import Judgement
from driftgate.storage.document import read_results
from support.commandline import Answer, call
from support.project import Project, biased, inputs, two_stages
from support.sameness import measured

OFF = 0.5  # makes a link fail


class Two:
    """Two networks, planned in legs, run one after the other and reported."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.parts = {name: two_stages(root / name) for name in ("left", "right")}
        self.project = Project(root)

    def write(self) -> Path:
        subjects = {name: inside(part.subject, name) for name, part in self.parts.items()}
        return self.project.write(subjects=subjects)

    def planned(self, *arguments: str | Path) -> list[str]:
        told = call("plan", "-c", self.write(), "--out", self.root / "plan", *arguments)
        assert told.code == 0, told.out + told.err
        return [entry["leg"] for entry in json.loads((self.root / "plan" / "matrix.json").read_text())["host"]]

    def reported(self, legs: list[str], out: str, *arguments: str) -> Answer:
        planned = self.root / "plan" / "plan.json"
        shards = []
        for number, leg in enumerate(legs):
            shards.append(self.root / f"{out}-{number}")
            told = call("run", "-c", self.project.config, "--plan", planned, "--leg", leg, "--out", shards[-1])
            assert told.code == 0, told.err
        given = ("--plan", planned, "-c", self.project.config, "--out", self.root / out)
        return call("report", *shards, *given, *arguments)

    def judged(self, out: str) -> Mapping[str, Judgement]:
        return {one.subject: one for one in read_results(self.root / out).judgements or ()}


def inside(subject: dict[str, Any], folder: str) -> dict[str, Any]:
    artifacts = {stage: f"{folder}/{path}" for stage, path in subject["artifacts"].items()}
    return {"artifacts": artifacts, "samples": {**subject["samples"], "raw": f"{folder}/{subject['samples']['raw']}"}}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Two:
    """With a report of run 41 in `base`."""
    monkeypatch.setenv("GITHUB_SHA", "a" * 40)
    monkeypatch.setenv("GITHUB_RUN_ID", "41")
    two = Two(tmp_path)
    assert two.reported(two.planned(), "base").code == 0
    monkeypatch.setenv("GITHUB_SHA", "b" * 40)
    monkeypatch.setenv("GITHUB_RUN_ID", "42")
    return two


def test_nothing_runs_where_nothing_changed(made: Two) -> None:
    assert made.planned("--changed", made.root / "base") == []
    told = made.reported([], "again")
    assert told.code == 0, told.out + told.err
    assert "unchanged since run 41" in " ".join((made.root / "again" / "summary.md").read_text().split())
    assert told.out.count("unchanged since run 41") == 2
    former, now = (read_results(made.root / name) for name in ("base", "again"))
    assert [measured(facts) for facts in now.facts] == [measured(facts) for facts in former.facts]
    assert {name: one.outcome for name, one in made.judged("again").items()} == {
        name: one.outcome for name, one in made.judged("base").items()
    }


def test_what_was_unchanged_already_is_told_as_of_the_run_that_measured_it(made: Two) -> None:
    made.planned("--changed", made.root / "base")
    made.reported([], "again")
    made.planned("--changed", made.root / "again")
    assert made.reported([], "third").code == 0
    told = " ".join((made.root / "third" / "summary.md").read_text().split())
    assert "unchanged since run 41" in told
    assert "unchanged since run 42" not in told


def test_what_changed_runs_and_the_rest_stands_as_it_was(made: Two) -> None:
    made.parts["right"].onnx("net.onnx", biased(OFF))
    legs = made.planned("--changed", made.root / "base")
    assert {leg.split("/")[0] for leg in legs} == {"right"}
    told = made.reported(legs, "now")
    assert told.code == 1, told.out + told.err
    assert {name: one.outcome.value for name, one in made.judged("now").items()} == {
        "left": "passed",
        "right": "failed",
    }
    notes = {
        facts.plan.subject: {note.code for run in facts.runs for note in run.notes}
        for facts in read_results(made.root / "now").facts
    }
    assert "unchanged-since" in notes["left"]
    assert "unchanged-since" not in notes["right"]


def test_a_failure_that_is_unchanged_still_fails(made: Two) -> None:
    made.parts["right"].onnx("net.onnx", biased(OFF))
    assert made.reported(made.planned(), "failed").code == 1
    assert made.planned("--changed", made.root / "failed") == []
    assert made.reported([], "again").code == 1


def test_a_subject_that_was_left_unfinished_runs_again(made: Two) -> None:
    legs = made.planned()
    assert made.reported(legs[:1], "half").code == 2
    rest = made.planned("--changed", made.root / "half")
    assert {leg.split("/")[0] for leg in rest} == {leg.split("/")[0] for leg in legs[1:]}


def test_a_subject_of_which_something_could_not_be_measured_runs_again(made: Two) -> None:
    path = made.root / "base" / "results.json"
    document = json.loads(path.read_text())
    for facts in document["facts"]:
        if facts["plan"]["subject"] == "left":
            reason = {"code": "leg-missing", "params": [["leg", "a"]]}
            facts["problems"] = [{"where": "onnx", "output": None, "reason": reason}]
    path.write_text(json.dumps(document))
    assert {leg.split("/")[0] for leg in made.planned("--changed", made.root / "base")} == {"left"}


def test_samples_that_changed_are_a_change(made: Two) -> None:
    made.parts["left"].npz("eval.npz", x=inputs(6, seed=3))
    assert {leg.split("/")[0] for leg in made.planned("--changed", made.root / "base")} == {"left"}


def test_former_results_that_are_not_those_of_the_plan_are_an_error(made: Two) -> None:
    made.planned("--changed", made.root / "base")
    other = made.root / "plan" / "unchanged"
    shutil.rmtree(other)
    made.parts["left"].onnx("net.onnx", biased(0.0001))
    legs = made.planned()
    assert made.reported(legs, "other").code == 0
    made.parts["left"].onnx("net.onnx", biased(0))
    assert made.planned("--changed", made.root / "base") == []
    shutil.rmtree(other)
    other.mkdir()
    for name in ("results.json", "facts.npz"):
        shutil.copy(made.root / "other" / name, other)
    told = made.reported([], "again")
    assert told.code == 2
    assert "left" in told.err
    assert not (made.root / "again" / "results.json").exists()


def test_former_results_that_are_lost_are_an_error(made: Two) -> None:
    made.planned("--changed", made.root / "base")
    shutil.rmtree(made.root / "plan" / "unchanged")
    assert made.reported([], "again").code == 2


def test_a_base_that_cannot_be_read_is_an_error(made: Two) -> None:
    (made.root / "base" / "results.json").write_text("{")
    told = call("plan", "-c", made.write(), "--out", made.root / "plan", "--changed", made.root / "base")
    assert told.code == 2
    assert "results.json" in told.err


def test_a_report_of_nothing_is_refused(made: Two) -> None:
    told = call("report", "--out", made.root / "none")
    assert told.code == 2
    assert "plan" in told.err
