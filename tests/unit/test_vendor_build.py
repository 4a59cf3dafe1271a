"""What hb_compile, hb_analyzer and hb_model_info leave: right values from our samples and from real output."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from driftgate.domain.toolchain.build import CompileLog, ModelTensor, NodeKind, PerfEstimate
from driftgate.domain.toolchain.common import InputContract, ToolVersions
from driftgate.errors import ArtifactError
from driftgate.vendor.advice import parse_advice, parse_advice_csv, read_advice
from driftgate.vendor.analyzer import parse_analysis
from driftgate.vendor.compile_log import parse_compile_log, read_compile_log
from driftgate.vendor.compile_yaml import KEYS, parse_compile_yaml
from driftgate.vendor.model_info import parse_model_info, read_model_info
from driftgate.vendor.node_info import parse_node_info, read_node_info
from driftgate.vendor.nodetables import read_node_table
from driftgate.vendor.outputs import find_outputs, find_targets, prefixes
from driftgate.vendor.perf import parse_perf
from driftgate.vendor.quant_info import parse_quant_info
from unit.test_vendor_samples import (
    ADVICE,
    ADVICE_CSV,
    ANALYSIS,
    BLOCKS,
    COMPILE_LOG,
    INFO,
    MODEL_INFO,
    NODE_COLUMNS,
    NODE_INFO,
    NODES,
    ON_DISK,
    PERF,
    QUANT_INFO,
    REMOVABLE,
    bars,
    logged,
)

SHARED = Path(__file__).parents[3] / "shared" / "vendor-logs"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="the vendor's real output is not here")
CONTRACT = InputContract(
    "data",
    type_rt="nv12",
    type_train="bgr",
    layout_train="NCHW",
    shape=(1, 3, 64, 96),
    separate_batch=True,
    space_and_range="bt601_video",
    mean=(103.5, 116.25, 123.75),
    scale=(0.0078125,),
    std=(),
    norm="data_mean_and_scale",
)


def steps(log: CompileLog) -> dict[str, tuple[bool, bool]]:
    return {step.name: (step.started, step.ended) for step in log.steps}


def test_the_log_says_who_compiled_what() -> None:
    log = parse_compile_log(COMPILE_LOG)
    assert log.versions == ToolVersions(tool="3.4.1", builder="3.4.1", hbdk="4.9.2", hmct="2.7.0")
    assert (log.march, log.finished, log.failures, log.runs) == ("nash-m", True, (), 1)
    assert steps(log)["compile"] == steps(log)["convert"] == steps(log)["export"] == (True, True)
    assert log.saved == ("/out/net_original_float_model.onnx", "/out/net.hbm")
    assert log.estimate == PerfEstimate(fps=812.5, latency_us=1230.75, ddr_bytes=4096)
    assert log.removed == tuple(NodeKind(*row) for row in REMOVABLE)
    assert (log.input_no_padding, log.output_no_padding) == (True, False)


def test_the_log_says_how_it_was_calibrated() -> None:
    log = parse_compile_log(COMPILE_LOG)
    (data,) = log.calibration_data
    assert (data.input, data.first_file, data.count) == ("data", "/cal/data/0.npy", 24)
    assert log.calibration_folders == ("/cal/data", "/cal/other")
    assert (log.calibration_type, log.selected) == ("default", "kl:num_bin=2048")
    assert log.search == (("calibration_type", "['kl']"), ("max_percentile", "[0.9999]"))
    assert (log.benign, log.warnings) == (1, ("Something about a key is old",))


def test_the_log_says_what_the_onnx_file_is() -> None:
    onnx = parse_compile_log(COMPILE_LOG).onnx
    assert onnx is not None
    assert (onnx.ir_version, onnx.opsets, onnx.converted_opset) == (9, ("ai.onnx v18", "horizon v1"), 19)
    assert [(t.name, t.direction, t.shape) for t in onnx.tensors] == [
        ("data", "input", (1, 3, 64, 96)),
        ("boxes", "output", (1, 10, 4)),
        ("...scores", "output", (1, 10)),
    ]


def test_the_log_has_contract_memory_and_tensors() -> None:
    blocks = parse_compile_log(COMPILE_LOG).blocks
    assert blocks.inputs == (CONTRACT,)
    assert dict(blocks.memory) == {"input memory": 9216, "static memory": 500000, "min memory requirement": 509216}
    assert blocks.tensors[0] == ModelTensor("data_y", "input", (1, 64, 96, 1), "UINT8")
    assert blocks.tensors[3].shape == (1, None)
    assert (len(blocks.tensors), blocks.unread, blocks.removable) == (4, 0, ())


@pytest.mark.parametrize("text", [COMPILE_LOG, NODE_INFO, logged(bars(NODE_COLUMNS, NODES, border=False), prefix="")])
def test_the_node_table_is_the_same_from_log_csv_and_excerpt(text: str) -> None:
    table = parse_node_info(text)
    assert table.columns == NODE_COLUMNS
    assert [(n.node, n.op) for n in table.nodes] == [row[:2] for row in NODES]
    assert [n.on for n in table.nodes] == ["BPU", "BPU", "VPU+BPU", "", "CPU", "BPU"]
    assert [n.threshold for n in table.nodes] == [3.25, None, 1.0, 1.0, None, 0.5]
    assert [n.quantized for n in table.nodes] == [0.998731, 0.998744, 0.940021, None, None, 0.998]
    assert [n.dtypes for n in table.nodes][-2:] == [("si64",), ("f32", "si16")]
    assert table.unread == 0


def test_without_calibration_there_are_no_thresholds() -> None:
    table = parse_node_info("Node,NodeType,ON,Output Data Type\n/a,Conv,BPU,si8\n/b,Mul,CPU,f32,si16\n")
    assert [(n.node, n.on, n.dtypes, n.threshold, n.calibrated) for n in table.nodes] == [
        ("/a", "BPU", ("si8",), None, None),
        ("/b", "CPU", ("f32", "si16"), None, None),
    ]


def test_columns_in_another_order_and_unknown_ones_change_nothing() -> None:
    order = [6, 4, 0, 2, 5, 1, 3]
    columns = (*(NODE_COLUMNS[k] for k in order), "New Column")
    rows = [(*(row[k] for k in order), "?") for row in NODES]
    assert parse_node_info(logged(bars(columns, rows))).nodes == parse_node_info(NODE_INFO).nodes


def test_a_table_that_is_not_known_does_not_run_into_the_one_before_it() -> None:
    other = bars(("a", "b", "c", "d", "e", "f", "g"), [("1", "2", "3", "4", "5", "6", "7")])
    assert parse_node_info(logged([*bars(NODE_COLUMNS, NODES), *other])) == parse_node_info(
        logged(bars(NODE_COLUMNS, NODES))
    )


def test_the_table_of_nodes_that_links_use_is_read_from_log_files_too(tmp_path: Path) -> None:
    path = tmp_path / "hb_compile.log"
    rows = [("Name", *NODES[0][1:]), *NODES]
    path.write_text(logged(bars(NODE_COLUMNS, rows), ON_DISK), "utf-8")
    table = read_node_table(path, "quantized")
    assert ([node.node for node in table.nodes], table.unread) == ([row[0] for row in rows], 0)


def test_a_failure_is_what_the_tool_calls_one() -> None:
    text = COMPILE_LOG.split("Start to convert")[0] + "Start to convert model.\n"
    failed = parse_compile_log(text + f"{INFO}*** ERROR-OCCUR-DURING hbdk.convert ***\n")
    assert (failed.failures, failed.finished) == (("hbdk.convert",), False)
    assert steps(failed)["convert"] == (True, False)


def test_of_several_runs_in_one_log_the_last_counts() -> None:
    first = COMPILE_LOG.replace("nash-m", "nash-p").replace("3.25", "9.75")
    assert parse_compile_log(first + COMPILE_LOG) == replace(parse_compile_log(COMPILE_LOG), runs=2)


def test_an_excerpt_is_read_for_what_it_has() -> None:
    log = parse_compile_log("BPU march           : nash-e\n2026-11-02 08:01:02,345 INFO hbdk version: 4.1.17\n")
    assert (log.march, log.versions) == ("nash-e", ToolVersions(hbdk="4.1.17"))
    assert (log.node_table, log.onnx, log.steps, log.finished) == (None, None, (), False)


def test_a_version_that_may_be_cut_is_not_told() -> None:
    log = parse_compile_log("BPU march           : nash-e\nhbdk version: 4.1")
    assert log.versions == ToolVersions()


def test_an_architecture_without_product_is_no_march() -> None:
    line = "The specified model compilation architecture: nash{}.\nStart to export model.\n"
    assert parse_compile_log(line.format("")).march is None
    assert parse_compile_log(line.format("-p")).march == "nash-p"


def test_model_info_has_contract_tensors_and_removable_nodes() -> None:
    info = parse_model_info(MODEL_INFO)
    assert info.versions == ToolVersions(tool="3.4.1", builder="3.4.1", hbdk="4.9.2", hmct="2.7.0")
    assert (info.march, info.blocks.inputs) == ("nash-m", (CONTRACT,))
    assert info.blocks.removable == tuple(NodeKind(*row) for row in REMOVABLE)
    assert [t.dtype for t in info.blocks.tensors] == ["UINT8", "UINT8", "FLOAT32", "INT32"]


def test_removable_nodes_are_read_between_bars_too() -> None:
    text = logged(
        [*BLOCKS, "####### Removable node info #######", *bars(("Node Name", "Node Type"), REMOVABLE)], "INFO "
    )
    assert parse_model_info(text).blocks.removable == tuple(NodeKind(*row) for row in REMOVABLE)


def test_a_damaged_tensor_is_counted_and_what_follows_the_table_is_none() -> None:
    lines = [
        "NAME TYPE   SHAPE  DATA_TYPE",
        "---- ------ ------ ---------",
        "a    input  [1, 2] UINT8",
        "[09h:47m:28s INFO hbrt4_loader::parsing] noise",
        "b    output [1, 2] INT32",
        "The end of it.",
    ]
    blocks = parse_model_info(logged(lines)).blocks
    assert ([t.name for t in blocks.tensors], blocks.unread) == (["a", "b"], 1)


def test_quant_info_has_thresholds_by_node() -> None:
    info = parse_quant_info(QUANT_INFO)
    (node,) = info.nodes
    assert (node.node, node.thresholds, node.other) == ("/stem/Conv", ((3.25, 1.5), (2.0,)), ("bits",))
    assert info.unread == ("/stem/Relu",)


@pytest.mark.parametrize("entry", ['"x"', "[[NaN]]", "[[true]]", '[["1"]]', "[[1], 2]", "{}"])
def test_thresholds_that_are_no_numbers_are_not_read(entry: str) -> None:
    text = '{"/a": {"thresholds": ' + entry + '}, "/b": {"thresholds": [[1.0]]}}'
    info = parse_quant_info(text)
    assert ([node.node for node in info.nodes], info.unread) == (["/b"], ("/a",))


def test_the_estimate_is_read_from_its_summary() -> None:
    assert parse_perf(PERF) == PerfEstimate(
        march="nash-m",
        cores=1,
        convolutions=1234567.0,
        fps=812.5,
        latency_us=1230.75,
        ddr_bytes=4096,
        l2m_bytes=1,
        loaded_bytes=3000,
        stored_bytes=1096,
        memory_bytes=509216,
        other=("more",),
    )


def test_a_number_that_is_none_is_named_and_not_guessed() -> None:
    text = '{"summary": {"performance": {"FPS": "fast", "latency (us)": NaN, "latency (ms)": 2.5}}}'
    assert parse_perf(text) == PerfEstimate(latency_us=2500.0, other=("FPS", "latency (us)"))


def test_hb_analyzers_figures_keep_their_units() -> None:
    summary = parse_analysis(ANALYSIS)
    assert [(i.title, i.value, i.number, i.unit) for i in summary.indicators] == [
        ("FPS", "812.5", 812.5, ""),
        ("CPU operators", "2", 2.0, "nodes"),
        ("Bottleneck", "DDR", None, ""),
    ]
    assert summary.other == ("more",)


def test_advice_is_kept_as_told(tmp_path: Path) -> None:
    assert parse_advice(ADVICE).remarks == (
        (("key", "/stem/Conv"), ("problem", "slow"), ("cost", "3")),
        (("key", "general"), ("text", "use nash")),
    )
    path = tmp_path / "net_advice.csv"
    path.write_text(ADVICE_CSV, "utf-8")
    assert read_advice(path) == parse_advice_csv(ADVICE_CSV)
    assert read_advice(path).remarks[1] == (("op", "/head/Out"), ("problem", "small, odd"))


FILES = (
    "hb_compile.log",
    "net_original_float_model.onnx",
    "net_optimized_float_model.onnx",
    "net_calibrated_model.onnx",
    "net_ptq_model.onnx",
    "net_ptq_model.bc",
    "net_inserted_model.bc",
    "net_quantized_model.bc",
    "net_quantized_removed_model.bc",
    "net.hbm",
    "net.html",
    "net.json",
    "net_node_info.csv",
    "net_quant_info.json",
    "net_advice.json",
    "notes.txt",
)


def folder(path: Path, *names: str) -> Path:
    path.mkdir()
    for name in names:
        (path / name).touch()
    return path


def test_all_files_of_a_prefix_are_found(tmp_path: Path) -> None:
    files = find_outputs(folder(tmp_path / "out", *FILES))
    assert files.prefix == "net"
    assert [stage for stage, _ in files.models] == [
        "original_float",
        "optimized_float",
        "calibrated",
        "ptq",
        "quantized",
        "quantized_removed",
        "hbm",
    ]
    assert [kind for kind, _ in files.intermediate] == ["ptq_bc", "inserted_bc"]
    assert [kind for kind, _ in files.reports] == ["log", "node_info", "quant_info", "advice", "perf", "perf_html"]
    assert files.get("quantized_removed") == tmp_path / "out" / "net_quantized_removed_model.bc"
    assert files.get("advice_csv") is None


def test_several_prefixes_must_be_told_apart(tmp_path: Path) -> None:
    out = folder(tmp_path / "out", *FILES, "net_quantized_model.hbm", "other_ptq_model.onnx", "folder.onnx")
    assert prefixes(out) == ("net", "net_quantized_model", "other")
    with pytest.raises(ArtifactError, match="net, net_quantized_model, other"):
        find_outputs(out)
    assert find_outputs(out, "other").models == (("ptq", out / "other_ptq_model.onnx"),)


@pytest.mark.parametrize("prefix", [None, "nut"])
def test_a_prefix_that_is_not_there_is_named(prefix: str | None, tmp_path: Path) -> None:
    empty = folder(tmp_path / "empty", "notes.txt", "model.onnx")
    with pytest.raises(ArtifactError, match=r"has no (\*|nut)_quantized_model.bc"):
        find_outputs(empty, prefix)


def test_several_targets_are_several_folders_or_prefixes(tmp_path: Path) -> None:
    both, alone = folder(tmp_path / "m", "m.hbm", "e.hbm"), folder(tmp_path / "p", "net.hbm", "net.json")
    found = find_targets({"J6M": (both, "m"), "J6E": (both, "e"), "J6P": (alone, None)})
    assert [(target, files.get("hbm")) for target, files in found.items()] == [
        ("J6M", both / "m.hbm"),
        ("J6E", both / "e.hbm"),
        ("J6P", alone / "net.hbm"),
    ]


def test_all_that_is_wrong_with_several_targets_comes_together(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError) as caught:
        find_targets({"J6M": (tmp_path / "absent", None), "J6P": (folder(tmp_path / "e"), None)})
    assert [problem.code for problem in caught.value.problems] == ["compiled-no-folder", "compiled-none"]


YAML = """
model_parameters:
  onnx_model: net.onnx
  march: nash-m
  output_model_file_prefix: net
  working_dir: out
  remove_node_type: Quantize;Dequantize
input_parameters:
  input_name: data;state
  input_type_rt: nv12;featuremap
  input_type_train: bgr;featuremap
  input_layout_train: NCHW;
  input_space_and_range: bt601_video;regular
  input_shape: 1x3x64x96;1x8
  mean_value: 103.5 116.25 123.75;
  scale_value: "0.0078125;"
  norm_type: no_preprocess;no_preprocess
calibration_parameters:
  cal_data_dir: /cal/data;/cal/state
  calibration_type: kl
  quant_config: {model_config: {}}
compiler_parameters:
  input_source: {data: pyramid}
  extra_params: {input_no_padding: true}
  turbo: 1
extra_section: {}
"""


def loaded(text: str = YAML, **changes: dict[str, object]) -> dict[str, dict[str, object]]:
    values: dict[str, dict[str, object]] = yaml.safe_load(text)
    for section, keys in changes.items():
        values[section].update(keys)
    return values


def test_the_yaml_is_the_input_contract() -> None:
    told = parse_compile_yaml(loaded())
    data, state = told.inputs
    assert data == replace(CONTRACT, separate_batch=None, source="pyramid")
    assert (state.name, state.shape, state.type_rt, state.mean, state.scale) == (
        "state",
        (1, 8),
        "featuremap",
        (),
        (),
    )
    assert (told.march, told.prefix, told.removed_types) == ("nash-m", "net", ("Quantize", "Dequantize"))
    assert (told.calibration_folders, told.calibration_type) == (("/cal/data", "/cal/state"), "kl")
    assert (told.input_no_padding, told.output_no_padding) == (True, None)
    assert (told.quant_config, told.has_inline_quant_config) == (None, True)
    assert told.unknown == ("extra_section", "compiler_parameters.turbo")


def test_an_empty_place_between_semicolons_is_an_input_without_a_value() -> None:
    changes: dict[str, object] = {"mean_value": ";1 2 3", "scale_value": None, "input_layout_train": "NCHW;NHWC"}
    data, state = parse_compile_yaml(loaded(input_parameters=changes)).inputs
    assert (data.mean, state.mean) == ((), (1.0, 2.0, 3.0))
    assert (data.norm, state.norm) == ("no_preprocess", "data_mean")


def test_one_input_needs_neither_name_nor_quotes() -> None:
    (data,) = parse_compile_yaml(
        {"input_parameters": {"input_type_rt": "rgb", "input_shape": "1x3x8x8", "scale_value": 0.5, "input_batch": 4}}
    ).inputs
    assert (data.name, data.shape, data.scale, data.batch, data.norm) == ("", (1, 3, 8, 8), (0.5,), 4, "data_scale")


def test_without_calibration_data_nothing_is_calibrated() -> None:
    changes: dict[str, object] = {"cal_data_dir": None}
    told = parse_compile_yaml(loaded(calibration_parameters=changes))
    assert (told.calibration_folders, told.calibration_type) == ((), "skip")


@pytest.mark.parametrize(
    ("section", "key", "value", "told"),
    [
        ("input_parameters", "input_type_rt", "nv12;nv13", "input_type_rt is nv12;nv13, wanted: nv12"),
        ("input_parameters", "input_shape", "1x3x64x96;eight", "input_shape is 1x3x64x96;eight"),
        ("input_parameters", "input_type_train", "rgb", "input_type_train has 1 entries for 2 inputs"),
        ("input_parameters", "mean_value", "1;a", "mean_value is 1;a"),
        ("input_parameters", "std_value", "2;2;2", "std_value has 3 entries for 2 inputs"),
        ("input_parameters", "std_value", "2;2", "scale_value | std_value"),
        ("input_parameters", "input_batch", "many", "input_batch is many"),
        ("input_parameters", "input_shape", {"a": 1}, "input_shape is"),
        ("calibration_parameters", "cal_data_dir", "/a;/b;/c", "cal_data_dir has 3 entries for 2 inputs"),
        ("compiler_parameters", "extra_params", {"input_no_padding": "maybe"}, "extra_params is"),
        ("compiler_parameters", "extra_params", "on", "extra_params is on"),
        ("model_parameters", "march", ["nash-m"], "model_parameters.march is"),
    ],
)
def test_what_is_wrong_in_the_yaml_is_said_with_its_key(section: str, key: str, value: object, told: str) -> None:
    base: dict[str, object] = {"mean_value": "1;2", "scale_value": "1;2", "input_layout_train": "NCHW;NCHW"}
    values = loaded(input_parameters=base)
    values[section][key] = value
    with pytest.raises(ArtifactError) as caught:
        parse_compile_yaml(values, name="net.yaml")
    assert told in str(caught.value)
    assert "net.yaml" in str(caught.value)


def test_all_that_is_wrong_in_the_yaml_comes_together() -> None:
    with pytest.raises(ArtifactError) as caught:
        parse_compile_yaml(loaded(input_parameters={"input_type_rt": "a;b", "input_shape": "x;y"}))
    assert len(caught.value.problems) >= 4


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*KEYS, "more"]),
        st.dictionaries(
            st.sampled_from(["march", "input_name", "input_shape", "mean_value", "cal_data_dir", "extra_params", "x"]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text("1x;, a", max_size=9),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
                max_leaves=4,
            ),
        )
        | st.none()
        | st.text(max_size=3),
    )
)
def test_whatever_the_yaml_holds_it_is_read_or_said(value: dict[str, object]) -> None:
    with contextlib.suppress(ArtifactError):
        parse_compile_yaml(value)


@pytest.mark.parametrize("value", [None, [], "text", 3, {}, {"a": 1}, {"input_parameters": 3}])
def test_what_is_no_configuration_is_said(value: object) -> None:
    with pytest.raises(ArtifactError):
        parse_compile_yaml(value)


@real
def test_the_real_log_from_the_console() -> None:
    log = read_compile_log(SHARED / "hb_compile-full.log")
    assert log.versions == ToolVersions(tool="3.5.16", builder="3.5.16", hbdk="4.11.11", hmct="2.8.4")
    assert (log.march, log.finished, log.failures, log.benign) == ("nash-p", True, (), 2)
    assert all(ended for _, ended in steps(log).values())
    assert list(steps(log)) == [
        "verify",
        "prepare",
        "optimize",
        "calibrate",
        "quantize",
        "export",
        "convert",
        "compile",
        "perf",
    ]
    assert (log.calibration_type, log.selected) == ("default", "max-percentile:percentile=0.99995")
    assert [(d.input, d.count) for d in log.calibration_data] == [
        ("rgb", 128),
        ("text_tokens", 128),
        ("targets", 128),
        ("state", 128),
    ]
    assert log.calibration_data[3].first_md5 == "65b17188961c246a4b607088ed20b0d4"
    assert len(log.calibration_folders) == 4
    assert dict(log.search)["similarity"] == "0.995"
    assert log.estimate == PerfEstimate(fps=1625.78, latency_us=615.1, ddr_bytes=23998720)
    assert log.node_table is not None
    assert (len(log.node_table.nodes), log.node_table.unread) == (59, 0)
    assert log.node_table.nodes[1].calibrated == 1.000005
    assert {node.on for node in log.node_table.nodes} == {"BPU"}
    assert (len(log.outputs.rows), log.outputs.unread) == (10, 0)
    assert (log.outputs.rows[4].tensor, log.outputs.rows[4].quantized) == ("target_speed_mps", 0.999939)
    assert log.onnx is not None
    assert (log.onnx.ir_version, log.onnx.converted_opset, len(log.onnx.tensors)) == (8, 19, 14)
    assert [name.rsplit("_", 2)[-2] for name in log.saved[:4]] == ["float", "float", "calibrated", "ptq"]
    assert len(log.saved) == 5
    assert len(log.warnings) == 6
    assert dict(log.blocks.memory)["min memory requirement"] == 24185872
    assert len(log.blocks.memory) == 7
    assert [t.shape for t in log.blocks.tensors][:3] == [(1, 3, 224, 224), (1, 32), (1, 8, 14)]
    assert [i.name for i in log.blocks.inputs] == ["rgb", "text_tokens", "targets", "state"]
    assert log.blocks.inputs[0].mean == ()


@real
def test_the_real_log_file_of_an_older_release() -> None:
    log = read_compile_log(SHARED / "hb_compile-ondisk-3.3.11-excerpt.log")
    assert log.versions == ToolVersions(tool="3.3.11", builder="3.3.11", hbdk="4.1.17", hmct="2.1.9")
    assert (log.march, log.finished, log.selected) == ("nash-e", True, "max-percentile:percentile=0.99995")
    assert (log.input_no_padding, log.output_no_padding) == (True, True)
    assert steps(log)["compile"] == (True, True)
    assert steps(log)["prepare"] == (False, True)
    assert [(d.input, d.count) for d in log.calibration_data] == [("images", 48)]
    assert log.node_table is not None
    assert [node.on for node in log.node_table.nodes].count("BPU") == 7
    assert (len(log.node_table.nodes), len(log.outputs.rows)) == (13, 10)
    assert log.node_table.nodes[6].dtypes == ("si32",)
    assert log.node_table.nodes[10].quantized is None
    assert [node.op for node in log.removed] == ["Dequantize"] * 3
    assert [(t.name, t.dtype) for t in log.blocks.tensors][-1] == ("457", "INT16")
    assert log.onnx is not None
    assert (log.onnx.ir_version, log.onnx.opsets[0], len(log.onnx.tensors)) == (9, "ai.onnx v19", 11)


@real
def test_the_real_excerpt_is_read_for_what_it_has() -> None:
    log = read_compile_log(SHARED / "hb_compile-calibrated-excerpt.log")
    assert (log.march, log.finished, log.calibration_type) == ("nash-p", True, "default")
    assert log.versions == ToolVersions()
    assert (log.node_table, log.selected, log.estimate, log.onnx) == (None, None, None, None)
    assert [d.count for d in log.calibration_data] == [None] * 4
    assert log.calibration_data[1].first_md5 == "6416c03adb6ae86b1e952c30ff028a66"
    assert dict(log.blocks.memory)["static memory"] == 23580160


@real
def test_the_real_node_info() -> None:
    table = read_node_info(SHARED / "node_info.csv")
    assert (len(table.nodes), table.unread) == (59, 0)
    speed = next(node for node in table.nodes if node.node == "/model/target_speed_head/Gemm")
    assert (speed.threshold, speed.calibrated, speed.quantized, speed.dtypes) == (
        9.871442,
        0.955581,
        0.95541,
        ("si8",),
    )
    assert [node.node for node in table.nodes if len(node.dtypes) == 2] == [
        "/model/Mul_target_speed_mps_Reshape",
        "/model/Sigmoid_1_confidence_Reshape",
    ]


@real
def test_the_real_model_info() -> None:
    info = read_model_info(SHARED / "hb_model_info-bc-3.3.11.log")
    assert info.versions == ToolVersions(tool="3.3.11", builder="3.3.11", hbdk="4.1.17", hmct="2.1.9")
    (images,) = info.blocks.inputs
    assert (info.march, images.type_rt, images.type_train, images.norm) == ("nash-e", "nv12", "rgb", "data_scale")
    assert (images.scale, images.mean, images.shape) == ((0.003921568627451,), (), (1, 3, 640, 640))
    assert [node.op for node in info.blocks.removable] == ["Dequantize"] * 6
    assert [(t.name, t.direction, t.dtype) for t in info.blocks.tensors][:3] == [
        ("images_y", "input", "UINT8"),
        ("images_uv", "input", "UINT8"),
        ("output0", "output", "FLOAT32"),
    ]
    assert (len(info.blocks.tensors), info.blocks.memory) == (8, ())
