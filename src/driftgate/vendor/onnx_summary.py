"""The part of hb_compile's log on the ONNX file it was given, in the words of its releases (toolchain facts §2.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from driftgate.domain.toolchain.build import ModelTensor, OnnxSummary
from driftgate.vendor.cells import integer, parts, shape

_IR = re.compile(r"^(?:ONNX )?IR [Vv]ersion:\s+(\d+)$")
_OPSETS = re.compile(r"^Opset [Vv]ersion:\s+\[(.*)\]$")
_PRODUCER = re.compile(r"^(?:Model )?Producer:\s+(\S.*)$")
_SIDE = re.compile(r"^Graph ([Ii]nput|[Oo]utput):$")
_TENSOR = re.compile(r"^\s+(\S.*?)\s*:\s+shape=(\[[^\]]*\]), dtype=(\w+)$")
_CONVERTED = re.compile(r"opset version is \d+, try to convert to opset version of (\d+)")


def read_onnx_summary(lines: Sequence[str]) -> OnnxSummary | None:
    """The ONNX file's versions and tensors; None where the log says nothing of them.

    Which tensors are inputs is only certain where both headings are there.
    """
    tensors: list[ModelTensor] = []
    side = ""
    headings = set()
    for line in lines:
        if found := _SIDE.match(line):
            side = found[1].lower()
            headings.add(side)
        elif side and (tensor := _TENSOR.match(line)):
            form = shape(tensor[2])
            tensors += [ModelTensor(tensor[1], side, form, tensor[3])] if form is not None else []
        else:
            side = ""
    opsets = _first(_OPSETS, lines)
    summary = OnnxSummary(
        ir_version=integer(_first(_IR, lines) or ""),
        opsets=tuple(item.strip("'\"") for item in parts(opsets)) if opsets else (),
        producer=_first(_PRODUCER, lines),
        tensors=tuple(tensors if len(headings) == 2 else (replace(tensor, direction=None) for tensor in tensors)),
        converted_opset=integer(_first(_CONVERTED, lines) or ""),
    )
    return summary if summary != OnnxSummary() else None


def _first(pattern: re.Pattern[str], lines: Sequence[str]) -> str | None:
    return next((found[1] for line in lines if (found := pattern.search(line))), None)
