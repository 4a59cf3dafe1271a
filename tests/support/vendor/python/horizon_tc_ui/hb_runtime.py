"""STAND-IN for horizon_tc_ui.hb_runtime, for tests only: files of `support.vendor.models`, run by ONNX Runtime.

As the real one it prints to stdout, takes feeds by name, checks their types, and gives a list in output order.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort  # type: ignore[import-untyped]

MAGIC = {".bc": b"STAND-IN BC\n", ".hbm": b"STAND-IN HBM\n", ".onnx": b""}
#: How it misbehaves, for tests: die, hang, few (one output too few).
FAULT = os.environ.get("STAND_IN_FAULT", "")


class HBRuntime:
    """What a path is loaded into."""

    def __init__(self, path: str) -> None:
        print("========= Model Input Info =========", flush=True)
        ending, content = Path(path).suffix, Path(path).read_bytes()
        if ending not in MAGIC or not content.startswith(MAGIC[ending]):
            raise RuntimeError("invalid model: " + path)
        body = content[len(MAGIC[ending]) :]
        told: dict[str, Any] = {}
        if ending != ".onnx":
            head, _, body = body.partition(b"\n")
            told = json.loads(head)
        if told.get("packed"):
            raise ValueError("Input model " + path + " is a packed model and is not supported now.")
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        self._session = ort.InferenceSession(standard(body), options, providers=["CPUExecutionProvider"])
        self.input_names = [value.name for value in self._session.get_inputs()]
        self.output_names = [value.name for value in self._session.get_outputs()]
        self._types = {value.name: value.type for value in self._session.get_inputs()}
        if ending == ".bc":
            self.current_phase = "export" if told.get("phase") == "float" else None

    def run(self, output_names: list[str] | None, feeds: dict[str, Any]) -> list[Any]:
        """The outputs in order; a float input takes float32, uint8 and int8, others what they are."""
        if FAULT == "die":
            os._exit(3)
        if FAULT == "hang":
            time.sleep(600)
        given = {}
        for name, value in feeds.items():
            if value.dtype not in (np.float32, np.uint8, np.int8, np.int16, np.int32):
                raise ValueError(f"The input data type {value.dtype} is illegal! ")
            wanted = np.float32 if self._types[name] == "tensor(float)" else value.dtype
            given[name] = value.astype(wanted)
        made: list[Any] = self._session.run(output_names, given)
        print("========= Model Run Success =========", flush=True)
        return made[:-1] if FAULT == "few" else made


def standard(body: bytes) -> bytes:
    """The model with the operators that stand for the vendor's own replaced by ordinary ones."""
    model = onnx.load_from_string(body)
    for node in model.graph.node:
        if node.op_type == "HzCalibration":
            node.op_type, node.domain = "Identity", ""
            del node.attribute[:]
    return bytes(model.SerializeToString())
