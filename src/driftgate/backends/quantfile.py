"""signature.json: what a recording says of the quantisation of its outputs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from driftgate.domain.tensors import Quantization, Signature
from driftgate.errors import ArtifactError
from driftgate.messages.message import Message, message

FILE_NAME = "signature.json"


@dataclass(frozen=True, slots=True)
class OutputQuantization:
    """`quantization` turns recorded integers into numbers; `step` is one LSB of a recorded float."""

    quantization: Quantization | None = None
    step: float | None = None


def signature_path(recording: Path) -> Path:
    """Within the folder, or `<name>.signature.json` beside a stacked `<name>.npz`."""
    return recording / FILE_NAME if recording.is_dir() else recording.with_name(f"{recording.stem}.{FILE_NAME}")


def read_quantization(path: Path) -> Mapping[str, OutputQuantization] | None:
    """The listed outputs by name; None if there is no file or it lists none.

    Raises ArtifactError with everything that is wrong in the file.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(message("artifact-unreadable", path=str(path), reason=str(error))) from error
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ArtifactError(message("signature-no-json", path=str(path), reason=str(error))) from error
    if (
        not isinstance(content, dict)
        or not isinstance(content.get("outputs", {}), dict)
        or content.keys() - {"outputs"}
    ):
        raise ArtifactError(message("signature-form", path=str(path)))
    problems: list[Message] = []
    outputs = {name: _output(path, name, entry, problems) for name, entry in content.get("outputs", {}).items()}
    if problems:
        raise ArtifactError(*problems)
    return outputs or None


def quantization_document(signature: Signature) -> dict[str, object]:
    """What signature.json says of these outputs."""
    outputs: dict[str, dict[str, object]] = {}
    for spec in signature.outputs:
        entry: dict[str, object] = {} if spec.step is None else {"step": spec.step}
        if spec.quantization is not None:
            scale = spec.quantization
            entry |= {"scales": list(scale.scales), "zero_points": list(scale.zero_points), "axis": scale.axis}
        outputs[spec.name] = entry
    return {"outputs": outputs}


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_step(value: object) -> bool:
    return value is None or (_is_number(value) and value > 0)


def _is_scales(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_number(item) and item > 0 for item in value)


def _is_zero_points(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_integer(item) for item in value)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_axis(value: object) -> bool:
    return value is None or _is_integer(value)


#: key → what its value must satisfy
_KEYS: dict[str, Callable[[object], bool]] = {
    "scales": _is_scales,
    "zero_points": _is_zero_points,
    "axis": _is_axis,
    "step": _is_step,
}


def _output(path: Path, name: str, entry: object, problems: list[Message]) -> OutputQuantization:
    said = {"path": str(path), "output": name}
    if not isinstance(entry, dict):
        problems.append(message("signature-output", **said))
        return OutputQuantization()
    wrong = [key for key, value in entry.items() if key not in _KEYS or not _KEYS[key](value)]
    problems.extend(message("signature-key", key=key, found=json.dumps(entry[key]), **said) for key in wrong)
    if wrong:
        return OutputQuantization()
    scales = tuple(float(scale) for scale in entry.get("scales", ()))
    zero_points = tuple(entry.get("zero_points", (0,)))
    step = None if entry.get("step") is None else float(entry["step"])
    if not scales:
        if "zero_points" in entry:
            problems.append(message("signature-no-scales", **said))
        return OutputQuantization(step=step)
    axis = entry.get("axis")
    if len(zero_points) not in (1, len(scales)):
        problems.append(message("signature-lengths", scales=len(scales), zero_points=len(zero_points), **said))
    if len(scales) > 1 and axis is None:
        problems.append(message("signature-no-axis", scales=len(scales), **said))
    return OutputQuantization(Quantization(scales, zero_points, axis), step)
