"""Parameters: what the scores of a task are told beside outputs and labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """`confidence`: from which score on a detection counts when deployed. `ignored`: the label of pixels that are
    not scored."""

    confidence: float = 0.25
    ignored: int = 255


DEFAULTS = Parameters()


def as_parameters(params: Iterable[tuple[str, float]]) -> Parameters:
    """The parameters of a plan; what it does not say has its default."""
    said = dict(params)
    return Parameters(
        confidence=float(said.get("confidence", DEFAULTS.confidence)),
        ignored=int(said.get("ignored", DEFAULTS.ignored)),
    )
