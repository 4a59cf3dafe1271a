"""The STAND-INS of the vendor's tools: what they leave is read with right values, a healthy build's stages agree."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from driftgate.domain.toolchain.build import NodeKind
from driftgate.transforms.declared import Declaration, Type, raw_of, runtime_of
from driftgate.vendor.advice import read_advice
from driftgate.vendor.compile_log import read_compile_log
from driftgate.vendor.compile_yaml import parse_compile_yaml
from driftgate.vendor.exec_infer import parse_inference
from driftgate.vendor.exec_info import parse_model_tensors
from driftgate.vendor.exec_perf import parse_board_perf
from driftgate.vendor.faults import parse_faults
from driftgate.vendor.model_info import parse_model_info
from driftgate.vendor.node_info import read_node_info
from driftgate.vendor.outputs import MODELS, REPORTS, find_outputs
from driftgate.vendor.perf import read_perf
from driftgate.vendor.quant_info import read_quant_info
from support.commandline import call, rows
from support.models import save, tiny
from support.project import Project
from support.vendor import board, compiling, modelinfo
from support.vendor.files import read
from support.vendor.layouts import FILL
from support.vendor.models import PACKAGES, interpreter, write, write_packed
from support.vendor.networks import MEAN, SCALE, normalised, pixels, small_network
from support.vendor.running import Runner, dequantised
from support.vendor.toolchain import build, tool

Array = np.ndarray[Any, Any]
CALIBRATION, EVALUATION = normalised(pixels(8)), pixels(4, seed=2)
NV12 = Declaration(Type.RGB, Type.NV12, mean=MEAN, scale=SCALE)


@pytest.fixture(scope="module")
def featuremap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """nash-m: an int32 tail whose Dequantize is removed."""
    folder = tmp_path_factory.mktemp("m")
    removed = ("Dequantize",)
    return build(folder, small_network(), march="nash-m", calibration={"x": CALIBRATION}, remove=removed, debug=True)


@pytest.fixture(scope="module")
def camera(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """nash-p: nv12, a float tail."""
    folder = tmp_path_factory.mktemp("p")
    colours: Any = {"rt": "nv12", "mean": MEAN, "scale": SCALE}
    return build(folder, small_network(), march="nash-p", calibration={"x": CALIBRATION}, **colours)


def ran(path: Path, feeds: Mapping[str, Array]) -> Array:
    """The one output as numbers."""
    runner = Runner(read(path)[0])
    (told,) = runner.outputs
    return dequantised(told, runner.run(feeds)["y"])


def said(main: Any, *arguments: str | Path) -> tuple[int, str]:
    """What a tool answers and prints, in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([str(argument) for argument in arguments])
    return code, out.getvalue()


def close(a: Array, b: Array, *, within: float) -> bool:
    """Whether two outputs differ by no more than this share of the larger one's peak."""
    return bool(np.abs(a - b).max() <= within * np.abs(b).max())


def test_stages_of_an_int32_tail_agree_as_far_as_each_step_allows(featuremap: Path) -> None:
    feeds = {"x": normalised(EVALUATION)[:1]}
    made = {stage: ran(featuremap / f"net{ending}", feeds) for stage, ending in MODELS.items()}
    np.testing.assert_array_equal(made["original_float"], ran(featuremap.parent / "net.onnx", feeds))
    np.testing.assert_allclose(made["optimized_float"], made["original_float"], rtol=1e-5, atol=1e-6)
    assert np.abs(made["calibrated"] - made["optimized_float"]).max() > 0
    assert close(made["calibrated"], made["optimized_float"], within=0.05)
    assert close(made["quantized"], made["ptq"], within=0.02)
    np.testing.assert_allclose(made["quantized_removed"], made["quantized"], rtol=1e-6)
    raw = [
        Runner(read(featuremap / f"net{MODELS[stage]}")[0]).run(feeds)["y"] for stage in ("quantized_removed", "hbm")
    ]
    assert raw[0].dtype == np.int32
    np.testing.assert_array_equal(raw[0], raw[1])


@pytest.mark.parametrize("space", ["regular", "bt601_video"])
@pytest.mark.parametrize("train", ["rgb", "bgr", "yuv444"])
def test_nv12_inside_is_what_driftgate_takes_it_for(train: str, space: str, tmp_path: Path) -> None:
    colours: Any = {"rt": "nv12", "train": train, "space": space, "mean": MEAN, "scale": SCALE}
    out = build(tmp_path, small_network(), march="nash-p", calibration={"x": CALIBRATION}, **colours)
    declared = Declaration(Type(train), Type.NV12, mean=MEAN, scale=SCALE, video=space == "bt601_video")
    planes = runtime_of("x", normalised(EVALUATION)[:1], declared)
    fed = {"x": raw_of("x", planes, declared)}
    assert close(ran(out / "net_quantized_model.bc", planes), ran(out / "net_ptq_model.onnx", fed), within=0.02)
    np.testing.assert_array_equal(ran(out / "net.hbm", planes), ran(out / "net_quantized_model.bc", planes))


@pytest.mark.parametrize(("rt", "train"), [("rgb", "rgb"), ("bgr", "rgb"), ("rgb", "bgr")])
def test_pictures_of_bytes_are_preprocessed_inside(rt: str, train: str, tmp_path: Path) -> None:
    colours: Any = {"rt": rt, "train": train, "mean": MEAN, "scale": SCALE}
    out = build(tmp_path, small_network(), march="nash-e", calibration={"x": CALIBRATION}, **colours)
    raw = normalised(EVALUATION)[:1]
    planes = runtime_of("x", raw, Declaration(Type(train), Type(rt), mean=MEAN, scale=SCALE))
    assert planes["x"].shape == (1, 32, 32, 3)
    assert close(ran(out / "net_quantized_model.bc", planes), ran(out / "net_ptq_model.onnx", {"x": raw}), within=0.02)


def test_a_healthy_build_of_each_tail_passes_every_row(featuremap: Path, camera: Path, tmp_path: Path) -> None:
    raw = normalised(EVALUATION)
    planes = [runtime_of("x", one[None], NV12) for one in raw]
    stacked = {name: np.concatenate([one[name] for one in planes]) for name in planes[0]}
    declared = {"train": "rgb", "rt": "nv12", "mean": list(MEAN), "scale": list(SCALE)}
    for platform, out, arrays, samples in (
        ("J6M", featuremap, {"x": raw}, {"raw": "eval.npz"}),
        ("J6P", camera, stacked, {"runtime": "eval.npz", "declared": {"x": declared}}),
    ):
        project = Project(tmp_path / platform)
        project.npz("eval.npz", **arrays)
        save(small_network(), project.root / "net.onnx")
        artifacts = {"onnx": "net.onnx", "build": {"from": str(out), "prefix": "net"}}
        project.subject = {"artifacts": artifacts, "samples": samples}
        runtime = {"python": interpreter(), "timeout": 60}
        config = project.write(defaults={"platform": platform, "hbruntime": runtime})
        answer = call("check", "-c", config, "--out", project.root / "out")
        assert answer.code == 0, answer.out + answer.err
        found = rows(project.root / "out")
        assert {found[slug] for slug in ("onnx-optimized", "float-int8", "bc-hbm")} == {"passed"}


def test_the_reports_of_a_build_are_read_with_right_values(featuremap: Path) -> None:
    files = find_outputs(featuremap)
    wanted = {*MODELS, "ptq_bc", "log", *REPORTS} - {"advice_csv"}
    assert {name for name, _ in (*files.models, *files.intermediate, *files.reports)} == wanted
    log = read_compile_log(featuremap / "hb_compile.log")
    assert (log.march, log.finished, log.failures, log.warnings) == ("nash-m", True, (), ())
    assert (log.versions.tool, log.versions.hbdk, log.versions.hmct) == ("3.5.16", "4.11.11", "2.8.4")
    assert log.removed == (NodeKind("head", "Dequantize"),)
    assert [(data.input, data.count) for data in log.calibration_data] == [("x", 8)]
    assert (log.selected, log.calibration_folders) == ("max", (str(featuremap.parent / "calibration" / "x"),))
    table = read_node_info(featuremap / "net_node_info.csv")
    assert log.node_table == table
    assert [(node.node, node.dtypes) for node in table.nodes][-1] == ("head", ("si32",))
    peak = float(np.abs(CALIBRATION).max())
    assert table.nodes[0].threshold == pytest.approx(peak, rel=1e-6)
    assert all(node.calibrated is not None and 0.99 < node.calibrated <= 1.00001 for node in table.nodes)
    ((threshold,),) = read_quant_info(featuremap / "net_quant_info.json").nodes[0].thresholds
    assert threshold == pytest.approx(peak)
    assert read_perf(featuremap / "net.json").march == "nash-m"
    assert "10 output channels" in str(read_advice(featuremap / "net_advice.json"))


def test_a_build_without_calibration_has_thresholds_of_one_and_no_cosines(tmp_path: Path) -> None:
    out = build(tmp_path, small_network(), march="nash-m")
    table = read_node_info(out / "net_node_info.csv")
    assert table.columns == ("Node", "NodeType", "ON", "Output Data Type")
    assert read_compile_log(out / "hb_compile.log").calibration_type == "skip"
    thresholds = {value for node in read_quant_info(out / "net_quant_info.json").nodes for (value,) in node.thresholds}
    assert thresholds == {1.0}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("march: nash-m", "march: nash-x"), "The specified march 'nash-x' is invalid"),
        (("/calibration/x", "/calibration"), "*** ERROR-OCCUR-DURING hmct.api.build_model ***"),
    ],
)
def test_a_build_that_cannot_be_done_ends_with_255_and_says_why(
    change: tuple[str, str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, small_network(), march="nash-m", calibration={"x": CALIBRATION})
    config = tmp_path / "net.yaml"
    config.write_text(config.read_text().replace(*change))
    monkeypatch.chdir(tmp_path)
    code, text = said(compiling.main, "-c", config)
    assert (code, line in text) == (255, True)
    assert bool(read_compile_log(tmp_path / "hb_compile.log").failures) == ("hmct" in line)


def test_the_yaml_that_a_build_was_made_with_is_read(camera: Path) -> None:
    import yaml

    settings = parse_compile_yaml(yaml.safe_load((camera.parent / "net.yaml").read_text()))
    (told,) = settings.inputs
    assert (settings.march, told.type_rt, told.mean, told.scale) == ("nash-p", "nv12", MEAN, SCALE)
    assert settings.unknown == ()


def test_model_info_tells_of_both_kinds_of_file(
    featuremap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = {
        ending: parse_model_info(said(modelinfo.main, featuremap / f"net{ending}")[1]) for ending in MODELS.values()
    }
    quantized, hbm = told[MODELS["quantized"]], told[MODELS["hbm"]]
    assert (quantized.march, quantized.versions.tool) == ("nash-m", "3.5.16")
    assert quantized.blocks.removable == (NodeKind("x_HzCalibration", "Quantize"), NodeKind("head", "Dequantize"))
    assert [tensor.dtype for tensor in quantized.blocks.tensors] == ["FLOAT32", "FLOAT32"]
    assert [tensor.dtype for tensor in hbm.blocks.tensors] == ["FLOAT32", "INT32"]
    assert dict(hbm.blocks.memory)["min memory requirement"] > 0


def test_the_board_tells_its_tensors_and_dumps_them_with_padding(featuremap: Path, tmp_path: Path) -> None:
    hbm = featuremap / "net.hbm"
    (model,) = parse_model_tensors(said(board.main, "model_info", "--model_file", hbm)[1]).models
    fed, made = model.tensors
    assert (model.march, fed.stride, fed.aligned_bytes) == ("nash-m", (12288, 4096, 128, 4), 12288)
    assert (made.dtype, made.stride, made.aligned_bytes, made.axis) == ("S32", (64, 4), 256, 1)
    (told,) = Runner(read(hbm)[0]).outputs
    np.testing.assert_allclose(made.scales, told.scales, rtol=5e-6)
    x = normalised(EVALUATION)[:1]
    x.tofile(tmp_path / "x.bin")
    infer = ("infer", "--model_file", hbm, "--input_file", tmp_path / "x.bin", "--enable_dump", "true")
    run = parse_inference(said(board.main, *infer, "--dump_path", tmp_path)[1])
    assert [dump.name for dump in run.dumps] == ["x", "y"]
    dump = np.fromfile(run.dumps[1].path, np.uint8)
    np.testing.assert_array_equal(dump[:40].view(np.int32), Runner(read(hbm)[0]).run({"x": x})["y"][0])
    assert set(dump[40:]) == {FILL}
    plain = said(board.main, *infer, "--dump_path", tmp_path, "--dequantize_process", "--remove_padding_process")[1]
    assert len(parse_inference(plain).dumps) == 2
    np.testing.assert_allclose(np.fromfile(tmp_path / "model_infer_output_0_y.bin", np.float32), ran(hbm, {"x": x})[0])


def test_planes_are_padded_to_the_platforms_stride_or_taken_as_they_lie(camera: Path, tmp_path: Path) -> None:
    hbm = camera / "net.hbm"
    planes = runtime_of("x", normalised(EVALUATION)[:1], NV12)
    padded = np.zeros((1, 32, 64, 1), np.uint8)
    padded[:, :, :32] = planes["x_y"]
    padded.tofile(tmp_path / "y.bin")
    np.savetxt(tmp_path / "uv.txt", planes["x_uv"].reshape(-1), "%d")
    files = f"{tmp_path / 'y.bin'},{tmp_path / 'uv.txt'}"
    arguments = ("infer", "--model_file", hbm, "--input_file", files, "--enable_dump", "--dump_path", tmp_path)
    run = parse_inference(said(board.main, *arguments)[1])
    assert run.chosen_strides == ((0, (2048, 64, 1, 1)), (1, (1024, 64, 2, 1)))
    assert [file.padded_stride for file in run.files] == [None, (1024, 64, 2, 1)]
    made = np.fromfile(tmp_path / "model_infer_output_0_y.bin", np.float32)[:10]
    np.testing.assert_array_equal(made, ran(hbm, planes)[0])
    (tmp_path / "y.bin").write_bytes(b"too short")
    code, text = said(board.main, *arguments)
    assert (code, "neither valid byte size 1024 nor aligned byte size 2048" in text) == (1, True)


def test_the_board_measures(camera: Path, tmp_path: Path) -> None:
    out = said(board.main, "perf", "--model_file", camera / "net.hbm", "--profile_path", tmp_path)[1]
    perf = parse_board_perf(out)
    assert (perf.threads, perf.frames, perf.made_up_input, len(perf.ticks)) == (1, 200, True, 1)
    assert perf.fps is not None and perf.fps > 0
    assert {"profiler.log", "profiler.csv"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("environment", "kind", "words"),
    [
        ({"STAND_IN_MARCH": "nash-p"}, "march", "model march: nash-m, platform march: nash-p"),
        ({"STAND_IN_HBRT": "4.7.5"}, "version", "HBRT4_STATUS_INVALID_ARGUMENT"),
        ({"STAND_IN_FAULT": "memory"}, "memory", "Cannot malloc bpu memory"),
    ],
)
def test_a_board_that_cannot_load_says_why(
    environment: dict[str, str], kind: str, words: str, featuremap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code, text = said(board.main, "model_info", "--model_file", featuremap / "net.hbm")
    assert (code, words in text) == (1, True)
    assert [fault.kind for fault in parse_faults(text)] == ([kind] if kind else [])


@pytest.mark.parametrize(("fault", "code", "readable"), [("", 0, True), ("die", 3, False), ("garbage", 0, False)])
def test_tools_run_as_commands_and_misbehave_when_told(fault: str, code: int, readable: bool, featuremap: Path) -> None:
    command = [*tool("hrt_model_exec", fault), "model_info", "--model_file", str(featuremap / "net.hbm")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (done.returncode, b"[model name]: net" in done.stdout) == (code, readable)


def test_a_session_that_is_never_closed_is_told_at_the_end(featuremap: Path) -> None:
    program = "import hbm_infer, sys; hbm_infer.HbmRpcSession('127.0.0.1', sys.argv[1])"
    command = [*interpreter(), "-c", program, str(featuremap / "net.hbm")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr.decode().strip()) == (0, "hbm_infer: server left behind")


def test_packed_networks_are_told_apart_by_name(tmp_path: Path) -> None:
    other: onnx.ModelProto = small_network(classes=3)
    path = write_packed(tmp_path / "two.hbm", {"a": (tiny(), {}), "b": (other, {})}, march="nash-p")
    told = parse_model_tensors(said(board.main, "model_info", "--model_file", path)[1])
    assert told.names == ("a", "b")
    assert [model.tensors[-1].shape for model in told.models] == [(1, 2), (1, 3)]
    assert said(board.main, "perf", "--model_file", path)[0] == 1
    assert said(board.main, "perf", "--model_file", path, "--model_name", "b")[0] == 0


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-ins of the vendor's packages can be imported, and are forgotten behind the test."""
    monkeypatch.syspath_prepend(str(PACKAGES))
    for name in ("hbdk4", "hbdk4.compiler", "hbm_infer", "hbm_infer.hbm_rpc_session", "hbm_runtime", "horizon_tc_ui"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("packages")
def test_the_python_packages_give_raw_outputs_of_one_network(
    featuremap: Path, camera: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hbdk4.compiler as hbdk  # type: ignore[import-not-found]
    import hbm_infer  # type: ignore[import-not-found]
    import hbm_runtime  # type: ignore[import-not-found]

    hbm, feeds = featuremap / "net.hbm", {"x": normalised(EVALUATION)[:1]}
    module = hbdk.load(str(featuremap / "net_quantized_removed_model.bc"))
    (tensor,) = module["net"].flatten_outputs
    assert (module.march, tensor.type.np_dtype, len(tensor.quant_info.scales)) == ("nash-m", np.int32, 10)
    assert hbdk.load(str(featuremap / "net_ptq_model.bc")).march is None
    made = [module[0].feed(feeds)["y"].copy(), hbdk.Hbm(str(hbm))[0].feed(feeds, output_dir=".")["y"]]
    with hbm_infer.HbmRpcSession("127.0.0.1", str(hbm)) as session:
        assert session.get_output_info()["y"]["tensor_type"] == "DATA_TYPE_S32"
        made.append(session(feeds)["y"])
        with pytest.raises(ValueError, match="float64"):
            session({"x": feeds["x"].astype(np.float64)})
    runtime = hbm_runtime.HB_HBMRuntime(str(hbm))
    made.append(runtime.run(feeds["x"])["net"]["y"])
    for one in made[1:]:
        np.testing.assert_array_equal(one, made[0])
    assert runtime.output_quants["net"]["y"].axis == 1
    assert hbm_runtime.HB_HBMRuntime(str(camera / "net.hbm")).input_strides["net"]["x_y"] == [-1, -1, 1, 1]
    monkeypatch.setenv("STAND_IN_FAULT", "refused")
    with pytest.raises(RuntimeError, match="failed to connect"):
        hbm_infer.HbmRpcSession("127.0.0.1", str(hbm))


@pytest.mark.usefixtures("packages")
def test_hb_runtime_takes_the_documented_types_only(camera: Path, tmp_path: Path) -> None:
    from horizon_tc_ui.hb_runtime import HBRuntime  # type: ignore[import-not-found]

    runtime = HBRuntime(str(camera / "net_quantized_model.bc"))
    planes = runtime_of("x", normalised(EVALUATION)[:1], NV12)
    assert (runtime.input_names, runtime.current_phase) == (["x_y", "x_uv"], None)
    assert runtime.run(None, planes)[0].dtype == np.float32
    with pytest.raises(ValueError, match="The input data type float32 is illegal!"):
        runtime.run(None, {**planes, "x_y": planes["x_y"].astype(np.float32)})
    floats = HBRuntime(str(write(tmp_path / "float.bc", tiny(), phase="float")))
    assert floats.current_phase == "export"
    assert floats.run(None, {"x": np.array([[1, 2, 3]], np.int8)})[0].shape == (1, 2)
