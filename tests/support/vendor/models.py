"""Files of the stand-in toolchain: ONNX models behind a line that says what they stand for."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from support.vendor.files import MAGIC

PACKAGES = Path(__file__).with_name("python")


def interpreter(fault: str = "", **environment: str) -> list[str]:
    """A command that stands for the interpreter of an OpenExplorer environment."""
    program = "env"
    told = [f"{name}={value}" for name, value in environment.items()]
    return [program, f"PYTHONPATH={PACKAGES}", f"STAND_IN_FAULT={fault}", *told, sys.executable]


def write(path: Path, model: onnx.ModelProto, **told: Any) -> Path:
    """A .bc or .hbm.

    `told`: `phase` float for an HBIR before convert, `packed` for several networks in one file; `name`, `march` (None
    before convert, else nash-m), `version` of hbdk, `desc` that the builder wrote into it, `removable` nodes as
    [node, type], and `inputs` and `outputs`, each {name, shape, dtype, scales, zero_points, axis, stride,
    aligned_bytes}. What is not told is found in the model where it is used.
    """
    told = {"march": None if told.get("phase") == "float" else "nash-m", **told}
    path.write_bytes(MAGIC[path.suffix] + json.dumps(told).encode() + b"\n" + model.SerializeToString())
    return path


def write_packed(path: Path, models: Mapping[str, tuple[onnx.ModelProto, Mapping[str, Any]]], **told: Any) -> Path:
    """Several networks in one file, each with what is told of it; `told` holds for all."""
    bodies = {name: model.SerializeToString() for name, (model, _) in models.items()}
    entries = {name: {**own, "length": len(bodies[name])} for name, (_, own) in models.items()}
    head = json.dumps({**told, "models": entries}).encode()
    path.write_bytes(MAGIC[path.suffix] + head + b"\n" + b"".join(bodies.values()))
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
