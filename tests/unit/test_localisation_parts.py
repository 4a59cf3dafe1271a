"""Models made of an artifact's parts run as the artifact does: its weights, its external data, its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from driftgate.backends.onnxruntime_backend import SHARED_NUMBERS, OnnxRuntimeBackend
from driftgate.errors import LoadRefused
from driftgate.sessions import Artifact
from support.models import model, save, value

BACKEND = OnnxRuntimeBackend()
X: NDArray[np.float32] = np.random.default_rng(0).normal(size=(1, 64)).astype(np.float32)
LARGE: NDArray[np.float32] = np.random.default_rng(1).normal(size=(64, 128)).astype(np.float32)


def network(**more: NDArray[Any]) -> onnx.ModelProto:
    """x → h by a large weight → y by a branch that reads another one from outside."""
    inner = helper.make_graph(
        [helper.make_node("MatMul", ["h", "outer"], ["inner_y"])], "then", [], [value("inner_y", [1, 32])]
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["small"], ["other_y"])], "else", [], [value("other_y", [1, 32])]
    )
    nodes = [
        helper.make_node("MatMul", ["x", "large"], ["h"]),
        helper.make_node("If", ["yes"], ["y"], then_branch=inner, else_branch=other),
    ]
    weights: dict[str, NDArray[Any]] = {
        "large": LARGE,
        "outer": np.random.default_rng(2).normal(size=(128, 32)).astype(np.float32),
        "small": np.zeros((1, 32), np.float32),
        "yes": np.array(True),
        **more,
    }
    return model(nodes, [value("x", [1, 64])], [value("y", [1, 32])], initializers=weights)


def artifact(path: Path, **options: Any) -> Artifact:
    return Artifact("onnx", "onnxruntime", path, {"threads": 1, **options})


def outputs(session: Any) -> dict[str, NDArray[Any]]:
    with session as opened:
        made: dict[str, NDArray[Any]] = opened.infer({"x": X}, sample="0")
    return made


@pytest.mark.parametrize("external", ["", "weights.bin"])
def test_they_give_what_the_artifact_gives(external: str, tmp_path: Path) -> None:
    made = artifact(save(network(), tmp_path / "net.onnx", external=external))
    parts = BACKEND.take_apart(made)
    whole, again = outputs(BACKEND.open(made, ["h"])), outputs(parts.open(parts.model, ["h"]))
    assert whole.keys() == again.keys() == {"y", "h"}
    assert all(np.array_equal(whole[name], again[name]) for name in whole)


def test_the_artifacts_model_stays_as_it_is(tmp_path: Path) -> None:
    parts = BACKEND.take_apart(artifact(save(network(), tmp_path / "net.onnx")))
    before = parts.model.SerializeToString(deterministic=True)
    outputs(parts.open(parts.model, ["h"]))
    assert parts.model.SerializeToString(deterministic=True) == before


def test_a_part_finds_the_weights_it_does_not_hold(tmp_path: Path) -> None:
    parts = BACKEND.take_apart(artifact(save(network(), tmp_path / "net.onnx")))
    small = model([parts.model.graph.node[0]], [value("x", [1, 64])], [value("h", [1, 128])])
    assert not small.graph.initializer
    np.testing.assert_allclose(outputs(parts.open(small))["h"], X @ LARGE, rtol=1e-4, atol=1e-4)


def test_weights_that_nobody_reads_are_no_hindrance(tmp_path: Path) -> None:
    unread = np.ones(SHARED_NUMBERS, np.float32)
    parts = BACKEND.take_apart(artifact(save(network(unread=unread), tmp_path / "net.onnx")))
    assert outputs(parts.open(parts.model))["y"].shape == (1, 32)


def test_weights_of_a_type_that_numpy_lacks_stay_in_the_model(tmp_path: Path) -> None:
    made = network()
    bits = np.ones(SHARED_NUMBERS, np.uint16).tobytes()
    made.graph.initializer.append(helper.make_tensor("brain", TensorProto.BFLOAT16, [SHARED_NUMBERS], bits, raw=True))
    made.graph.node.append(helper.make_node("Cast", ["brain"], ["numbers"], to=TensorProto.FLOAT))
    made.graph.output.append(value("numbers", [SHARED_NUMBERS]))
    parts = BACKEND.take_apart(artifact(save(made, tmp_path / "net.onnx")))
    assert outputs(parts.open(parts.model))["numbers"].shape == (SHARED_NUMBERS,)


def test_options_are_the_artifacts(tmp_path: Path) -> None:
    parts = BACKEND.take_apart(artifact(save(network(), tmp_path / "net.onnx"), level="basic"))
    with parts.open(parts.model) as session:
        assert session.environment.level == "basic"


def test_a_part_that_does_not_hang_together_is_refused(tmp_path: Path) -> None:
    parts = BACKEND.take_apart(artifact(save(network(), tmp_path / "net.onnx")))
    node = helper.make_node("Relu", ["nobody"], ["r"], name="lost")
    with pytest.raises(LoadRefused):
        parts.open(model([node], [value("x", [1, 64])], [value("r", [1, 64])]))
