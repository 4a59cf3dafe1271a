"""What a model takes and gives: names, types and shapes of its inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quantization:
    """How integers stand for numbers: value = (integer - zero_point) * scale, per tensor or along `axis`."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...] = (0,)
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output. `dtype` is numpy's name; a dynamic dimension is None; `step` is the size of one
    LSB of a float tensor that comes out of a dequantise node, where it is known."""

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None = None
    quantization: Quantization | None = None
    step: float | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """All inputs and outputs in the model's order."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
