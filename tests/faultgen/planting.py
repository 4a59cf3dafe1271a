"""What a planter is, and the evidence folder it writes."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

Array = NDArray[Any]
Tensors = Mapping[str, Array]
Random = np.random.Generator

#: A fault that moves the outputs by less than this share of their size is not planted.
VISIBLE = 0.02


class Redraw(Exception):
    """These random parameters do not show the cause; take others."""


def need(condition: bool | np.bool_) -> None:
    """Redraw unless the condition holds."""
    if not condition:
        raise Redraw


#: A planter that does not show its cause in as many draws is itself at fault.
DRAWS = 60


def planted(name: str, plant: Callable[[Random, Path], None], folder: Path) -> None:
    """Write an evidence folder, its random numbers drawn from the name alone.

    Raises RuntimeError where no draw shows the cause.
    """
    random = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
    for _ in range(DRAWS):
        try:
            plant(random, folder)
        except Redraw:
            continue
        return
    shutil.rmtree(folder, ignore_errors=True)
    raise RuntimeError(f"{name}: no draw of {DRAWS} shows the cause")


@dataclass(frozen=True, slots=True)
class Planter:
    """A way to plant one cause. `plant` writes an evidence folder or raises Redraw; `also` are codes that would be
    right too, decided before anything was tried."""

    code: str
    family: str
    plant: Callable[[Random, Path], None]
    also: tuple[str, ...] = ()
    variant: str = ""

    @property
    def name(self) -> str:
        """Code and variant, unique among the planters."""
        return f"{self.code}.{self.variant}" if self.variant else self.code


def save(
    folder: Path,
    *,
    tensors: Mapping[str, Tensors | None],
    models: Mapping[str, onnx.ModelProto | None] | None = None,
    documents: Mapping[str, object] | None = None,
    buffers: Mapping[str, bytes] | None = None,
) -> None:
    """Write the files: archives, models and documents by name without the suffix, buffers and texts by full name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, arrays in tensors.items():
        if arrays is not None:
            held: dict[str, Any] = dict(arrays)
            np.savez(folder / f"{name}.npz", **held)
    for name, model in (models or {}).items():
        if model is not None:
            (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    for name, document in (documents or {}).items():
        if document is not None:
            (folder / f"{name}.json").write_text(json.dumps(document, indent=1), "utf-8")
    for name, content in (buffers or {}).items():
        (folder / name).write_bytes(content)


def gap(reference: Tensors, candidate: Tensors) -> float:
    """The largest share over the outputs of |difference| in |reference|, centred; infinite where shapes or
    finiteness differ."""
    return max(_gap(reference[name], candidate[name]) for name in reference)


def _gap(reference: Array, candidate: Array) -> float:
    if reference.shape != candidate.shape:
        return float("inf")
    a, b = reference.astype(np.float64), candidate.astype(np.float64)
    if not np.isfinite(b).all():
        return float("inf")
    size = float(np.linalg.norm(a - a.mean()))
    difference = float(np.linalg.norm(a - b))
    return difference / size if size else (float("inf") if difference else 0.0)


def all_live(outputs: Tensors) -> bool:
    """Whether every output is finite and not constant."""
    return all(np.isfinite(array).all() and float(array.std()) > 1e-6 for array in outputs.values())


def chosen(random: Random, items: Sequence[Any]) -> Any:
    """One of the items."""
    return items[int(random.integers(len(items)))]


def chance(random: Random, share: float) -> bool:
    """True in that share of the draws."""
    return bool(random.random() < share)


def floats(array: Array) -> Array:
    """As float32, in C order."""
    made: Array = np.ascontiguousarray(array, np.float32)
    return made
