"""Parameters: what the scores of a task are told beside outputs and labels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """`confidence`: from which score on a detection counts when deployed. `ignored`: the label of pixels that are
    not scored."""

    confidence: float = 0.25
    ignored: int = 255
