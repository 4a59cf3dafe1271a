"""Runs networks of the stand-in toolchain with ONNX Runtime, as they stand: without optimisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]

from support.vendor.files import WORDS, Network, TensorTold
from support.vendor.layouts import laid_out

Arrays = Mapping[str, np.ndarray[Any, Any]]
MARKER = "HzCalibration"
#: ONNX Runtime's word for a type → the board's.
SESSION_TYPES = {
    "tensor(float)": "F32",
    "tensor(double)": "F64",
    "tensor(uint8)": "U8",
    "tensor(int8)": "S8",
    "tensor(int16)": "S16",
    "tensor(int32)": "S32",
    "tensor(int64)": "S64",
    "tensor(bool)": "BOOL8",
}


class Runner:
    """One network, with its tensors as the file tells them or as the model has them."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._session = session(standard(network.body))
        self.inputs = self._tensors("inputs", self._session.get_inputs())
        self.outputs = self._tensors("outputs", self._session.get_outputs())

    def _tensors(self, direction: str, found: Sequence[Any]) -> tuple[TensorTold, ...]:
        told = {tensor.name: tensor for tensor in self.network.tensors(direction)}
        return tuple(told.get(value.name) or self._tensor(value) for value in found)

    def _tensor(self, value: Any) -> TensorTold:
        shape = tuple(length if isinstance(length, int) else 1 for length in value.shape)
        tensor = TensorTold(value.name, shape, SESSION_TYPES[value.type])
        return laid_out(tensor, self.network.march or "", padded=True)

    def run(self, feeds: Arrays, names: Sequence[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """The outputs by name, in the types of the model."""
        wanted = list(names) if names is not None else [tensor.name for tensor in self.outputs]
        return dict(zip(wanted, self._session.run(wanted, dict(feeds)), strict=True))


def session(body: bytes) -> ort.InferenceSession:
    """A session on one thread that changes nothing about the model."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(body, options, providers=["CPUExecutionProvider"])


def standard(body: bytes) -> bytes:
    """The model with the operators that stand for the vendor's own replaced by ordinary ones."""
    if MARKER.encode() not in body:
        return body
    import onnx

    model = onnx.load_from_string(body)
    for node in model.graph.node:
        if node.op_type == MARKER:
            node.op_type, node.domain = "Identity", ""
            del node.attribute[:]
    return bytes(model.SerializeToString())


def accepted(tensor: TensorTold, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A feed in the type of the input; ValueError for one that the runtime does not take (toolchain facts §4.1)."""
    takes = {"F32": ("U8", "S8", "F32"), "U8": ("U8", "S8"), "S8": ("U8", "S8")}.get(tensor.dtype, (tensor.dtype,))
    if WORDS.get(value.dtype) not in takes:
        raise ValueError(f"The input data type {value.dtype} is illegal! ")
    return value.astype(tensor.kind)


def dequantised(tensor: TensorTold, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The numbers that an output's integers stand for; floats as they are."""
    if not tensor.scales:
        return value
    zero = replace(tensor, scales=tuple(map(float, tensor.zero_points or (0,)))).scaling
    numbers: np.ndarray[Any, Any] = (value.astype(np.float32) - zero) * tensor.scaling
    return numbers.astype(np.float32)
