"""What hbm_runtime's query prints and what hbm_infer answers about a model's tensors (toolchain facts §6, §8).

Both give an axis of 0 for tensors that are not quantised or have one scale: the axis counts with several scales only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from driftgate.domain.toolchain.board import BoardModel, BoardModels, BoardTensor
from driftgate.vendor.cells import dynamic, finite, integer, integers, numbers, shape
from driftgate.vendor.console import whole_lines
from driftgate.vendor.descriptions import described_model
from driftgate.vendor.files import another_file, form_error, json_object, read_text
from driftgate.vendor.runtime import has_board_monitor, load_milliseconds, runtime_versions

TOOL, INFER_TOOL = "hbm_runtime", "hbm_infer get_input_info"
_HEAD = re.compile(r"^=== (.+?) ===$")
#: What lines of each section may hold, so that one whose head is lost is not taken for the one before it.
HOLDS = {
    "Names": ("index",),
    "Tensor Shapes": ("shape",),
    "Tensor Types": ("dtype",),
    "Tensor Stride": ("stride",),
    "Quantization Info": ("quanti_type", "quantize_axis", "scale_data", "zero_point_data"),
    "Counts": ("count",),
}
_SECTION = re.compile(r"^(Input|Output) (Names|Tensor Shapes|Tensor Types|Quantization Info|Tensor Stride|Counts)$")
_COUNT = re.compile(r"^(\S.*?): (\d{1,9})$")
_MODEL = re.compile(r"^(\S.*?):$")
_NAME = re.compile(r"^  - (.+)$")
_VALUE = re.compile(r"^  (\S.*?) -> (shape|dtype|stride): (.+)$")
_TENSOR = re.compile(r"^  (\S.*?):$")
_QUANTISATION = re.compile(r"^    (quanti_type|quantize_axis|scale_data|zero_point_data): (.*)$")
_DESCRIPTION = re.compile(r"^ - (.+?): (\{.*\})$")
_MODELS = re.compile(r"^\[('.*')\]$")
WANTED = "an object of inputs by name, each with valid_shape, tensor_type, quanti_type"

Told = dict[str, str]
Key = tuple[str, str, str]  # model, direction, tensor


def read_runtime_query(path: Path) -> BoardModels:
    """The models that hbm_runtime loaded; ArtifactError where the text says nothing about their tensors."""
    return parse_runtime_query(read_text(path), name=str(path))


def parse_runtime_query(text: str, *, name: str = "-") -> BoardModels:
    """The same from text: tensors in the model's order where the names were listed, else as printed."""
    lines = whole_lines(text)
    told, counts = _told(lines)
    if not told:
        raise another_file(text, name, tool=TOOL, wanted=("=== Input Names ===", "=== Output Tensor Shapes ==="))
    descriptions = {found[1]: found[2] for line in lines if (found := _DESCRIPTION.match(line))}
    names = dict.fromkeys(model for model, _, _ in told)
    models = tuple(
        described_model(model, tuple(_tensors(told, counts, model)), descriptions.get(model, "")) for model in names
    )
    return BoardModels(
        versions=runtime_versions(lines),
        models=models,
        load_ms=load_milliseconds(lines),
        names=tuple(
            item.strip(" '") for line in lines if (found := _MODELS.match(line)) for item in found[1].split(",")
        ),
        has_board_monitor=has_board_monitor(lines),
    )


def _told(lines: Sequence[str]) -> tuple[Mapping[Key, Told], Mapping[tuple[str, str], int]]:
    """What is said of each tensor, in the order in which tensors are first named; and how many a model has."""
    found: dict[Key, Told] = {}
    counts: dict[tuple[str, str], int] = {}
    direction, model, tensor = "", "", ""
    holds: tuple[str, ...] = ()
    for line in lines:
        if head := _HEAD.match(line):
            section = _SECTION.match(head[1])
            direction, model, tensor = section[1].lower() if section else "", "", ""
            holds = HOLDS[section[2]] if section else ()
        elif not direction:
            continue
        elif (count := _COUNT.match(line)) and "count" in holds:
            counts[count[1], direction] = int(count[2])
        elif named := _MODEL.match(line):
            model, tensor = named[1], ""
        elif not model:
            continue
        elif (listed := _NAME.match(line)) and "index" in holds:
            key = (model, direction, listed[1])
            found.setdefault(key, {})["index"] = str(sum(k[:2] == key[:2] for k in found) - (key in found))
        elif (value := _VALUE.match(line)) and value[2] in holds:
            found.setdefault((model, direction, value[1]), {})[value[2]] = value[3]
        elif owner := _TENSOR.match(line):
            tensor = owner[1]
        elif tensor and (entry := _QUANTISATION.match(line)) and entry[1] in holds:
            found.setdefault((model, direction, tensor), {})[entry[1]] = entry[2]
    return found, counts


def _tensors(told: Mapping[Key, Told], counts: Mapping[tuple[str, str], int], model: str) -> Iterator[BoardTensor]:
    """The tensors of a model. A place in the list of names counts only if the list is as long as the tool says."""
    for (owner, direction, name), entries in told.items():
        if owner == model:
            listed = sum("index" in other for key, other in told.items() if key[:2] == (owner, direction))
            tensor = _tensor(name, direction, entries)
            yield tensor if counts.get((owner, direction)) == listed else replace(tensor, index=None)


def _tensor(name: str, direction: str, told: Told) -> BoardTensor:
    quantisation = told.get("quanti_type")
    scales = numbers(told.get("scale_data", "[]")) or ()
    return BoardTensor(
        name=name,
        direction=direction,
        index=integer(told.get("index", "")),
        shape=shape(told["shape"]) if "shape" in told else None,
        stride=shape(told["stride"]) if "stride" in told else None,
        dtype=told.get("dtype"),
        quantisation=quantisation if quantisation in ("NONE", "SCALE") else None,
        scales=scales,
        zero_points=(integers(told["zero_point_data"]) or None) if "zero_point_data" in told else None,
        axis=integer(told.get("quantize_axis", "")) if len(scales) > 1 else None,
    )


def read_input_info(path: Path, *, direction: str = "input") -> BoardModels:
    """What hbm_infer's get_input_info, or get_output_info, answered, written down as JSON."""
    return parse_input_info(read_text(path), direction=direction, name=str(path))


def parse_input_info(text: str, *, direction: str = "input", name: str = "-") -> BoardModels:
    """The same from text; ArtifactError where it is no object of tensors with their shapes."""
    entries = json_object(text, name, tool=INFER_TOOL, wanted=WANTED)
    tensors = []
    for key, entry in entries.items():
        if not isinstance(entry, dict) or "valid_shape" not in entry:
            raise form_error(name, tool=INFER_TOOL, key=key, found=entry, wanted=WANTED)
        tensors.append(_answered(key, direction, cast(dict[str, object], entry)))
    if not tensors:
        raise form_error(name, tool=INFER_TOOL, key="-", found={}, wanted=WANTED)
    model = BoardModel(None, tuple(tensors))
    return BoardModels(versions=runtime_versions(()), models=(model,))


def _answered(name: str, direction: str, told: Mapping[str, object]) -> BoardTensor:
    form, axis = _list(told.get("valid_shape")), told.get("quantizeAxis")
    dtype, quantisation = str(told.get("tensor_type", "")), str(told.get("quanti_type", ""))
    scales = tuple(value for item in _list(told.get("scale_data")) or () if (value := finite(item)) is not None)
    return BoardTensor(
        name=name,
        direction=direction,
        shape=dynamic(values) if form is not None and (values := integers(",".join(form))) is not None else None,
        dtype=dtype.removeprefix("DATA_TYPE_") if dtype.startswith("DATA_TYPE_") else None,
        quantisation={"QUANTI_TYPE_NONE": "NONE", "QUANTI_TYPE_SCALE": "SCALE"}.get(quantisation),
        scales=scales if len(scales) == len(_list(told.get("scale_data")) or ()) else (),
        zero_points=integers(",".join(_list(told.get("zero_point_data")) or ())) or None,
        axis=axis if isinstance(axis, int) and len(scales) > 1 else None,
    )


def _list(value: object) -> tuple[str, ...] | None:
    """A list's items as text; None where it is no list."""
    return tuple(map(str, value)) if isinstance(value, list) else None
