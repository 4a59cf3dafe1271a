"""A network as nodes and tensors, whatever format it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from driftgate.domain.tensors import Quantization


@dataclass(frozen=True, slots=True)
class Node:
    """One operator. Empty strings among the inputs are inputs that are left out."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Quantizer:
    """How integers stand for numbers, and the least and largest integer there is room for."""

    quantization: Quantization
    low: int
    high: int

    @property
    def step(self) -> float | None:
        """One LSB, where there is one scale."""
        return self.quantization.scales[0] if len(self.quantization.scales) == 1 else None

    @property
    def range(self) -> tuple[float, float] | None:
        """The numbers that fit, where there is one scale."""
        if self.step is None:
            return None
        zero = self.quantization.zero_points[0]
        return (self.low - zero) * self.step, (self.high - zero) * self.step


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which they can run. `constants` are the tensors that no input reaches, with their
    shapes; `quantizers` tells, for the tensors that are integers standing for numbers, which numbers; `casts` for
    results of a Cast to floats their type, `handed` for every result its operator's first input."""

    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    quantizers: Mapping[str, Quantizer] = field(default_factory=dict)
    scalars: Mapping[str, float] = field(default_factory=dict)  # constants of one element, by value
    casts: Mapping[str, str] = field(default_factory=dict)
    handed: Mapping[str, str] = field(default_factory=dict)
