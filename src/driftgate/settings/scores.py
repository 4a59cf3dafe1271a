"""The `score` section: what the data set is scored by."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from driftgate.scoring.tasks import TASKS
from driftgate.settings.labels import LabelSettings
from driftgate.settings.section import Section

_DECLARED = re.compile(r"\d+/[1-9]\d*|\d+(\.\d*)?%?")
_FUNCTION = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"


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


class PostprocessSettings(Section):
    """What turns a stage's outputs into what the task takes; one for all stages. A bare `module:function` will do."""

    function: str | None = Field(
        default=None, pattern=_FUNCTION, description="module:function(outputs) -> array, run by a worker"
    )
    python: tuple[str, ...] = Field(default=(), description="the interpreter for it, as a command list")
    search_path: tuple[Path, ...] = Field(default=(), description="folders it is looked for in; the config's otherwise")
    ready: Literal["softmax", "sigmoid", "argmax", "yolo"] | None = Field(
        default=None, description="one of ours instead; yolo decodes (1, 4+classes, N) or its transpose and suppresses"
    )
    classes: int | None = Field(default=None, ge=1, description="yolo: number of classes")
    objectness: bool = Field(default=False, description="yolo: column 4 is an objectness")
    confidence: float = Field(default=0.001, ge=0, le=1, description="yolo: lowest score that is kept")
    overlap: float = Field(default=0.7, gt=0, le=1, description="yolo: IoU above which a box is suppressed")
    most: int = Field(default=300, ge=1, description="yolo: boxes kept")

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        if isinstance(value, str):
            return {"function": value} if ":" in value else {"ready": value}
        return value

    @model_validator(mode="after")
    def _one(self) -> PostprocessSettings:
        if (self.function is None) == (self.ready is None):
            raise ValueError("give either function (module:function) or ready (softmax, sigmoid, argmax, yolo)")
        if self.ready == "yolo" and self.classes is None:
            raise ValueError("yolo needs classes, the number of classes")
        return self


class ScoreSettings(Section):
    """How outputs become one number."""

    task: Literal["classification", "detection", "segmentation", "regression", "own"] = Field(
        description="what the network does; own for a scorer of yours"
    )
    labels: LabelSettings = Field(description="the right answers, in the form of the task")
    output: str | None = Field(default=None, description="the scored output; not needed where there is only one")
    postprocess: PostprocessSettings | None = None
    confidence: float = Field(default=0.25, ge=0, le=1, description="detection: the deployed confidence")
    ignored: int = Field(default=255, description="segmentation: the label of pixels that are not scored")
    scorer: str | None = Field(
        default=None, pattern=_FUNCTION, description="own: module:function(outputs, label) -> number of one sample"
    )
    whole: str | None = Field(
        default=None, pattern=_FUNCTION, description="own: module:function() -> the number of the whole set"
    )
    better: Literal["higher", "lower"] = Field(default="higher", description="own: which side is better")
    python: tuple[str, ...] = Field(default=(), description="own: the interpreter for it, as a command list")
    baseline: dict[str, DeclaredScore] = Field(
        default_factory=dict, description="what the PyTorch model is said to reach: 356/360, 0.9889 or 98.9%"
    )

    @model_validator(mode="after")
    def _sound(self) -> ScoreSettings:
        if (self.task == "own") != (self.scorer is not None):
            raise ValueError("task own goes with scorer (module:function), and only with it")
        known = ("own",) if self.task == "own" else tuple(scorer.name for scorer in TASKS[self.task].scorers)
        unknown = [name for name in self.baseline if name not in known]
        if unknown:
            raise ValueError(f"{self.task} has no score {', '.join(unknown)}; its scores: {', '.join(known)}")
        return self
