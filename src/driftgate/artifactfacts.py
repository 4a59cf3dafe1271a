"""What an artifact says of itself, as facts: its march and whether that is the target's, its version, its phase."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from driftgate.domain.facts import BYTES, OF_ARTIFACT, SHA256, ToolFacts
from driftgate.messages.message import Param
from driftgate.storage.hashing import file_digest
from driftgate.vendor.derived import march_fits


def artifact_facts(stage: str, told: Mapping[str, str], target: str, path: Path | None) -> tuple[ToolFacts, ...]:
    """The facts of a stage's artifact, the size and the SHA-256 of its file; none where it says nothing."""
    if not told:
        return ()
    fits = march_fits(told.get("march"), target)
    values: dict[str, Param] = dict(told)
    if fits is not None:
        values["march-fits"] = fits
    with suppress(OSError):
        if path is not None and path.is_file():
            values[BYTES] = path.stat().st_size
            values[SHA256] = file_digest(path)
    return (ToolFacts(stage, OF_ARTIFACT, tuple(values.items())),)
