"""What the board's runtime says about models, runs and errors: right values from our samples and real output."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftgate.domain.toolchain.board import BoardFault, BoardTensor, Dump, PerfTick, ReadFile
from driftgate.domain.toolchain.common import ToolVersions
from driftgate.errors import ArtifactError
from driftgate.vendor.exec_infer import parse_inference, read_inference
from driftgate.vendor.exec_info import parse_model_tensors, read_model_tensors
from driftgate.vendor.exec_perf import parse_board_perf, read_board_perf
from driftgate.vendor.faults import parse_faults, read_faults
from driftgate.vendor.runtime_query import parse_input_info, parse_runtime_query, read_input_info, read_runtime_query
from unit.test_vendor_samples import BOARD_PERF, INFERENCE, INPUT_INFO, MODEL_TENSORS, RUNTIME_QUERY

SHARED = Path(__file__).parents[3] / "shared" / "vendor-logs"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="the vendor's real output is not here")
VERSIONS = ToolVersions(ucp="3.9.1", hbrt="4.9.2")


def test_tensors_are_read_with_stride_and_scales() -> None:
    info = parse_model_tensors(MODEL_TENSORS)
    assert (info.versions, info.load_ms, info.names, info.has_board_monitor) == (VERSIONS, 12.5, ("net",), True)
    (model,) = info.models
    assert model.tensors == (
        BoardTensor("data_y", "input", 0, (1, 64, 96, 1), (None, None, 1, 1), None, "U8", "NONE"),
        BoardTensor("state", "input", 1, (1, 8), (64, 1), 64, "S8", "SCALE", (0.0078125,), (3,)),
        BoardTensor("boxes", "output", 0, (1, 2, 4), (64, 32, 4), 256, "S32", "SCALE", (0.5, 2.5e-05), (0, 0), 1),
    )
    assert all(tensor.is_whole for tensor in model.tensors)


def test_the_description_tells_who_built_the_model_and_how() -> None:
    (model,) = parse_model_tensors(MODEL_TENSORS).models
    assert model.versions == ToolVersions(builder="3.4.1", hbdk="4.9.2", hmct="2.7.0")
    assert (model.march, model.calibration_type) == ("nash-m", "kl")
    assert model.calibration_folders == ("/cal/data", "/cal/state")
    data, state = model.inputs
    assert (data.type_rt, data.mean, data.scale, data.source) == ("nv12", (103.5, 116.25, 123.75), (0.5,), "pyramid")
    assert (state.type_rt, state.mean, state.norm, state.shape) == ("featuremap", (), "no_preprocess", (1, 8))


@pytest.mark.parametrize(
    ("scales", "printed", "read"),
    [
        ("0.5,0.25,", "\0,\0,", (0, 0)),
        ("0.5,0.25,", ",,", None),
        ("0.5,0.25,", "\x05,\0,", None),
        ("(0.5,0.25)", "(1,-2)", (1, -2)),
        ("(0.5,0.25)", "(1)", (1,)),
        ("(0.5,0.25)", "(1,2,3)", None),
        ("(0.5,0.25)", "", None),
        ("0.5,", "\0,", (0,)),
    ],
)
def test_zero_points_are_digits_or_nuls_and_else_unknown(scales: str, printed: str, read: object) -> None:
    text = f"output[0]:\nname: a\nquanti type: SCALE\nscale data: {scales}\nzero_point data: {printed}\n"
    ((tensor,),) = (model.tensors for model in parse_model_tensors(text).models)
    assert tensor.zero_points == read


def test_a_scale_that_cannot_be_read_leaves_none() -> None:
    text = "input[0]:\nname: a\nvalid shape: (1)\ntensor type: HB_DNN_TENSOR_TYPE_S8\nquanti type: SCALE\n"
    for line in ("scale data: (0.5,x)", "scale data: (0.5,nan)", "scale data: 0.5,,0.25", "stride: (1)"):
        (model,) = parse_model_tensors(f"{text}{line}\n").models
        assert (model.tensors[0].scales, model.tensors[0].is_whole) == ((), False)


def test_scales_by_channel_need_their_axis() -> None:
    (model,) = parse_model_tensors(MODEL_TENSORS.replace("quantizeAxis: 1\n", "")).models
    assert [tensor.is_whole for tensor in model.tensors] == [True, True, False]


def test_several_models_of_one_file_stay_apart() -> None:
    second = MODEL_TENSORS.split("-" * 69)[1].replace("]: net", "]: other").replace("boxes", "masks")
    info = parse_model_tensors(MODEL_TENSORS + second)
    assert [(model.name, [t.name for t in model.tensors]) for model in info.models] == [
        ("net", ["data_y", "state", "boxes"]),
        ("other", ["data_y", "state", "masks"]),
    ]


def test_a_run_is_read_with_its_conditions() -> None:
    perf = parse_board_perf(BOARD_PERF)
    assert (perf.versions, perf.load_ms, perf.has_board_monitor) == (VERSIONS, 12.5, True)
    assert (perf.threads, perf.frames, perf.run_ms, perf.total_ms) == (2, 200, 310.5, 300.25)
    assert (perf.average_ms, perf.fps) == (1.501, 644.122)
    assert perf.ticks == (PerfTick(200, 1.5, 3.25, 1.25, 650.5),)
    assert (perf.made_up_input, perf.chosen_strides) == (True, ((0, (6144, 96, 1, 1)),))


def test_a_run_that_was_ended_has_no_result() -> None:
    perf = parse_board_perf(BOARD_PERF.split("\nRunning")[0])
    assert (perf.fps, perf.average_ms, len(perf.ticks)) == (None, None, 1)


def test_a_number_with_two_dots_is_none() -> None:
    text = BOARD_PERF.replace("644.122", "644.1.2").replace("FPS: 650.5", "FPS: 6.5.0")
    assert (parse_board_perf(text).fps, parse_board_perf(text).ticks) == (None, ())


def test_an_inference_is_read_with_its_files() -> None:
    run = parse_inference(INFERENCE)
    assert run.files == (
        ReadFile("/in/state.bin", 8, (1, 8), (64, 1)),
        ReadFile("a b.jpeg", padded_shape=(1, 64, 96, 1), scaled_from_image=(96, 64)),
    )
    assert run.frames == ((0, 33.5), (1, 34.5))
    assert run.dumps == (
        Dump("./model_infer_input_0_state.bin", "input", 0, "state"),
        Dump("./d/model_infer_output_1__output_0.txt", "output", 1, "_output_0"),
    )


def test_a_query_has_tensors_in_the_models_order() -> None:
    info = parse_runtime_query(RUNTIME_QUERY)
    (model,) = info.models
    assert (info.names, model.name, model.march) == (("net",), "net", "nash-m")
    assert model.tensors == (
        BoardTensor("in_y", "input", 0, (1, 64, 96, 1), (None, None, 1, 1), dtype="U8"),
        BoardTensor("in_uv", "input", 1, (1, 32, 48, 2), (None, None, 2, 1), dtype="U8"),
        BoardTensor(
            "out", "output", 0, dtype="S32", quantisation="SCALE", scales=(0.5, 0.25), zero_points=(0, 0), axis=1
        ),
    )


def test_an_answer_of_hbm_infer_has_no_axis_where_none_counts() -> None:
    (model,) = parse_input_info(INPUT_INFO).models
    assert model.tensors == (
        BoardTensor("data", "input", None, (1, 3, 8), None, None, "S8", "SCALE", (0.0078125,), (0,)),
        BoardTensor("state", "input", None, (1, None), None, None, "F32", "NONE"),
    )


@pytest.mark.parametrize("entry", ["1", "{}", "[]", '{"valid_shape": 3}'])
def test_an_answer_of_another_form_is_an_error_or_says_nothing(entry: str) -> None:
    try:
        (model,) = parse_input_info('{"a": ' + entry + "}").models
    except ArtifactError as error:
        assert "valid_shape" in str(error)
    else:
        assert not model.tensors[0].is_whole


def test_known_errors_are_told_once_each() -> None:
    text = "x: Model march incompatible! model march: nash-e, platform march: nash-p\nreturned -600004\n"
    assert parse_faults(text) == (BoardFault("march", "nash-e", "nash-p"),)
    assert parse_faults("hbUCP: -400001\n") == (BoardFault("memory"),)
    assert parse_faults("all is well, -4000011, 600004\n") == ()


@pytest.mark.parametrize(
    "line",
    [
        "x: Cannot load hbm of version 4.12.0, the runtime's version is 4.9.7",
        "model built by hbdk 4.12.0 needs runtime >= 4.12, found runtime 4.9.7",
        "compiled with HBDK 4.12.0, libhbrt is 4.9.7; error code -6000002",
    ],
)
def test_the_releases_of_model_and_runtime_are_told(line: str) -> None:
    assert parse_faults(f"[DNN]: 3.15.8_(4.9.7 HBRT)\n{line}\n") == (BoardFault("version", "4.12.0", "4.9.7"),)


def test_a_march_that_may_be_cut_is_not_told() -> None:
    assert parse_faults("Model march incompatible! model march: nash-e, platform march: nash-b") == (
        BoardFault("march"),
    )


@real
@pytest.mark.parametrize(
    ("name", "versions", "march", "count"),
    [
        ("hrt_model_exec-model_info.log", ToolVersions(ucp="3.15.8", hbrt="4.11.11"), "nash-p", 14),
        (
            "hrt_model_exec-model_info-ucp3.3.3-trailing-comma.log",
            ToolVersions(ucp="3.3.3", hbrt="4.1.17"),
            "nash-e",
            8,
        ),
        ("hrt_model_exec-model_info-ucp3.7.4-s100.log", ToolVersions(ucp="3.7.4", hbrt="4.3.2"), "nash-e", 8),
        ("hrt_model_exec-model_info-int8-inputs-excerpt.log", ToolVersions(), None, 7),
    ],
)
def test_real_tensors(name: str, versions: ToolVersions, march: str | None, count: int) -> None:
    info = read_model_tensors(SHARED / name)
    (model,) = info.models
    assert (info.versions, model.march, len(model.tensors)) == (versions, march, count)
    assert all(tensor.is_whole for tensor in model.tensors)


@real
def test_real_tensors_by_channel() -> None:
    (old,) = read_model_tensors(SHARED / "hrt_model_exec-model_info-ucp3.3.3-trailing-comma.log").models
    (new,) = read_model_tensors(SHARED / "hrt_model_exec-model_info-ucp3.7.4-s100.log").models
    boxes, others = old.tensors[3], new.tensors[3]
    assert (boxes.name, boxes.shape, boxes.dtype, boxes.axis) == ("499", (1, 80, 80, 64), "S32", 3)
    assert (len(boxes.scales), boxes.scales[0], boxes.zero_points) == (64, 0.000601411, None)
    assert (len(others.scales), others.scales[:2], others.axis) == (64, (0.000332937, 0.000329439), 3)
    assert others.zero_points == (0,) * 64
    assert new.tensors[7].scales[31] == 7.8377e-05
    assert (new.tensors[0].stride, new.tensors[0].aligned_bytes) == ((None, None, 1, 1), None)
    assert (old.versions.hmct, old.inputs[0].type_rt, old.inputs[0].source) == ("2.1.9", "nv12", "pyramid")


@real
def test_real_tensors_with_padding() -> None:
    (model,) = read_model_tensors(SHARED / "hrt_model_exec-model_info-int8-inputs-excerpt.log").models
    features = model.tensors[0]
    assert (features.shape, features.stride) == ((1, 5, 20, 30000), (3008000, 601600, 30080, 1))
    assert (features.scales, features.zero_points, features.axis) == ((0.00771821,), (0,), None)
    assert (model.tensors[6].dtype, model.tensors[6].quantisation) == ("S32", "NONE")


@real
def test_a_real_skipped_calibration() -> None:
    (model,) = read_model_tensors(SHARED / "hrt_model_exec-model_info.log").models
    assert (model.calibration_type, model.calibration_folders) == ("skip", ())
    assert [contract.name for contract in model.inputs] == ["rgb", "text_tokens", "targets", "state"]
    assert [contract.shape for contract in model.inputs][1] == (1, 32)


@real
def test_real_runs() -> None:
    s100 = read_board_perf(SHARED / "hrt_model_exec-perf-ucp3.3.3-s100.log")
    assert (s100.threads, s100.frames, s100.average_ms, s100.fps) == (1, 200, 14.245, 69.894)
    assert (s100.ticks[0].longest_ms, s100.made_up_input) == (38.879002, True)
    j6 = read_board_perf(SHARED / "hrt_model_exec-perf-j6-8threads-excerpt.log")
    assert (j6.threads, j6.run_ms, j6.total_ms, j6.fps) == (8, 136.44, 1052.432007, 1465.845793)
    assert (j6.load_ms, j6.has_board_monitor, j6.versions) == (1965.34, True, ToolVersions())
    debug = read_board_perf(SHARED / "hrt_model_exec-perf-debug-ucp3.3.3-j6em-excerpt.log")
    assert (debug.fps, debug.ticks, debug.load_ms) == (None, (), 538.783)
    assert [index for index, _ in debug.chosen_strides] == [0, 1, 2]
    assert debug.chosen_strides[1][1] == (90112, 704, 2, 1)


@real
def test_real_inferences() -> None:
    run = read_inference(SHARED / "hrt_model_exec-infer.log")
    assert [file.length for file in run.files] == [602112, 128, 448, 256]
    assert run.files[2].padded_stride == (512, 64, 4)
    assert (run.frames, len(run.dumps), run.load_ms) == (((0, 33587.2),), 14, 402.846)
    assert (run.dumps[8].direction, run.dumps[8].index, run.dumps[8].name) == ("output", 4, "target_speed_mps")
    images = read_inference(SHARED / "hrt_model_exec-infer-j6-images-excerpt.log")
    assert [file.scaled_from_image for file in images.files] == [(224, 224), (224, 224)]
    assert (images.frames, images.dumps) == (((0, 1.464),), ())


@real
def test_a_real_query_and_answer() -> None:
    info = read_runtime_query(SHARED / "hbm_runtime-query-ucp3.13.6-s600.log")
    (model,) = info.models
    assert (info.versions, model.march) == (ToolVersions(ucp="3.13.6", hbrt="4.7.5"), "nash-p")
    assert [(t.name, t.shape, t.stride) for t in model.tensors] == [
        ("input_y", (1, 224, 224, 1), (None, None, 1, 1)),
        ("input_uv", (1, 112, 112, 2), (None, None, 2, 1)),
        ("output", (1, 1000), (4000, 4)),
    ]
    assert [t.axis for t in model.tensors] == [None] * 3
    assert model.inputs[0].mean == (123.675, 116.28, 103.53)
    (answer,) = read_input_info(SHARED / "hbm_infer-get_input_info-3.15-doc.json").models
    assert (answer.tensors[0].scales, answer.tensors[0].axis) == ((0.006861070170998573,), None)


@real
def test_real_errors() -> None:
    assert read_faults(SHARED / "hbrt-load-errors-s600-lines.log") == (
        BoardFault("march", "nash-e", "nash-p"),
        BoardFault("environment"),
        BoardFault("memory", length_bytes=5703561320),
    )
