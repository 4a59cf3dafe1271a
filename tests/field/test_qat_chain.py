"""The QAT chain with real torch and a STAND-IN of the vendor's plugin: what is judged, and in which state it runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgate.backends.torch_backend import TorchBackend
from driftgate.domain.facts import Facts
from driftgate.errors import BackendError
from driftgate.sessions import Artifact
from driftgate.storage.document import read_results
from support.commandline import Answer, call, judged, rows
from support.project import Project
from support.torchpython import torch_python
from support.vendor.models import PACKAGES

COUNT = 12
STAGES = ("pytorch", "calibration", "qat", "qat_export")
LEFT_IN = {"calibration": "CALIBRATION", "qat": "QAT", "qat_export": "QAT"}

#: A network and its stages; every one but the first is given away in the state in which it was made.
NETS = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.stem = torch.nn.Linear(6, 16)
        self.relu = torch.nn.ReLU()
        self.body = torch.nn.Linear(16, 16)
        self.gate = torch.nn.Sigmoid()
        self.head = torch.nn.Linear(16, 5)
        with torch.no_grad():
            for layer in (self.stem, self.body, self.head):
                layer.weight *= 4

    def forward(self, x):
        return self.head(self.gate(self.body(self.relu(self.stem(x)))))

def load_pytorch():
    return Net()

def load_calibration():
    from horizon_plugin_pytorch.quantization import FakeQuantState, prepare, set_fake_quantize

    net = prepare(Net())
    set_fake_quantize(net, FakeQuantState.CALIBRATION)
    fed(net)
    return net

def load_qat():
    from horizon_plugin_pytorch.quantization import FakeQuantState, set_fake_quantize

    net = load_calibration()
    set_fake_quantize(net, FakeQuantState.QAT)
    with torch.no_grad():
        for layer in (net.stem, net.body, net.head):
            layer.weight *= 1 + 0.005 * torch.randn(layer.weight.shape)
    fed(net)
    return net

def load_qat_export():
    from horizon_plugin_pytorch.quantization import pre_export

    return pre_export(load_qat())

def load_faulty_export():
    net = load_qat_export()
    net.relu[1].scale.div_(8)
    return net

def fed(net):
    torch.manual_seed(3)
    with torch.no_grad():
        for _ in range(8):
            net(torch.randn(16, 6))
"""

#: Two runs of the QAT stage over the same samples, one of them backwards, in the state that it was left in.
DRIFT = """
import json
import sys
import numpy as np
import torch

sys.path.insert(0, sys.argv[1])
import nets

def outputs(order):
    net = nets.load_qat().eval()
    x = torch.from_numpy(np.load(sys.argv[1] + "/eval.npz")["x"])
    with torch.no_grad():
        return {number: net(x[number : number + 1]).tolist() for number in order}

there = range(len(np.load(sys.argv[1] + "/eval.npz")["x"]))
print(json.dumps([outputs(there)[n] == outputs(reversed(there))[n] for n in there]))
"""


@pytest.fixture(scope="session")
def python() -> tuple[str, ...]:
    """An interpreter with torch and the stand-in."""
    return ("env", f"PYTHONPATH={PACKAGES}", torch_python())


@pytest.fixture
def project(tmp_path: Path, python: tuple[str, ...]) -> Project:
    """The four stages that run in torch, in a project of their own."""
    made = Project(tmp_path)
    (tmp_path / "nets.py").write_text(NETS)
    x = np.random.default_rng(5).normal(size=(COUNT, 6)).astype(np.float32)
    made.subject = {
        "chain": "qat",
        "artifacts": {stage: loaded(python, f"load_{stage}") for stage in STAGES},
        "samples": {"raw": made.npz("eval.npz", x=x), "block": 4},
    }
    return made


def loaded(python: tuple[str, ...], function: str) -> dict[str, Any]:
    return {"backend": "torch", "python": [*python], "load": f"nets:{function}"}


def artifact(python: tuple[str, ...], folder: Path, stage: str) -> Artifact:
    return Artifact(stage, "torch", None, {**loaded(python, f"load_{stage}"), "search_path": (str(folder),)})


def check(project: Project) -> tuple[Answer, Path, Facts]:
    out = project.root / "out"
    answer = call("check", "-c", project.write(), "--out", out)
    (facts,) = read_results(out).facts
    return answer, out, facts


def levels(facts: Facts) -> dict[str, str]:
    known = {environment.id: environment.level for environment in facts.environments}
    return {run.stage: known[run.environment] for run in facts.runs}


def test_a_healthy_chain_passes_in_every_row_that_it_has_stages_for(project: Project) -> None:
    answer, out, facts = check(project)
    assert answer.code == 0
    assert (rows(out)["pytorch-qat"], rows(out)["qat-export"]) == ("passed", "passed")
    assert [link.name for link in facts.plan.links] == ["pytorch..calibration", "calibration..qat", "qat..qat_export"]
    assert levels(facts) == {"pytorch": "eager", **dict.fromkeys(LEFT_IN, "eager, fake-quant validation")}


def test_an_export_with_another_scale_in_one_layer_fails_there_first(project: Project, python: tuple[str, ...]) -> None:
    project.artifacts["qat_export"] = loaded(python, "load_faulty_export")
    answer, out, facts = check(project)
    assert answer.code == 1
    assert (rows(out)["pytorch-qat"], rows(out)["qat-export"]) == ("passed", "failed")
    assert judged(out)["first_failure"] == "qat-export"
    failed = {v["target"] for c in judged(out)["checks"] for v in c["verdicts"] if v["outcome"] == "failed"}
    assert failed == {"qat..qat_export"}
    (found,) = facts.investigations
    assert found.link == "qat..qat_export"
    off = [node.pair.tensor_b for node in sorted(found.nodes, key=lambda node: node.order) if node.total.sum_dd.sum()]
    assert off[0] == "relu.1"


def test_a_network_left_in_training_gives_equal_numbers_in_any_order(project: Project, python: tuple[str, ...]) -> None:
    x = np.load(project.root / "eval.npz")["x"]
    runs = []
    for order in (range(COUNT), range(COUNT - 1, -1, -1)):
        with TorchBackend().open(artifact(python, project.root, "qat")) as session:
            runs.append({n: session.infer({"x": x[n : n + 1]}, sample=str(n))["output"] for n in order})
    for number in range(COUNT):
        np.testing.assert_array_equal(runs[0][number], runs[1][number])


def test_without_that_state_its_numbers_depend_on_the_order(project: Project, python: tuple[str, ...]) -> None:
    (project.root / "drift.py").write_text(DRIFT)
    command = [*python, str(project.root / "drift.py"), str(project.root)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=300)
    assert not any(json.loads(done.stdout))


def test_the_plugins_own_tensors_are_traced_and_tapped_as_numbers(project: Project, python: tuple[str, ...]) -> None:
    x = np.load(project.root / "eval.npz")["x"][:1]
    with TorchBackend().open(artifact(python, project.root, "qat"), ["relu.0", "relu.1"]) as session:
        made = session.infer({"x": x}, sample="0000")
        calls = {call.tensor: call for call in session.trace({"x": x}, sample="0000")}
    step = np.abs(made["relu.0"] - made["relu.1"]).max() * 2
    assert 0 < step < made["relu.0"].max() / 50
    assert (calls["relu.1"].size, calls["relu.1"].same, calls["relu"].same) == (16, "", "relu.1")


def test_the_plugins_version_belongs_to_the_run(project: Project, tmp_path: Path, python: tuple[str, ...]) -> None:
    site = tmp_path / "site"
    (site / "horizon_plugin_pytorch-3.1.2.dist-info").mkdir(parents=True)
    told = site / "horizon_plugin_pytorch-3.1.2.dist-info" / "METADATA"
    told.write_text("Name: horizon_plugin_pytorch\nVersion: 3.1.2\n")
    installed = ("env", f"PYTHONPATH={PACKAGES}:{site}", python[-1])
    with TorchBackend().open(artifact(installed, project.root, "qat")) as session:
        assert ("horizon_plugin_pytorch", "3.1.2") in session.environment.versions


def test_another_release_of_the_plugin_is_said(project: Project, tmp_path: Path, python: tuple[str, ...]) -> None:
    other = tmp_path / "other" / "horizon_plugin_pytorch"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text('__version__ = "0.9.0"\n')
    (other / "nn.py").write_text("import torch\n\nclass Conv2d(torch.nn.Identity):\n    pass\n")
    (project.root / "nets.py").write_text("from horizon_plugin_pytorch.nn import Conv2d as load_qat\n")
    old = ("env", f"PYTHONPATH={other.parent}", python[-1])
    with pytest.raises(BackendError, match=r"qat: .*horizon_plugin_pytorch 0\.9\.0 \(Conv2d\)") as caught:
        TorchBackend().open(artifact(old, project.root, "qat"))
    assert caught.value.problems[0].code == "torch-fake-quant"
