"""Causes in networks of others: another checkpoint, calibration with raw pixels, a detector's worst rounding."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort  # type: ignore[import-untyped]
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from support.field import ppocr, silero
from support.field.quantize import calibrate
from support.field.run import check
from support.fieldnets import detector

STEPS = 30
RAW_PIXELS = {"calibration-preprocess-mismatch", "calibration-not-representative"}


def findings(folder: Path) -> list[dict[str, Any]]:
    """What `driftgate explain` says about an evidence folder, best first."""
    command = [sys.executable, "-m", "driftgate", "explain", str(folder), "--json", "--seconds", "600"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def session(model: onnx.ModelProto | Path) -> ort.InferenceSession:
    """Runs a model as it stands, one thread."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def test_the_half_sized_model_of_another_training_is_told_as_such(tmp_path: Path) -> None:
    silero.build(tmp_path)
    folder = tmp_path / "evidence"
    folder.mkdir()
    shutil.copyfile(tmp_path / "silero_vad_openvino_16k.onnx", folder / "model_a.onnx")
    shutil.copyfile(tmp_path / "silero_vad_half.onnx", folder / "model_b.onnx")
    frames = np.load(tmp_path / "frames" / "second-03.npz")["input"]
    network, state = session(folder / "model_a.onnx"), np.zeros((2, 1, 128), np.float32)
    for frame in frames[:STEPS]:
        _, state = network.run(None, {"input": frame, "state": state})
    np.savez(folder / "inputs.npz", input=frames[STEPS], state=state)
    assert findings(folder)[0]["code"] == "weights-mismatch"


def test_calibration_with_raw_pixels_is_the_cause_that_a_check_names(tmp_path: Path) -> None:
    ppocr.build(tmp_path)
    config = """
version: 1
defaults: {threads: 1}
subjects:
  cls:
    artifacts: {onnx: cls.onnx, optimized_float: cls_optimized.onnx, calibrated: cls_miscalibrated.onnx}
    samples: {raw: strips.npz}
"""
    checked = check(tmp_path, config)
    assert checked.outcomes["float-int8"] == "failed"
    assert checked.judgement["findings"][0]["code"] in RAW_PIXELS, checked.printed
    assert checked.judgement["findings"][0]["confirmed"]


@pytest.mark.parametrize("bits", [7, 8])
def test_the_rounding_that_a_finding_names_is_among_the_three_that_cost_a_detector_most(
    bits: Any, tmp_path: Path
) -> None:
    network = detector(tmp_path)
    folder = tmp_path / "evidence"
    folder.mkdir()
    feeds: list[dict[str, Any]] = [dict(feed) for feed in network.feeds.values()]
    onnx.save(network.model, folder / "model_a.onnx")
    calibrate(folder / "model_a.onnx", folder / "model_b.onnx", feeds, weight_bits=bits)
    np.savez(folder / "inputs.npz", **feeds[0])
    named = findings(folder)[0]["subjects"][0]
    ranked = ablation(folder / "model_a.onnx", folder / "model_b.onnx", feeds[0])
    assert len(ranked) > 200
    assert named in ranked[:3]


def ablation(reference: Path, candidate: Path, feeds: Mapping[str, NDArray[np.float32]]) -> list[str]:
    """Rounded activations by the error that is left when each alone is a float again, smallest first."""
    (wanted,) = session(reference).run(None, dict(feeds))
    model = onnx.load(str(candidate))
    errors = {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            (made,) = session(with_one_float(model, node)).run(None, dict(feeds))
            errors[node.input[0]] = float(((made - wanted) ** 2).mean())
    return sorted(errors, key=lambda name: errors[name])


def with_one_float(model: onnx.ModelProto, quantiser: onnx.NodeProto) -> onnx.ModelProto:
    """The model with a tensor's rounding taken out; one from zero up cuts off as the Relu did that it replaced."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    scale, zero = (constants[name] for name in quantiser.input[1:3])
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for place, node in enumerate(copy.graph.node):
        if node.op_type != "DequantizeLinear" or node.input[0] != quantiser.output[0]:
            continue
        source, (target,) = quantiser.input[0], node.output
        free = helper.make_node("Identity", [source], [target])
        if zero == np.iinfo(zero.dtype).min:
            span = np.array(scale * (np.iinfo(zero.dtype).max - np.int32(zero)), np.float32)
            limits = (np.zeros((), np.float32), span)
            names = [f"limit_{number}" for number in range(2)]
            copy.graph.initializer.extend(map(numpy_helper.from_array, limits, names))
            free = helper.make_node("Clip", [source, *names], [target])
        copy.graph.node[place].CopyFrom(free)
    return copy
