"""The `score` section: what the data set is scored by."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from driftgate.settings.section import Section

_DECLARED = re.compile(r"\d+/[1-9]\d*|\d+(\.\d*)?%?")


def _written(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("a score is a number, a percentage or a fraction such as 356/360")
    if not _DECLARED.fullmatch(str(value).strip()):
        raise ValueError("a score is a number, a percentage or a fraction such as 356/360")
    return str(value).strip()


DeclaredScore = Annotated[
    str,
    BeforeValidator(_written),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^({_DECLARED.pattern})$"}]}),
]


class ScoreSettings(Section):
    """How outputs become one number."""

    task: Literal["classification"] = Field(description="what the network does")
    labels: Path = Field(description=".npz with `labels` (and `ids`), or .csv with id and label")
    output: str | None = Field(default=None, description="the scored output; not needed where there is only one")
    baseline: dict[Literal["top1"], DeclaredScore] = Field(
        default_factory=dict, description="what the PyTorch model is said to reach: 356/360, 0.9889 or 98.9%"
    )
