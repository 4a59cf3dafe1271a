"""Faults one can plant in the demo: what goes wrong, and the row of the table that must show it first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from driftgate.demo.engine import FixedPoint, Instruction, Program
from driftgate.demo.network import CONV4, DW2, EPSILON, PW3, WHITE, Layer
from driftgate.messages.message import Message, message


def as_compiled(program: Program) -> Program:
    """What a right compiler does to the fixed-point program: nothing."""
    return program


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a project is made; the defaults make a healthy one. What goes wrong early is passed on to later stages.

    Gains multiply the images that are evaluated and those the ranges come from; 1 means pixels in 0..1.
    """

    evaluation_gain: float = 1.0
    calibration_gain: float = 1.0
    fold_epsilon: float = EPSILON
    compiled: Callable[[Program], Program] = as_compiled


@dataclass(frozen=True, slots=True)
class Fault:
    """A named fault: `check` is the slug of the first row to fail, `stage` the first stage that is wrong."""

    name: str
    check: str
    stage: str
    planted: Message
    recipe: Recipe


def _pad_with_zero(program: Program) -> Program:
    return _changed(program, CONV4, lambda instruction: replace(instruction, border=0))


def _reverse_channels(program: Program) -> Program:
    return _changed(program, DW2, lambda instruction: replace(instruction, weight=instruction.weight[::-1]))


def _scale_too_high(program: Program) -> Program:
    def raised(instruction: Instruction) -> Instruction:
        factors = instruction.rescale
        return replace(instruction, rescale=FixedPoint(factors.multiplier * 21 // 20, factors.shift))

    return _changed(program, PW3, raised)


def _changed(program: Program, layer: Layer, change: Callable[[Instruction], Instruction]) -> Program:
    instructions = dict(program.instructions)
    instructions[layer.name] = change(instructions[layer.name])
    return replace(program, instructions=instructions)


_TABLE = (
    Fault(
        "input-scale",
        "pytorch-onnx",
        "onnx",
        message("demo-fault-input-scale"),
        Recipe(evaluation_gain=WHITE, calibration_gain=WHITE),
    ),
    Fault(
        "optimizer-fold",
        "onnx-optimized",
        "optimized_float",
        message("demo-fault-optimizer-fold"),
        Recipe(fold_epsilon=1e-3),
    ),
    Fault(
        "calibration-range",
        "float-int8",
        "calibrated",
        message("demo-fault-calibration-range"),
        Recipe(calibration_gain=1 / WHITE),
    ),
    Fault("board-padding", "bc-hbm", "hbm", message("demo-fault-board-padding"), Recipe(compiled=_pad_with_zero)),
    Fault("board-channels", "bc-hbm", "hbm", message("demo-fault-board-channels"), Recipe(compiled=_reverse_channels)),
    Fault("board-scale", "bc-hbm", "hbm", message("demo-fault-board-scale"), Recipe(compiled=_scale_too_high)),
)

#: In the order of the route.
FAULTS = {fault.name: fault for fault in _TABLE}
