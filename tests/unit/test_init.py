"""`driftgate init`: what it finds in hb_compile's folder, what it writes, and that it works once it is filled in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from driftgate.initialising.writing import quoted
from driftgate.settings.load import load
from driftgate.vendor.outputs import MODELS
from support.commandline import Answer, call, rows
from support.models import save, tiny
from support.project import Project, inputs
from support.vendor.models import interpreter
from unit.test_build import build, node_info
from unit.test_build import log as short_log
from unit.test_vendor_samples import COMPILE_LOG

HB_CONFIG = """
model_parameters: {onnx_model: net.onnx, march: nash-p, output_model_file_prefix: net, working_dir: ./model_output}
input_parameters:
  input_name: "image;state"
  input_type_rt: "nv12;featuremap"
  input_type_train: "rgb;featuremap"
  input_layout_train: "NCHW;NCHW"
  mean_value: "123.675 116.28 103.53;"
  scale_value: "0.00001 0.0175 0.0174;"
calibration_parameters: {cal_data_dir: "./cal/image;./cal/state", calibration_type: kl}
"""
#: The same network as COMPILE_LOG's, which has one input.
LOGGED_CONFIG = """
model_parameters: {onnx_model: net.onnx, march: nash-m, output_model_file_prefix: net}
input_parameters:
  input_type_rt: nv12
  input_type_train: bgr
  input_layout_train: NCHW
  input_space_and_range: bt601_video
  input_shape: 1x3x64x96
  mean_value: 103.5 116.25 123.75
  scale_value: 0.00781250001
calibration_parameters: {cal_data_dir: ./data}
"""


def left(folder: Path, *prefixes: str, stages: tuple[str, ...] = tuple(MODELS), **reports: str) -> Path:
    """A folder with empty models."""
    folder.mkdir(parents=True, exist_ok=True)
    for prefix in prefixes:
        for stage in stages:
            (folder / f"{prefix}{MODELS[stage]}").touch()
    for name, text in reports.items():
        (folder / {"log": "hb_compile.log"}.get(name, name)).write_text(text)
    return folder


def started(folder: Path, *options: str | Path, code: int = 0) -> tuple[Any, str, Answer]:
    """What init writes: loaded, as text, and what it says."""
    out = folder.parent / "driftgate.yaml"
    found = call("init", folder, "--out", out, "--force", *options)
    assert found.code == code, found.err
    text = out.read_text("utf-8") if code == 0 else ""
    document = yaml.safe_load(text) if code == 0 else {}
    return document, text, found


def filled(text: str, values: Mapping[str, str]) -> str:
    """The file with the lines that begin so replaced."""
    return "\n".join(
        next((put for start, put in values.items() if line.strip().startswith(start)), line)
        for line in text.splitlines()
    )


def test_each_prefix_becomes_a_subject_whose_stages_its_build_gives(tmp_path: Path) -> None:
    folder = left(tmp_path / "model_output", "yolov8n", "lane.v2")
    left(folder, "mobilenet", stages=("original_float",))
    for name in ("_calibrated_model.onnx", "quant_config.json", "a.onnx", "odd_node_info.csv"):
        (folder / name).touch()
    (folder / "folder.hbm").mkdir()
    document, text, found = started(folder)
    assert (found.err, "wrote" in found.out) == ("", True)
    assert {name: subject["artifacts"] for name, subject in document["subjects"].items()} == {
        name: {"build": {"from": "model_output", "prefix": name}} for name in ("lane.v2", "mobilenet", "yolov8n")
    }
    for stage, ending in MODELS.items():
        assert f'#   {stage}: "yolov8n{ending}"' in text
    assert '#   optimized_float: "mobilenet' not in text
    assert '"yolov8n.hbm", run by HBRuntime' in text


def test_without_yaml_and_log_the_platform_waits_for_the_reader(tmp_path: Path) -> None:
    document, text, _ = started(left(tmp_path / "out", "net"))
    assert document["subjects"]["net"]["platform"] == "J6M"
    assert "<one of J6B, J6E, J6M, J6H, J6P, S100, S100P, S600: no march was found>" in text


@pytest.mark.parametrize("place", ["hb.yaml", "model_output/hb.yml", "elsewhere/hb.yaml"])
def test_hb_compiles_yaml_is_found_in_the_folder_beside_it_or_where_it_is_said_to_be(
    tmp_path: Path, place: str
) -> None:
    folder = left(tmp_path / "model_output", "net", "other")
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(HB_CONFIG)
    (tmp_path / "compose.yaml").write_text("services: {web: {image: x}}\n")
    document, text, found = started(folder, *(("--yaml", tmp_path / place) if "elsewhere" in place else ()))
    assert found.err == ""
    net = document["subjects"]["net"]
    assert net["platform"] == "J6P"
    assert "# march nash-p, as" in text
    assert "S600 has the same" in text
    declared = {"train": "rgb", "rt": "nv12", "layout": "NCHW", "mean": [123.675, 116.28, 103.53]}
    assert net["samples"]["declared"] == {"image": {**declared, "scale": [1e-05, 0.0175, 0.0174]}}
    assert '# calibration: {"image": "cal/image", "state": "cal/state"}   # as' in text
    assert ("other" in document["subjects"]) == ("elsewhere" not in place)


def test_the_model_that_was_read_is_onnx_if_it_is_still_there(tmp_path: Path) -> None:
    folder = left(tmp_path / "model_output", "net")
    (tmp_path / "hb.yaml").write_text(HB_CONFIG)
    document, text, _ = started(folder)
    assert "onnx" not in document["subjects"]["net"]["artifacts"]
    assert "hb_compile read" in text
    (tmp_path / "net.onnx").touch()
    document, _, _ = started(folder)
    assert document["subjects"]["net"]["artifacts"]["onnx"] == "net.onnx"


def test_folders_of_calibration_data_are_given_where_all_of_them_are_there(tmp_path: Path) -> None:
    folder = left(tmp_path / "model_output", "net")
    (tmp_path / "cal" / "image").mkdir(parents=True)
    (tmp_path / "hb.yaml").write_text(HB_CONFIG.replace("calibration_type: kl", "quant_config: {}"))
    document, text, _ = started(folder)
    assert "calibration" not in document["subjects"]["net"]["samples"]
    assert '# calibration: {"image": "cal/image", "state": "cal/state"}   # as "hb.yaml" says' in text
    assert 'quant_config: written out in "hb.yaml"' in text
    (tmp_path / "cal" / "state").mkdir()
    document, _, _ = started(folder)
    assert document["subjects"]["net"]["samples"]["calibration"] == {"image": "cal/image", "state": "cal/state"}


def test_another_builds_yaml_is_not_taken(tmp_path: Path) -> None:
    folder = left(tmp_path / "model_output", "net")
    (tmp_path / "a.yaml").write_text(HB_CONFIG.replace("prefix: net", "prefix: lane"))
    (tmp_path / "b.yaml").write_text(HB_CONFIG.replace("./model_output", "./model_output_J6E"))
    document, _, found = started(folder)
    assert "declared" not in document["subjects"]["net"]["samples"]
    assert found.err == ""


def test_of_several_yamls_that_differ_none_is_taken_silently(tmp_path: Path) -> None:
    folder = left(tmp_path / "model_output", "net")
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(HB_CONFIG)
    assert started(folder)[2].err == ""
    (tmp_path / "b.yaml").write_text(HB_CONFIG.replace("nash-p", "nash-h"))
    document, text, found = started(folder)
    assert "several YAML files name the build net" in found.err
    assert "b.yaml" in found.err
    assert "# LOOK: several YAML files" in text
    assert "declared" not in document["subjects"]["net"]["samples"]
    assert started(folder, "--yaml", tmp_path / "b.yaml")[0]["subjects"]["net"]["platform"] == "J6H"


def test_a_yaml_with_wrong_values_is_told(tmp_path: Path) -> None:
    folder = left(tmp_path / "model_output", "net")
    (tmp_path / "hb.yaml").write_text("input_parameters: {input_type_rt: nv13}\n")
    assert "nv13" in started(folder)[2].err
    assert "nv13" in started(folder, "--yaml", tmp_path / "hb.yaml", code=2)[2].err


def test_a_yaml_of_another_prefix_is_taken_where_it_is_asked_for_with_a_warning(tmp_path: Path) -> None:
    folder = left(tmp_path / "model_output", "lane")
    (tmp_path / "hb.yaml").write_text(HB_CONFIG)
    document, _, found = started(folder, "--yaml", tmp_path / "hb.yaml")
    assert "names the prefix net, and the folder has lane" in found.err
    assert document["subjects"]["lane"]["platform"] == "J6P"


def test_the_log_serves_where_there_is_no_yaml(tmp_path: Path) -> None:
    document, text, found = started(left(tmp_path / "out", "net", log=COMPILE_LOG))
    assert found.err == ""
    net = document["subjects"]["net"]
    assert net["platform"] == "J6M"
    assert '# march nash-m, as "out/hb_compile.log" says; S100P has the same' in text
    assert net["samples"]["declared"] == {
        "data": {
            "train": "bgr",
            "rt": "nv12",
            "layout": "NCHW",
            "space": "bt601_video",
            "mean": [103.5, 116.25, 123.75],
            "scale": [0.0078125],
        }
    }
    assert '# calibration: {"<input 0>": "/cal/data", "<input 1>": "/cal/other"}' in text
    assert '"/head/Out (Dequantize)", "data_q (Quantize)"' in text
    assert '"net_quantized_removed_model.signature.json" and "net.signature.json"' in text


def test_a_yaml_and_a_log_that_agree_but_for_rounding_are_no_conflict(tmp_path: Path) -> None:
    log = COMPILE_LOG.replace("/cal/data;/cal/other", "/workspace/data")
    folder = left(tmp_path / "model_output", "net", log=log)
    (tmp_path / "hb.yaml").write_text(LOGGED_CONFIG)
    document, _, found = started(folder)
    assert found.err == ""
    assert [*document["subjects"]["net"]["samples"]["declared"]] == ["data"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("nash-m", "nash-e", "march is nash-e by hb.yaml, and nash-m by model_output/hb_compile.log"),
        ("103.5", "104.5", "mean of data is (104.5, 116.25, 123.75) by hb.yaml, and (103.5, 116.25, 123.75) by"),
        ("mean_value: 103.5 116.25 123.75", "mean_value: 1", "mean of data is (1.0,) by hb.yaml"),
        ("type_train: bgr", "type_train: rgb", "type_train of data is rgb by hb.yaml, and bgr by"),
        ("./data", "./calibration", "cal_data_dir is ./calibration by hb.yaml, and /cal/data by"),
        ("  input_type_rt", "  input_name: image\n  input_type_rt", "input_name is image by hb.yaml, and data by"),
    ],
)
def test_contradictions_of_yaml_and_log_are_told_and_written_down(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    folder = left(tmp_path / "model_output", "net", log=COMPILE_LOG.replace("/cal/data;/cal/other", "/cal/data"))
    (tmp_path / "hb.yaml").write_text(LOGGED_CONFIG.replace(old, new))
    _, text, found = started(folder)
    assert said in found.err
    assert found.err.count("\n") == 1
    assert f"# LOOK: {said}" in text


def test_a_log_without_its_blocks_tells_where_the_first_files_of_calibration_lay(tmp_path: Path) -> None:
    log = COMPILE_LOG.replace("cal_data_dir", "other_key")
    _, text, _ = started(left(tmp_path / "out", "net", log=log))
    assert '# calibration: {"data": "/cal/data"}   # as "out/hb_compile.log" says' in text


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (COMPILE_LOG.replace("prefix: net", "prefix: lane"), "is the log of lane, not of net, and is passed over"),
        ("nothing\n", "hb_compile.log"),
    ],
)
def test_a_log_of_another_model_or_of_another_tool_says_nothing_of_this_one(
    tmp_path: Path, log: str, said: str
) -> None:
    document, _, found = started(left(tmp_path / "out", "net", log=log))
    assert said in found.err
    assert "declared" not in document["subjects"]["net"]["samples"]


def test_what_driftgate_does_not_make_of_raw_samples_is_left_to_the_reader(tmp_path: Path) -> None:
    folder = left(tmp_path / "model_output", "net")
    (tmp_path / "hb.yaml").write_text(HB_CONFIG.replace("rgb;featuremap", "gray;featuremap"))
    document, text, found = started(folder)
    assert "declared" not in document["subjects"]["net"]["samples"]
    assert "input image is made nv12 at run time of gray" in found.err
    assert '# "image": {train: "gray", rt: "nv12"' in text


@pytest.mark.parametrize(
    ("march", "folder", "platform"),
    [
        ("nash-m", "model_output", "J6M"),
        ("nash-m", "out_S100P", "S100P"),
        ("nash-e", "S100", "S100"),
        ("nash-b-lite", "out", "J6B"),
        ("nash-p", "outS100", "J6P"),
    ],
)
def test_of_platforms_with_one_march_the_folders_name_decides(
    tmp_path: Path, march: str, folder: str, platform: str
) -> None:
    document, _, found = started(left(tmp_path / folder, "net", log=short_log(march)))
    assert document["subjects"]["net"]["platform"] == platform
    assert document["subjects"]["net"]["artifacts"]["build"]["from"] == folder
    assert found.err == ""


def test_a_march_that_no_platform_has_and_a_folder_of_another_platform_are_told(tmp_path: Path) -> None:
    _, text, _ = started(left(tmp_path / "a", "net", log=short_log("nash-starry-p")))
    assert "<no platform is known for march nash-starry-p" in text
    document, _, found = started(left(tmp_path / "out_J6P", "net", log=short_log("nash-m")))
    assert "is named for J6P, and its model is built for march nash-m" in found.err
    assert document["subjects"]["net"]["platform"] == "J6M"


@pytest.mark.parametrize("form", ["model_output_{}", "build/{}/out", "{}"])
def test_sibling_folders_of_other_platforms_are_targets(tmp_path: Path, form: str) -> None:
    for platform, march in (("J6M", "nash-m"), ("J6P", "nash-p"), ("S100P", "nash-m")):
        left(tmp_path / form.format(platform), "net", log=short_log(march))
    left(tmp_path / form.format("J6E"), "lane", "other")
    (tmp_path / form.format("J6H")).mkdir(parents=True)
    (tmp_path / form.format("J6P") / MODELS["hbm"]).touch()
    (tmp_path / form.format("J6P") / f"net{MODELS['ptq']}").unlink()
    found = call("init", tmp_path / form.format("J6P"), "--out", tmp_path / "driftgate.yaml")
    assert (found.code, found.err) == (0, "")
    text = (tmp_path / "driftgate.yaml").read_text("utf-8")
    net = yaml.safe_load(text)["subjects"]["net"]
    assert net["targets"] == ["J6M", "J6P", "S100P"]
    assert "platform" not in net
    assert net["artifacts"]["build"] == {"from": form.replace("{}", "{target}"), "prefix": "net"}
    assert f'ptq: "net{MODELS["ptq"]}", not for J6P' in text


def test_targets_whose_prefixes_differ_have_a_folder_with_one_network_each(tmp_path: Path) -> None:
    for platform in ("J6M", "J6P"):
        left(tmp_path / f"out_{platform}", f"net_{platform}")
    document, _, _ = started(tmp_path / "out_J6M")
    assert [*document["subjects"]] == ["net"]
    assert document["subjects"]["net"]["artifacts"]["build"] == {"from": "out_{target}"}
    left(tmp_path / "out_J6M", "lane")
    document, _, _ = started(tmp_path / "out_J6M")
    assert {name: one["artifacts"]["build"]["from"] for name, one in document["subjects"].items()} == {
        "lane": "out_J6M",
        "net_J6M": "out_J6M",
    }


def test_inputs_of_targets_that_differ_are_told(tmp_path: Path) -> None:
    for platform, mean in (("J6M", "103.5"), ("J6P", "104.5")):
        log = COMPILE_LOG.replace("[103.5", f"[{mean}").replace("nash-m", "nash-m" if platform == "J6M" else "nash-p")
        left(tmp_path / f"out_{platform}", "net", log=log)
    _, _, found = started(tmp_path / "out_J6M")
    assert "mean of data is (103.5, 116.25, 123.75) by out_J6M/hb_compile.log, and (104.5" in found.err


@pytest.mark.parametrize(
    ("folder", "prefix"),
    [
        ("模型 输出", "网络"),
        ('it\'s "out"', 'a"b\\c: #d'),
        ("tab\there", "line\nbreak"),
        ("a[1]{x}", "{y: 1}"),
        ("bell\a\x7f\x85\u2028", "\ufeff*&!|>%@`"),
        ("- a", "123"),
    ],
)
def test_odd_names_are_written_so_that_they_are_read_back(tmp_path: Path, folder: str, prefix: str) -> None:
    log = (
        short_log().replace("BPU march", f"output_model_file_prefix: {prefix}\nBPU march") if "\n" not in prefix else ""
    )
    place = left(tmp_path / folder, prefix, stages=("original_float", "hbm"), **({"log": log} if log else {}))
    document, text, _ = started(place)
    assert [*document["subjects"]] == [prefix]
    assert document["subjects"][prefix]["artifacts"]["build"] == {"from": folder, "prefix": prefix}
    path = tmp_path / "driftgate.yaml"
    np_file = Project(tmp_path).npz("eval.npz", x=inputs(1))
    path.write_text(filled(text, {"raw:": f"      raw: {np_file}"}), "utf-8")
    built = load(path).settings.subjects[prefix].build
    assert built is not None
    assert [stage for stage, _ in built.files(tmp_path, "J6M").models] == ["original_float", "hbm"]


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_in_quotes_is_the_same_text(text: str) -> None:
    assert yaml.safe_load(f"{{{quoted(text)}: {quoted(text)}}}") == {text: text}


def test_what_init_wrote_works_once_it_is_filled_in(tmp_path: Path) -> None:
    save(tiny(), tmp_path / "net_original_float_model.onnx")
    save(tiny(), tmp_path / "net_optimized_float_model.onnx")
    project = Project(tmp_path)
    assert call("init", tmp_path, "--out", project.config).code == 0
    found = call("check", "-c", project.config, "--out", tmp_path / "out")
    assert found.code == 2
    assert "subjects.net.samples.raw: <what the float model eats" in found.err
    raw = project.npz("eval.npz", x=inputs(3))
    project.text(filled(project.config.read_text("utf-8"), {"raw:": f"      raw: {raw}"}))
    assert call("check", "-c", project.config, "--out", tmp_path / "out").code == 0
    assert rows(tmp_path / "out")["onnx-optimized"] == "passed"


def test_a_whole_build_is_checked_with_what_init_wrote(tmp_path: Path) -> None:
    project = build(tmp_path, told={"hb_compile.log": short_log(), "net_node_info.csv": node_info()})
    (tmp_path / "hb.yaml").write_text(
        "model_parameters: {onnx_model: ./net.onnx, march: nash-m, output_model_file_prefix: net,"
        " working_dir: ./model_output_J6M}\n"
    )
    assert call("init", tmp_path / "model_output_J6M", "--out", project.config).code == 0
    python = f"  hbruntime: {{python: {quoted_list(interpreter())}, timeout: 60}}"
    text = filled(project.config.read_text("utf-8"), {"raw:": "      raw: eval.npz", "hbruntime:": python})
    project.text(text)
    assert 'onnx: "net.onnx"' in text
    planned = call("plan", "-c", project.config, "--json")
    assert planned.code == 0, planned.err
    told = call("check", "-c", project.config, "--out", tmp_path / "out")
    assert told.code == 0, told.out + told.err
    assert rows(tmp_path / "out")["bc-hbm"] == "passed"
    assert rows(tmp_path / "out")["float-int8"] == "passed"


def quoted_list(items: list[str]) -> str:
    return f"[{', '.join(map(quoted, items))}]"


def test_init_replaces_nothing_unless_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "net.hbm").touch()
    config = tmp_path / "driftgate.yaml"
    config.write_text("mine")
    found = call("init", tmp_path, "--out", config)
    assert found.code == 2
    assert "--force" in found.err
    assert config.read_text() == "mine"
    assert call("init", tmp_path, "--out", config, "--force").code == 0
    assert yaml.safe_load(config.read_text("utf-8"))["version"] == 1


def test_init_where_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder, said in (("empty", "has none of the vendor's files"), ("nowhere", "is not a folder")):
        found = call("init", tmp_path / folder, "--out", tmp_path / "driftgate.yaml")
        assert found.code == 2
        assert said in found.err
    assert [*tmp_path.iterdir()] == [tmp_path / "empty"]
