"""One network on several targets: each has its own build and verdict, and what they share runs once a sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Judgement
from driftgate.domain.platforms import PLATFORMS
from driftgate.storage.document import read_results
from support.commandline import call
from support.models import tiny
from support.project import Project, biased, inputs, torch_stand_in
from support.vendor.models import interpreter, write


def project(folder: Path, *, shifts: dict[str, float] | None = None, count: int = 5) -> Project:
    """onnx, and for each target a .bc and an .hbm in a folder of its own, whose bias is off by what `shifts` says."""
    made = Project(folder)
    for target in ("J6M", "J6P"):
        out = folder / f"model_output_{target}"
        out.mkdir(parents=True)
        march = PLATFORMS[target].march
        write(out / "net_quantized_model.bc", biased(0.001), march=march)
        write(out / "net.hbm", biased(0.001 + (shifts or {}).get(target, 0.0)), march=march)
    made.subject = {
        "targets": ["J6M", "J6P"],
        "artifacts": {
            "onnx": made.onnx("net.onnx", tiny()),
            "build": {"from": "model_output_{target}", "prefix": "net"},
        },
        "samples": {"raw": made.npz("eval.npz", x=inputs(count)), "block": 2},
    }
    made.top = {"defaults": {"hbruntime": {"python": interpreter(), "timeout": 60}}}
    return made


def checked(made: Project, code: int, *arguments: str) -> tuple[dict[str, Facts], dict[str, Judgement]]:
    out = made.root / "out"
    told = call("check", "-c", made.write(**made.top), "--out", out, *arguments)
    assert told.code == code, told.out + told.err
    results = read_results(out)
    facts = {one.plan.target: one for one in results.facts}
    return facts, {one.target: one for one in results.judgements or ()}


def test_each_target_is_judged_by_its_own_build(tmp_path: Path) -> None:
    facts, judged = checked(project(tmp_path, shifts={"J6P": 0.3}), 1)
    assert judged["J6M"].outcome.value == "passed"
    assert judged["J6P"].first_failure == "bc-hbm"
    assert {one.plan.digest for one in facts.values()} == {one.plan for one in judged.values()}
    assert len({one.plan.digest for one in facts.values()}) == 2
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert "J6M" in summary
    assert "J6P" in summary


def test_a_stage_that_targets_share_runs_once_a_sample(tmp_path: Path) -> None:
    made = project(tmp_path)
    ran = tmp_path / "mark"
    made.artifacts["pytorch"] = torch_stand_in(made, "count", mark=ran)
    facts, _ = checked(made, 0)
    assert ran.read_text() == "infer\n" * 5
    runs = [next(run for run in one.runs if run.stage == "pytorch") for one in facts.values()]
    assert [run.samples_done for run in runs] == [5, 5]
    assert runs[0].id == runs[1].id
    links = [[m for m in one.measurements if m.link == "pytorch..onnx"] for one in facts.values()]
    assert len(links[0]) == len(links[1]) == 1
    assert links[0][0].samples == links[1][0].samples


def test_a_stage_that_breaks_is_told_alike_for_each_target(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.artifacts["pytorch"] = torch_stand_in(made, "die")
    facts, judged = checked(made, 2)
    reasons = [next(run.reason for run in one.runs if run.stage == "pytorch") for one in facts.values()]
    assert reasons[0] is not None
    assert reasons[0].code == "worker-died"
    assert reasons[0] == reasons[1]
    assert {one.check("pytorch-onnx").outcome.value for one in judged.values()} == {"error"}


def test_the_platform_stands_in_paths_of_artifacts(tmp_path: Path) -> None:
    made = project(tmp_path)
    del made.artifacts["build"]
    made.artifacts["quantized"] = {"path": "model_output_{target}/net_quantized_model.bc"}
    made.artifacts["hbm"] = {"path": "model_output_{target}/net.hbm"}
    facts, _ = checked(made, 0)
    assert all({run.stage for run in one.runs} >= {"quantized", "hbm"} for one in facts.values())
    (tmp_path / "model_output_J6P" / "net.hbm").unlink()
    told = call("check", "-c", made.write(**made.top), "--out", tmp_path / "out")
    assert told.code == 2
    assert "model_output_J6P/net.hbm" in told.err


def test_legs_of_targets_are_told_apart(tmp_path: Path) -> None:
    made = project(tmp_path)
    told = call("plan", "-c", made.write(**made.top), "--json", "--legs", "2")
    ids = [leg["id"] for one in json.loads(told.out)["subjects"] for leg in one["legs"]]
    assert ids == ["net/J6M/host/0-1", "net/J6M/host/2-2", "net/J6P/host/0-1", "net/J6P/host/2-2"]
    shards = []
    for number, leg in enumerate(ids):
        shards.append(tmp_path / f"shard-{number}")
        assert call("run", "-c", made.config, "--leg", leg, "--out", shards[-1]).code == 0
    assert call("report", *shards, "--out", tmp_path / "merged", "-c", made.config).code == 0
    whole, _ = checked(made, 0)
    merged = {one.plan.target: one for one in read_results(tmp_path / "merged").facts}
    for target, one in whole.items():
        assert len(one.measurements) == len(merged[target].measurements)
        assert [m.samples for m in one.measurements] == [m.samples for m in merged[target].measurements]


def test_the_smallest_repro_of_each_target_has_a_folder(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.artifacts["calibrated"] = made.onnx("calibrated.onnx", biased(3.0))
    checked(made, 1)
    assert sorted(path.name for path in (tmp_path / "out" / "repro" / "net").iterdir()) == ["J6M", "J6P"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"targets": ["J6M", "J5"]}, "not a platform"),
        ({"targets": ["J6M", "J6M"]}, "names one twice"),
        ({"targets": ["J6M"], "platform": "J6P"}, "platform or targets, not both"),
    ],
)
def test_targets_that_cannot_be_are_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    made = project(tmp_path)
    made.subject = {**made.subject, **change}
    told = call("plan", "-c", made.write(**made.top))
    assert told.code == 2
    assert said in told.err
