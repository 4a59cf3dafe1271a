"""Kinds of causes on random networks with random parameters: a rule knows the kind, not the case."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.diagnosis.engine import Diagnosis, diagnose
from driftgate.localisation.subject import Parts
from driftgate.sessions import Artifact
from driftgate.storage.evidence import read_evidence
from support.models import model, value

Array = NDArray[Any]
Random = np.random.Generator
SEEDS = range(3)
MEAN, STD = (np.array(v, np.float32).reshape(1, 3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


def image(random: Random, height: int, width: int, count: int = 1) -> Array:
    """Smooth pictures (count, 3, height, width), 0 … 1."""
    y, x = np.mgrid[0:height, 0:width]
    a, b, c, d = (random.uniform(0.2, 1.0, (count, 3, 1, 1)) for _ in range(4))
    found = 0.5 + 0.25 * np.sin(x * a / 3 + 9 * b) + 0.2 * np.cos(y * c / 3 + 7 * d)
    clipped: Array = np.clip(found, 0, 1).astype(np.float32)
    return clipped


def weights(random: Random, *shape: int) -> Array:
    return random.normal(0, 0.4, shape).astype(np.float32)


def network(random: Random, *middle: onnx.NodeProto, constants: Mapping[str, Array] | None = None) -> onnx.ModelProto:
    """x → convolution c → what is given, to t → convolution y; weights of the random state."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], name="first", pads=[1] * 4),
        *(middle or (helper.make_node("Relu", ["c"], ["t"], name="middle"),)),
        helper.make_node("Conv", ["t", "w2"], ["y"], name="last"),
    ]
    held = {"w1": weights(random, 6, 3, 3, 3), "w2": weights(random, 4, 6, 1, 1), **(constants or {})}
    return model(nodes, [value("x", ["N", 3, "H", "W"])], [value("y", ["N", 4, None, None])], initializers=held)


class Folder:
    """An evidence folder that is being made."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def arrays(self, name: str, **arrays: Array) -> None:
        np.savez(self.path / f"{name}.npz", **arrays)  # type: ignore[arg-type]

    def document(self, name: str, document: object) -> None:
        (self.path / f"{name}.json").write_text(json.dumps(document), "utf-8")

    def model(self, name: str, made: onnx.ModelProto) -> None:
        onnx.save(made, str(self.path / f"{name}.onnx"))

    def run(self, made: onnx.ModelProto, **feeds: Array) -> dict[str, Array]:
        path = self.path / "run.onnx"
        onnx.save(made, str(path))
        with OnnxRuntimeBackend().open(Artifact("run", "onnxruntime", path)) as session:
            return session.infer(feeds, sample="0")

    def diagnosis(self) -> Diagnosis:
        return diagnose(read_evidence(self.path), parts)


def parts(path: Path) -> Parts:
    return OnnxRuntimeBackend().take_apart(Artifact(path.stem, "onnxruntime", path))


def first(found: Diagnosis) -> tuple[str, bool]:
    assert found.findings, found
    return found.findings[0].code, found.findings[0].confirmed


#: code → (what the network rightly eats, what the candidate was fed)
INPUTS: Mapping[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "input-channel-swap": (lambda x: x, lambda x: x[:, ::-1]),
    "input-scale-255": (lambda x: x, lambda x: x * 255),
    "layout-nhwc": (lambda x: x, lambda x: np.ascontiguousarray(x.transpose(0, 2, 3, 1)).reshape(x.shape)),
    "noncontiguous-input": (lambda x: x, lambda x: np.ascontiguousarray(x.swapaxes(2, 3)).reshape(x.shape)),
    "missing-mean-scale": (lambda x: (x - MEAN) / STD, lambda x: x * STD + MEAN),
    "input-offset-128": (lambda x: np.rint(x * 255) - 128, lambda x: x + 128),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("told", [True, False], ids=["inputs-told", "inputs-unknown"])
@pytest.mark.parametrize("code", INPUTS)
def test_inputs(code: str, told: bool, seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    right, wrong = INPUTS[code]
    height, width = (int(n) for n in random.permutation(np.arange(9, 20))[:2])
    net, fed = network(random), right(image(random, height, width)).astype(np.float32)
    other = np.ascontiguousarray(wrong(fed), np.float32)
    folder = Folder(tmp_path)
    folder.model("model_a", net)
    folder.arrays("inputs", x=fed)
    folder.arrays("outputs_a", **folder.run(net, x=fed))
    folder.arrays("outputs_b", **folder.run(net, x=other))
    if told:
        folder.arrays("inputs_b", x=other)
    assert first(folder.diagnosis()) == (code, True)


def padded(y: Array, random: Random) -> Array:
    rows = np.zeros((*y.shape[:3], y.shape[3] + int(random.integers(1, 20))), np.float32)
    rows[..., : y.shape[3]] = y
    return rows.reshape(-1)[: y.size].reshape(y.shape)


def halves(y: Array, random: Random) -> Array:
    found = np.zeros(y.size, np.float32)
    read = np.frombuffer(y.astype(np.float16).tobytes(), np.float32)
    found[: len(read)] = read
    return found.reshape(y.shape)


def wrapped(y: Array, random: Random) -> Array:
    step = float(np.abs(y).max()) / 127 * random.uniform(0.4, 0.8)
    return (((np.rint(y / step) + 128) % 256 - 128) * step).astype(np.float32)


#: code → what became of the output
OUTPUTS: Mapping[str, Callable[[Array, Random], Array]] = {
    "output-layout-nhwc": lambda y, random: np.ascontiguousarray(y.transpose(0, 2, 3, 1)).reshape(y.shape),
    "comparator-layout": lambda y, random: np.ascontiguousarray(y.transpose(0, 2, 3, 1)),
    "output-stride-padding": padded,
    "dtype-misread": halves,
    "int8-wraparound": wrapped,
    "numeric-noise": lambda y, random: (y * (1 + random.normal(0, 3e-7, y.shape))).astype(np.float32),
    "nan-output": lambda y, random: np.where(y > np.quantile(y, 0.9), np.float32("nan"), y),
    "constant-output": lambda y, random: np.full_like(y, 0.25),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("code", OUTPUTS)
def test_outputs(code: str, seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    y = random.normal(size=(1, 4, *(int(n) for n in random.permutation(np.arange(8, 16))[:2]))).astype(np.float32)
    folder = Folder(tmp_path)
    folder.arrays("outputs_a", y=y)
    folder.arrays("outputs_b", y=OUTPUTS[code](y, random))
    assert first(folder.diagnosis()) == (code, True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("code", ["tail-int32-undequantized", "double-dequantization"])
def test_scales_of_the_board(code: str, channels: int, seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    scales = 10 ** random.uniform(-4.5, -2.5, channels)
    around = scales.reshape(1, -1, 1, 1)
    y = random.normal(size=(1, 4, 7, 9)).astype(np.float32)
    integers = np.rint(y / around)
    folder = Folder(tmp_path)
    folder.arrays("outputs_a", y=y)
    twice = (integers * around * around).astype(np.float32)
    folder.arrays("outputs_b", y=integers.astype(np.int32) if code.startswith("tail") else twice)
    folder.document("board", {"outputs": [{"name": "y", "scale": scales.tolist(), "quantize_axis": 1}]})
    assert first(folder.diagnosis()) == (code, True)


def node(operator: str, name: str = "middle", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, ["c"], ["t"], name=name, **attributes)


#: code → the same node twice, with another meaning
NODES: Mapping[str, tuple[onnx.NodeProto, onnx.NodeProto]] = {
    "pooling-count-include-pad": (
        node("AveragePool", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
        node("AveragePool", kernel_shape=[3, 3], pads=[1] * 4),
    ),
    "pooling-ceil-mode": (
        node("MaxPool", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        node("MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
    ),
    "softmax-axis": (node("Softmax", axis=1), node("Softmax", axis=3)),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("code", NODES)
def test_nodes(code: str, exchanged: bool, seed: int, tmp_path: Path) -> None:
    pair = NODES[code][::-1] if exchanged else NODES[code]
    folder = Folder(tmp_path)
    fed = image(np.random.default_rng(seed + 100), 9, 11)
    folder.arrays("inputs", x=fed)
    for side, middle in zip("ab", pair, strict=True):
        net = network(np.random.default_rng(seed), middle)
        folder.model(f"model_{side}", net)
        folder.arrays(f"outputs_{side}", **folder.run(net, x=fed))
    found = folder.diagnosis()
    assert first(found) == (code, True)
    assert "middle" in found.findings[0].subjects


def rounded(tensor: str, step: float) -> tuple[list[onnx.NodeProto], dict[str, Array]]:
    """A quantiser and its dequantiser behind a tensor: `<tensor>` becomes `<tensor>_dq`."""
    names = [f"{tensor}_scale", f"{tensor}_zero"]
    nodes = [
        helper.make_node("QuantizeLinear", [tensor, *names], [f"{tensor}_q"], name=f"{tensor}_quantise"),
        helper.make_node("DequantizeLinear", [f"{tensor}_q", *names], [f"{tensor}_dq"], name=f"{tensor}_dequantise"),
    ]
    return nodes, {names[0]: np.array(step, np.float32), names[1]: np.array(0, np.int8)}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("code", "factor"),
    [("quantization-noise", 1.0), ("calibration-not-representative", 0.25), ("calibration-preprocess-mismatch", 255.0)],
)
def test_calibration(code: str, factor: float, seed: int, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    random = np.random.default_rng(seed + 50)
    fed, calibration = image(random, 12, 10, 2), image(random, 12, 10, 6)
    calibration = np.concatenate([calibration, fed]) * np.float32(factor)
    relu = helper.make_node("Relu", ["c"], ["t"], name="middle")
    float_net = network(np.random.default_rng(seed), relu)
    tapped = onnx.ModelProto()
    tapped.CopyFrom(float_net)
    tapped.graph.output.append(helper.make_empty_tensor_value_info("t"))
    largest = float(folder.run(tapped, x=calibration)["t"].max())
    nodes, constants = rounded("t", largest / 127)
    integer_net = network(np.random.default_rng(seed), relu, *nodes, constants=constants)
    integer_net.graph.node[-1].input[0] = "t_dq"
    for side, net in (("a", float_net), ("b", integer_net)):
        folder.model(f"model_{side}", net)
        folder.arrays(f"outputs_{side}", **folder.run(net, x=fed))
    folder.arrays("inputs", x=fed)
    folder.arrays("calib", x=calibration)
    assert first(folder.diagnosis()) == (code, True)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_causes_hold_together(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    net, fed = network(random), image(random, 12, 9)
    other = np.ascontiguousarray(fed[:, ::-1] * np.float32(255))
    folder = Folder(tmp_path)
    folder.model("model_a", net)
    folder.arrays("inputs", x=fed)
    folder.arrays("inputs_b", x=other)
    folder.arrays("outputs_a", **folder.run(net, x=fed))
    folder.arrays("outputs_b", **folder.run(net, x=other))
    assert {"input-channel-swap", "input-scale-255"} <= {finding.code for finding in folder.diagnosis().findings}


@pytest.mark.parametrize("seed", SEEDS)
def test_an_unknown_cause_stays_unknown(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    folder = Folder(tmp_path)
    y = random.normal(size=(1, 5, 7, 9)).astype(np.float32)
    folder.arrays("outputs_a", y=y)
    folder.arrays("outputs_b", y=(y + np.abs(y) ** 1.5 * random.normal(size=y.shape)).astype(np.float32))
    found = folder.diagnosis()
    assert (found.verdict.value, found.findings) == ("FAIL", ())
    assert found.ruled_out
