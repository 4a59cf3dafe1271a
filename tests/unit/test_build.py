"""A folder of hb_compile as one entry: its files stand for their stages, and what they say is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from driftgate.buildfacts import build_facts, contract_text
from driftgate.domain.toolchain.common import InputContract
from driftgate.messages.message import Param
from driftgate.storage.document import read_results
from driftgate.vendor.outputs import find_outputs
from support.commandline import call, rows
from support.models import save, tiny
from support.project import Project, biased, inputs
from support.vendor.models import interpreter, with_hz_operator, write
from unit.test_vendor_samples import ADVICE, ADVICE_CSV, ANALYSIS, COMPILE_LOG, MODEL_INFO, PERF, ruled

PREFIX = "2026-11-20 10:00:00,000 INFO "
COLUMNS = "Node,NodeType,ON,Threshold,Calibrated Cosine,Quantized Cosine,Output Data Type"


def log(march: str = "nash-m") -> str:
    lines = [
        "Start hb_compile...",
        "hbdk version: 4.11.0",
        "hmct version: 2.8.0",
        "hb_compile version: 3.5.0",
        f"The specified model compilation architecture: {march}.",
        "############# model_parameters info #############",
        f"BPU march           : {march}",
        "The hb_compile completes running.",
    ]
    return "".join(f"{PREFIX}{line}\n" for line in lines)


def node_info(threshold: float = 2.5, dtypes: tuple[str, ...] = ("si8", "si8", "f32")) -> str:
    names = ("product", "rectified", "sum")
    kinds = ("MatMul", "Relu", "Add")
    body = [
        f"{name},{kind},BPU,{threshold},0.9999,0.9998,{dtype}"
        for name, kind, dtype in zip(names, kinds, dtypes, strict=True)
    ]
    return "\n".join([COLUMNS, *body]) + "\n"


def build(folder: Path, *, told: dict[str, str], hbm: onnx.ModelProto | None = None) -> Project:
    """A project whose vendor's stages all come from one folder."""
    out = folder / "model_output_J6M"
    out.mkdir(parents=True)
    lossy = biased(0.01)
    save(tiny(), out / "net_original_float_model.onnx")
    save(tiny(), out / "net_optimized_float_model.onnx")
    save(with_hz_operator(lossy), out / "net_calibrated_model.onnx")
    save(with_hz_operator(lossy), out / "net_ptq_model.onnx")
    write(out / "net_quantized_model.bc", lossy, march="nash-m")
    write(out / "net.hbm", lossy if hbm is None else hbm, march="nash-m")
    for name, text in told.items():
        (out / name).write_text(text)
    project = Project(folder)
    project.subject = {
        "artifacts": {
            "onnx": project.onnx("net.onnx", tiny()),
            "build": {"from": "model_output_{target}", "prefix": "net"},
        },
        "samples": {"raw": project.npz("eval.npz", x=inputs(6))},
    }
    project.top = {"defaults": {"platform": "J6M", "hbruntime": {"python": interpreter(), "timeout": 60}}}
    return project


def checked(project: Project, code: int) -> Any:
    out = project.root / "out"
    told = call("check", "-c", project.write(**project.top), "--out", out)
    assert told.code == code, told.out + told.err
    return read_results(out)


def test_the_files_of_a_build_stand_for_their_stages_and_tell_facts(tmp_path: Path) -> None:
    reports = {"hb_compile.log": log(), "net_node_info.csv": node_info()}
    results = checked(build(tmp_path, told=reports), 0)
    (facts,) = results.facts
    stages = ("onnx", "original_float", "optimized_float", "calibrated", "ptq", "quantized", "hbm")
    assert sorted(run.stage for run in facts.runs) == sorted(stages)
    assert facts.told("log", "march-fits") == 1
    assert facts.told("log", "version-hbdk") == "4.11.0"
    assert facts.told("node_info", "nodes") == 3
    assert facts.told("node_info", "never-calibrated") == 0
    assert facts.told("node_info", "float-inside") == ()
    assert set(rows(tmp_path / "out").values()) == {"passed", "skipped"}


@pytest.mark.parametrize(
    ("reports", "row", "code"),
    [
        ({"hb_compile.log": log("nash-p")}, "float-int8", "march-mismatch"),
        ({"net_node_info.csv": node_info(1.0)}, "float-int8", "quant-params-missing"),
    ],
)
def test_what_the_build_says_fails_a_link_whose_numbers_pass(
    reports: dict[str, str], row: str, code: str, tmp_path: Path
) -> None:
    results = checked(build(tmp_path, told=reports), 1)
    assert rows(tmp_path / "out")[row] == "failed"
    assert code in {finding.code for finding in results.judgements[0].findings if finding.confirmed}


@pytest.mark.parametrize(("dtypes", "code"), [(("si8", "f32", "si8"), 0), (("si8", "si8", "f32"), 1)])
def test_float_operators_inside_waive_bit_equality_a_float_tail_does_not(
    dtypes: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    """The .hbm is off by less than a cosine shows and more than five decimals."""
    project = build(tmp_path, told={"net_node_info.csv": node_info(dtypes=dtypes)}, hbm=biased(0.0102))
    results = checked(project, code)
    assert rows(tmp_path / "out")["bc-hbm"] == ("passed" if code == 0 else "failed")
    notes = {note.code for check in results.judgements[0].checks for v in check.verdicts for note in v.notes}
    assert ("float-inside" in notes) == (code == 0)


def test_reports_that_cannot_be_read_are_told_and_stop_nothing(tmp_path: Path) -> None:
    results = checked(build(tmp_path, told={"net_node_info.csv": "nothing\n", "hb_compile.log": "\0"}), 0)
    (facts,) = results.facts
    assert "net_node_info.csv" in str(facts.told("node_info", "unread"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"from": "nowhere"}, "nowhere"),
        ({"from": "model_output_J6M", "prefix": "other"}, "other"),
    ],
)
def test_a_build_that_is_not_there_is_named(change: dict[str, str], said: str, tmp_path: Path) -> None:
    project = build(tmp_path, told={})
    project.subject["artifacts"]["build"] = change
    told = call("check", "-c", project.write(**project.top), "--out", tmp_path / "out")
    assert told.code == 2
    assert said in told.err


def test_stages_that_are_given_go_before_those_of_the_build(tmp_path: Path) -> None:
    project = build(tmp_path, told={})
    project.subject["artifacts"]["hbm"] = project.npz("hbm.npz", y=np.zeros((6, 2), np.float32))
    results = checked(project, 1)
    (facts,) = results.facts
    assert {run.stage: run.backend for run in facts.runs}["hbm"] == "recorded"


def test_facts_that_were_stored_are_judged_alike(tmp_path: Path) -> None:
    results = checked(build(tmp_path, told={"hb_compile.log": log("nash-p")}), 1)
    again = tmp_path / "again"
    assert call("report", tmp_path / "out", "--out", again).code == 1
    codes = [[finding.code for finding in (one.judgements or ())[0].findings] for one in (results, read_results(again))]
    assert codes[0] == codes[1]
    assert "march-mismatch" in codes[0]


SENSITIVITY = [
    (f"/blocks.{at}/conv", f"0.9{at}", f"0.00{9 - at}")  # the most sensitive first
    for at in range(7)
]


def facts_of(folder: Path, **reports: str) -> dict[str, dict[str, Param]]:
    """The facts of a folder with one model and these reports, by kind; `__` stands for a folder's end."""
    (folder / "net.hbm").touch()
    for name, text in reports.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {one.kind: dict(one.values) for one in build_facts(find_outputs(folder, "net"), "J6M")}


def test_the_log_tells_inputs_calibration_and_what_was_removed(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, **{"hb_compile.log": COMPILE_LOG})["log"]
    assert facts["inputs"] == (
        "data: nv12 from bgr, NCHW, bt601_video, 1x3x64x96, mean 103.5 116.25 123.75, scale 0.0078125",
    )
    assert facts["removed"] == ("/head/Out (Dequantize)", "data_q (Quantize)")
    assert facts["calibration-folders"] == ("/cal/data", "/cal/other")
    assert (facts["input-no-padding"], facts["output-no-padding"]) == (True, False)
    assert (facts["warnings"], facts["benign"], facts["saved"]) == (1, 1, 2)
    assert facts["march-fits"] is True


def test_an_input_of_which_little_is_told_is_told_shortly() -> None:
    assert contract_text(InputContract("state", type_rt="featuremap", mean=())) == "state: featuremap"
    assert contract_text(InputContract("x", std=(58.395, 1e-5))) == "x: -, std 58.395 1e-05"


def test_the_log_of_another_model_in_the_folder_tells_nothing_of_this_one(tmp_path: Path) -> None:
    log = COMPILE_LOG.replace("file_prefix: net", "file_prefix: lane")
    facts = facts_of(tmp_path, **{"hb_compile.log": log, "net.json": PERF})
    assert facts["log"] == {"other-prefix": "lane"}
    assert "march-as-in-log" not in facts["perf"]


def test_what_the_compiler_advises_is_counted(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, **{"net_advice.json": ADVICE, "net_advice.csv": ADVICE_CSV})
    assert facts == {"advice": {"remarks": 2}, "advice_csv": {"remarks": 2}}


@pytest.mark.parametrize(("march", "agrees"), [("nash-m", True), ("nash-p", False)])
def test_the_march_of_the_estimate_and_of_the_model_is_held_against_the_logs(
    march: str, agrees: bool, tmp_path: Path
) -> None:
    info, perf = (text.replace("nash-m", march) for text in (MODEL_INFO, PERF))
    facts = facts_of(tmp_path, **{"hb_compile.log": COMPILE_LOG, "net.json": perf, "hb_model_info.log": info})
    assert {facts[kind]["march-as-in-log"] for kind in ("perf", "model_info")} == {agrees}
    assert facts["perf"]["march"] == march
    assert facts["model_info"]["removable"] == ("/head/Out (Dequantize)", "data_q (Quantize)")
    assert facts["model_info"]["version-hbdk"] == "4.9.2"


def test_a_march_that_only_one_file_tells_is_no_conflict(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, **{"hb_compile.log": "nothing\n", "net.json": PERF})
    assert facts["perf"]["march"] == "nash-m"
    assert "march-as-in-log" not in facts["perf"]


def test_the_analyzers_figures_and_the_debuggers_most_sensitive_nodes_are_read_where_they_are_left(
    tmp_path: Path,
) -> None:
    table = "\n".join(ruled(("node", "cosine-similarity", "mse"), SENSITIVITY))
    text = f"====== node sensitivity ======\n{table}\n"
    facts = facts_of(
        tmp_path,
        **{
            ".hb_analyzer__analysis_summary.json": ANALYSIS,
            "debug_result__node_sensitivity__node_sensitivity.log": text,
        },
    )
    assert facts["analysis"] == {
        "indicators": 3,
        "figures": ("FPS: 812.5", "CPU operators: 2 nodes", "Bottleneck: DDR"),
    }
    assert facts["sensitivity"]["nodes"] == 7
    assert facts["sensitivity"]["most-sensitive"] == tuple(
        f"/blocks.{at}/conv (cosine-similarity {float(f'0.9{at}'):.6g}, mse 0.00{9 - at})" for at in range(5)
    )


def test_files_beside_the_build_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    names = (".hb_analyzer__analysis_summary.json", "debug_result__node_sensitivity__node_sensitivity.log")
    facts = facts_of(tmp_path, **dict.fromkeys((*names, "hb_model_info.log"), "nothing\n"))
    kinds = ("analysis", "sensitivity", "model_info")
    assert {kind: [*values] for kind, values in facts.items()} == {kind: ["unread"] for kind in kinds}
