"""Writes the demo as a project of its own: samples, labels, an artifact for every stage, and a driftgate.yaml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from driftgate.demo import graphs
from driftgate.demo.board import run_on_board
from driftgate.demo.engine import compile_program, quantize_input, run
from driftgate.demo.faults import FAULTS, Recipe
from driftgate.demo.network import INPUT, LOGITS, WHITE, Floats, fold, load, load_weights
from driftgate.demo.quantize import Int8s, Quantized, Scale, quantize
from driftgate.errors import UsageError
from driftgate.messages.message import message
from driftgate.storage.atomic import write_bytes
from driftgate.storage.npz import write_npz

CONFIG = "driftgate.yaml"
_COPIED = (CONFIG, "README.md")


def build(folder: Path, fault: str | None = None) -> Path:
    """Write the whole project into `folder`, made if need be, and return the path of its `driftgate.yaml`.

    With the name of a fault, that fault is planted. The same call writes the same bytes.
    Raises UsageError for an unknown fault, StorageError if a file cannot be written.
    """
    recipe = recipe_for(fault)
    weights, digits = load_weights(), load("digits")
    layers = fold(weights, epsilon=recipe.fold_epsilon)
    images = pixels(digits["evaluation"], recipe.evaluation_gain)
    quantized = quantize(layers, pixels(digits["calibration"], recipe.calibration_gain))

    write_npz(folder / "data" / "eval.npz", {INPUT: images})
    write_npz(folder / "data" / "labels.npz", {"labels": digits["labels"].astype(np.int64)})
    stages = folder / "stages"
    write_npz(stages / "pytorch.npz", {LOGITS: load("pytorch")[LOGITS]})
    write_bytes(stages / "original.onnx", graphs.exported(weights))
    write_bytes(stages / "optimized_float.onnx", graphs.optimized(layers))
    write_bytes(stages / "calibrated.onnx", graphs.calibrated(quantized))
    write_bytes(stages / "ptq.onnx", graphs.integer(quantized))
    _record(stages, images, quantized, recipe)
    for name in _COPIED:
        write_bytes(folder / name, (files("driftgate.demo") / "data" / name).read_bytes())
    return folder / CONFIG


def recipe_for(fault: str | None) -> Recipe:
    """How to build with that fault, or without one. Raises UsageError for an unknown name."""
    if fault is None:
        return Recipe()
    if fault not in FAULTS:
        raise UsageError(message("demo-fault-unknown", fault=fault, known=tuple(FAULTS)))
    return FAULTS[fault].recipe


def pixels(images: NDArray[np.generic], gain: float) -> Floats:
    """Grey values 0..16 as the network's 0..1, times `gain`."""
    floats: Floats = images.astype(np.float32) * np.float32(gain / WHITE)
    return floats


def _record(stages: Path, images: Floats, quantized: Quantized, recipe: Recipe) -> None:
    program = compile_program(quantized)
    fed = quantize_input(program, images)
    recordings = {"quantized": run(program, fed), "hbm": run_on_board(recipe.compiled(program), fed)}
    for stage, tensors in recordings.items():
        _write_recording(stages, stage, tensors, program.target)


def _write_recording(stages: Path, stage: str, tensors: Mapping[str, Int8s], scale: Scale) -> None:
    """All activations; the signature says which of them is the output."""
    output = {"scales": [float(scale.step)], "zero_points": [scale.zero_point], "axis": None}
    signature = json.dumps({"outputs": {LOGITS: output}}, indent=2)
    write_npz(stages / f"{stage}.npz", tensors)
    write_bytes(stages / f"{stage}.signature.json", f"{signature}\n".encode())
