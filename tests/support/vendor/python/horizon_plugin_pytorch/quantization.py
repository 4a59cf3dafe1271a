"""STAND-IN for horizon_plugin_pytorch.quantization, for tests only: fake quantisation of activations in real PyTorch.

As the real one (toolchain facts §10) a network is prepared, calibrated, trained, and exported with tables in place of
functions; in every state but VALIDATION its outputs depend on what it has seen before, or are those of floats.
"""

from __future__ import annotations

import copy
from enum import Enum
from typing import Any

import torch  # type: ignore[import-not-found]

from .qtensor import QTensor

LARGEST = 127
MOMENTUM = 0.3
#: What is followed by a fake quantiser, and what is replaced by a table at export.
FUNCTIONS = (torch.nn.Sigmoid, torch.nn.Tanh)
ACTIVATIONS = (torch.nn.ReLU, *FUNCTIONS)
TABLE_STEPS = 256
TABLE_RANGE = 8.0


class FakeQuantState(Enum):
    """What the fake quantisers of a network do."""

    QAT = "qat"
    CALIBRATION = "calibration"
    VALIDATION = "validation"
    _FLOAT = "_float"


class FakeQuantize(torch.nn.Module):  # type: ignore[misc]
    """Rounds to int8; while it is trained or calibrated, its range follows each input."""

    def __init__(self) -> None:
        super().__init__()
        self.state = FakeQuantState.CALIBRATION
        self.register_buffer("scale", torch.tensor(0.0))

    def forward(self, x: Any) -> Any:
        """The input in steps of the scale, which goes with it."""
        if self.state is FakeQuantState._FLOAT:
            return QTensor.of(x, self.scale)
        if self.state is not FakeQuantState.VALIDATION:
            seen = x.detach().abs().max() / LARGEST
            self.scale.copy_(torch.where(self.scale > 0, self.scale + MOMENTUM * (seen - self.scale), seen))
        rounded = torch.clamp(torch.round(x / self.scale), -LARGEST - 1, LARGEST) * self.scale
        return QTensor.of(rounded, self.scale)


class Table(torch.nn.Module):  # type: ignore[misc]
    """A function as a table of points, the nearest of which is taken."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        points = torch.linspace(-TABLE_RANGE, TABLE_RANGE, TABLE_STEPS)
        self.register_buffer("values", function(points))

    def forward(self, x: Any) -> Any:
        """The value at the nearest point."""
        place = torch.round((x + TABLE_RANGE) * (TABLE_STEPS - 1) / (2 * TABLE_RANGE))
        return self.values[place.clamp(0, TABLE_STEPS - 1).long()]


def set_fake_quantize(model: Any, state: FakeQuantState) -> None:
    """Put every fake quantiser of a network into a state; a network that is compared must be in eval mode before."""
    if state is FakeQuantState.VALIDATION and any(module.training for module in model.modules()):
        raise AssertionError("Call model.eval() before VALIDATION")
    for module in model.modules():
        if isinstance(module, FakeQuantize):
            module.state = state


def prepare(model: Any) -> Any:
    """A copy of a float network with a fake quantiser behind each activation, ready for calibration."""
    return _replaced(copy.deepcopy(model), ACTIVATIONS, lambda found: torch.nn.Sequential(found, FakeQuantize()))


def pre_export(model: Any) -> Any:
    """A copy of a prepared network with tables in place of functions."""
    return _replaced(copy.deepcopy(model), FUNCTIONS, Table)


def _replaced(model: Any, kinds: tuple[type, ...], made: Any) -> Any:
    for name, child in [*model.named_children()]:
        setattr(model, name, made(child) if isinstance(child, kinds) else _replaced(child, kinds, made))
    return model
