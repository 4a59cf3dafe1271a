"""Pictures of samples, and what the stages detect in them."""

from __future__ import annotations

from dataclasses import dataclass

#: Stage, left, top, right and bottom in pixels of the picture, label, score.
Box = tuple[str, float, float, float, float, str, float]


@dataclass(frozen=True, slots=True)
class Picture:
    """One sample of a subject on a target as a PNG of `width` × `height` pixels, and the boxes of every stage."""

    subject: str
    target: str
    sample: str
    png: bytes
    width: int
    height: int
    boxes: tuple[Box, ...] = ()
