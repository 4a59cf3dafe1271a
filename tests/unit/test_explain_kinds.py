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
from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.engine import Diagnosis, diagnose
from driftgate.diagnosis.graphs.computed_constants import find_computed_constants
from driftgate.diagnosis.graphs.rules import RULES as GRAPH_RULES
from driftgate.diagnosis.pictures import CONVERSIONS, Conversion, pixels, planes
from driftgate.localisation.subject import Parts
from driftgate.sessions import Artifact
from driftgate.storage.evidence import read_evidence
from support.models import model, value
from support.rewriting import halved, renamed

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


def bytes_of(tensor: str, low: float, high: float) -> tuple[list[onnx.NodeProto], dict[str, Array]]:
    """As `rounded`, in uint8 from `low` to `high`, with the zero point that this takes."""
    nodes, _ = rounded(tensor, 1.0)
    step = (high - low) / 255
    return nodes, {
        f"{tensor}_scale": np.array(step, np.float32),
        f"{tensor}_zero": np.array(round(-low / step), np.uint8),
    }


def cut_off_in_pairs(codes: Array, levels: Array, order: tuple[int, ...]) -> Array:
    """Sums of a 3 × 3 convolution of uint8 codes (N, C, H, W), rows and columns at the edge left out; neighbours in
    the given order of (channel, row, column) are added in 16 bits."""
    windows = np.lib.stride_tricks.sliding_window_view(codes, (3, 3), (2, 3)).transpose(0, 2, 3, 1, 4, 5)
    axes = [axis + 2 for axis in order]
    come = windows.transpose(0, 1, 2, *axes).reshape(*windows.shape[:3], -1)
    weight = levels.transpose(0, *(axis - 2 for axis in axes)).reshape(len(levels), -1)
    products = come[..., None, :].astype(np.float64) * weight
    products = np.pad(products, ((0, 0),) * 4 + ((0, products.shape[-1] % 2),))
    found: Array = np.clip(products[..., 0::2] + products[..., 1::2], -32768, 32767).sum(-1).transpose(0, 3, 1, 2)
    return found


@pytest.mark.parametrize("low", [0.0, -0.5])
@pytest.mark.parametrize("order", [(1, 2, 3), (2, 3, 1)], ids=["channels-first", "channels-last"])
@pytest.mark.parametrize("seed", SEEDS)
def test_sums_of_pairs_cut_off(seed: int, order: tuple[int, ...], low: float, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    x = random.uniform(low, 1, (2, 5, 7, 8)).astype(np.float32)
    x[random.random(x.shape) < 0.6] = 1.0
    weight = random.normal(0.2, 0.2, (4, 5, 3, 3)).astype(np.float32)
    scale = float(np.abs(weight).max()) / 127
    levels = np.rint(weight / scale).astype(np.int8)
    pair, constants = bytes_of("x", low, 1.0)
    ends = [value("x", ["N", 5, "H", "W"])], [value("y", ["N", 4, None, None])]
    stored = {**constants, "w_q": levels, "w_s": np.array(scale, np.float32)}
    weights_back = helper.make_node("DequantizeLinear", ["w_q", "w_s"], ["w"], name="w_dequantise")
    float_net = model([helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], *ends, initializers={"w": weight})
    nodes = [*pair, weights_back, helper.make_node("Conv", ["x_dq", "w"], ["y"], name="conv")]
    integer_net = model(nodes, *ends, initializers=stored)
    step, zero = float(constants["x_scale"]), int(constants["x_zero"])
    codes = np.clip(np.rint(x / step) + zero, 0, 255)
    sums = cut_off_in_pairs(codes, levels, order) - zero * levels.sum((1, 2, 3), dtype=np.int64).reshape(1, -1, 1, 1)
    folder = Folder(tmp_path)
    folder.model("model_a", float_net)
    folder.model("model_b", integer_net)
    folder.arrays("inputs", x=x)
    folder.arrays("outputs_a", **folder.run(float_net, x=x))
    folder.arrays("outputs_b", y=(sums * step * scale).astype(np.float32))
    found = folder.diagnosis()
    assert first(found) == ("accumulator-saturation", True)
    assert "sensitive-nodes" not in {finding.code for finding in found.findings}


STEP = 0.008


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("has_model", [True, False])
def test_integers_that_wrap_where_the_reference_stops(has_model: bool, seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    fed = image(random, 11, 13, 2)
    pair, constants = rounded("z", STEP)
    net = network(random)
    net.graph.node[-1].output[0] = "z"
    net.graph.node.extend(pair)
    net.graph.node[-1].output[0] = "y"
    for name, array in constants.items():
        net.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    whole = onnx.ModelProto()
    whole.CopyFrom(net)
    whole.graph.output.append(helper.make_empty_tensor_value_info("z"))
    found = folder_of_wrapped(Folder(tmp_path), net, whole, fed, has_model=has_model).diagnosis()
    assert first(found) == ("int8-wraparound", True)


def folder_of_wrapped(
    folder: Folder, net: onnx.ModelProto, whole: onnx.ModelProto, fed: Array, *, has_model: bool
) -> Folder:
    """What the network gives, whose output saturates, against the same wrapped at 256 steps."""
    z = folder.run(whole, x=fed)["z"]
    z *= 1.0 if has_model else 1.4 * 127 * STEP / float(np.abs(z).max())
    codes = np.rint(z / np.float32(STEP))
    saturated = np.clip(codes, -128, 127) * np.float32(STEP)
    folder.arrays("inputs", x=fed)
    folder.arrays("outputs_a", y=folder.run(net, x=fed)["y"] if has_model else saturated.astype(np.float32))
    folder.arrays("outputs_b", y=(codes.astype(np.int32).astype(np.int8) * np.float32(STEP)).astype(np.float32))
    folder.document("board", {"outputs": [{"name": "y", "scale": STEP}]})
    if has_model:
        folder.model("model_a", net)
    return folder


def masked_network(random: Random, *after: onnx.NodeProto, constants: Mapping[str, Array]) -> onnx.ModelProto:
    """x → scores s, a mask added to m, what is given, softmax of t over the row → y."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"], name="scores"),
        helper.make_node("Add", ["s", "mask"], ["m"], name="masking"),
        *(after or (helper.make_node("Identity", ["m"], ["t"], name="middle"),)),
        helper.make_node("Softmax", ["t"], ["y"], name="softmax", axis=-1),
    ]
    ends = [value("x", ["N", 6, 8])], [value("y", ["N", 6, 12])]
    held = {"w": random.normal(0, 0.5, (8, 12)).astype(np.float32), **constants}
    return model(nodes, *ends, initializers=held)


@pytest.mark.parametrize("kept", [2, 9])
@pytest.mark.parametrize("low", [-1e4, -65504.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_mask_stretches_a_range(seed: int, low: float, kept: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(0, 1, (3, 6, 8)).astype(np.float32)
    mask = np.zeros((1, 12), np.float32)
    mask[0, kept:] = low
    pair, constants = rounded("m", -low / 127)
    pair[-1].output[0] = "t"
    folder = Folder(tmp_path)
    folder.arrays("inputs", x=x)
    for side, after, more in (("a", [], {}), ("b", pair, constants)):
        net = masked_network(np.random.default_rng(seed), *after, constants={"mask": mask, **more})
        folder.model(f"model_{side}", net)
        folder.arrays(f"outputs_{side}", **folder.run(net, x=x))
    assert first(folder.diagnosis()) == ("outlier-range", True)


#: code → (the step in the graph against the right one, what the side file says of it: a factor, or nothing)
STEPS: Mapping[str, tuple[float, float | None]] = {
    "quant-params-mismatch": (0.25, 1.0),
    "quant-params-missing": (30.0, None),
    "calibration-not-representative": (0.25, 0.25),
    "outlier-range": (30.0, 30.0),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("centred", [False, True], ids=["relu", "with a zero point"])
@pytest.mark.parametrize("code", STEPS)
def test_steps_of_one_tensor(code: str, centred: bool, seed: int, tmp_path: Path) -> None:
    factor, told = STEPS[code]
    fed = image(np.random.default_rng(seed + 60), 12, 10, 2)
    middle = helper.make_node("LeakyRelu" if centred else "Relu", ["c"], ["t"], name="middle")
    float_net = network(np.random.default_rng(seed), middle)
    tapped = onnx.ModelProto()
    tapped.CopyFrom(float_net)
    tapped.graph.output.append(helper.make_empty_tensor_value_info("t"))
    folder = Folder(tmp_path)
    t = folder.run(tapped, x=fed)["t"]
    nodes, constants = bytes_of("t", min(float(t.min()), 0.0) * factor, float(t.max()) * factor)
    inner, more = rounded("x", float(np.abs(fed).max()) / 127)
    net = network(np.random.default_rng(seed), middle, *nodes, constants={**constants, **more})
    net.graph.node[-1].input[0] = "t_dq"
    net.graph.node[0].input[0] = "x_dq"
    kept = [*inner, *net.graph.node]
    del net.graph.node[:]
    net.graph.node.extend(kept)
    for side, one in (("a", float_net), ("b", net)):
        folder.model(f"model_{side}", one)
        folder.arrays(f"outputs_{side}", **folder.run(one, x=fed))
    folder.arrays("inputs", x=fed)
    scales = {"x": float(more["x_scale"])}
    if told is not None:
        scales["t"] = float(constants["t_scale"]) / factor * told
    folder.document("quant_params", {"scales": scales})
    assert first(folder.diagnosis()) == (code, True)


def test_a_dump_that_tells_its_layout_is_no_fault(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    y = random.normal(size=(2, 4, 5, 7)).astype(np.float32)
    folder = Folder(tmp_path)
    folder.arrays("inputs", x=random.normal(size=(2, 3)).astype(np.float32))
    folder.arrays("outputs_a", y=y)
    folder.arrays("outputs_b", y=y.transpose(0, 2, 3, 1).reshape(2, -1))
    folder.document("board", {"outputs": [{"name": "y", "valid_shape": [2, 5, 7, 4]}]})
    assert folder.diagnosis().verdict.value == "PASS"


def test_a_layout_is_seen_through_the_noise_of_an_unknown_candidate(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    y = random.normal(size=(2, 4, 5, 7)).astype(np.float32)
    noisy = y + random.normal(0, 0.05, y.shape).astype(np.float32)
    folder = Folder(tmp_path)
    folder.arrays("outputs_a", y=y)
    folder.arrays("outputs_b", y=np.ascontiguousarray(noisy.transpose(0, 2, 3, 1)).reshape(y.shape))
    assert first(folder.diagnosis()) == ("output-layout-nhwc", True)


def test_samples_that_agree_by_chance_are_no_padding(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    y = random.normal(size=(4, 7)).astype(np.float32)
    other = random.normal(size=(4, 7)).astype(np.float32)
    other[0] = y[0]
    folder = Folder(tmp_path)
    folder.arrays("outputs_a", y=y)
    folder.arrays("outputs_b", y=other)
    assert "output-stride-padding" not in {finding.code for finding in folder.diagnosis().findings}


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("form", ["float", "bytes", "signed"])
@pytest.mark.parametrize("conversion", CONVERSIONS, ids=lambda conversion: conversion.name)
def test_nv12_of_every_conversion(conversion: Conversion, form: str, exchanged: bool, tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    picture = np.rint(image(random, 14, 18).astype(np.float64) * 255)
    picture[:, :, ::3] = np.rint(255 - picture[:, :, ::3] * random.uniform(0.3, 1.0, (1, 3, 1, 1)))
    luma, chroma = planes(picture, conversion)
    sent = chroma[..., ::-1] if exchanged else chroma
    forms: Mapping[str, Callable[[Array], Array]] = {
        "float": lambda rgb: (rgb / 255).astype(np.float32),
        "bytes": lambda rgb: np.rint(rgb).astype(np.uint8),
        "signed": lambda rgb: (np.rint(rgb) - 128).astype(np.int8),
    }
    fed, other = forms[form](picture), forms[form](pixels(luma, sent, conversion))
    folder, net = Folder(tmp_path), network(random)
    folder.model("model_a", net)
    folder.model("model_b", net)
    for side, feed in (("a", fed), ("b", other)):
        folder.arrays(f"outputs_{side}", **folder.run(net, x=feed.astype(np.float32)))
    folder.arrays("inputs", x=fed)
    folder.arrays("inputs_b", x=other)
    (tmp_path / "y.bin").write_bytes(luma.astype(np.uint8).tobytes())
    (tmp_path / "uv.bin").write_bytes(sent.astype(np.uint8).tobytes())
    folder.document("board", {"input": {"type": "nv12", "height": 14, "width": 18, "stride": 18}})
    found = folder.diagnosis()
    assert first(found) == ("nv12-uv-order" if exchanged else "nv12-conversion-loss", True)
    assert "input-mismatch" not in {finding.code for finding in found.findings}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1)], ids=["planes", "pixels"])
def test_a_feature_map_in_the_planes_of_nv12(order: tuple[int, ...], tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    picture = np.rint(image(random, 12, 16) * 255)
    content = picture.transpose(order).astype(np.uint8).reshape(-1)
    folder, net = Folder(tmp_path), network(random)
    fed = (picture / 255).astype(np.float32)
    folder.model("model_a", net)
    folder.arrays("inputs", x=fed)
    folder.arrays("outputs_a", **folder.run(net, x=fed))
    folder.arrays("outputs_b", **folder.run(net, x=fed[:, :, ::-1, ::-1].copy() ** 2))
    (tmp_path / "y.bin").write_bytes(content[:192].tobytes())
    (tmp_path / "uv.bin").write_bytes(content[192:288].tobytes())
    folder.document("board", {"input": {"type": "nv12", "height": 12, "width": 16, "stride": 16}})
    assert first(folder.diagnosis()) == ("wrong-input-kind", True)


@pytest.mark.parametrize(("same", "sure"), [(True, True), (False, False)])
def test_one_model_and_other_numbers_are_another_environment(same: bool, sure: bool, tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    net, fed = network(random), image(random, 9, 11)
    folder = Folder(tmp_path)
    folder.model("model_a", net)
    folder.model("model_b", net if same else network(random))
    folder.arrays("inputs", x=fed)
    y = folder.run(net, x=fed)["y"]
    folder.arrays("outputs_a", y=y)
    folder.arrays("outputs_b", y=(y + 0.1 * y.std() * random.normal(size=y.shape)).astype(np.float32))
    found = {finding.code: finding.confirmed for finding in folder.diagnosis().findings}
    assert found.get("environment-drift", False) is sure


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("loader: artefact was built by compiler 4.10.2 and needs runtime >= 4.10, this one is 4.2.0.", True),
        ("Model version 9 is newer than the runtime, which reads up to version 7", True),
        ("node: conv_3 kernel of operator Foo 1.2.0 is not supported", False),
        ("cannot allocate 3.5 MB", False),
        ("Model march incompatible! model march: nash-e, platform march: nash-p", True),
        ("cannot open /data/march-2026/net.hbm: No such file or directory", False),
        ("cannot open 'runs of march/v1.2 needs 1.3/net.hbm'", False),
        ("cannot open C:\\\\new\\\\version-2.1\\\\built by 3.2.hbm", False),
        ("cannot open newer-4.12.hbm", False),
    ],
)
def test_versions_in_a_load_error(text: str, code: bool, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.arrays("outputs_a", y=np.arange(6, dtype=np.float32))
    (tmp_path / "load_error.txt").write_text(text, "utf-8")
    assert ("toolchain-version-mismatch" in {finding.code for finding in folder.diagnosis().findings}) is code


def test_missing_samples_are_no_cap_on_rows(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    y = np.sort(random.normal(size=(6, 3)).astype(np.float32), 0)[::-1]
    folder = Folder(tmp_path)
    folder.arrays("inputs", x=random.normal(size=(6, 4)).astype(np.float32))
    folder.arrays("outputs_a", y=np.ascontiguousarray(y))
    folder.arrays("outputs_b", y=np.ascontiguousarray(y[:4]))
    assert [finding.code for finding in folder.diagnosis().findings] == ["incomplete-evidence"]


def test_a_layer_of_other_feeds_is_no_wrong_operator(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    net, fed, other = network(random), image(random, 9, 11), image(random, 9, 11)
    tapped = onnx.ModelProto()
    tapped.CopyFrom(net)
    tapped.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in ("c", "t"))
    folder = Folder(tmp_path)
    folder.model("model_a", net)
    for side, feed in (("a", fed), ("b", other)):
        layers = folder.run(tapped, x=feed)
        folder.arrays(f"layers_{side}", **layers)
        folder.arrays(f"outputs_{side}", y=layers["y"])
    folder.arrays("inputs", x=fed)
    folder.arrays("inputs_b", x=other)
    found = folder.diagnosis()
    assert first(found) == ("input-mismatch", True)
    assert "device-op-error" not in {finding.code for finding in found.findings}


def folds(way: str, random: Random) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto], dict[str, Array]]:
    """A convolution with its batch norm, the two as one, and their constants: folded in one way."""
    weight, bias = weights(random, 6, 6, 3, 3), weights(random, 6)
    gain, shift, mean, variance = (random.uniform(low, 2.0, 6).astype(np.float32) for low in (0.4, -1.0, -1.0, 0.3))
    root = np.sqrt(variance + np.float32(1e-5))
    factor = {"without the square root": gain / root**2, "without the gain": 1 / root}.get(way, gain / root)
    around = (1, -1, 1, 1) if way == "along axis 1" else (-1, 1, 1, 1)
    middle = np.zeros(6, np.float32) if way == "without the mean" else mean
    folded = (bias - middle) * factor + (0 if way == "without the shift" else shift)
    held = {"cw": weight, "cb": bias, "g": gain, "s": shift, "m": mean, "v": variance}
    held |= {"fw": weight * factor.reshape(around), "fb": folded.astype(np.float32)}
    apart = [
        helper.make_node("Conv", ["c", "cw", "cb"], ["d"], name="convolution", pads=[1] * 4),
        helper.make_node("BatchNormalization", ["d", "g", "s", "m", "v"], ["t"], name="norm"),
    ]
    return apart, [helper.make_node("Conv", ["c", "fw", "fb"], ["t"], name="folded", pads=[1] * 4)], held


def two_graphs(
    path: Path, middles: tuple[list[onnx.NodeProto], list[onnx.NodeProto]], held: Mapping[str, Array], fed: Array
) -> Folder:
    """Two networks that are the same before and behind their middles, and see the same."""
    folder = Folder(path)
    folder.arrays("inputs", x=fed)
    for side, middle in zip("ab", middles, strict=True):
        net = network(np.random.default_rng(3), *middle, constants=held)
        folder.model(f"model_{side}", net)
        folder.arrays(f"outputs_{side}", **folder.run(net, x=fed))
    return folder


FOLDS = ("without the square root", "without the gain", "without the mean", "without the shift", "along axis 1")


@pytest.mark.parametrize("way", FOLDS)
def test_a_fold_is_told_with_the_way_it_went_wrong(way: str, tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    apart, folded, held = folds(way, random)
    found = two_graphs(tmp_path, (apart, folded), held, image(random, 9, 11)).diagnosis()
    assert first(found) == ("bn-fold-error", True)
    assert any(way in name for name, _, _ in found.findings[0].evidence)
    assert "folded" in found.findings[0].subjects


def test_a_right_fold_behind_a_fault_is_not_blamed(tmp_path: Path) -> None:
    random = np.random.default_rng(12)
    apart, folded, held = folds("rightly", random)
    lost = helper.make_node("Relu", ["c"], ["r"], name="lost")
    for node in (apart[0], folded[0]):
        node.input[0] = "r"
    kept = helper.make_node("Identity", ["c"], ["r"], name="left")
    found = two_graphs(tmp_path, ([lost, *apart], [kept, *folded]), held, image(random, 9, 11)).diagnosis()
    assert first(found) == ("graph-fusion-error", True)
    assert "bn-fold-error" not in {finding.code for finding in found.findings}
    assert "lost" in found.findings[0].subjects


def grouped(groups: int) -> list[onnx.NodeProto]:
    """A norm over groups of channels as exporters write it."""
    return [
        helper.make_node("Reshape", ["c", f"to{groups}"], ["in"], name="split"),
        helper.make_node(
            "InstanceNormalization", ["in", f"one{groups}", f"zero{groups}"], ["out"], name="norm", epsilon=1e-5
        ),
        helper.make_node("Shape", ["c"], ["shape"], name="shape"),
        helper.make_node("Reshape", ["out", "shape"], ["t"], name="back"),
    ]


@pytest.mark.parametrize("groups", [(1, 6), (2, 3), (6, 2)])
def test_groups_of_a_norm(groups: tuple[int, int], tmp_path: Path) -> None:
    held: dict[str, Array] = {}
    for count in groups:
        held |= {f"to{count}": np.array([0, count, -1], np.int64)}
        held |= {f"one{count}": np.ones(count, np.float32), f"zero{count}": np.zeros(count, np.float32)}
    fed = image(np.random.default_rng(13), 9, 11, 2)
    found = two_graphs(tmp_path, (grouped(groups[0]), grouped(groups[1])), held, fed).diagnosis()
    assert first(found) == ("norm-semantics", True)


def step(operator: str, *names: str, **attributes: Any) -> onnx.NodeProto:
    """A node: what it reads, then what it makes."""
    return helper.make_node(operator, list(names[:-1]), [names[-1]], name=f"{operator}_{names[-1]}", **attributes)


CENTRE = [step("ReduceMean", "c", "m", axes=[-1]), step("Sub", "c", "m", "d"), step("Mul", "d", "d", "q")]
APART = [
    *CENTRE,
    *(step("ReduceMean", "q", "v", axes=[-1]), step("Add", "v", "e", "w"), step("Sqrt", "w", "r")),
    *(step("Div", "d", "r", "n"), step("Mul", "n", "g", "s"), step("Add", "s", "h", "t")),
]
#: name → code, nodes of the reference, nodes of the candidate; `c` is read, `t` is made, both of 6 channels.
PARTS: Mapping[str, tuple[str, list[onnx.NodeProto], list[onnx.NodeProto]]] = {
    "norm along the other axis": (
        "norm-semantics",
        [step("LayerNormalization", "c", "g", "h", "t", axis=-1)],
        [
            step("Transpose", "c", "u", perm=[0, 1, 3, 2]),
            step("LayerNormalization", "u", "g", "h", "k", axis=-1),
            step("Transpose", "k", "t", perm=[0, 1, 3, 2]),
        ],
    ),
    "norm fused with another epsilon": (
        "norm-fusion-error",
        APART,
        [step("LayerNormalization", "c", "g", "h", "t", axis=-1, epsilon=1e-12)],
    ),
    "norm fused without its shift": (
        "norm-fusion-error",
        APART,
        [step("LayerNormalization", "c", "g", "z", "t", axis=-1, epsilon=0.5)],
    ),
    "statistics of the batch": (
        "train-mode-export",
        [
            *(step("ReduceMean", "c", "m", axes=[0, 2, 3]), step("Sub", "c", "m", "d"), step("Mul", "d", "d", "q")),
            *(step("ReduceMean", "q", "v", axes=[0, 2, 3]), step("Add", "v", "e", "w"), step("Sqrt", "w", "r")),
            step("Div", "d", "r", "t"),
        ],
        [step("BatchNormalization", "c", "b1", "b0", "b0", "b1", "t")],
    ),
    "operands exchanged": (
        "graph-fusion-error",
        [step("Sigmoid", "c", "u"), step("Sub", "c", "u", "t")],
        [step("Sigmoid", "c", "u"), step("Sub", "u", "c", "t")],
    ),
    "summand lost": (
        "graph-fusion-error",
        [step("Sigmoid", "c", "u"), step("Add", "c", "u", "t")],
        [step("Add", "c", "c", "t")],
    ),
    "matrices exchanged": (
        "graph-fusion-error",
        [step("Sigmoid", "c", "u"), step("MatMul", "c", "u", "t")],
        [step("Sigmoid", "c", "u"), step("MatMul", "u", "c", "t")],
    ),
    "softmax over all behind": (
        "softmax-axis",
        [step("Softmax", "c", "t", axis=1)],
        [
            *(step("Shape", "c", "u"), step("Flatten", "c", "k", axis=1)),
            *(step("Softmax", "k", "p", axis=-1), step("Reshape", "p", "u", "t")),
        ],
    ),
    "constant folded wrongly": (
        "constant-fold-bug",
        [step("Exp", "g", "u"), step("Mul", "c", "u", "t")],
        [step("Mul", "c", "h", "t")],
    ),
    "value of the first sample": (
        "trace-constant-baked",
        [step("ReduceMax", "c", "u", axes=[1, 2, 3]), step("Div", "c", "u", "t")],
        [step("Div", "c", "level", "t")],
    ),
}


def middle_constants(side: int) -> dict[str, Array]:
    random = np.random.default_rng(14)
    gain, shift = (random.uniform(0.4, 1.6, side).astype(np.float32) for _ in range(2))
    held = {"g": gain, "h": shift, "z": np.zeros(side, np.float32), "e": np.array(0.5, np.float32)}
    return held | {"b0": np.zeros(6, np.float32), "b1": np.ones(6, np.float32), "level": np.array(2.5, np.float32)}


@pytest.mark.parametrize("is_renamed", [False, True], ids=["names-kept", "names-lost"])
@pytest.mark.parametrize("name", PARTS)
def test_parts_that_were_rewritten(name: str, is_renamed: bool, tmp_path: Path) -> None:
    code, *middles = PARTS[name]
    folder = two_graphs(
        tmp_path, (middles[0], middles[1]), middle_constants(9), image(np.random.default_rng(15), 9, 9, 3)
    )
    if is_renamed:
        folder.model("model_b", renamed(onnx.load(tmp_path / "model_b.onnx"), 1)[0])
    found = folder.diagnosis()
    assert first(found) == (code, True)
    assert found.runs <= 100


def test_a_fault_is_found_in_half_precision(tmp_path: Path) -> None:
    code, *middles = PARTS["softmax over all behind"]
    fed = image(np.random.default_rng(16), 9, 9, 2)
    folder = two_graphs(tmp_path, (middles[0], middles[1]), {}, fed)
    half = halved(onnx.load(tmp_path / "model_b.onnx"))
    folder.model("model_b", half)
    folder.arrays("outputs_b", **folder.run(half, x=fed))
    assert first(folder.diagnosis()) == (code, True)


def test_two_faults_of_one_graph_are_both_told(tmp_path: Path) -> None:
    pools = [step("AveragePool", "u", "t", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=n) for n in (0, 1)]
    middles = ([step("Softmax", "c", "u", axis=1), pools[0]], [step("Softmax", "c", "u", axis=3), pools[1]])
    found = two_graphs(tmp_path, middles, {}, image(np.random.default_rng(17), 9, 9, 2)).diagnosis()
    sure = {finding.code for finding in found.findings if finding.confirmed}
    assert {"softmax-axis", "pooling-count-include-pad"} <= sure


def test_one_graph_on_both_sides_is_never_blamed(tmp_path: Path) -> None:
    random = np.random.default_rng(18)
    middle = [node("AveragePool", kernel_shape=[3, 3], pads=[1] * 4)]
    folder = two_graphs(tmp_path, (middle, middle), {}, image(random, 9, 9, 2))
    net = network(np.random.default_rng(3), node("AveragePool", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1))
    folder.arrays("outputs_b", **folder.run(net, x=image(random, 9, 9, 2)))
    found = {finding.code for finding in folder.diagnosis().findings}
    assert found.isdisjoint({code for rule in GRAPH_RULES for code in rule.codes})


@pytest.mark.parametrize("name", ["value of the first sample", "constant folded wrongly"])
def test_constants_that_are_computed_are_found_without_the_graphs(name: str, tmp_path: Path) -> None:
    code, *middles = PARTS[name]
    fed = image(np.random.default_rng(19), 9, 9, 3)
    folder = two_graphs(tmp_path, (middles[0], middles[1]), middle_constants(9), fed)
    with Bench(read_evidence(folder.path), parts) as bench:
        found = [one for one in find_computed_constants(bench) if one.confirmed]
    assert [one.code for one in found] == [code]
    assert bench.costs.runs <= 50
