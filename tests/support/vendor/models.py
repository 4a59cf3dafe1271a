"""Files of the stand-in toolchain: ONNX models behind a line that says what they stand for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import onnx

PACKAGES = Path(__file__).with_name("python")
MAGIC = {".bc": b"STAND-IN BC\n", ".hbm": b"STAND-IN HBM\n"}


def interpreter(fault: str = "") -> list[str]:
    """A command that stands for the interpreter of an OpenExplorer environment."""
    program = "env"
    return [program, f"PYTHONPATH={PACKAGES}", f"STAND_IN_FAULT={fault}", sys.executable]


def write(path: Path, model: onnx.ModelProto, **told: Any) -> Path:
    """A .bc or .hbm; `phase` float for an HBIR before convert, `packed` for several networks in one file."""
    path.write_bytes(MAGIC[path.suffix] + json.dumps(told).encode() + b"\n" + model.SerializeToString())
    return path


def with_hz_operator(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a calibration marker of the vendor's domain behind its input."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    name = made.graph.input[0].name
    for node in made.graph.node:
        node.input[:] = [f"{name}_marked" if one == name else one for one in node.input]
    marker = onnx.helper.make_node("HzCalibration", [name], [f"{name}_marked"], "marker", domain="horizon")
    made.graph.node.insert(0, marker)
    made.opset_import.append(onnx.helper.make_opsetid("horizon", 1))
    return made
