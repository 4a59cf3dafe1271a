"""Quantised models made anew for experiments: ranges with their zero points, biases, folded weights, no rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.quantisers import fitted
from driftgate.diagnosis.quantisation.spreads import loss, outcome
from driftgate.diagnosis.residuals import spread
from driftgate.diagnosis.surgery import unrounded
from driftgate.diagnosis.weights import paired_weights, rounded_biases, rounded_weights
from driftgate.domain.evidence import Evidence, LinkNote
from driftgate.localisation.subject import Parts
from driftgate.numerics.alignment import channel_axis
from driftgate.sessions import Artifact

RNG = np.random.default_rng(11)
WEIGHT = RNG.normal(size=(4, 3, 1, 1)).astype(np.float32)
BIAS = RNG.normal(size=4).astype(np.float32)
FACTORS = np.array([0.25, 3.0, 1.5, 0.5], np.float32)
FEED = RNG.uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)


def parts(path: Path) -> Parts:
    return OnnxRuntimeBackend().take_apart(Artifact(path.stem, "onnxruntime", path, {}))


def saved(path: Path, nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray]) -> Path:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, FEED.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 8, 8))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


def reference(folder: Path, op: str = "Relu") -> Path:
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv"), helper.make_node(op, ["c"], ["y"])]
    return saved(folder / "a.onnx", nodes, {"w": WEIGHT, "b": BIAS})


def candidate(folder: Path, step: float, zero: int, factors: np.ndarray | float = 1.0) -> Path:
    """As onnxruntime's tools write it: no Relu, its output from zero up; the bias in steps of input times weight."""
    weight = WEIGHT * np.reshape(factors, (-1, 1, 1, 1)) if np.ndim(factors) else WEIGHT
    scale = (np.abs(weight).max((1, 2, 3)) / 127).astype(np.float32)
    constants = {
        "w_quantized": np.rint(weight / scale.reshape(-1, 1, 1, 1)).astype(np.int8),
        "ws": scale,
        "wz": np.zeros(4, np.int8),
        "b_quantized": np.rint(BIAS / (scale * step)).astype(np.int32),
        "bs": (scale * step).astype(np.float32),
        "xs": np.float32(step),
        "xz": np.array(zero, np.int8),
        "ys": np.float32(4 / 255),
        "yz": np.array(-128, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["x_dq"]),
        helper.make_node("DequantizeLinear", ["w_quantized", "ws", "wz"], ["w_dq"], axis=0),
        helper.make_node("DequantizeLinear", ["b_quantized", "bs"], ["b_dq"], axis=0),
        helper.make_node("Conv", ["x_dq", "w_dq", "b_dq"], ["c"], name="conv"),
        helper.make_node("QuantizeLinear", ["c", "ys", "yz"], ["cq"]),
        helper.make_node("DequantizeLinear", ["cq", "ys", "yz"], ["y"]),
    ]
    return saved(folder / "b.onnx", nodes, constants)


def bench(a: Path, b: Path) -> Bench:
    note = LinkNote("optimized_float", "calibrated", "lossy", "J6M")
    return Bench(Evidence(folder=a.parent, feeds_a={"x": FEED}, model_a=a, model_b=b, link=note), parts)


def test_a_range_of_raw_pixels_is_refitted_with_its_zero_point_and_its_bias(tmp_path: Path) -> None:
    with bench(reference(tmp_path), candidate(tmp_path, 1.0, -128)) as made:
        assert len([*rounded_biases(made)]) == 1
        before, after = (loss(made.outputs_a, out) for out in (made.outputs_b, outcome(made, fitted(made))))
    assert before > 0.5
    assert after < 0.03


def test_a_tensor_that_is_not_rounded_any_more_keeps_the_cut_at_zero_of_the_relu_it_stands_for(tmp_path: Path) -> None:
    with bench(reference(tmp_path), candidate(tmp_path, 1 / 127, 0)) as made:
        free = outcome(made, unrounded(made.b.whole_model, made.b.quantised))
        assert free is not None
        assert float(free["y"].min()) == 0.0
        assert loss(made.outputs_a, free) < loss(made.outputs_a, made.outputs_b)


def test_weights_with_a_normalisation_folded_in_are_undone_scaled(tmp_path: Path) -> None:
    with bench(reference(tmp_path), candidate(tmp_path, 1 / 127, 0, FACTORS)) as made:
        (row,) = rounded_weights(made)
    assert np.allclose(row[2], WEIGHT * FACTORS.reshape(-1, 1, 1, 1), rtol=0.02, atol=1e-3)


def test_weights_of_another_training_are_not_scaled_into_these(tmp_path: Path) -> None:
    other = candidate(tmp_path, 1 / 127, 0)
    model = onnx.load(str(other))
    for tensor in model.graph.initializer:
        if tensor.name == "w_quantized":
            tensor.CopyFrom(numpy_helper.from_array(RNG.integers(-127, 128, WEIGHT.shape).astype(np.int8), tensor.name))
    onnx.save(model, other)
    with bench(reference(tmp_path), other) as made:
        (pair,) = paired_weights(made)
        (row,) = rounded_weights(made)
    assert np.array_equal(row[2], pair[2])


@pytest.mark.parametrize(
    ("shape", "axis"), [((1, 1, 9, 9), None), ((1, 3, 9, 9), 1), ((1, 64, 1, 1), 1), ((1, 9, 5), 1), ((4,), None)]
)
def test_rows_of_a_picture_of_one_channel_are_no_channels(shape: tuple[int, ...], axis: int | None) -> None:
    assert channel_axis(shape) == axis


def test_a_quiet_row_of_a_picture_of_one_channel_does_not_decide(tmp_path: Path) -> None:
    picture = np.zeros((1, 1, 32, 32))
    picture[..., 16:, :] = RNG.uniform(0, 1, (16, 32))
    noisy = picture + RNG.normal(0, 0.01, picture.shape)
    assert spread(picture, noisy) < 0.05
