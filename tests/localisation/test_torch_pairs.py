"""PyTorch against its ONNX export, module by module: MTCNN's networks on real faces, and small ones by hand."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.backends.torch_backend import TorchBackend
from driftgate.domain.investigations import Investigation
from driftgate.judgement.nodes import first_divergence
from driftgate.localisation.investigate import investigate
from driftgate.localisation.repro import write_repro
from driftgate.localisation.subject import Subject, read_subject
from driftgate.sessions import Artifact
from support.field import mtcnn
from support.rewriting import give
from support.torchpython import torch_python

BATCH = 16
Batches = Mapping[str, NDArray[np.float32]]


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch_python()
    folder = tmp_path_factory.mktemp("mtcnn")
    mtcnn.export_rnet(folder, mtcnn.images(24)[:BATCH])
    mtcnn.export_onet(folder, mtcnn.images()[:BATCH])
    return folder


def pytorch(folder: Path, batches: Batches, *, load: str, weights: str = "") -> Subject:
    options = {"load": load, "search_path": (str(folder),), "python": (sys.executable,)}
    if weights:
        options["weights"] = str(folder / weights)
    artifact = Artifact("pytorch", "torch", None, options)
    first = next(iter(batches))
    return read_subject("pytorch", artifact, TorchBackend(), None, lambda s: {"x": batches[s]}, sample=first)


def exported(path: Path, batches: Batches, feed: str = "image") -> Subject:
    backend = OnnxRuntimeBackend()
    artifact = Artifact("onnx", "onnxruntime", path, {"threads": 1})
    return read_subject("onnx", artifact, backend, backend, lambda s: {feed: batches[s]})


def sides(folder: Path, name: str, side: int, file: str = "") -> tuple[Subject, Subject]:
    faces = mtcnn.images(side)
    batches = {str(n): faces[n * BATCH : (n + 1) * BATCH] for n in range(3)}
    loader = {"onet": "onet_loader:load", "rnet": "onet_loader:load_rnet"}[name]
    a = pytorch(folder, batches, load=loader, weights=f"{name}.pt")
    return a, exported(folder / (file or f"{name}.onnx"), batches)


def compared(folder: Path, name: str, side: int) -> Investigation:
    return investigate("pytorch..onnx", *sides(folder, name, side), ("0", "1", "2"), outputs={})


@pytest.mark.parametrize(("name", "side", "modules"), [("rnet", 24, 13), ("onet", 48, 17)])
def test_every_module_is_matched_by_its_values(name: str, side: int, modules: int, project: Path) -> None:
    found = compared(project, name, side)
    assert [pair.how for pair in found.pairs if pair.tensor_a != "x"] == ["value"] * modules
    assert found.unpaired_a == ()


@pytest.mark.parametrize(("name", "side"), [("rnet", 24), ("onet", 48)])
def test_a_healthy_export_has_own_errors_of_float_noise(name: str, side: int, project: Path) -> None:
    found = compared(project, name, side)
    assert all(node.own is not None and node.excess < 1 for node in found.nodes)
    assert first_divergence(found.nodes) is None


def test_a_kernel_that_was_changed_is_named_although_its_modules_follow(project: Path) -> None:
    made = onnx.load(project / "onet.onnx")
    node = next(node for node in made.graph.node if node.output[0] == "/conv2/Conv_output_0")
    weight = onnx.numpy_helper.to_array(next(t for t in made.graph.initializer if t.name == node.input[1])).copy()
    weight[5] *= 1.5
    give(made, node, 1, weight)
    onnx.save(made, project / "onet_changed.onnx")
    a, b = sides(project, "onet", 48, "onet_changed.onnx")
    found = investigate("pytorch..onnx", a, b, ("0", "1", "2"), outputs={})
    first = first_divergence(found.nodes)
    assert first is not None
    assert (first.pair.tensor_a, first.pair.tensor_b) == ("conv2", "/conv2/Conv_output_0")
    assert first.top_channels[0][0] == 5
    assert [n.pair.tensor_a for n in found.nodes if not n.excess < 3] == ["conv2"]
    repro = write_repro(project / "repro", a, b, found, first, "1")
    assert [path.name for path in repro.files] == ["repro.onnx", "inputs.npz", "outputs_a.npz", "outputs_b.npz"]
    assert [node.op_type for node in onnx.load(project / "repro" / "repro.onnx").graph.node] == ["Conv"]
    assert repro.error > 0


TWICE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.shared = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.body = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 1), torch.nn.ReLU(inplace=True))
        self.unused = torch.nn.Identity()

    def forward(self, x):
        return torch.sigmoid(self.shared(self.body(self.shared(x))))

def load():
    return Net()
"""

EXPORT = """
import torch
from twice import load

torch.onnx.export(load().eval(), (torch.zeros(2, 4, 9, 9),), "twice.onnx", dynamo=False, opset_version=17,
                  input_names=["image"], output_names=["y"])
"""


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    import subprocess

    (tmp_path / "twice.py").write_text(TWICE)
    (tmp_path / "export.py").write_text(EXPORT)
    subprocess.run(
        [torch_python(), "export.py"],
        cwd=tmp_path,
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    return tmp_path


def test_a_module_called_twice_has_two_points(twice: Path) -> None:
    batches = {"0": np.random.default_rng(0).normal(size=(2, 4, 9, 9)).astype(np.float32)}
    a = pytorch(twice, batches, load="twice:load")
    assert [p.tensor for p in a.points] == ["x", "shared", "body.0", "body.1", "shared@2", "output"]
    assert "body" in a.points[3].names
    b = exported(twice / "twice.onnx", batches)
    found = investigate("pytorch..onnx", a, b, ("0",), outputs={"output": "y"})
    assert [pair.tensor_a for pair in found.pairs] == ["x", "shared", "body.0", "body.1", "shared@2", "output"]
    assert first_divergence(found.nodes) is None
