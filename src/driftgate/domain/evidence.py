"""An evidence folder as values: what lay there of one link, tensors read when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from driftgate.messages.message import Message

Tensors = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class BoardInput:
    """How the runtime describes its input; lengths in pixels, `stride` in bytes a row. None: not told."""

    type: str
    height: int | None = None
    width: int | None = None
    stride: int | None = None


@dataclass(frozen=True, slots=True)
class BoardOutput:
    """How the runtime describes one output; `strides` in bytes an axis. Empty tuples and None: not told."""

    name: str
    dtype: str = ""
    scales: tuple[float, ...] = ()
    step: float | None = None
    axis: int | None = None
    valid_shape: tuple[int, ...] = ()
    aligned_shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Board:
    """board.json."""

    input: BoardInput | None = None
    outputs: tuple[BoardOutput, ...] = ()

    def output(self, name: str) -> BoardOutput | None:
        """The description of an output by name."""
        return next((output for output in self.outputs if output.name == name), None)


@dataclass(frozen=True, slots=True)
class QuantParams:
    """quant_params.json: a step by tensor (threshold / (2^(bits-1) - 1), or its scale), and the bits.

    `unscaled` are tensors that are listed without a usable number.
    """

    bits: int = 8
    bits_of: Mapping[str, int] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)
    unscaled: tuple[str, ...] = ()

    def threshold(self, tensor: str) -> float:
        """The largest magnitude that fits."""
        return float(self.steps[tensor] * (2 ** (self.bits_of.get(tensor, self.bits) - 1) - 1))


@dataclass(frozen=True, slots=True)
class LinkNote:
    """link.json: which stages are compared; empty strings where it does not say."""

    reference: str = ""
    candidate: str = ""
    kind: str = ""
    platform: str = ""
    policy: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is there; an absent file is an empty mapping or None. `problems` are files that cannot be used.

    Looking a tensor up raises StorageError where its bytes are damaged.
    """

    folder: Path
    feeds_a: Tensors = field(default_factory=dict)
    feeds_b: Tensors = field(default_factory=dict)
    outputs_a: Tensors = field(default_factory=dict)
    outputs_b: Tensors = field(default_factory=dict)
    layers_a: Tensors = field(default_factory=dict)
    layers_b: Tensors = field(default_factory=dict)
    model_a: Path | None = None
    model_b: Path | None = None
    load_error: str | None = None
    order: tuple[str, ...] = ()
    ops: Mapping[str, str] = field(default_factory=dict)
    quant: QuantParams | None = None
    weights: Tensors = field(default_factory=dict)
    calib: Tensors = field(default_factory=dict)
    board: Board | None = None
    buffers: Tensors = field(default_factory=dict)  # bytes of `<name>.bin`, by name without the suffix
    raw: Tensors = field(default_factory=dict)
    post: Mapping[str, float] = field(default_factory=dict)
    ablation: Mapping[str, float] = field(default_factory=dict)
    link: LinkNote = LinkNote()
    problems: tuple[Message, ...] = ()
