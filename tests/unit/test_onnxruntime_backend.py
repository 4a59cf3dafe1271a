"""ONNX Runtime as a backend: what a model may be, what it may not be, and what is said of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort  # type: ignore[import-untyped]
import pytest
from onnx import TensorProto, helper

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.backends.processor import processor
from driftgate.domain.tensors import TensorSpec
from driftgate.errors import ArtifactError, BackendError, ConfigError, LoadRefused, SampleError
from driftgate.messages.message import message
from driftgate.sessions import Artifact
from support.contract import assert_same, assert_speaks
from support.models import WEIGHT, answer, hidden, model, one_node, save, tiny, value

X = np.array([[1.0, -2.0, 0.5]], np.float32)
BACKEND = OnnxRuntimeBackend()


def artifact(path: Path, **options: object) -> Artifact:
    return Artifact("onnx", "onnxruntime", path, options)


def saved(proto: onnx.ModelProto, folder: Path) -> Artifact:
    return artifact(save(proto, folder / "net.onnx"))


def refusal(proto: onnx.ModelProto, folder: Path) -> ArtifactError:
    with pytest.raises(ArtifactError) as caught:
        BACKEND.open(saved(proto, folder))
    assert_speaks(caught.value)
    return caught.value


# --- the environment


def test_nothing_is_optimised_unless_asked_for(tmp_path: Path) -> None:
    save(tiny(), tmp_path / "net.onnx")
    with BACKEND.open(artifact(tmp_path / "net.onnx")) as session:
        environment = session.environment
    assert (environment.provider, environment.level, environment.threads) == ("CPUExecutionProvider", "disabled", 1)
    assert dict(environment.versions) == {"numpy": np.__version__, "onnxruntime": ort.__version__}
    assert environment.cpu == processor()


@pytest.mark.parametrize("level", ["disabled", "basic", "extended", "all"])
def test_level_and_threads_are_part_of_the_environment(level: str, tmp_path: Path) -> None:
    save(tiny(), tmp_path / "net.onnx")
    with BACKEND.open(artifact(tmp_path / "net.onnx", level=level, threads=2)) as session:
        assert (session.environment.level, session.environment.threads) == (level, 2)
        assert_same(session.infer({"x": X}, sample="0000"), {"y": answer(X)})


def test_the_processor_is_named_with_what_changes_rounding(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("model name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx2 avx512_vnni sse\nmodel name\t: Other\n")
    assert processor(cpuinfo) == "Some CPU @ 2 GHz avx2 avx512_vnni"
    assert processor(tmp_path / "nowhere")


def test_a_provider_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    save(tiny(), tmp_path / "net.onnx")
    with pytest.raises(BackendError) as caught:
        BACKEND.open(artifact(tmp_path / "net.onnx", provider="NoSuchExecutionProvider"))
    assert_speaks(caught.value, "NoSuchExecutionProvider", "CPUExecutionProvider")


def test_an_unknown_level_lists_the_known_ones(tmp_path: Path) -> None:
    save(tiny(), tmp_path / "net.onnx")
    with pytest.raises(ConfigError) as caught:
        BACKEND.open(artifact(tmp_path / "net.onnx", level="99"))
    assert_speaks(caught.value, "99", "extended")


# --- files


def test_external_data_is_found_and_belongs_to_the_digest(tmp_path: Path) -> None:
    net = artifact(save(tiny(), tmp_path / "net.onnx", external="weights.bin"))
    with BACKEND.open(net) as session:
        assert_same(session.infer({"x": X}, sample="0000"), {"y": answer(X)})
    before = BACKEND.digest(net)
    content = bytearray((tmp_path / "weights.bin").read_bytes())
    content[3] ^= 1
    (tmp_path / "weights.bin").write_bytes(content)
    assert BACKEND.digest(net) != before


def test_a_tap_of_a_model_with_external_data_writes_nothing_beside_it(tmp_path: Path) -> None:
    net = artifact(save(tiny(), tmp_path / "net.onnx", external="weights.bin"))
    before = sorted(tmp_path.iterdir())
    with BACKEND.open(net, ["h"]) as session:
        assert_same(session.infer({"x": X}, sample="0000"), {"y": answer(X), "h": hidden(X)})
    assert sorted(tmp_path.iterdir()) == before


def test_a_relative_path_finds_external_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tiny(), tmp_path / "net.onnx", external="weights.bin")
    monkeypatch.chdir(tmp_path)
    for taps in ([], ["h"]):
        with BACKEND.open(artifact(Path("net.onnx")), taps) as session:
            np.testing.assert_allclose(session.infer({"x": X}, sample="0000")["y"], answer(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (lambda path: path.unlink(), "onnx-external-missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "onnx-external-short"),
    ],
)
def test_external_data_that_is_not_whole_is_an_artifact_error(
    harm: Callable[[Path], None], code: str, tmp_path: Path
) -> None:
    net = artifact(save(tiny(), tmp_path / "net.onnx", external="weights.bin"))
    harm(tmp_path / "weights.bin")
    for attempt in (BACKEND.digest, BACKEND.open):
        with pytest.raises(ArtifactError) as caught:
            attempt(net)
        assert not isinstance(caught.value, LoadRefused)
        assert [problem.code for problem in caught.value.problems] == [code]
        assert_speaks(caught.value, "weights.bin")


def test_external_data_outside_of_the_folder_is_not_read(tmp_path: Path) -> None:
    path = save(tiny(), tmp_path / "inner" / "net.onnx", external="weights.bin")
    (tmp_path / "inner" / "weights.bin").rename(tmp_path / "weights.bin")
    proto = onnx.load(str(path), load_external_data=False)
    for tensor in proto.graph.initializer:
        for entry in tensor.external_data:
            entry.value = "../weights.bin" if entry.key == "location" else entry.value
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ArtifactError) as caught:
        BACKEND.open(artifact(path))
    assert caught.value.problems[0].code == "onnx-external-outside"


@pytest.mark.parametrize("keep", [0, 1, 30, -1])
def test_a_file_that_is_cut_off_is_an_artifact_error_and_no_refusal(keep: int, tmp_path: Path) -> None:
    path = save(tiny(), tmp_path / "net.onnx")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ArtifactError) as caught:
        BACKEND.open(artifact(path))
    assert not isinstance(caught.value, LoadRefused)
    assert caught.value.problems == (message("onnx-damaged", path=str(path)),)


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError) as caught:
        BACKEND.open(artifact(tmp_path))
    assert_speaks(caught.value, "directory")


# --- what ONNX Runtime refuses


def test_an_operator_of_an_unknown_domain_is_refused_by_name(tmp_path: Path) -> None:
    error = refusal(one_node("DeformConv", domain="my.ops", name="head/deform"), tmp_path)
    assert isinstance(error, LoadRefused)
    assert_speaks(error, "head/deform", "DeformConv", "my.ops", "custom-ops")


@pytest.mark.parametrize(
    ("operator", "domain"), [("HzCalibration", "my.ops"), ("Lut", "horizon.quant"), ("HzQuantize", "hmct.ops")]
)
def test_the_vendors_operators_are_for_another_backend(operator: str, domain: str, tmp_path: Path) -> None:
    error = refusal(one_node(operator, domain=domain), tmp_path)
    assert not isinstance(error, LoadRefused)
    assert error.problems[0].code == "onnx-vendor-operator"


def test_an_operator_in_a_branch_is_seen_too(tmp_path: Path) -> None:
    branch = helper.make_graph(
        [helper.make_node("Rare", ["x"], ["b"], name="inner", domain="my.ops")], "branch", [], [value("b", [1, 3])]
    )
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    inputs = [value("x", [1, 3]), value("c", [], TensorProto.BOOL)]
    error = refusal(model(nodes, inputs, [value("y", [1, 3])], domains=["my.ops"]), tmp_path)
    assert error.problems[0].get("node") == "inner"


def test_a_function_of_the_model_itself_is_no_unknown_operator(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17)]
    double = helper.make_function(
        "my.ops", "Double", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], opsets
    )
    nodes = [helper.make_node("Double", ["x"], ["y"], domain="my.ops")]
    proto = model(nodes, [value("x", [1, 3])], [value("y", [1, 3])], domains=["my.ops"], functions=[double])
    with BACKEND.open(saved(proto, tmp_path)) as session:
        assert_same(session.infer({"x": X}, sample="0000"), {"y": 2 * X})


@pytest.mark.parametrize(
    ("proto", "node", "operator"),
    [
        (one_node("NoSuchOp"), "the_node", "NoSuchOp"),
        (one_node("NoSuchOp", domain="com.microsoft"), "", "com.microsoft:NoSuchOp"),
        (one_node("Not"), "the_node", "Not"),
        (one_node("Conv"), "the_node", "Conv"),
        (one_node("Relu", surprise=1), "the_node", "Relu"),
    ],
)
def test_a_model_that_does_not_load_is_refused_with_its_node(
    proto: onnx.ModelProto, node: str, operator: str, tmp_path: Path
) -> None:
    error = refusal(proto, tmp_path)
    assert isinstance(error, LoadRefused)
    (problem,) = error.problems
    assert (problem.get("node"), problem.get("operator")) == (node, operator)
    assert "\n" not in str(problem.get("reason"))


def test_a_refusal_without_a_node_gives_the_reason(tmp_path: Path) -> None:
    proto = tiny()
    proto.graph.node[1].input[0] = "nowhere"
    error = refusal(proto, tmp_path)
    assert isinstance(error, LoadRefused)
    assert_speaks(error, "nowhere")


def test_a_missing_operator_library_is_named(tmp_path: Path) -> None:
    save(one_node("Rare", domain="my.ops"), tmp_path / "net.onnx")
    net = artifact(tmp_path / "net.onnx", custom_ops=(str(tmp_path / "ops.so"),))
    for attempt in (BACKEND.digest, BACKEND.open):
        with pytest.raises(ArtifactError) as caught:
            attempt(net)
        assert_speaks(caught.value, "ops.so")


def test_an_operator_library_that_does_not_load_is_a_backend_error(tmp_path: Path) -> None:
    save(one_node("Rare", domain="my.ops"), tmp_path / "net.onnx")
    (tmp_path / "ops.so").write_bytes(b"no library")
    with pytest.raises(BackendError) as caught:
        BACKEND.open(artifact(tmp_path / "net.onnx", custom_ops=(str(tmp_path / "ops.so"),)))
    assert_speaks(caught.value, "ops.so")


# --- feeds and outputs


def test_dynamic_dimensions_take_the_samples_shape(tmp_path: Path) -> None:
    with BACKEND.open(saved(tiny("rows"), tmp_path)) as session:
        assert session.signature.inputs == (TensorSpec("x", "float32", (None, 3)),)
        for rows in (1, 5):
            x = np.repeat(X, rows, axis=0)
            assert_same(session.infer({"x": x}, sample="0000"), {"y": answer(x)})


def test_all_feeds_that_do_not_fit_are_reported_together_and_none_is_cast(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Add", ["s", "c"], ["y"])]
    names = ("a", "b", "c")
    proto = model(nodes, [value(name, [1, 3]) for name in names], [value("y", [1, 3])])
    feeds = {"a": X.astype(np.float64), "b": X.T, "d": X}
    with BACKEND.open(saved(proto, tmp_path)) as session, pytest.raises(SampleError) as caught:
        session.infer(feeds, sample="rain_017")
    codes = [(problem.code, problem.get("name")) for problem in caught.value.problems]
    assert codes == [("feed-dtype", "a"), ("feed-shape", "b"), ("feed-missing", "c"), ("feed-unknown", "d")]
    assert_speaks(caught.value, "rain_017", "float64", "float32", "(3, 1)", "(1, 3)")


def test_a_feed_of_another_rank_does_not_fit_a_dynamic_input(tmp_path: Path) -> None:
    with BACKEND.open(saved(tiny("rows"), tmp_path)) as session, pytest.raises(SampleError) as caught:
        session.infer({"x": X[0]}, sample="0000")
    assert_speaks(caught.value, "(3,)", "(?, 3)")


def test_a_failure_in_the_middle_of_a_run_names_sample_and_node(tmp_path: Path) -> None:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="head/reshape")
    proto = model([node], [value("x", ["n", 3])], [value("y", None)], initializers={"shape": np.array([2, 3])})
    with BACKEND.open(saved(proto, tmp_path)) as session:
        assert session.infer({"x": np.zeros((2, 3), np.float32)}, sample="0000")["y"].shape == (2, 3)
        with pytest.raises(BackendError) as caught:
            session.infer({"x": np.zeros((5, 3), np.float32)}, sample="0001")
    assert_speaks(caught.value, "0001", "head/reshape", "Reshape")


def test_scalars_keep_their_shape(tmp_path: Path) -> None:
    proto = model([helper.make_node("Neg", ["x"], ["y"])], [value("x", [])], [value("y", [])])
    with BACKEND.open(saved(proto, tmp_path)) as session:
        assert session.signature.outputs[0].shape == ()
        assert session.infer({"x": np.array(2, np.float32)}, sample="0000")["y"] == -2


def test_an_output_whose_rank_is_not_known_has_no_shape(tmp_path: Path) -> None:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    proto = model([node], [value("x", [1, 3]), value("shape", ["r"], TensorProto.INT64)], [value("y", None)])
    with BACKEND.open(saved(proto, tmp_path)) as session:
        assert session.signature.outputs[0].shape is None


def test_outputs_that_numpy_has_no_type_for_are_left_out_with_a_note(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["low"], to=TensorProto.BFLOAT16), helper.make_node("Neg", ["x"], ["y"])]
    outputs = [value("low", [1, 3], TensorProto.BFLOAT16), value("y", [1, 3])]
    with BACKEND.open(saved(model(nodes, [value("x", [1, 3])], outputs), tmp_path)) as session:
        assert [note.get("outputs") for note in session.notes] == [("low",)]
        assert_same(session.infer({"x": X}, sample="0000"), {"y": -X})


def test_a_closed_session_says_so(tmp_path: Path) -> None:
    with BACKEND.open(saved(tiny(), tmp_path)) as session:
        pass
    with pytest.raises(BackendError) as caught:
        session.infer({"x": X}, sample="0000")
    assert_speaks(caught.value, "closed")


# --- taps


def test_taps_may_be_inputs_weights_outputs_and_named_twice(tmp_path: Path) -> None:
    with BACKEND.open(saved(tiny("rows"), tmp_path), ["r", "x", "weight", "y", "r"]) as session:
        made = session.infer({"x": X}, sample="0000")
        shapes = {spec.name: spec.shape for spec in session.signature.outputs}
    assert_same(made, {"y": answer(X), "r": np.maximum(hidden(X), 0), "x": X, "weight": WEIGHT})
    assert shapes == {"y": (None, 2), "r": (None, 2), "x": (None, 3), "weight": (3, 2)}


# --- the step of dequantised outputs


def quantized(*behind: onnx.NodeProto, scale: object = 0.25, constant: str = "initializer") -> onnx.ModelProto:
    """x → Quantize → Dequantize → d → the nodes behind → y."""
    scales = np.asarray(scale, np.float32)
    zeros = np.zeros(scales.shape, np.int8)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1),
        *(behind or (helper.make_node("Identity", ["d"], ["y"]),)),
    ]
    initializers: dict[str, np.ndarray] = {"z": zeros, "shape": np.array([3, 1]), "axes": np.array([0])}
    if constant == "initializer":
        initializers["s"] = scales
    elif constant == "node":
        nodes.insert(0, helper.make_node("Constant", [], ["s"], value=onnx.numpy_helper.from_array(scales)))
    elif constant == "value_float":
        nodes.insert(0, helper.make_node("Constant", [], ["s"], value_float=float(scales)))
    else:
        nodes.insert(0, helper.make_node("ReduceMax", ["x"], ["s"], keepdims=0))
    return model(nodes, [value("x", [1, 3])], [value("y", None)], initializers=initializers)


@pytest.mark.parametrize(
    "behind",
    [
        (),
        (helper.make_node("Reshape", ["d", "shape"], ["y"]),),
        (helper.make_node("Transpose", ["d"], ["t"]), helper.make_node("Squeeze", ["t"], ["y"])),
        (helper.make_node("Flatten", ["d"], ["f"]), helper.make_node("Unsqueeze", ["f", "axes"], ["y"])),
    ],
)
@pytest.mark.parametrize("constant", ["initializer", "node", "value_float"])
def test_the_step_is_the_scale_of_the_dequantise_node(
    behind: tuple[onnx.NodeProto, ...], constant: str, tmp_path: Path
) -> None:
    with BACKEND.open(saved(quantized(*behind, constant=constant), tmp_path)) as session:
        (output,) = session.signature.outputs
    assert output.step == 0.25


@pytest.mark.parametrize(
    "proto",
    [
        tiny(),
        quantized(helper.make_node("Relu", ["d"], ["y"])),
        quantized(scale=[0.25, 0.5, 1.0]),
        quantized(constant="computed"),
    ],
    ids=["no dequantise node", "an operator behind it", "a scale for each channel", "a computed scale"],
)
def test_otherwise_no_step_is_known(proto: onnx.ModelProto, tmp_path: Path) -> None:
    with BACKEND.open(saved(proto, tmp_path)) as session:
        assert session.signature.outputs[0].step is None


def test_a_scale_in_external_data_is_read(tmp_path: Path) -> None:
    net = artifact(save(quantized(), tmp_path / "net.onnx", external="weights.bin"))
    with BACKEND.open(net, ["d"]) as session:
        assert {spec.name: spec.step for spec in session.signature.outputs} == {"y": 0.25, "d": 0.25}
