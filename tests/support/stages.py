"""The stages behind a float model, made with onnxruntime's own tools: optimised, quantised, on integers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import onnx
from onnxruntime.quantization import (  # type: ignore[import-untyped]
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process  # type: ignore[import-untyped]

from support.field.quantize import EXACT_KERNELS, Reader, optimise
from support.nets import Network

#: Signed integers, one scale for each channel of weights, ranges by minimum and maximum.
SIGNED: Mapping[str, Any] = MappingProxyType(
    {
        "quant_format": QuantFormat.QDQ,
        "per_channel": True,
        "activation_type": QuantType.QInt8,
        "weight_type": QuantType.QInt8,
        "calibrate_method": CalibrationMethod.MinMax,
    }
)
UNSIGNED = MappingProxyType({**SIGNED, "activation_type": QuantType.QUInt8})
SYMMETRIC = MappingProxyType({**SIGNED, "extra_options": {"ActivationSymmetric": True}})
ONE_SCALE = MappingProxyType({**SIGNED, "per_channel": False})
SEVEN_BITS = MappingProxyType({**SIGNED, "reduce_range": True})
SIXTEEN_BITS = MappingProxyType({**SIGNED, "activation_type": QuantType.QInt16})
PERCENTILE = MappingProxyType(
    {**SIGNED, "calibrate_method": CalibrationMethod.Percentile, "extra_options": {"CalibPercentile": 99.99}}
)
OPERATORS = MappingProxyType({**UNSIGNED, "quant_format": QuantFormat.QOperator, "per_channel": False})


def optimised(model: onnx.ModelProto, folder: Path, level: str = "extended") -> onnx.ModelProto:
    """What onnxruntime makes of a model at that level."""
    source = _saved(model, folder / "source.onnx")
    return onnx.load(str(optimise(source, folder / f"{level}.onnx", level)))


def quantised(network: Network, folder: Path, settings: Mapping[str, Any] = SIGNED) -> onnx.ModelProto:
    """A network calibrated on its own samples, with names for all nodes."""
    source = _saved(network.model, folder / "source.onnx")
    prepared, target = folder / "prepared.onnx", folder / "quantised.onnx"
    quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    quantize_static(str(prepared), str(target), Reader(network.feeds.values()), **settings)
    model = onnx.load(str(target))
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"node_{number}"
    return model


def on_integers(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """A quantised model with operators that compute on integers, as onnxruntime deploys it."""
    source = _saved(model, folder / "qdq.onnx")
    return onnx.load(str(optimise(source, folder / "integers.onnx", "extended", EXACT_KERNELS)))


def _saved(model: onnx.ModelProto, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))
    return path
