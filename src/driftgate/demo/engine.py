"""The demo's fixed-point engine: runs the int8 network with integer arithmetic only, as an accelerator does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftgate.demo.arithmetic import convolve, max_pool
from driftgate.demo.network import (
    BRANCH,
    CONV1,
    CONV4,
    DW2,
    FC,
    INPUT,
    JOINED,
    LAYERS,
    LOGITS,
    POOLED,
    PW3,
    RELU1,
    RELU4,
    Floats,
    Layer,
)
from driftgate.demo.quantize import HIGHEST, LOWEST, Int8s, Quantized, Scale

Int64s = NDArray[np.int64]

MULTIPLIER_BITS = 31
ADDEND_BITS = 24


@dataclass(frozen=True, slots=True, eq=False)
class FixedPoint:
    """Real factors as integers: factor = multiplier / 2 ** shift, one an output channel."""

    multiplier: Int64s
    shift: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One layer as the engine runs it: weight, bias, rescaling to the output's step, zero points, border value."""

    weight: Int64s
    bias: Int64s
    rescale: FixedPoint
    source_zero: int
    target_zero: int
    border: int


@dataclass(frozen=True, slots=True)
class Program:
    """The compiled network: an instruction for every layer by name, the two addends of the sum, input, output."""

    instructions: Mapping[str, Instruction]
    addends: tuple[tuple[str, int, int], ...]  # tensor, its zero point, its factor in 2 ** -ADDEND_BITS
    joined_zero: int
    source: Scale
    target: Scale


def compile_program(quantized: Quantized) -> Program:
    """Turn every real scale into integer multipliers and shifts."""
    scales = quantized.scales
    joined = scales[JOINED]
    return Program(
        instructions={layer.name: _instruction(layer, quantized) for layer in LAYERS},
        addends=tuple(
            (name, scales[name].zero_point, round(float(scales[name].step) / float(joined.step) * 2**ADDEND_BITS))
            for name in (BRANCH, RELU1)
        ),
        joined_zero=joined.zero_point,
        source=scales[INPUT],
        target=scales[LOGITS],
    )


def quantize_input(program: Program, images: Floats) -> Int8s:
    """The only step in floating point, done by whoever feeds the engine: half to even, like QuantizeLinear."""
    source = program.source
    integers: Floats = np.rint(images / source.step) + np.float32(source.zero_point)
    return np.clip(integers, LOWEST, HIGHEST).astype(np.int8)


def run(program: Program, images: Int8s) -> dict[str, Int8s]:
    """Every activation by name, for int8 images (n, 1, 8, 8); `logits` is (n, 10)."""
    tensors = {INPUT: images}

    def convolved(layer: Layer) -> Int8s:
        return _convolved(layer, program.instructions[layer.name], tensors[layer.source])

    for layer in (CONV1, DW2, PW3):
        tensors[layer.target] = convolved(layer)
    tensors[JOINED] = _joined(program, tensors)
    tensors[RELU4] = convolved(CONV4)
    tensors[POOLED] = max_pool(tensors[RELU4].astype(np.int64)).astype(np.int8)
    tensors[LOGITS] = convolved(FC).reshape(len(images), -1)
    return tensors


def fixed_point(factors: NDArray[np.float64]) -> FixedPoint:
    """Factors as 31-bit multipliers with the shift that keeps all bits in use."""
    mantissas, exponents = np.frexp(factors)
    multiplier = np.rint(mantissas * 2**MULTIPLIER_BITS).astype(np.int64)
    return FixedPoint(multiplier, MULTIPLIER_BITS - exponents.astype(np.int64))


def shifted(values: Int64s, shift: Int64s | int) -> Int64s:
    """values / 2 ** shift, to the nearest integer, halves away from zero."""
    half = np.int64(1) << (np.asarray(shift, np.int64) - 1)
    nearest: Int64s = np.sign(values) * ((np.abs(values) + half) >> shift)
    return nearest


def _instruction(layer: Layer, quantized: Quantized) -> Instruction:
    part = quantized.layers[layer.name]
    source, target = quantized.scales[layer.source], quantized.scales[layer.target]
    factors = float(source.step) * part.steps.astype(np.float64) / float(target.step)
    return Instruction(
        weight=part.weight.astype(np.int64),
        bias=part.bias.astype(np.int64),
        rescale=fixed_point(factors),
        source_zero=source.zero_point,
        target_zero=target.zero_point,
        border=source.zero_point,
    )


def _convolved(layer: Layer, instruction: Instruction, source: Int8s) -> Int8s:
    products = convolve(source.astype(np.int64), instruction.weight, layer, fill=instruction.border)
    offset = instruction.bias - instruction.source_zero * instruction.weight.sum(axis=(1, 2, 3))
    sums = products + _by_channel(offset)
    scaled = sums * _by_channel(instruction.rescale.multiplier)
    integers = shifted(scaled, _by_channel(instruction.rescale.shift)) + instruction.target_zero
    lowest = instruction.target_zero if layer.relu else LOWEST
    return np.clip(integers, lowest, HIGHEST).astype(np.int8)


def _joined(program: Program, tensors: Mapping[str, Int8s]) -> Int8s:
    terms = [(tensors[name].astype(np.int64) - zero) * factor for name, zero, factor in program.addends]
    integers = shifted(terms[0] + terms[1], ADDEND_BITS) + program.joined_zero
    return np.clip(integers, program.joined_zero, HIGHEST).astype(np.int8)


def _by_channel(values: Int64s) -> Int64s:
    return values[:, None, None]
