"""Matching: which detection of an image found which object, as the COCO evaluation pairs them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.measurements import Array

#: The overlaps (intersection over union) from which on a detection may have found an object, as COCO writes them.
OVERLAPS = np.linspace(0.5, 0.95, 10)


def overlaps(boxes: Array, objects: Array, crowd: NDArray[np.bool_]) -> Array:
    """Intersection over union of boxes (n, 4) and objects (m, 4), shape (n, m), in 0 … 1.

    Boxes are x, y, width, height. Of a crowd the intersection is taken over the box alone, as COCO does; the order
    of operations is COCO's too, so that a value at a threshold falls on the same side.
    """
    near, far = np.maximum(boxes[:, None, :2], objects[:, :2]), boxes[:, None, :2] + boxes[:, None, 2:]
    sides = np.minimum(far, objects[:, :2] + objects[:, 2:]) - near
    inside = np.where((sides > 0).all(2), sides[..., 0] * sides[..., 1], 0.0)
    area, wanted = boxes[:, 2] * boxes[:, 3], objects[:, 2] * objects[:, 3]
    whole = np.where(crowd, area[:, None], area[:, None] + wanted - inside)
    return np.divide(inside, whole, out=np.zeros_like(inside), where=inside > 0)


def match(overlap: Array, crowd: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The object that each detection found at each of OVERLAPS, -1 for none: shape (10, detections).

    `overlap` has the shape (detections, objects), detections by falling score. Each takes the object of largest
    overlap that is still free, the last of equals; only where there is none, a crowd, which many may take
    (pycocotools, COCOeval.evaluateImg).
    """
    found = np.full((len(OVERLAPS), len(overlap)), -1)
    free = np.ones((len(OVERLAPS), len(crowd)), dtype=bool)
    wanted = np.minimum(OVERLAPS, 1 - 1e-10)[:, None]
    levels = np.arange(len(OVERLAPS))
    for detection in np.flatnonzero((overlap >= wanted[0]).any(1) if len(crowd) else []):
        fitting = free & (overlap[detection] >= wanted)
        single = fitting & ~crowd
        fitting = np.where(single.any(1)[:, None], single, fitting)
        rated = np.where(fitting, overlap[detection], -1.0)
        best = len(crowd) - 1 - rated[:, ::-1].argmax(1)
        takes = fitting.any(1)
        found[takes, detection] = best[takes]
        taken = takes & ~crowd[best]
        free[levels[taken], best[taken]] = False
    return found
