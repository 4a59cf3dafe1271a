"""What an artifact says of itself, as facts: its march and whether that is the target's, its version, its phase."""

from __future__ import annotations

from collections.abc import Mapping

from driftgate.domain.facts import OF_ARTIFACT, ToolFacts
from driftgate.messages.message import Param
from driftgate.vendor.derived import march_fits


def artifact_facts(stage: str, told: Mapping[str, str], target: str) -> tuple[ToolFacts, ...]:
    """The facts of a stage's artifact; none where it says nothing."""
    if not told:
        return ()
    fits = march_fits(told.get("march"), target)
    values: dict[str, Param] = dict(told)
    if fits is not None:
        values["march-fits"] = fits
    return (ToolFacts(stage, OF_ARTIFACT, tuple(values.items())),)
