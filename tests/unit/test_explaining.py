"""Causes in `check`: the demo's faults are explained, and the situations of the evidence itself are told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from driftgate.demo.faults import FAULTS
from driftgate.domain.judgement import Finding, Outcome, Policy
from driftgate.judgement.codes import CODES, Verdict
from driftgate.judgement.findings import settled
from driftgate.judgement.judge import judge
from driftgate.storage.document import read_results
from support.commandline import call, rows
from support.models import answer, tiny
from support.project import LOSS, Project, inputs, two_stages, whole_chain
from support.situations import elsewhere, recorded

#: What each fault of the demo is called, and what it is about.
CAUSES = {
    "input-scale": ("input-scale-255", "input"),
    "optimizer-fold": ("bn-fold-error", "/conv1/Conv"),
    "calibration-range": ("calibration-not-representative", ""),
    "board-padding": ("device-op-error", "/relu4/Relu_output_0"),
    "board-channels": ("device-op-error", "/relu2/Relu_output_0"),
    "board-scale": ("device-op-error", "/bn3/BatchNormalization_output_0"),
}


def found(out: Path) -> tuple[Finding, ...]:
    """The findings of a single subject's results."""
    (judgement,) = read_results(out).judgements or ()
    return judgement.findings


def checked(project: Project, code: int = 0, *options: str) -> Path:
    """The output folder of a check, which must end with this code."""
    out = project.root / "out"
    told = call("check", "-c", project.write(**project.top), "--out", out, *options)
    assert told.code == code, told.out + told.err
    return out


def explained(out: Path) -> Any:
    """What `explain` says of a folder that check wrote."""
    return json.loads(call("explain", out, "--json").out)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_of_the_demo_is_explained(fault: str, tmp_path: Path) -> None:
    code, about = CAUSES[fault]
    answer = call("demo", "--fault", fault, "--out", tmp_path)
    first = found(tmp_path)[0]
    assert (first.code, first.confirmed) == (code, True)
    assert not about or about in first.subjects
    said = " ".join(answer.out.split())
    assert f"Cause: {code} (confirmed)" in said
    assert "not investigated" not in said
    assert f"`{code}` (confirmed)" in (tmp_path / "summary.md").read_text("utf-8")
    assert f"`{code}` (confirmed)" in (tmp_path / "comment.md").read_text("utf-8")
    assert f"cause={code} (confirmed)" in (tmp_path / "junit.xml").read_text("utf-8")
    told = explained(tmp_path)
    assert (told["verdict"], told["findings"][0]["code"]) == ("FAIL", code)


def test_a_healthy_demo_has_no_finding(tmp_path: Path) -> None:
    call("demo", "--out", tmp_path)
    assert found(tmp_path) == ()
    assert explained(tmp_path)["verdict"] == "PASS"


def test_where_nothing_explains_it_what_was_tested_is_listed(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    y = answer(inputs(6)).copy()
    project.npz("pytorch.npz", y=(y + np.random.default_rng(1).normal(size=y.shape)).astype(np.float32))
    out = checked(project, 1)
    assert "no explanation found; tested and ruled out" in (out / "summary.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["x", "image"])
def test_a_single_input_is_the_same_one_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    """The export holds a factor of 255 before the network; experiments on its input are made by either name."""
    project = two_stages(tmp_path)
    made = tiny()
    made.graph.input[0].name = name
    scaled = helper.make_node("Mul", [name, "factor"], ["scaled"])
    for node in made.graph.node:
        node.input[:] = ["scaled" if read == "x" else read for read in node.input]
    made.graph.initializer.append(numpy_helper.from_array(np.array(255, np.float32), "factor"))
    nodes = [scaled, *made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    project.artifacts["pytorch"] = project.onnx("torch.onnx", tiny())
    project.artifacts["onnx"] = project.onnx("net.onnx", made)
    first = found(checked(project, 1))[0]
    assert (first.code, first.confirmed) == ("input-scale-255", True)


def test_networks_with_memory_are_not_taken_apart(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("pytorch.npz", y=answer(inputs(10)) + np.float32(0.5))
    project.subject["state"] = {"y": "h"}
    assert checked(project, 2).is_dir()


# --- the situations of the evidence family


def test_a_green_mean_hides_a_lost_sample(tmp_path: Path) -> None:
    """s5-mean-hides-worst."""
    count, width = 200, 64
    random = np.random.default_rng(0)
    reference = random.normal(size=(count, width)).astype(np.float32)
    candidate = (reference + random.normal(scale=0.01, size=reference.shape)).astype(np.float32)
    candidate[137] = random.normal(size=width)
    project = recorded(tmp_path, reference, candidate)
    out = checked(project, 1)
    first = found(out)[0]
    assert (first.code, first.confirmed, first.subjects[0]) == ("worst-sample-hidden", True, "0137")
    assert explained(out)["findings"][0]["code"] == "worst-sample-hidden"
    assert {name: value for name, value, _ in first.evidence}["cosine of all samples"] > 0.99
    candidate[137] = reference[137] + np.float32(0.01)
    recorded(tmp_path, reference, candidate)
    assert found(checked(project)) == ()


def test_nan_never_counts_as_pass(tmp_path: Path) -> None:
    """s5-nan-counts-as-pass."""
    project = whole_chain(tmp_path)
    y = answer(inputs(10)) + LOSS
    y[3, 1] = np.nan
    project.artifacts["hbm"] = project.npz("hbm.npz", y=y)
    out = checked(project, 1)
    assert next(finding.code for finding in found(out) if finding.link.endswith("..hbm")) == "nan-output"
    told = explained(out)
    assert (told["verdict"], told["findings"][0]["code"]) == ("FAIL", "nan-output")


@pytest.mark.parametrize("same_file", [True, False])
def test_int8_that_equals_float_is_another_artifact(same_file: bool, tmp_path: Path) -> None:
    """s5-stale-artifact."""
    project = whole_chain(tmp_path)
    if same_file:
        project.artifacts["calibrated"] = project.artifacts["optimized_float"]
    else:
        project.artifacts["calibrated"] = project.npz("calibrated.npz", y=answer(inputs(10)))
    out = checked(project, 1)
    assert rows(out)["float-int8"] == "failed"
    told = explained(out)
    assert (told["verdict"], told["findings"][0]["code"]) == ("FAIL", "stale-artifact")


def test_random_input_is_no_evidence_and_real_data_decide(tmp_path: Path) -> None:
    """s5-random-input-false-alarm-pass."""
    project = two_stages(tmp_path)
    y = answer(inputs(10))
    project.npz("pytorch.npz", y=(y + np.float32(2e-5) * np.ptp(y)).astype(np.float32))
    project.top = {"policies": {"strict": {"pytorch-onnx": {"range": 1e-5}}}}
    assert checked(project, 0).is_dir()  # real data, a sane tolerance
    project.subject["samples"]["origin"] = "random"
    out = checked(project, 2, "--policy", "strict")
    assert rows(out)["pytorch-onnx"] == "error"
    told = explained(out)
    assert (told["verdict"], told["findings"][0]["code"]) == ("PASS", "invalid-test-input")


def test_one_artifact_with_other_numbers_elsewhere_is_drift(tmp_path: Path) -> None:
    """s5-flaky-environment: the shards of two machines, one of which has no VNNI."""
    project = two_stages(tmp_path)
    (facts,) = read_results(checked(project)).facts
    there = elsewhere(facts, 0.5, cpu="x86_64 only_here")
    both = replace(
        facts,
        runs=(*facts.runs, *there.runs),
        environments=(*facts.environments, *there.environments),
        measurements=(*facts.measurements, *there.measurements),
    )
    judgement = judge(both, Policy())
    assert judgement.outcome is Outcome.FAILED
    drift = [finding for finding in judgement.findings if finding.code == "environment-drift"]
    assert drift
    assert drift[0].confirmed
    assert "only_here" in drift[0].subjects
    assert len(drift[0].evidence) == 2
    assert judge(elsewhere(facts, cpu="x86_64 only_here"), Policy()).findings == ()


# --- findings and verdicts


def test_one_lsb_passes_only_where_the_policy_accepts_it(tmp_path: Path) -> None:
    y = np.random.default_rng(2).integers(-100, 100, (10, 12)).astype(np.int8)
    moved = y.copy()
    moved[4, 3] += 1
    project = Project(tmp_path)
    artifacts = {"quantized": project.npz("quantized.npz", y=y), "hbm": project.npz("hbm.npz", y=moved)}
    project.subject = {
        "artifacts": artifacts,
        "samples": {"raw": project.npz("eval.npz", x=np.arange(10, dtype=np.float32)[:, None])},
    }
    for stage in ("quantized", "hbm"):
        project.signature(f"{stage}.signature.json", y={"scales": [0.1], "zero_points": [0], "axis": None})
    project.top = {"policies": {"tolerant": {"accepts": ["rounding-lsb"]}}}
    out = checked(project, 1)
    assert next((one.code, one.confirmed) for one in found(out)) == ("rounding-lsb", True)
    out = checked(project, 0, "--policy", "tolerant")
    assert "the policy accepts" in (out / "summary.md").read_text("utf-8")


def test_only_harmless_causes_can_be_accepted(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.top = {"policies": {"lax": {"accepts": ["bn-fold-error"]}}}
    told = call("check", "-c", project.write(**project.top), "--out", tmp_path / "out")
    assert told.code == 2
    assert "bn-fold-error: not the code of a harmless cause" in told.err


def test_suspected_causes_change_no_verdict() -> None:
    for code in CODES.values():
        finding = Finding(code.code, "a..b", False, ())
        assert settled("a..b", (), (finding,), tuple(CODES)) == []
    sure = Finding("stale-artifact", "a..b", True, ())
    assert settled("a..b", (), (sure,), ())[0].outcome is Outcome.FAILED
    assert CODES["stale-artifact"].verdict is Verdict.FAIL
