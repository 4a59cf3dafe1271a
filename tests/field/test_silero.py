"""silero-vad, a network with memory: its makers' TorchScript against the ONNX files they ship with it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.field import silero
from support.field.run import Checked, check

CONFIG = """
version: 1
defaults: {{threads: 1}}
subjects:
  vad:
    artifacts:
      pytorch: {{backend: torch, python: [{python}], load: "silero_loader:load", search-path: [.]}}
      onnx: {onnx}
    samples: {{raw: {frames}}}
    state: {{stateN: state}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vad")
    silero.build(folder)
    return folder


def compared(project: Path, onnx: str, frames: str = "frames") -> Checked:
    return check(project, CONFIG.format(python=sys.executable, onnx=onnx, frames=frames))


@pytest.mark.parametrize(
    ("onnx", "frames"), [("silero_vad_openvino_16k.onnx", "frames"), ("silero_vad.onnx", "frames_rated")]
)
def test_the_shipped_pair_is_one_network(project: Path, onnx: str, frames: str) -> None:
    checked = compared(project, onnx, frames)
    assert checked.outcomes["pytorch-onnx"] == "passed", checked.printed
    assert checked.metric("pytorch..onnx", "output", "max-abs") < 1e-5
    assert checked.run_of("onnx")["samples_done"] == silero.SEQUENCES
    assert checked.code == 0


def test_the_file_of_another_checkpoint_is_told_apart(project: Path) -> None:
    checked = compared(project, "silero_vad_half.onnx")
    assert checked.outcomes["pytorch-onnx"] == "failed", checked.printed
    assert checked.judgement["first_failure"] == "pytorch-onnx"
    assert checked.metric("pytorch..onnx", "output", "max-abs") > 0.5
    assert checked.code == 1
