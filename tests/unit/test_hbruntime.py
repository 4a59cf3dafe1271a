"""The vendor's runtime in a worker: what it loads and refuses, and whole chains through a STAND-IN of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from driftgate.backends.hbruntime_backend import HbRuntimeBackend
from driftgate.backends.routing import routed
from driftgate.errors import ArtifactError, BackendError, DriftgateError, LoadRefused
from driftgate.sessions import Artifact
from driftgate.storage.document import read_results
from support.commandline import call, rows
from support.models import answer, model, save, tiny, value
from support.project import Project, biased, inputs
from support.vendor.models import interpreter, with_hz_operator, write

X = np.array([[1.0, -2.0, 0.5]], np.float32)


def artifact(path: Path, fault: str = "", **options: Any) -> Artifact:
    return Artifact("quantized", "hbruntime", path, {"python": interpreter(fault), "timeout": 60.0, **options})


@pytest.mark.parametrize(
    ("name", "told", "level"),
    [
        ("net_quantized_model.bc", {}, "fixed-point"),
        ("net_ptq_model.bc", {"phase": "float"}, "float"),
        ("net.hbm", {}, "fixed-point"),
    ],
)
def test_bc_and_hbm_are_run_and_told_apart_by_what_they_are(
    name: str, told: dict[str, str], level: str, tmp_path: Path
) -> None:
    path = write(tmp_path / name, tiny(), **told)
    with HbRuntimeBackend().open(artifact(path)) as session:
        made = session.infer({"x": X}, sample="0000")
        assert session.environment.level == level
        assert session.environment.provider == f"hbruntime {path.suffix[1:]}"
    np.testing.assert_allclose(made["y"], answer(X), rtol=1e-6)


def test_onnx_with_operators_of_the_vendor_runs_too(tmp_path: Path) -> None:
    path = save(with_hz_operator(tiny()), tmp_path / "calibrated.onnx")
    with HbRuntimeBackend().open(artifact(path)) as session:
        np.testing.assert_allclose(session.infer({"x": X}, sample="0000")["y"], answer(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda p: p.write_bytes(b"MLIR of another tool"), LoadRefused, "does not load"),
        (lambda p: write(p, tiny(), packed=True), LoadRefused, "packed model"),
        (lambda p: None, ArtifactError, "missing.bc"),
    ],
    ids=["damaged", "packed", "absent"],
)
def test_what_cannot_be_loaded_is_said(make: Any, kind: type[DriftgateError], said: str, tmp_path: Path) -> None:
    path = tmp_path / "missing.bc"
    make(path)
    with pytest.raises(kind, match=said):
        HbRuntimeBackend().open(artifact(path))


@pytest.mark.parametrize(
    ("fault", "said"), [("die", "exit code 3"), ("hang", "within 3 s"), ("few", "gave 0 outputs, and the file names 1")]
)
def test_a_runtime_that_fails_is_an_error_that_names_the_stage(fault: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path / "net.bc", tiny())
    opened = artifact(path, fault, timeout=3.0)
    with pytest.raises(BackendError, match=said) as caught, HbRuntimeBackend().open(opened) as session:
        session.infer({"x": X}, sample="0000")
    assert "quantized" in str(caught.value)


def test_an_interpreter_without_the_toolchain_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "net.bc", tiny())
    with pytest.raises(BackendError, match="cannot import horizon_tc_ui"):
        HbRuntimeBackend().open(artifact(path, python=(sys.executable,)))


def test_the_tools_of_the_generation_before_are_told_apart(tmp_path: Path) -> None:
    old = tmp_path / "old" / "hobot_tc_ui"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text("")
    path = write(tmp_path / "net.bc", tiny())
    python = ("env", f"PYTHONPATH={old.parent}", sys.executable)
    with pytest.raises(BackendError, match="XJ3/J5"):
        HbRuntimeBackend().open(artifact(path, python=python))


def test_nothing_can_be_tapped(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="cannot be tapped"):
        HbRuntimeBackend().open(artifact(write(tmp_path / "net.bc", tiny())), ["h"])


def test_private_operators_are_routed_and_others_are_not(tmp_path: Path) -> None:
    hz = Artifact("calibrated", "onnxruntime", save(with_hz_operator(tiny()), tmp_path / "hz.onnx"))
    plain = Artifact("onnx", "onnxruntime", save(tiny(), tmp_path / "plain.onnx"))
    python = ("python3",)
    assert routed(hz, python=python, timeout=5.0).backend == "hbruntime"
    assert routed(hz, python=python, timeout=5.0).options == {"python": python, "timeout": 5.0}
    assert routed(hz, python=None, timeout=None) == hz
    assert routed(plain, python=python, timeout=None) == plain


def chain(folder: Path, hbm: onnx.ModelProto, calibrated: onnx.ModelProto | None = None) -> Project:
    """All stages up to a simulated .hbm, the vendor's ones through the stand-in."""
    project = Project(folder)
    lossy = biased(0.01)
    save(lossy if calibrated is None else calibrated, folder / "net_calibrated_model.onnx")
    write(folder / "net_quantized_model.bc", lossy)
    write(folder / "net.hbm", hbm)
    project.subject = {
        "artifacts": {
            "onnx": project.onnx("net.onnx", tiny()),
            "optimized_float": project.onnx("optimized.onnx", tiny()),
            "calibrated": "net_calibrated_model.onnx",
            "quantized": "net_quantized_model.bc",
            "hbm": "net.hbm",
        },
        "samples": {"raw": project.npz("eval.npz", x=inputs(6))},
    }
    project.top = {"defaults": {"hbruntime": {"python": interpreter(), "timeout": 60}}}
    return project


def checked(project: Project, code: int) -> dict[str, str]:
    out = project.root / "out"
    told = call("check", "-c", project.write(**project.top), "--out", out)
    assert told.code == code, told.out + told.err
    return rows(out)


def test_a_whole_chain_through_the_vendors_runtime(tmp_path: Path) -> None:
    project = chain(tmp_path, biased(0.01), with_hz_operator(biased(0.01)))
    found = checked(project, 0)
    assert {found[slug] for slug in ("onnx-optimized", "float-int8", "bc-hbm")} == {"passed"}
    (facts,) = read_results(tmp_path / "out").facts
    backends = {run.stage: run.backend for run in facts.runs}
    assert (backends["calibrated"], backends["quantized"], backends["hbm"]) == ("hbruntime",) * 3


def test_an_hbm_of_another_build_fails_at_its_row(tmp_path: Path) -> None:
    found = checked(chain(tmp_path, biased(0.3)), 1)
    assert (found["float-int8"], found["bc-hbm"]) == ("passed", "failed")


def test_without_the_toolchain_its_stages_are_errors_and_nothing_passes(tmp_path: Path) -> None:
    project = chain(tmp_path, biased(0.01))
    project.top = {}
    found = checked(project, 2)
    assert (found["onnx-optimized"], found["bc-hbm"]) == ("passed", "error")


STEP = 0.01


def with_tail(model: onnx.ModelProto, *, dequantised: bool) -> onnx.ModelProto:
    """The network with an int32 tail, and a Dequantize behind it where that was not removed."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    graph.node[-1].output[0] = "real"
    integers = "integers" if dequantised else "y"
    graph.initializer.append(onnx.numpy_helper.from_array(np.float32(STEP).reshape(()), "step"))
    graph.node.extend(
        [
            onnx.helper.make_node("Div", ["real", "step"], ["steps"]),
            onnx.helper.make_node("Round", ["steps"], ["rounded"]),
            onnx.helper.make_node("Cast", ["rounded"], [integers], to=onnx.TensorProto.INT32),
        ]
    )
    if dequantised:
        graph.node.append(onnx.helper.make_node("Cast", [integers], ["whole"], to=onnx.TensorProto.FLOAT))
        graph.node.append(onnx.helper.make_node("Mul", ["whole", "step"], ["y"]))
    else:
        graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT32
    return made


@pytest.mark.parametrize(("told", "code", "outcome"), [(True, 0, "passed"), (False, 1, "failed")])
def test_a_removed_dequantise_node_is_made_good_where_its_scale_is_told(
    told: bool, code: int, outcome: str, tmp_path: Path
) -> None:
    project = chain(tmp_path, with_tail(biased(0.01), dequantised=False))
    write(tmp_path / "net_quantized_model.bc", with_tail(biased(0.01), dequantised=True))
    write(tmp_path / "net_quantized_removed_model.bc", with_tail(biased(0.01), dequantised=False))
    project.subject["artifacts"]["quantized_removed"] = "net_quantized_removed_model.bc"
    if told:
        for name in ("net_quantized_removed_model", "net"):
            project.signature(f"{name}.signature.json", y={"scales": [STEP], "zero_points": [0], "axis": None})
    found = checked(project, code)
    assert found["float-int8"] == outcome  # the row of quantized and quantized_removed
    if told:
        assert found["bc-hbm"] == "passed"
    else:
        (judgement,) = read_results(tmp_path / "out").judgements or ()
        assert {finding.code for finding in judgement.findings} & {"tail-int32-undequantized"}


def pictured(deployed: bool) -> onnx.ModelProto:
    """A network on RGB pictures (1, 3, 4, 6), normalised; deployed it eats BGR bytes (1, 4, 6, 3)."""
    make = onnx.helper.make_node
    nodes = []
    constants = {"mean": MEAN.reshape(1, 3, 1, 1), "scale": SCALE.reshape(1, 3, 1, 1), "weight": PIXEL_WEIGHT}
    if deployed:
        constants["reverse"] = np.array([2, 1, 0], np.int64)
        nodes = [
            make("Cast", ["x"], ["numbers"], to=onnx.TensorProto.FLOAT),
            make("Transpose", ["numbers"], ["planes"], perm=[0, 3, 1, 2]),
            make("Gather", ["planes", "reverse"], ["rgb"], axis=1),
            make("Sub", ["rgb", "mean"], ["centred"]),
            make("Mul", ["centred", "scale"], ["normalised"]),
        ]
    nodes.append(make("Conv", ["normalised" if deployed else "x", "weight"], ["y"]))
    fed = (
        onnx.helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, [1, 4, 6, 3])
        if deployed
        else value("x", [1, 3, 4, 6])
    )
    used = {name for node in nodes for name in node.input}
    held = {name: np.asarray(array) for name, array in constants.items() if name in used}
    return model(nodes, [fed], [value("y", [1, 2, 4, 6])], initializers=held)


MEAN = np.array([123.675, 116.28, 103.53], np.float32)
SCALE = np.array([0.017, 0.0175, 0.0174], np.float32)
PIXEL_WEIGHT = np.random.default_rng(3).normal(size=(2, 3, 1, 1)).astype(np.float32)


@pytest.mark.parametrize(("rt", "code", "outcome"), [("bgr", 0, "passed"), ("rgb", 1, "failed")])
def test_runtime_samples_are_made_by_declaration(rt: str, code: int, outcome: str, tmp_path: Path) -> None:
    pixels = np.random.default_rng(4).integers(0, 256, (5, 3, 4, 6)).astype(np.float32)
    raw = ((pixels - MEAN.reshape(3, 1, 1)) * SCALE.reshape(3, 1, 1)).astype(np.float32)
    project = Project(tmp_path)
    write(tmp_path / "net_quantized_model.bc", pictured(deployed=True))
    declared = {"train": "rgb", "rt": rt, "mean": MEAN.tolist(), "scale": SCALE.tolist()}
    project.subject = {
        "artifacts": {"ptq": project.onnx("net.onnx", pictured(deployed=False)), "quantized": "net_quantized_model.bc"},
        "samples": {"raw": project.npz("raw.npz", x=raw), "declared": {"x": declared}},
    }
    project.top = {"defaults": {"hbruntime": {"python": interpreter(), "timeout": 60}}}
    assert checked(project, code)["float-int8"] == outcome
