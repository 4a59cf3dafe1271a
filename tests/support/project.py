"""Small projects in a folder of the test: models, recordings, samples, labels and a driftgate.yaml."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from numpy.typing import NDArray

from support.models import BIAS, WEIGHT, answer, save, tiny

Array = NDArray[Any]

STAND_IN = Path(__file__).with_name("torch_stand_in.py")
LOSS = np.float32(0.01)  # what the calibrated stage of a healthy project is off by


def inputs(count: int, seed: int = 0) -> Array:
    """Feeds of the tiny network, (count, 3)."""
    return np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)


def classes(x: Array) -> Array:
    """What the tiny network takes them for."""
    found: Array = answer(x).argmax(1)
    return found


def biased(shift: float) -> onnx.ModelProto:
    """The tiny network with another bias."""
    proto = tiny()
    bias = next(tensor for tensor in proto.graph.initializer if tensor.name == "bias")
    bias.CopyFrom(onnx.numpy_helper.from_array(BIAS + np.float32(shift), "bias"))
    return proto


@dataclass(slots=True)
class Project:
    """A folder with a driftgate.yaml; every method returns the path that stands in it."""

    root: Path
    subject: dict[str, Any] = field(default_factory=dict)
    top: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The configuration."""
        return self.root / "driftgate.yaml"

    @property
    def artifacts(self) -> dict[str, Any]:
        """The artifacts of the one subject."""
        found: dict[str, Any] = self.subject["artifacts"]
        return found

    def onnx(self, name: str, proto: onnx.ModelProto) -> str:
        """A model."""
        save(proto, self.root / name)
        return name

    def npz(self, name: str, **arrays: Any) -> str:
        """A stacked file: samples, labels, or a recording."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **arrays)
        return name

    def signature(self, name: str, **outputs: Mapping[str, Any]) -> str:
        """The signature of a recording."""
        (self.root / name).write_text(json.dumps({"outputs": outputs}))
        return name

    def csv(self, name: str, rows: Sequence[Sequence[object]]) -> str:
        """A table."""
        with (self.root / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        return name

    def write(self, **top: Any) -> Path:
        """driftgate.yaml with the one subject `net`; `top` are further keys, or others for those there are."""
        document = {"version": 1, "subjects": {"net": self.subject}, **self.top, **top}
        return self.text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))

    def text(self, content: str) -> Path:
        """driftgate.yaml, word for word."""
        self.config.write_text(content, encoding="utf-8")
        return self.config


def two_stages(root: Path, *, count: int = 6, shift: float = 0.0) -> Project:
    """pytorch as a recording and onnx as a model, whose bias is off by `shift`."""
    project = Project(root)
    x = inputs(count)
    project.subject = {
        "artifacts": {
            "pytorch": project.npz("pytorch.npz", y=answer(x)),
            "onnx": project.onnx("net.onnx", biased(shift)),
        },
        "samples": {"raw": project.npz("eval.npz", x=x), "block": 2},
    }
    return project


def whole_chain(root: Path, *, count: int = 10, block: int = 3) -> Project:
    """All six rows of the table: recordings and models, labels, and a declared score of 100 %."""
    project = two_stages(root, count=count)
    x = inputs(count)
    integers = np.clip(np.round(answer(x) / 0.05), -128, 127).astype(np.int8)
    for stage in ("quantized", "hbm"):
        project.artifacts[stage] = project.npz(f"{stage}.npz", y=integers)
        project.signature(f"{stage}.signature.json", y={"scales": [0.05], "zero_points": [0], "axis": None})
    project.artifacts["optimized_float"] = project.onnx("optimized.onnx", tiny())
    project.artifacts["calibrated"] = project.onnx("calibrated.onnx", biased(float(LOSS)))
    project.subject["samples"]["block"] = block
    project.subject["score"] = {
        "task": "classification",
        "labels": project.npz("labels.npz", labels=classes(x)),
        "baseline": {"top1": f"{count}/{count}"},
    }
    return project


def torch_stand_in(
    project: Project, fault: str = "", *, timeout: float = 60, mark: Path | None = None
) -> dict[str, Any]:
    """An artifact of the torch backend whose interpreter is a stand-in that computes the tiny network.

    `fault` is what it does at the sample with the number 2, after it has made the file `mark`.
    """
    project.npz("weights.npz", weight=WEIGHT, bias=BIAS)
    python = [sys.executable, str(STAND_IN), fault, str(mark or project.root / "mark")]
    return {"backend": "torch", "python": python, "load": "net:load", "weights": "weights.npz", "timeout": timeout}
