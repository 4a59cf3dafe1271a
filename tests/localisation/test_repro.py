"""A minimal repro: small, complete, fed with what the reference has, and it shows the same error by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort  # type: ignore[import-untyped]
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from driftgate.domain.investigations import Investigation, NodeError
from driftgate.errors import BackendError
from driftgate.judgement.nodes import first_divergence
from driftgate.localisation.investigate import investigate
from driftgate.localisation.repro import Repro, write_repro
from driftgate.localisation.subject import Subject
from support.models import model, save, value
from support.nets import residual
from support.rewriting import copied, give
from support.sides import Feeds, side

Array = NDArray[Any]


def spoilt(made: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model with one kernel of a convolution turned upside down."""
    other = copied(made)
    node = next(node for node in other.graph.node if node.name == name)
    weight = numpy_helper.to_array(next(t for t in other.graph.initializer if t.name == node.input[1])).copy()
    weight[2] = weight[2, :, ::-1, ::-1] * 0.5
    give(other, node, 1, weight)
    return other


def diverging(a: Subject, b: Subject, feeds: Feeds, outputs: Mapping[str, str]) -> tuple[Investigation, NodeError]:
    found = investigate("a..b", a, b, tuple(feeds), outputs=outputs)
    first = first_divergence(found.nodes)
    assert first is not None
    return found, first


def run(path: Path, feeds: Mapping[str, Array]) -> dict[str, Array]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, dict(feeds)), strict=True))


def read(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def rms(a: Array, b: Array) -> float:
    return float(np.sqrt(np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2)))


def convolutions(path: Path) -> list[str]:
    return [node.name for node in onnx.load(path).graph.node if node.op_type == "Conv"]


def test_the_references_part_may_begin_at_other_tensors_than_the_candidates(tmp_path: Path) -> None:
    """The reference multiplies two tensors, the candidate has one operator for it and the second only as an output."""
    shape, gain = [1, 8, 6, 6], np.float32(1.5)
    hard = helper.make_node("HardSigmoid", ["h"], ["gate"], alpha=1 / 6, beta=0.5)
    before = helper.make_node("Tanh", ["x"], ["h"])
    plain = [before, hard, helper.make_node("Mul", ["h", "gate"], ["y"])]
    other = [
        before,
        hard,
        helper.make_node("HardSwish", ["h"], ["swish"]),
        helper.make_node("Mul", ["swish", "k"], ["y"]),
    ]
    outputs = [value("y", shape), value("gate", shape)]
    feeds = {"0": {"x": np.random.default_rng(1).normal(size=shape).astype(np.float32)}}
    a = side("a", model(plain, [value("x", shape)], outputs), feeds, tmp_path)
    b = side("b", model(other, [value("x", shape)], outputs, initializers={"k": gain}), feeds, tmp_path)
    found, first = diverging(a, b, feeds, {"y": "y", "gate": "gate"})
    assert first.pair.tensor_a == "y"
    made = write_repro(tmp_path / "repro", a, b, found, first, "0")
    parts = {path.name: path for path in made.files}
    assert {i.name for i in onnx.load(parts["model_a.onnx"]).graph.input} == {"h", "gate"}
    assert {i.name for i in onnx.load(parts["repro.onnx"]).graph.input} == {"h"}


@pytest.fixture
def float_pair(tmp_path: Path) -> tuple[Path, Repro, Investigation, NodeError]:
    network = residual()
    victim = [node.name for node in network.model.graph.node if node.op_type == "Conv"][3]
    a = side("a", network.model, network.feeds, tmp_path)
    b = side("b", spoilt(network.model, victim), network.feeds, tmp_path)
    names = {output.name: output.name for output in network.model.graph.output}
    found, first = diverging(a, b, network.feeds, names)
    assert first.region[0] == victim
    return tmp_path / "repro", write_repro(tmp_path / "repro", a, b, found, first, "0"), found, first


def test_the_folder_is_an_evidence_folder(float_pair: tuple[Path, Repro, Investigation, NodeError]) -> None:
    folder, repro, _, _ = float_pair
    expected = {"repro.onnx", "model_a.onnx", "model_b.onnx", "inputs.npz", "outputs_a.npz", "outputs_b.npz"}
    assert {path.name for path in repro.files} == expected == {path.name for path in folder.iterdir()}
    assert (folder / "repro.onnx").read_bytes() == (folder / "model_b.onnx").read_bytes()


def test_it_holds_one_convolution_and_its_weights(float_pair: tuple[Path, Repro, Investigation, NodeError]) -> None:
    folder, _, _, first = float_pair
    assert convolutions(folder / "repro.onnx") == [first.region[0]]
    for name in ("model_a.onnx", "model_b.onnx"):
        onnx.checker.check_model(onnx.load(folder / name), full_check=True)


def test_it_shows_the_error_without_driftgate(float_pair: tuple[Path, Repro, Investigation, NodeError]) -> None:
    folder, repro, _, first = float_pair
    feeds = read(folder / "inputs.npz")
    reference, candidate = run(folder / "model_a.onnx", feeds), run(folder / "model_b.onnx", feeds)
    assert np.array_equal(reference[first.pair.tensor_a], read(folder / "outputs_a.npz")[first.pair.tensor_a])
    assert np.array_equal(candidate[first.pair.tensor_b], read(folder / "outputs_b.npz")[first.pair.tensor_b])
    error = rms(reference[first.pair.tensor_a], candidate[first.pair.tensor_b])
    assert error == pytest.approx(repro.error)
    assert first.own is not None
    assert error == pytest.approx(np.sqrt(first.own.sum_dd[0] / first.own.count[0]), rel=0.5)


def test_the_same_files_come_out_again(
    float_pair: tuple[Path, Repro, Investigation, NodeError], tmp_path: Path
) -> None:
    folder, _, found, first = float_pair
    network = residual()
    a, b = (side(s, tmp_path / f"{s}.onnx", network.feeds, tmp_path) for s in "ab")
    write_repro(tmp_path / "again", a, b, found, first, "0")
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "again").iterdir()
    }


def chain(scale: float | None = None, *, factor: float = 1.0) -> onnx.ModelProto:
    """x → Conv → Relu → Conv → y; quantised in between where a scale is given."""
    random = np.random.default_rng(1)
    weights: dict[str, Array] = {
        "w0": random.normal(0, 0.3, (6, 3, 3, 3)).astype(np.float32),
        "w1": random.normal(0, 0.3, (6, 6, 3, 3)).astype(np.float32) * np.float32(factor),
    }
    between = "r"
    nodes = [helper.make_node("Conv", ["x", "w0"], ["c"], name="first"), helper.make_node("Relu", ["c"], ["r"])]
    if scale is not None:
        weights |= {"scale": np.float32(scale), "zero": np.array(-128, np.int8)}
        nodes.append(helper.make_node("QuantizeLinear", ["r", "scale", "zero"], ["r_q"]))
        nodes.append(helper.make_node("DequantizeLinear", ["r_q", "scale", "zero"], ["r_dq"]))
        between = "r_dq"
    nodes.append(helper.make_node("Conv", [between, "w1"], ["y"], name="second"))
    return model(nodes, [value("x", [1, 3, 20, 20])], [value("y", [1, 6, 16, 16])], initializers=weights)


PICTURES: Feeds = {
    str(n): {"x": np.random.default_rng(n).normal(size=(1, 3, 20, 20)).astype(np.float32)} for n in (1, 2)
}


def test_sides_that_take_other_numbers_have_feeds_of_their_own(tmp_path: Path) -> None:
    a = side("a", chain(), PICTURES, tmp_path)
    b = side("b", chain(0.05, factor=1.2), PICTURES, tmp_path)
    found, first = diverging(a, b, PICTURES, {"y": "y"})
    repro = write_repro(tmp_path / "repro", a, b, found, first, "1")
    assert "inputs_b.npz" in {path.name for path in repro.files}
    made = run(tmp_path / "repro" / "repro.onnx", read(tmp_path / "repro" / "inputs_b.npz"))
    assert rms(read(tmp_path / "repro" / "outputs_a.npz")["y"], made["y"]) == pytest.approx(repro.error)


def test_an_input_whose_range_is_too_narrow_is_shown_by_its_quantiser_alone(tmp_path: Path) -> None:
    narrow = copied(chain())
    narrow.graph.initializer.extend(
        [numpy_helper.from_array(np.float32(0.004), "step"), numpy_helper.from_array(np.array(0, np.int8), "middle")]
    )
    narrow.graph.node[0].input[0] = "x_dq"
    narrow.graph.node.insert(0, helper.make_node("DequantizeLinear", ["x_q", "step", "middle"], ["x_dq"]))
    narrow.graph.node.insert(0, helper.make_node("QuantizeLinear", ["x", "step", "middle"], ["x_q"]))
    a, b = side("a", chain(), PICTURES, tmp_path), side("b", narrow, PICTURES, tmp_path)
    found, first = diverging(a, b, PICTURES, {"y": "y"})
    assert first.pair.tensor_b == "x_dq"
    repro = write_repro(tmp_path / "repro", a, b, found, first, "1")
    assert {path.name for path in repro.files} == {"repro.onnx", "inputs.npz", "outputs_a.npz", "outputs_b.npz"}
    made = run(tmp_path / "repro" / "repro.onnx", read(tmp_path / "repro" / "inputs.npz"))
    assert np.array_equal(read(tmp_path / "repro" / "outputs_a.npz")["x"], PICTURES["1"]["x"])
    assert rms(PICTURES["1"]["x"], made["x_dq"]) == pytest.approx(repro.error)


def test_weights_beside_the_model_are_taken_in(tmp_path: Path) -> None:
    path = save(chain(factor=1.3), tmp_path / "b.onnx", external="weights.bin")
    a, b = side("a", chain(), PICTURES, tmp_path), side("b", path, PICTURES, tmp_path)
    found, first = diverging(a, b, PICTURES, {"y": "y"})
    write_repro(tmp_path / "repro", a, b, found, first, "2")
    (tmp_path / "weights.bin").unlink()
    made = run(tmp_path / "repro" / "repro.onnx", read(tmp_path / "repro" / "inputs.npz"))
    assert np.array_equal(made["y"], read(tmp_path / "repro" / "outputs_b.npz")["y"])


def test_a_candidate_that_cannot_be_cut_has_no_repro(tmp_path: Path) -> None:
    a, b = side("a", chain(), PICTURES, tmp_path), side("b", chain(factor=2), PICTURES, tmp_path)
    found, first = diverging(a, b, PICTURES, {"y": "y"})
    with pytest.raises(BackendError) as caught:
        write_repro(tmp_path / "repro", a, replace(b, parts=None), found, first, "1")
    assert caught.value.problems[0].code == "repro-uncut"
    assert not (tmp_path / "repro").exists()
