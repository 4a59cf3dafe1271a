"""Reads files of the stand-in toolchain: networks with what is told of them, or plain ONNX."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = {".bc": b"STAND-IN BC\n", ".hbm": b"STAND-IN HBM\n", ".onnx": b""}
#: The board's word for a type → numpy's.
TYPES: Mapping[str, Any] = {
    "U8": np.uint8,
    "S8": np.int8,
    "S16": np.int16,
    "S32": np.int32,
    "F32": np.float32,
    "F64": np.float64,
    "S64": np.int64,
    "BOOL8": np.bool_,
}
WORDS = {np.dtype(kind): word for word, kind in TYPES.items()}


@dataclass(frozen=True, slots=True)
class TensorTold:
    """An input or output; `stride` in bytes, -1 where it is dynamic, empty where the file does not say."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int | None = None
    stride: tuple[int, ...] = ()
    aligned_bytes: int = 0

    @property
    def kind(self) -> np.dtype[Any]:
        """The type as numpy has it."""
        kind: np.dtype[Any] = np.dtype(TYPES[self.dtype])
        return kind

    @property
    def valid_bytes(self) -> int:
        """How long the tensor is without padding."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.kind.itemsize

    @property
    def scaling(self) -> np.ndarray[Any, Any]:
        """The scales in the form in which they stretch over the tensor."""
        form = [1] * len(self.shape)
        if len(self.scales) > 1 and self.axis is not None:
            form[self.axis] = len(self.scales)
        return np.asarray(self.scales or (1.0,), np.float32).reshape(form)


@dataclass(frozen=True, slots=True)
class Network:
    """One network of a file: `told` is the line in front of its ONNX body, `ending` that of the file."""

    name: str
    ending: str
    told: Mapping[str, Any]
    body: bytes

    @property
    def march(self) -> str | None:
        """What it was converted for; None before convert."""
        march: str | None = self.told.get("march")
        return march

    @property
    def desc(self) -> Mapping[str, Any]:
        """What the builder wrote into it."""
        desc: Mapping[str, Any] = self.told.get("desc", {})
        return desc

    def tensors(self, direction: str) -> tuple[TensorTold, ...]:
        """Its `inputs` or `outputs`, as far as they are told."""
        return tuple(tensor_of(entry) for entry in self.told.get(direction, ()))


def tensor_of(entry: Mapping[str, Any]) -> TensorTold:
    """A tensor from its JSON."""
    told: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return TensorTold(**told)


def read(path: Path) -> tuple[Network, ...]:
    """The networks of a file. Raises RuntimeError where it is none of the toolchain's."""
    content = path.read_bytes()
    magic = MAGIC.get(path.suffix)
    if magic is None or not content.startswith(magic):
        raise RuntimeError(f"invalid model: {path}")
    if path.suffix == ".onnx":
        return (Network(path.stem, path.suffix, {}, content),)
    head, _, body = content[len(magic) :].partition(b"\n")
    told: Mapping[str, Any] = json.loads(head)
    return tuple(_networks(path, told, body))


def _networks(path: Path, told: Mapping[str, Any], body: bytes) -> Sequence[Network]:
    if "models" not in told:
        return [Network(told.get("name", path.stem), path.suffix, told, body)]
    found, at = [], 0
    for name, entry in told["models"].items():
        end = at + entry["length"]
        found.append(Network(name, path.suffix, {**told, **entry}, body[at:end]))
        at = end
    return found


def is_packed(networks: Sequence[Network]) -> bool:
    """Whether there are several, or the file says so."""
    return len(networks) > 1 or any(network.told.get("packed") for network in networks)
