"""A model whose weights pass two gigabytes, which no protobuf holds: it runs by its path, tapped or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.sessions import Artifact

WIDTH = 16_384
BLOCKS = 3  # of 1 GiB each, all zeros, so that the file has holes instead of bytes


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = x·W0·W1·W2 + x with weights in a sparse file of 3 GiB beside the model."""
    folder = tmp_path_factory.mktemp("large")
    size = WIDTH * WIDTH * 4
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(BLOCKS * size)
    weights = []
    for block in range(BLOCKS):
        tensor = TensorProto(name=f"W{block}", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "weights.bin"), ("offset", block * size), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
    names = ["x", *(f"h{block}" for block in range(BLOCKS))]
    nodes = [helper.make_node("MatMul", [names[b], f"W{b}"], [names[b + 1]], name=f"mm{b}") for b in range(BLOCKS)]
    nodes.append(helper.make_node("Add", [names[-1], "x"], ["y"], name="add"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, WIDTH]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "large", [ends[0]], [ends[1]], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "net.onnx")
    return folder / "net.onnx"


@pytest.mark.parametrize("taps", [(), ("h1",)])
def test_it_runs(large: Path, taps: tuple[str, ...]) -> None:
    artifact = Artifact("onnx", "onnxruntime", large, {})
    feeds = {"x": np.arange(WIDTH, dtype=np.float32)[None]}
    with OnnxRuntimeBackend().open(artifact, taps=taps) as session:
        outputs = session.infer(feeds, sample="0000")
    assert set(outputs) == {"y", *taps}
    np.testing.assert_array_equal(outputs["y"], feeds["x"])
