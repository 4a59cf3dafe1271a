"""How the values of flagged pairs are spread, and errors in steps of a quantiser."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

from driftgate.domain.investigations import Histogram, Investigation
from driftgate.localisation.histograms import BINS, FINE, histograms
from driftgate.localisation.investigate import investigate
from driftgate.localisation.subject import Subject
from support.models import model, value
from support.sides import side, watched

SCALE = 1 / 32
SHAPE = [1, 8, 20, 20]


def plain() -> onnx.ModelProto:
    """x → h → y."""
    nodes = [helper.make_node("Tanh", ["x"], ["h"]), helper.make_node("Neg", ["h"], ["y"])]
    return model(nodes, [value("x", SHAPE)], [value("y", SHAPE)])


def quantised(scale: float = SCALE) -> onnx.ModelProto:
    """The same with h in signed bytes."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["h"]),
        helper.make_node("QuantizeLinear", ["h", "scale", "zero"], ["h_q"]),
        helper.make_node("DequantizeLinear", ["h_q", "scale", "zero"], ["h_dq"]),
        helper.make_node("Neg", ["h_dq"], ["y"]),
    ]
    weights: dict[str, NDArray[np.generic]] = {"scale": np.float32(scale).reshape(()), "zero": np.zeros((), np.int8)}
    return model(nodes, [value("x", SHAPE)], [value("y", SHAPE)], initializers=dict(weights))


def feeds(count: int) -> dict[str, dict[str, NDArray[np.float32]]]:
    random = np.random.default_rng(5)
    return {str(n): {"x": random.normal(size=SHAPE).astype(np.float32)} for n in range(count)}


def looked_into(folder: Path, count: int, scale: float = SCALE) -> tuple[Subject, Subject, Investigation]:
    data = feeds(count)
    a, b = side("a", plain(), data, folder), side("b", quantised(scale), data, folder)
    return a, b, investigate("a..b", a, b, tuple(data), outputs={"y": "y"})


def test_counts_are_those_of_numpy(tmp_path: Path) -> None:
    a, b, found = looked_into(tmp_path, 3)
    (node,) = (n for n in found.nodes if n.pair.tensor_b == "h_dq")
    (spread,) = histograms(a, b, [node], ("0", "1", "2"), whole=9, memory=1 << 20)
    values = np.tanh(np.stack([feed["x"] for feed in feeds(3).values()])).astype(np.float64)
    rounded = np.rint(values / SCALE) * SCALE
    assert (spread.low, spread.high) == pytest.approx((rounded.min(), rounded.max()))
    counts, _ = np.histogram(values, np.linspace(spread.low, spread.high, BINS + 1))
    assert np.abs(np.array(spread.counts_a) - counts).max() <= 2  # float32 at an edge
    assert sum(spread.counts_a) == sum(spread.counts_b) == values.size
    for percentile, of_a, of_b in spread.percentiles:
        fine = (spread.high - spread.low) / BINS / FINE
        assert of_a == pytest.approx(np.percentile(values, percentile), abs=3 * fine)
        assert of_b == pytest.approx(np.percentile(rounded, percentile), abs=SCALE + 2 * fine)


def test_the_range_of_the_quantiser_is_kept(tmp_path: Path) -> None:
    a, b, found = looked_into(tmp_path, 1)
    spread = {h.tensor: h for h in histograms(a, b, found.nodes, ("0",), whole=9, memory=1 << 20)}
    assert spread["h_dq"].clip == pytest.approx((-128 * SCALE, 127 * SCALE))
    assert spread["y"].clip is None


def test_windows_give_the_same_counts(tmp_path: Path) -> None:
    a, b, found = looked_into(tmp_path, 2)
    samples = ("0", "1")
    assert histograms(a, b, found.nodes, samples, whole=9, memory=1) == histograms(
        a, b, found.nodes, samples, whole=9, memory=1 << 24
    )


def test_of_a_large_tensor_some_values_stand_for_all(tmp_path: Path) -> None:
    """Those of every channel and column alike: the stride has no divisor in common with the size."""
    shape = [1, 3, 128, 512]
    values = np.random.default_rng(5).normal(size=shape) + 8 * np.arange(3).reshape(1, 3, 1, 1)
    data = {"0": {"x": values.astype(np.float32)}}
    made = model([helper.make_node("Neg", ["x"], ["y"])], [value("x", shape)], [value("y", shape)])
    a, b = side("a", made, data, tmp_path), side("b", made, data, tmp_path)
    (node,) = (n for n in investigate("a..b", a, b, ("0",), outputs={"y": "y"}).nodes if n.pair.tensor_b == "y")
    (whole,) = histograms(a, b, [node], ("0",), whole=1, memory=1 << 24)
    (some,) = histograms(a, b, [node], ("0",), whole=0, memory=1 << 24)
    assert (whole.every, sum(whole.counts_a)) == (1, values.size)
    assert some.every == 7
    assert sum(some.counts_a) == -(-values.size // some.every)
    assert np.abs(some.every * np.array(some.counts_a) - whole.counts_a).max() < 0.01 * values.size


def test_only_the_asked_tensors_are_tapped(tmp_path: Path) -> None:
    a, _, found = looked_into(tmp_path, 1)
    b, watch = watched("b", quantised(), feeds(1), tmp_path)
    histograms(a, b, [n for n in found.nodes if n.pair.tensor_b == "h_dq"], ("0",), whole=9, memory=1 << 20)
    assert watch.opened == [("y", "h_dq")]
    assert histograms(a, b, [], ("0",), whole=9, memory=1 << 20) == ()


def test_rounding_alone_is_a_twelfth_of_a_step_squared(tmp_path: Path) -> None:
    _, _, found = looked_into(tmp_path, 3)
    (node,) = (n for n in found.nodes if n.pair.tensor_b == "h_dq")
    assert node.own_steps == pytest.approx(1 / math.sqrt(12), rel=0.05)
    assert node.total_steps == pytest.approx(node.own_steps, rel=1e-6)
    (last,) = (n for n in found.nodes if n.pair.tensor_b == "y")
    assert last.own_steps is None


def test_a_tensor_of_one_value_has_no_spread(tmp_path: Path) -> None:
    data = {"0": {"x": np.zeros(SHAPE, np.float32)}}
    a, b = side("a", plain(), data, tmp_path), side("b", plain(), data, tmp_path)
    found = investigate("a..b", a, b, ("0",), outputs={"y": "y"})
    spread: tuple[Histogram, ...] = histograms(a, b, found.nodes, ("0",), whole=9, memory=1 << 20)
    assert spread == ()
