"""Evidence folders as people hand them over: parts missing, damaged, huge or hostile; words, never tracebacks."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftgate.errors import StorageError
from driftgate.storage.evidence import read_evidence
from support.commandline import Answer, call

CASES = Path(__file__).parents[1] / "cases"
HOSTILE = "../x\x1b[31m::error::\u202e"


def explain(folder: Path) -> dict[str, Any]:
    """What is said as JSON, and that it is said without a word about an internal error."""
    answer = call("explain", folder, "--json")
    assert_in_words(answer)
    document: dict[str, Any] = answer.json
    assert answer.code == {"PASS": 0, "FAIL": 1, "ERROR": 2}[document["verdict"]]
    return document


def assert_in_words(answer: Answer) -> None:
    assert "Traceback" not in answer.out + answer.err
    assert "internal error" not in answer.out + answer.err


def case(name: str, folder: Path, *parts: str) -> Path:
    """Some files of a field case; all but case.json without names."""
    source = CASES / name
    for path in source.iterdir():
        if path.name != "case.json" and (not parts or path.name in parts):
            shutil.copyfile(path, folder / path.name)
    return folder


def save(path: Path, **arrays: NDArray[Any]) -> None:
    np.savez(path, **arrays)  # type: ignore[arg-type]


def codes(document: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in document["findings"]]


def test_every_file_of_the_form_is_read(tmp_path: Path) -> None:
    numbers = {"x": np.arange(6.0).reshape(2, 3)}
    for name in (
        "inputs",
        "inputs_b",
        "outputs_a",
        "outputs_b",
        "layers_a",
        "layers_b",
        "calib",
        "raw",
        "weights_int8",
    ):
        save(tmp_path / f"{name}.npz", **numbers)
    for name in ("y", "uv", "raw_out"):
        (tmp_path / f"{name}.bin").write_bytes(b"\x01\x02\x03")
    documents = {
        "topo": {"order": ["a", "b"], "op": {"a": "Conv"}},
        "quant_params": {"bits": 8, "thresholds": {"a": 127.0, "b": None}, "scales": {"c": 0.5}},
        "board": {
            "input": {"type": "nv12", "height": 2, "width": 4, "stride": 32},
            "outputs": [{"name": "o", "dtype": "int32", "scale": [0.1, 0.2], "quantize_axis": 1, "stride": [8, 4]}],
        },
        "post": {"conf_threshold": 0.25},
        "ablation": {"only_this_tensor_int8_max_abs": {"a": 0.5}},
        "link": {"reference": "onnx", "candidate": "hbm", "kind": "compiled"},
    }
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document), "utf-8")
    (tmp_path / "load_error.txt").write_text("no kernel", "utf-8")
    evidence = read_evidence(tmp_path)
    sets = (evidence.feeds_a, evidence.feeds_b, evidence.outputs_a, evidence.layers_b, evidence.calib, evidence.weights)
    assert all(np.array_equal(tensors["x"], numbers["x"]) for tensors in sets)
    assert set(evidence.buffers) == {"y", "uv", "raw_out"} and evidence.buffers["y"].tolist() == [1, 2, 3]
    assert (evidence.order, evidence.ops) == (("a", "b"), {"a": "Conv"})
    assert evidence.quant is not None and evidence.quant.steps == {"a": 1.0, "c": 0.5}
    assert evidence.quant.unscaled == ("b",)
    assert evidence.board is not None and evidence.board.input is not None and evidence.board.input.stride == 32
    output = evidence.board.output("o")
    assert output is not None and (output.scales, output.axis, output.strides) == ((0.1, 0.2), 1, (8, 4))
    assert (evidence.post, evidence.ablation) == ({"conf_threshold": 0.25}, {"a": 0.5})
    assert (evidence.link.reference, evidence.link.kind, evidence.load_error) == ("onnx", "compiled", "no kernel")
    assert evidence.problems == ()


def test_no_folder_is_said() -> None:
    with pytest.raises(StorageError, match="is no folder"):
        read_evidence(Path("not-there"))
    assert call("explain", "not-there").code == 2


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    document = explain(tmp_path)
    assert (document["verdict"], codes(document)) == ("ERROR", ["incomplete-evidence"])
    assert "nothing of an evidence folder" in document["notes"][0]


def test_case_json_is_never_read(tmp_path: Path) -> None:
    case("s1-bgr-rgb-swap", tmp_path)
    wrong = {"expected": {"verdict": "PASS", "diagnosis": "numeric-noise"}}
    (tmp_path / "case.json").write_text(json.dumps(wrong), "utf-8")
    assert codes(explain(tmp_path))[0] == "input-channel-swap"


def test_outputs_alone_are_enough_for_causes_in_outputs(tmp_path: Path) -> None:
    case("s4-output-nhwc", tmp_path, "outputs_a.npz", "outputs_b.npz")
    document = explain(tmp_path)
    assert document["verdict"] == "FAIL" and codes(document)[0] == "output-layout-nhwc"


def test_models_and_inputs_alone_are_run(tmp_path: Path) -> None:
    case("s1-avgpool-count-include-pad", tmp_path, "inputs.npz", "model_a.onnx", "model_b.onnx")
    assert codes(explain(tmp_path))[0] == "pooling-count-include-pad"


def test_models_without_inputs_say_nothing(tmp_path: Path) -> None:
    case("s1-softmax-axis", tmp_path, "model_a.onnx", "model_b.onnx")
    assert explain(tmp_path)["verdict"] == "ERROR"


def test_one_side_alone_is_an_error(tmp_path: Path) -> None:
    case("s4-output-nhwc", tmp_path, "outputs_a.npz")
    document = explain(tmp_path)
    assert (document["verdict"], codes(document)) == ("ERROR", ["incomplete-evidence"])


def test_equal_outputs_pass_without_a_finding(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).normal(size=(1, 4, 5, 5)).astype(np.float32)
    save(tmp_path / "outputs_a.npz", y=numbers)
    save(tmp_path / "outputs_b.npz", y=numbers)
    document = explain(tmp_path)
    assert (document["verdict"], document["findings"]) == ("PASS", [])


def test_unrelated_outputs_stay_unexplained_and_say_what_was_ruled_out(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    for side in "ab":
        save(tmp_path / f"outputs_{side}.npz", y=random.normal(size=(1, 4, 7, 5)).astype(np.float32))
    document = explain(tmp_path)
    assert (document["verdict"], document["findings"]) == ("FAIL", [])
    assert {"output-layout-nhwc", "missing-sigmoid", "dtype-misread"} <= set(document["ruled_out"])
    shown = call("explain", tmp_path)
    assert "no explanation found" in shown.out and "output-layout-nhwc" in shown.out


def test_other_shapes_fail_in_words(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    save(tmp_path / "outputs_a.npz", y=random.normal(size=(1, 4, 7, 5)))
    save(tmp_path / "outputs_b.npz", y=random.normal(size=(3, 11)))
    assert explain(tmp_path)["verdict"] == "FAIL"


@pytest.mark.parametrize("name", ["board.json", "quant_params.json", "topo.json", "post.json", "link.json"])
@pytest.mark.parametrize(
    "content", ["{", "[]", "null", '{"outputs": 3, "order": {"a": 1}, "input": "x", "scales": []}']
)
def test_broken_json_is_named_and_left_out(tmp_path: Path, name: str, content: str) -> None:
    case("s1-bgr-rgb-swap", tmp_path)
    (tmp_path / name).write_text(content, "utf-8")
    document = explain(tmp_path)
    assert codes(document)[0] == "input-channel-swap"
    assert content.startswith('{"') or any(name in note for note in document["notes"])


def test_a_deeply_nested_document_is_left_out(tmp_path: Path) -> None:
    case("s1-bgr-rgb-swap", tmp_path)
    (tmp_path / "board.json").write_text("[" * 200_000, "utf-8")
    assert codes(explain(tmp_path))[0] == "input-channel-swap"


@pytest.mark.parametrize("name", ["outputs_b.npz", "inputs.npz", "model_b.onnx", "layers_a.npz"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"\x00" * 300])
def test_damaged_files_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    case("s1-nan-fully-masked", tmp_path)
    (tmp_path / name).write_bytes(content)
    assert any(name.partition(".")[0] in note for note in explain(tmp_path)["notes"])


def test_a_tensor_with_damaged_bytes_does_not_hide_the_others(tmp_path: Path) -> None:
    case("s1-bgr-rgb-swap", tmp_path)
    whole = (tmp_path / "outputs_b.npz").read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        member = archive.infolist()[0]
    place = member.header_offset + 30 + len(member.filename) + 40
    (tmp_path / "outputs_b.npz").write_bytes(whole[:place] + bytes(16) + whole[place + 16 :])
    assert explain(tmp_path)["notes"]


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    case("s1-bgr-rgb-swap", tmp_path)
    np.savez(tmp_path / "layers_a.npz", x=np.array([{"a": 1}], dtype=object))
    document = explain(tmp_path)
    assert codes(document)[0] == "input-channel-swap"
    assert any("layers_a.npz" in note and "object" in note for note in document["notes"])


def test_a_huge_tensor_is_not_read(tmp_path: Path) -> None:
    case("s1-bgr-rgb-swap", tmp_path)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)})
    with zipfile.ZipFile(tmp_path / "layers_b.npz", "w") as archive:
        archive.writestr("big.npy", head.getvalue())
    document = explain(tmp_path)
    assert codes(document)[0] == "input-channel-swap"
    assert any("beyond the limit" in note for note in document["notes"])


def test_the_limit_is_that_of_the_folder(tmp_path: Path) -> None:
    save(tmp_path / "outputs_a.npz", a=np.zeros(100), b=np.zeros(100))
    evidence = read_evidence(tmp_path, limit_bytes=1000)
    assert list(evidence.outputs_a) == ["a"] and len(evidence.problems) == 1


def test_hostile_names_reach_no_terminal(tmp_path: Path) -> None:
    numbers = np.random.default_rng(4).normal(size=(1, 3, 6, 5)).astype(np.float32)
    turned = np.ascontiguousarray(numbers.transpose(0, 2, 3, 1)).reshape(numbers.shape)
    save(tmp_path / "outputs_a.npz", **{HOSTILE: numbers})
    save(tmp_path / "outputs_b.npz", **{HOSTILE: turned})
    shown = call("explain", tmp_path)
    assert_in_words(shown)
    assert "output-layout-nhwc" in shown.out
    assert "\x1b" not in shown.out and "\u202e" not in shown.out and "\n::error" not in shown.out


def test_a_model_that_cannot_be_loaded_fails(tmp_path: Path) -> None:
    case("s1-custom-op-missing", tmp_path, "inputs.npz", "model_a.onnx", "model_b.onnx", "outputs_a.npz")
    document = explain(tmp_path)
    assert (document["verdict"], codes(document)[0]) == ("FAIL", "custom-op-missing")
    assert any("MMCVModulatedDeformConv2d" in subject for subject in document["findings"][0]["subjects"])


def test_numbers_that_are_not_finite_are_valid_json(tmp_path: Path) -> None:
    case("s1-nan-fully-masked", tmp_path)
    text = call("explain", tmp_path, "--json").out
    assert "NaN" not in text.replace('"NaN', "") and "Infinity" not in text


def test_without_time_nothing_is_claimed(tmp_path: Path) -> None:
    case("s1-softmax-axis", tmp_path)
    answer = call("explain", tmp_path, "--json", "--seconds", "0")
    assert answer.json["verdict"] == "FAIL" and answer.json["findings"] == []
    assert any("time for experiments" in note for note in answer.json["notes"])


def test_the_plain_text_says_who_acts_and_what_to_leave_alone(tmp_path: Path) -> None:
    shown = call("explain", case("s2-gemm-transpose-fusion", tmp_path)).out
    assert shown.startswith("FAIL graph-fusion-error (confirmed)")
    assert "to be done by: the vendor" in shown and "do not touch: calibration data, scales, QAT" in shown
    assert "before: " in shown and "after: " in shown and "floor: " in shown
