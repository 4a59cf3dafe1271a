"""What a check makes of a project: feeds, outputs, chains, bridged links, policies, and where samples come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from support.commandline import call, codes, judged, reasons, rows
from support.models import accumulator, answer, hidden, tiny, value
from support.project import LOSS, Project, biased, inputs, torch_stand_in, two_stages, whole_chain

COUNT = 6


def checked(project: Project, code: int = 0, *options: str) -> Path:
    """The folder of a check that ends with this code."""
    out = project.root / "out"
    found = call("check", "-c", project.write(**project.top), "--out", out, *options)
    assert found.code == code, found.out + found.err
    return out


def links(out: Path) -> dict[str, Mapping[str, Any]]:
    """name → verdict on the first output of each link that was judged by numbers."""
    found: dict[str, Mapping[str, Any]] = {}
    for check in judged(out)["checks"]:
        for verdict in check["verdicts"]:
            if ".." in verdict["target"] and verdict["criterion"] != "score-drop":
                found.setdefault(verdict["target"], verdict)
    return found


def notes(out: Path, stage: str) -> dict[str, Mapping[str, Any]]:
    """code → parameters of what was noted of a stage."""
    document = json.loads((out / "results.json").read_text("utf-8"))
    runs = [run for run in document["facts"][0]["runs"] if run["stage"] == stage]
    return {note["code"]: dict(note["params"]) for run in runs for note in run["notes"]}


# --- feeds


def two_inputs(off: float = 0.0) -> onnx.ModelProto:
    """The tiny network, with `extra` added to its output; `off` by so much."""
    proto = tiny()
    proto.graph.node[-1].output[0] = "sum"
    proto.graph.node.append(helper.make_node("Add", ["sum", "extra"], ["whole"]))
    proto.graph.node.append(helper.make_node("Add", ["whole", "off"], ["y"]))
    proto.graph.initializer.append(numpy_helper.from_array(np.float32(off).reshape(1), "off"))
    proto.graph.input.append(value("extra", [1, 2]))
    return proto


def test_a_feed_that_only_one_side_takes_is_noted(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.artifacts["original_float"] = project.onnx("two.onnx", two_inputs())
    project.npz("eval.npz", x=inputs(COUNT), extra=np.zeros((COUNT, 2), np.float32))
    out = checked(project)
    assert notes(out, "onnx") == {"feeds-unused": {"stage": "onnx", "feeds": ["extra"]}}
    assert notes(out, "original_float") == {}
    assert "does not take the feeds" in (out / "summary.md").read_text("utf-8")


def test_feeds_go_by_name_then_by_the_map_and_a_lone_one_to_a_lone_input(tmp_path: Path) -> None:
    for number, (names, inputs_map) in enumerate(
        ((("x", "extra"), {}), (("image", "offset"), {"image": "x", "offset": ["extra", "bias"]}), (("a", "extra"), {}))
    ):
        project = two_stages(tmp_path / str(number))
        project.onnx("net.onnx", two_inputs())
        project.npz("eval.npz", **{names[0]: inputs(COUNT), names[1]: np.ones((COUNT, 2), np.float32)})
        project.npz("pytorch.npz", y=answer(inputs(COUNT)) + 1)
        project.subject["inputs"] = inputs_map
        assert rows(checked(project))["pytorch-onnx"] == "passed"


def test_an_optional_input_of_a_worker_is_fed_where_there_is_a_feed(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.artifacts["pytorch"] = torch_stand_in(project)
    project.onnx("net.onnx", two_inputs())
    project.npz("eval.npz", x=inputs(COUNT), extra=np.ones((COUNT, 2), np.float32))
    out = checked(project)
    assert rows(out)["pytorch-onnx"] == "passed"
    assert notes(out, "pytorch") == {}


def test_a_stage_that_misses_an_input_is_an_error_and_the_others_are_judged(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.onnx("net.onnx", two_inputs())
    out = checked(project, 2)
    assert rows(out) == {**dict.fromkeys(rows(out), "passed"), "pytorch-onnx": "error", "onnx-optimized": "error"}
    assert "the inputs extra have no feed; the sample has x" in reasons(out, "pytorch-onnx")


def test_the_deployed_stages_eat_runtime_samples(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.artifacts["quantized"] = project.onnx("quantized.onnx", two_inputs(LOSS))
    runtime = {"x": inputs(COUNT) + 1, "extra": answer(inputs(COUNT)) - answer(inputs(COUNT) + 1)}
    project.subject["samples"]["runtime"] = project.npz("runtime.npz", **runtime)
    out = checked(project)
    assert rows(out)["float-int8"] == "passed"
    assert notes(out, "quantized") == {}
    del project.subject["samples"]["runtime"]
    project.npz("eval.npz", x=inputs(COUNT), extra=np.zeros((COUNT, 2), np.float32))
    assert set(notes(checked(project), "quantized")) == {"runtime-from-raw"}


def test_a_network_with_memory_is_fed_sequences(tmp_path: Path) -> None:
    project = Project(tmp_path)
    x = np.arange(24, dtype=np.float32).reshape(COUNT, 2, 1, 2)
    state = np.cumsum(x, axis=1)
    project.subject = {
        "artifacts": {
            "pytorch": project.npz("pytorch.npz", y=state * 2, next_state=state),
            "onnx": project.onnx("net.onnx", accumulator()),
        },
        "samples": {"raw": project.npz("eval.npz", x=x, gain=np.full((COUNT, 1), 2, np.float32))},
        "state": {"next_state": "state"},
    }
    out = checked(project)
    assert rows(out)["pytorch-onnx"] == "passed"


# --- outputs


def two_outputs(folder: Path) -> Project:
    """pytorch gives y and h; the model calls them logits and features."""
    project = two_stages(folder)
    x = inputs(COUNT)
    project.npz("pytorch.npz", y=answer(x), h=hidden(x))
    proto = tiny()
    proto.graph.node[0].output[0] = proto.graph.node[1].input[0] = "features"
    proto.graph.node[2].output[0] = "logits"
    del proto.graph.output[:]
    proto.graph.output.extend([value("features", [1, 2]), value("logits", [1, 2])])
    project.onnx("net.onnx", proto)
    return project


def test_outputs_are_paired_by_the_map(tmp_path: Path) -> None:
    project = two_outputs(tmp_path)
    project.subject["outputs"] = {"y": ["output0", "logits"], "h": "features"}
    out = checked(project)
    assert {summary["output"] for summary in judged(out)["summaries"]} == {"y", "h"}


def test_outputs_of_one_form_are_never_guessed(tmp_path: Path) -> None:
    out = checked(two_outputs(tmp_path), 2)
    assert codes(out, "pytorch-onnx") == ["output-unpaired", "outputs-none"]
    assert "set it to null to leave it out" in reasons(out, "pytorch-onnx")


def test_an_output_that_is_left_over_is_an_error_until_it_is_left_out_on_purpose(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    x = inputs(COUNT)
    project.npz("pytorch.npz", y=answer(x), aux=x)
    out = checked(project, 2)
    assert codes(out, "pytorch-onnx") == ["output-unpaired"]
    assert "output aux has no partner in onnx" in reasons(out, "pytorch-onnx")
    project.subject["outputs"] = {"aux": None}
    assert rows(checked(project))["pytorch-onnx"] == "passed"


def test_further_outputs_of_the_candidate_are_noted(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    proto = tiny()
    proto.graph.output.append(value("h", [1, 2]))
    project.onnx("net.onnx", proto)
    out = checked(project)
    assert notes(out, "onnx") == {"outputs-extra": {"stage": "onnx", "outputs": ["h"]}}


def test_outputs_that_were_paired_by_their_form_are_noted(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("pytorch.npz", logits=answer(inputs(COUNT)))
    assert notes(checked(project), "onnx") == {"output-by-signature": {"output": "logits", "partner": "y"}}


def test_an_axis_order_is_undone_where_it_is_declared(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    y = np.random.default_rng(1).normal(size=(COUNT, 3, 4, 5)).astype(np.float32)
    project.npz("pytorch.npz", y=y)
    project.artifacts["onnx"] = project.npz("onnx.npz", y=y)
    project.artifacts["original_float"] = project.npz("nhwc.npz", y=y.transpose(0, 2, 3, 1))
    out = checked(project, 2)
    assert codes(out, "onnx-optimized") == ["output-shape"]
    assert "declare it under outputs.y.permute" in reasons(out, "onnx-optimized")
    project.subject["outputs"] = {"y": {"permute": {"original_float": [0, 3, 1, 2]}}}
    assert rows(checked(project))["onnx-optimized"] == "passed"
    project.subject["outputs"] = {"y": {"permute": {"original_float": [0, 1]}}}
    assert codes(checked(project, 2), "onnx-optimized") == ["output-permutation"]


# --- chains


def test_a_chain_of_ones_own(tmp_path: Path) -> None:
    project = two_stages(tmp_path, shift=0.01)
    project.subject["chain"] = "port"
    project.subject["artifacts"] = {"trained": "pytorch.npz", "ported": "net.onnx"}
    chain: dict[str, Any] = {
        "stages": [{"name": "trained"}, {"name": "ported", "kind": "lossy"}],
        "checks": [{"slug": "port", "title": "Trained ↔ Ported", "stages": ["ported"]}],
    }
    project.top = {"chains": {"port": chain}, "policies": {"strict": {"trained..ported": {"max-abs": 0.001}}}}
    out = checked(project)
    assert rows(out) == {"port": "passed"}
    assert links(out)["trained..ported"]["criterion"] == "cosine"
    out = checked(project, 1, "--policy", "strict")
    assert links(out)["trained..ported"]["criterion"] == "max-abs"
    chain["stages"][1]["kind"] = "equivalent"
    assert rows(checked(project, 1)) == {"port": "failed"}


@pytest.mark.parametrize(
    ("stages", "kind", "spans", "criterion"),
    [
        (("onnx", "original_float"), "exact", [], "ulp"),
        (("onnx", "optimized_float"), "equivalent", ["original_float"], "range"),
        (("pytorch", "optimized_float"), "equivalent", ["onnx", "original_float"], "range"),
        (("optimized_float", "ptq"), "lossy", ["calibrated"], "cosine"),
        (("onnx", "quantized"), "lossy", ["original_float", "optimized_float", "calibrated", "ptq"], "cosine"),
        (("quantized", "hbm"), "compiled", ["quantized_removed"], "decimals"),
    ],
)
def test_absent_stages_are_bridged_by_the_loosest_kind_and_the_link_says_so(
    tmp_path: Path, stages: tuple[str, str], kind: str, spans: list[str], criterion: str
) -> None:
    project = two_stages(tmp_path)
    project.subject["artifacts"] = dict.fromkeys(stages, "pytorch.npz")
    if kind == "lossy":
        project.artifacts[stages[1]] = project.npz("lossy.npz", y=answer(inputs(COUNT)) + LOSS)
    out = checked(project)
    verdict = links(out)["..".join(stages)]
    assert verdict["criterion"] == criterion
    said = {note["code"]: dict(note["params"]) for note in verdict["notes"]}
    assert said.get("link-spans") == ({"stages": spans, "kind": kind} if spans else None)


def test_the_qat_chain_works_with_recordings(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    y = answer(inputs(10))
    noisy = (y + np.random.default_rng(0).normal(scale=0.01, size=y.shape)).astype(np.float32)
    project.subject["chain"] = "qat"
    artifacts = {
        stage: project.npz(f"{stage}.npz", y=noisy) for stage in ("calibration", "qat", "qat_export", "qat_bc")
    }
    for stage in ("nv12_quantized", "quantized_removed"):
        artifacts[stage] = "quantized.npz"
    kept = {stage: project.artifacts[stage] for stage in ("pytorch", "quantized", "hbm")}
    project.subject["artifacts"] = kept | artifacts
    out = checked(project)
    assert rows(out) == dict.fromkeys(
        ("baseline", "pytorch-qat", "qat-export", "qat-quantized", "bc-hbm", "board"), "passed"
    )
    assert {"pytorch..calibration", "calibration..qat", "qat..qat_export", "qat_export..qat_bc"} <= set(links(out))
    project.npz("qat_bc.npz", y=noisy + np.float32(0.5))
    out = checked(project, 1)
    assert judged(out)["first_failure"] == "qat-export"
    assert rows(out)["pytorch-qat"] == "passed"


def test_rows_behind_the_first_failure_are_judged_and_hidden(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.onnx("optimized.onnx", biased(0.3))
    out = checked(project, 1)
    hidden_rows = [check["slug"] for check in judged(out)["checks"] if check["hidden"]]
    assert judged(out)["first_failure"] == "onnx-optimized"
    assert hidden_rows == ["float-int8", "bc-hbm", "board"]


def test_the_board_is_an_error_where_the_float_score_is_lost(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.npz("pytorch.npz", y=answer(inputs(10))[:4])
    out = checked(project, 2)
    assert codes(out, "board") == ["score-incomplete"]


# --- policies


def test_limits_by_check_and_by_link(tmp_path: Path) -> None:
    project = two_stages(tmp_path, shift=1e-3)
    project.top = {
        "policies": {
            "check": {"pytorch-onnx": {"range": 0.1}},
            "link": {"pytorch-onnx": {"range": 1e-9}, "pytorch..onnx": {"range": 0.1}},
            "base": {"pytorch-onnx": {"range": 0.1, "max-abs": 1.0}},
            "tight": {"extends": "base", "pytorch-onnx": {"max-abs": 1e-4}},
        }
    }
    assert links(checked(project, 1))["pytorch..onnx"]["origin"] == "default"
    assert links(checked(project, 0, "--policy", "check"))["pytorch..onnx"]["origin"] == "policy"
    assert rows(checked(project, 0, "--policy", "link"))["pytorch-onnx"] == "passed"
    verdict = links(checked(project, 1, "--policy", "tight"))["pytorch..onnx"]
    assert (verdict["criterion"], verdict["limit"]) == ("max-abs", 1e-4)


def test_a_drop_of_the_score_by_policy(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    y = answer(inputs(10))
    y[0] = y[0, ::-1]
    project.artifacts["calibrated"] = project.npz("calibrated.npz", y=y + LOSS)
    project.top = {"policies": {"loose": {"float-int8": {"score-drop": "15%"}}}}
    assert rows(checked(project, 1))["float-int8"] == "failed"
    project.artifacts["quantized"] = project.artifacts["hbm"] = "calibrated.npz"
    project.top["policies"]["loose"]["board"] = {"score-drop": "15%"}
    assert rows(checked(project, 1))["board"] == "failed"
    assert rows(checked(project, 0, "--policy", "loose"))["board"] == "passed"


def test_a_required_check_that_is_absent_is_an_error(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.top = {"policies": {"all": {"require": "all"}, "one": {"require": ["bc-hbm"]}, "none": {"require": []}}}
    assert rows(checked(project))["bc-hbm"] == "skipped"
    out = checked(project, 2, "--policy", "all")
    assert rows(out) == {**dict.fromkeys(rows(out), "error"), "pytorch-onnx": "passed"}
    assert "the policy requires bc-hbm, and it was not measured" in reasons(out, "bc-hbm")
    out = checked(project, 2, "--policy", "one")
    assert (rows(out)["bc-hbm"], rows(out)["baseline"]) == ("error", "skipped")
    assert checked(project, 2, "--policy", "none").is_dir()


def test_a_failure_that_is_not_required_does_not_decide(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.onnx("optimized.onnx", biased(0.3))
    project.top = {"policies": {"float": {"require": ["baseline", "pytorch-onnx"]}}}
    out = checked(project, 0, "--policy", "float")
    assert rows(out)["onnx-optimized"] == "failed"


# --- where samples come from


@pytest.mark.parametrize("origin", ["real", "calibration"])
def test_samples_that_can_prove_something(tmp_path: Path, origin: str) -> None:
    project = two_stages(tmp_path)
    project.subject["samples"]["origin"] = origin
    assert rows(checked(project))["pytorch-onnx"] == "passed"


def test_random_samples_never_pass_and_still_fail(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.subject["samples"]["origin"] = "random"
    out = checked(project, 2)
    assert set(rows(out).values()) == {"error"}
    assert codes(out, "bc-hbm") == ["random-samples"]
    project.onnx("optimized.onnx", biased(0.3))
    assert rows(checked(project, 1))["onnx-optimized"] == "failed"


def test_random_samples_of_a_manifest_never_pass(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    command = ("samples", tmp_path / "eval.npz", "--manifest", tmp_path / "m.json", "--origin", "random")
    assert call(*command).code == 0
    project.subject["samples"] = {"raw": "eval.npz", "manifest": "m.json"}
    assert codes(checked(project, 2), "pytorch-onnx") == ["random-samples"]
