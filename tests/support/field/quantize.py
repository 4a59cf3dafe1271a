"""The stages behind a float ONNX file, made as its users make them: with onnxruntime's own tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnxruntime.quantization import (  # type: ignore[import-untyped]
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process  # type: ignore[import-untyped]

Feeds = Mapping[str, NDArray[np.float32]]

_LEVELS = {
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
}

#: A session setting: on x86 processors whose 8-bit kernels saturate, take the exact ones.
EXACT_KERNELS = {"session.x64quantprecision": "1"}


def optimise(source: Path, target: Path, level: str, settings: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Write the graph that onnxruntime runs at that optimisation level; of a QDQ graph, integer operators."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = _LEVELS[level]
    options.optimized_model_filepath = str(target)
    for setting, value in settings.items():
        options.add_session_config_entry(setting, value)
    ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    return target


def calibrate(source: Path, target: Path, feeds: Iterable[Feeds], *, weight_bits: Literal[7, 8]) -> Path:
    """Write the QDQ form: signed integers, one scale a channel of weights, ranges by minimum and maximum.

    With 7 bits no x86 kernel saturates.
    """
    prepared = target.with_suffix(".prepared.onnx")
    quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        str(prepared),
        str(target),
        Reader(feeds),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        reduce_range=weight_bits == 7,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
    )
    prepared.unlink()
    return target


class Reader(CalibrationDataReader):  # type: ignore[misc]
    """Feeds in the form that the calibration asks for."""

    def __init__(self, feeds: Iterable[Feeds]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Feeds | None:
        return next(self._feeds, None)
