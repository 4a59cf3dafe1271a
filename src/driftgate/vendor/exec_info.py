"""`hrt_model_exec model_info`: the tensors of a model as the board sees them (toolchain facts §7.3).

UCP 3.3.3 ends tuples with a comma and prints zero points as raw bytes, of which NUL is a zero and anything else is
unknown. A tensor whose lines are not all there has None in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from driftgate.domain.toolchain.board import BoardModel, BoardModels, BoardTensor
from driftgate.vendor.cells import finite, integer, integers, parts, shape
from driftgate.vendor.console import whole_lines
from driftgate.vendor.descriptions import described_model
from driftgate.vendor.files import another_file, read_text
from driftgate.vendor.runtime import has_board_monitor, load_milliseconds, runtime_versions

TOOL = "hrt_model_exec model_info"
_COUNT = re.compile(r"^This model file has \d+ models?:$")
_LISTED = re.compile(r"^\[([^\[\]]+)\]$")
_MODEL = re.compile(r"^\[model name\]: (.+)$")
_DESCRIPTION = re.compile(r"^\[model desc\]: (.*)$")
_TENSOR = re.compile(r"^(input|output)\[(\d+)\]:$")
_FIELD = re.compile(r"^([a-zA-Z][\w ]*?): ?(.*)$")
_TYPE = re.compile(r"^HB_DNN_TENSOR_TYPE_([A-Z]\w*)$")
QUANTISATIONS = ("NONE", "SCALE")
Told = dict[str, str]


def read_model_tensors(path: Path) -> BoardModels:
    """The models of one file with their tensors; ArtifactError where the text has neither."""
    return parse_model_tensors(read_text(path), name=str(path))


def parse_model_tensors(text: str, *, name: str = "-") -> BoardModels:
    """The same from text."""
    lines = whole_lines(text)
    models = tuple(_models(lines))
    if not models:
        raise another_file(text, name, tool=TOOL, wanted=("[model name]: ", "input[0]:", "valid shape: "))
    return BoardModels(
        versions=runtime_versions(lines),
        models=models,
        load_ms=load_milliseconds(lines),
        names=tuple(_listed(lines)),
        has_board_monitor=has_board_monitor(lines),
    )


def _listed(lines: Sequence[str]) -> Iterator[str]:
    """The names below the count of models; several stand in lines of their own or between commas."""
    below = False
    for line in lines:
        found = _LISTED.match(line) if below else None
        if found:
            yield from parts(found[1])
        below = bool(found or _COUNT.match(line))


def _models(lines: Sequence[str]) -> Iterator[BoardModel]:
    """Models in order; tensors before any model's name are those of a model without one, as in excerpts."""
    name: str | None = None
    description = ""
    tensors: list[BoardTensor] = []
    current: Told | None = None
    for line in [*lines, "[model name]: -"]:
        head, model = _TENSOR.match(line), _MODEL.match(line)
        if head or model:
            tensors += _tensor(current)
            current = None
        if model:
            if name is not None or tensors or description:
                yield described_model(name, tuple(tensors), description)
            name, description, tensors = model[1], "", []
        elif head:
            current = {"direction": head[1], "index": head[2]}
        elif told := _DESCRIPTION.match(line):
            description = told[1]
        elif entry := _FIELD.match(line):
            if entry[1] == "name" and (current is None or "name" in current):
                tensors += _tensor(current)
                current = {}  # its head is lost
            if current is not None:
                current.setdefault(entry[1], entry[2].strip(" "))


def _tensor(told: Told | None) -> tuple[BoardTensor, ...]:
    """The tensor of these lines; none where they have neither its head nor its shape."""
    if not told or not ("index" in told or "valid shape" in told):
        return ()
    dtype = _TYPE.match(told.get("tensor type", ""))
    quantisation = told.get("quanti type")
    scales = _scales(told.get("scale data", ""))
    size = integer(told.get("aligned byte size", ""))
    tensor = BoardTensor(
        name=told.get("name") or None,
        direction=told.get("direction"),
        index=integer(told.get("index", "")),
        shape=shape(told["valid shape"]) if told.get("valid shape") else None,
        stride=shape(told["stride"]) if told.get("stride") else None,
        aligned_bytes=size if size is not None and size >= 0 else None,
        dtype=dtype[1] if dtype else None,
        quantisation=quantisation if quantisation in QUANTISATIONS else None,
        scales=scales,
        zero_points=_zero_points(told["zero_point data"], len(scales)) if "zero_point data" in told else None,
        axis=integer(told.get("quantizeAxis", "")),
    )
    return (tensor,)


def _scales(text: str) -> tuple[float, ...]:
    """All scales, or none where one of them cannot be read."""
    values = tuple(map(finite, parts(text))) if text else ()
    return () if None in values else tuple(value for value in values if value is not None)


def _zero_points(text: str, count: int) -> tuple[int, ...] | None:
    """One zero point for each scale, or for all of them; None where they are no digits and no NULs."""
    items = [item.replace("\0", "0") if item.strip("\0") == "" and len(item) == 1 else item for item in _split(text)]
    values = integers(",".join(items)) if items and all(items) else None
    return values if values is not None and len(values) in (1, count) else None


def _split(text: str) -> list[str]:
    """Between commas, raw bytes left alone; nothing behind a last comma."""
    items = text.strip("()").split(",")
    return items if items[-1] else items[:-1]
