"""What .bc and .hbm say of themselves through hbdk4 (a STAND-IN): scales of removed nodes, march, version, phase, and
the networks of a packed file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from driftgate.backends.hbruntime_backend import HbRuntimeBackend
from driftgate.errors import ArtifactError
from driftgate.sessions import Artifact
from driftgate.storage.document import read_results
from support.commandline import call, rows
from support.models import answer, model, tiny, value
from support.project import Project, biased, inputs
from support.vendor.models import interpreter, write, write_packed

STEP = 0.02
X = np.array([[1.0, -2.0, 0.5]], np.float32)


def artifact(path: Path, **options: Any) -> Artifact:
    return Artifact("hbm", "hbruntime", path, {"python": interpreter(), "timeout": 60.0, **options})


def on_integers(*, head: bool) -> onnx.ModelProto:
    """y = the tiny network's answer to x rounded to STEP; with its quantise node at the `head`, or that removed."""
    make = onnx.helper.make_node
    body = tiny()
    nodes = [make("DequantizeLinear", ["q", "step", "zero"], ["fed"])]
    if head:
        nodes.insert(0, make("QuantizeLinear", ["x", "step", "zero"], ["q"]))
    for node in body.graph.node:
        node.input[:] = ["fed" if name == "x" else name for name in node.input]
    held = {one.name: onnx.numpy_helper.to_array(one) for one in body.graph.initializer}
    held |= {"step": np.array(STEP, np.float32), "zero": np.array(0, np.int8)}
    first = value("x", [1, 3]) if head else onnx.helper.make_tensor_value_info("q", onnx.TensorProto.INT8, [1, 3])
    return model([*nodes, *body.graph.node], [first], list(body.graph.output), initializers=held)


QUANTISED = {"name": "q", "shape": [1, 3], "dtype": "S8", "scales": [STEP], "zero_points": [0], "axis": None}


def test_numbers_are_quantised_where_the_quantise_node_was_removed(tmp_path: Path) -> None:
    path = write(tmp_path / "net.hbm", on_integers(head=False), inputs=[QUANTISED])
    with HbRuntimeBackend().open(artifact(path)) as session:
        made = session.infer({"q": X}, sample="0")["y"]
        same = session.infer({"q": np.rint(X / STEP).astype(np.int8)}, sample="1")["y"]
        assert [note.code for note in session.notes] == ["inputs-requantised"]
    np.testing.assert_array_equal(made, same)
    np.testing.assert_allclose(made, answer(X), rtol=1e-5)


@pytest.mark.parametrize(("shift", "code", "outcome"), [(0.0, 0, "passed"), (0.05, 1, "failed")])
def test_a_chain_with_a_removed_head_passes_and_a_wrong_one_does_not(
    shift: float, code: int, outcome: str, tmp_path: Path
) -> None:
    project = Project(tmp_path)
    told = {**QUANTISED, "scales": [STEP + shift]}
    write(tmp_path / "net_quantized_model.bc", on_integers(head=True))
    write(tmp_path / "net_quantized_removed_model.bc", on_integers(head=False), inputs=[QUANTISED])
    write(tmp_path / "net.hbm", on_integers(head=False), inputs=[told])
    project.subject = {
        "artifacts": {
            "quantized": "net_quantized_model.bc",
            "quantized_removed": "net_quantized_removed_model.bc",
            "hbm": "net.hbm",
        },
        "inputs": {"x": ["q"]},
        "samples": {"raw": project.npz("eval.npz", x=inputs(4))},
    }
    project.top = {"defaults": {"hbruntime": {"python": interpreter(), "timeout": 60}}}
    found = call("check", "-c", project.write(**project.top), "--out", tmp_path / "out")
    assert found.code == code, found.out + found.err
    assert rows(tmp_path / "out")["float-int8"] == "passed"
    assert rows(tmp_path / "out")["bc-hbm"] == outcome


def test_a_network_of_a_packed_file_is_named(tmp_path: Path) -> None:
    path = write_packed(tmp_path / "both.hbm", {"one": (tiny(), {}), "two": (biased(1.0), {})}, march="nash-m")
    with HbRuntimeBackend().open(artifact(path, model="two")) as session:
        np.testing.assert_allclose(session.infer({"x": X}, sample="0")["y"], answer(X) + 1, rtol=1e-6)
        assert session.environment.provider == "hbdk4 hbm"
    for model_name in (None, "three"):
        with pytest.raises(ArtifactError, match="one, two"):
            HbRuntimeBackend().open(artifact(path, model=model_name))


def chain(root: Path, *, bc: dict[str, Any], hbm: dict[str, Any], shift: float = 0.0) -> Project:
    project = Project(root)
    write(root / "net_quantized_model.bc", biased(0.01), **bc)
    write(root / "net.hbm", biased(0.01 + shift), **hbm)
    project.subject = {
        "artifacts": {
            "onnx": project.onnx("net.onnx", tiny()),
            "quantized": "net_quantized_model.bc",
            "hbm": "net.hbm",
        },
        "samples": {"raw": project.npz("eval.npz", x=inputs(4))},
    }
    project.top = {"defaults": {"platform": "J6M", "hbruntime": {"python": interpreter(), "timeout": 60}}}
    return project


@pytest.mark.parametrize(
    ("bc", "hbm", "shift", "row", "code"),
    [
        ({}, {"march": "nash-p"}, 0.0, "bc-hbm", "march-mismatch"),
        ({"phase": "float"}, {}, 0.0, "float-int8", "stale-artifact"),
        ({"version": "4.11.2"}, {"version": "4.9.7"}, 0.3, "bc-hbm", "toolchain-version-mismatch"),
    ],
)
def test_what_an_artifact_says_of_itself_fails_its_row(
    bc: dict[str, Any], hbm: dict[str, Any], shift: float, row: str, code: str, tmp_path: Path
) -> None:
    project = chain(tmp_path, bc=bc, hbm=hbm, shift=shift)
    assert call("check", "-c", project.write(**project.top), "--out", tmp_path / "out").code == 1
    results = read_results(tmp_path / "out")
    (judgement,) = results.judgements or ()
    assert judgement.first_failure == row
    assert code in {finding.code for finding in judgement.findings if finding.confirmed}


def test_other_versions_alone_are_no_failure(tmp_path: Path) -> None:
    project = chain(tmp_path, bc={"version": "4.11.2"}, hbm={"version": "4.9.7"})
    assert call("check", "-c", project.write(**project.top), "--out", tmp_path / "out").code == 0
    (facts,) = read_results(tmp_path / "out").facts
    assert facts.told("artifact", "version", "hbm") == "4.9.7"
    assert facts.told("artifact", "march-fits", "quantized") == 1
