"""Nodes that take axes, as they may have been meant: another order of axes, or another axis."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import onnx

from driftgate.diagnosis.bench import Side
from driftgate.diagnosis.graphs.variants import Variant, varied
from driftgate.diagnosis.surgery import attribute, label, with_input


def vary_transpose(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Every other order of up to four axes."""
    now = tuple(attribute(node, "perm", ()) or ())
    if 2 <= len(now) <= 4:
        for order in itertools.permutations(range(len(now))):
            if order != now:
                yield varied(side, "graph-fusion-error", f"perm={list(order)}", place, perm=list(order))


def vary_axis(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Every other axis."""
    now = attribute(node, "axis")
    for axis in (0, 1, 2, 3, -1):
        if axis != now:
            yield varied(side, "graph-fusion-error", f"axis={axis}", place, axis=axis)


def vary_axes(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Other axes that are reduced."""
    now = attribute(node, "axes")
    norm = _is_norm_part(side.whole_model, node)
    code = "norm-semantics" if norm else "graph-fusion-error"
    options: tuple[list[int], ...] = ([1], [-1], [2], [3], [2, 3], [1, 2, 3], [0, 2, 3], [1, 2], [0])
    held = side.value(node.input[1]) if len(node.input) > 1 else None
    for axes in options:
        if now is not None and list(now) != axes:
            yield varied(side, code, f"axes={axes}", place, axes=axes)
        elif held is not None and held.tolist() != axes:
            model = with_input(side.whole_model, place, 1, np.array(axes, np.int64))
            yield Variant(code, f"axes={axes}", model, (label(node),))


def _is_norm_part(model: onnx.ModelProto, node: onnx.NodeProto) -> bool:
    readers = [other.op_type for other in model.graph.node if node.output[0] in other.input]
    return "Sub" in readers or "Add" in readers


def vary_depth(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """The other order of depth and blocks."""
    now = attribute(node, "mode", "DCR")
    yield varied(side, "graph-fusion-error", "mode", place, mode="CRD" if now == "DCR" else "DCR")
