"""The `samples` section: the data set that all stages share."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from driftgate.domain.samples import BLOCK, Origin
from driftgate.settings.section import Section


class SampleSettings(Section):
    """Where the feeds lie. Without a manifest the raw samples are read once to make the plan."""

    manifest: Path | None = Field(default=None, description="samples.json, made by `driftgate samples`")
    raw: Path | None = Field(default=None, description="what the float models eat")
    runtime: Path | None = Field(default=None, description="what the deployed model eats; raw where absent")
    origin: Origin = Field(default=Origin.REAL, description="random samples never prove PASS")
    block: int = Field(default=BLOCK, ge=1, description="samples in the smallest share of work")
    profiles: dict[str, int] = Field(default_factory=dict, description="nested subsets: the first n samples")
