"""Where labels lie, and what of them may have no sample."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from driftgate.settings.section import Section


class LabelSettings(Section):
    """A bare path is short for `{path: …}`."""

    path: Path = Field(
        description="COCO .json, .csv, .npz, or a folder with one folder of images a class, as the task has it"
    )
    extra: Literal["refuse", "ignore"] = Field(
        default="refuse", description="labels without a sample; ignore, where the samples are a part of a labelled set"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: object) -> object:
        return {"path": value} if isinstance(value, (str, Path)) else value
