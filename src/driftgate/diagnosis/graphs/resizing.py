"""Resizing as it may have been meant: coordinates, rounding, interpolation, order of the sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import onnx

from driftgate.diagnosis.bench import Side
from driftgate.diagnosis.graphs.variants import Variant, varied
from driftgate.diagnosis.surgery import attribute, label, with_input

COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric")
NEAREST = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


def vary_resize(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Other coordinates, rounding, interpolation; the sizes in another order."""
    mode = attribute(node, "mode", "nearest")
    coordinate = attribute(node, "coordinate_transformation_mode", "half_pixel")
    near = attribute(node, "nearest_mode", "round_prefer_floor")
    code = "resize-coordinate-mode"
    for other in (one for one in COORDINATES if one != coordinate):
        yield varied(side, code, other, place, coordinate_transformation_mode=other)
    for other in (one for one in ("linear", "nearest", "cubic") if one != mode):
        for how in (coordinate, *(one for one in COORDINATES[:3] if one != coordinate)):
            changed = {"mode": other, "coordinate_transformation_mode": how}
            yield varied(side, code, f"mode={other} {how}", place, **changed)
    for rounding in (one for one in NEAREST if one != near and mode == "nearest"):
        for other in COORDINATES:
            changed = {"coordinate_transformation_mode": other, "nearest_mode": rounding}
            yield varied(side, code, f"{other} {rounding}", place, **changed)
    for number in (2, 3):
        sizes = side.value(node.input[number]) if len(node.input) > number else None
        if sizes is not None and sizes.size <= 5 and len(set(sizes.tolist())) > 1:
            for order in sorted(set(itertools.permutations(sizes.tolist()))):
                if order != tuple(sizes.tolist()):
                    model = with_input(side.whole_model, place, number, np.array(order, sizes.dtype))
                    yield Variant("graph-fusion-error", "axes of the resize", model, (label(node),))


def vary_grid_sample(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Corners that are aligned or are not."""
    now = int(attribute(node, "align_corners", 0))
    yield varied(side, "resize-coordinate-mode", f"align_corners={1 - now}", place, align_corners=1 - now)
