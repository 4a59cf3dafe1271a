"""The `subjects` section: the networks under test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from driftgate.domain.platforms import PLATFORMS
from driftgate.settings.artifacts import AnyArtifact
from driftgate.settings.build import BuildSettings
from driftgate.settings.policies import PlacedLimits
from driftgate.settings.samples import SampleSettings
from driftgate.settings.scores import ScoreSettings
from driftgate.settings.section import Section


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Names = Annotated[
    tuple[str, ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class OutputSettings(Section):
    """An output's other names, and the axis order that makes a stage's output comparable."""

    names: Names = ()
    permute: dict[str, tuple[int, ...]] = Field(default_factory=dict, description="axis order by stage")

    @model_validator(mode="before")
    @classmethod
    def _from_names(cls, value: object) -> object:
        if isinstance(value, str):
            return {"names": (value,)}
        if isinstance(value, list):
            return {"names": tuple(value)}
        return value


def _known_platform(value: str | None) -> str | None:
    if value is not None and value not in PLATFORMS:
        raise ValueError(f"not a platform; known: {', '.join(PLATFORMS)}")
    return value


class HbRuntimeDefaults(Section):
    """How the vendor's runtime is started where an artifact does not say."""

    python: tuple[str, ...] | None = Field(default=None, description="the vendor's interpreter, as a command list")
    timeout: float | None = Field(default=None, gt=0, description="seconds that one answer may take")


class VerifierSettings(Section):
    """The vendor's hb_verifier as a second opinion on the first failing link."""

    command: tuple[str, ...] = Field(min_length=1, description="the tool, as a command list: hb_verifier, docker run …")
    digits: int = Field(default=5, ge=0, le=15, description="decimals that must agree between .bc and .hbm")
    timeout: float = Field(default=1800.0, gt=0, description="seconds; an .hbm is simulated in tens of seconds or more")


class Defaults(Section):
    """What holds for every subject that does not say otherwise."""

    chain: str = "ptq"
    platform: str = "J6M"
    threads: int = Field(default=1, ge=1, description="fixed, not the machine's cores, so that runners agree")
    hbruntime: HbRuntimeDefaults = Field(
        default_factory=HbRuntimeDefaults,
        description="runs .bc, .hbm in simulation, and ONNX files with operators of the vendor's",
    )

    lang: Literal["auto", "en", "zh"] = Field(
        default="auto",
        description="language of reports and messages; auto: the environment's. JSON and JUnit: English",
    )
    board: str | None = Field(
        default=None, description="a name under `boards`, where an .hbm runs that does not say; else it is simulated"
    )
    verifier: VerifierSettings | None = Field(default=None, description="asked about the first failing link")

    _platform = field_validator("platform")(_known_platform)


class SpeedSettings(Section):
    """The speed that the board is said to have; limits latency-rise and fps-drop are held against it."""

    latency_ms: float | None = Field(default=None, gt=0)
    fps: float | None = Field(default=None, gt=0)

    @property
    def declared(self) -> tuple[tuple[str, float], ...]:
        """What is said, by name."""
        told = (("latency_ms", self.latency_ms), ("fps", self.fps))
        return tuple((name, value) for name, value in told if value is not None)


class SubjectSettings(Section):
    """A network under test."""

    chain: str | None = None
    platform: str | None = None
    targets: tuple[str, ...] = Field(
        default=(),
        description="platforms, instead of one: {target} in paths stands for each; files they have in common run once",
    )
    artifacts: dict[str, AnyArtifact] = Field(description="what stands for each stage, beside those of `build`")
    build: BuildSettings | None = Field(
        default=None, description="the folder of hb_compile, whose files stand for their stages; may stand in artifacts"
    )
    inputs: dict[str, Names] = Field(default_factory=dict, description="feed → names in other stages")
    outputs: dict[str, OutputSettings | None] = Field(
        default_factory=dict, description="output → other names, or null to leave it out"
    )
    samples: SampleSettings
    score: ScoreSettings | None = None
    speed: SpeedSettings = Field(default_factory=SpeedSettings, description="the board's speed, as declared")
    limits: PlacedLimits = Field(
        default_factory=dict, description="limits by check or link that are stricter than those of the policies"
    )
    badcases: tuple[str, ...] = Field(default=(), description="samples whose outputs are always kept as recordings")
    calibration_tuned: bool = Field(default=False, description="calibration was tuned already; advice depends on it")
    state: dict[str, str] = Field(default_factory=dict, description="output → input of a network with memory")
    custom_ops: tuple[Path, ...] = Field(default=(), description="ONNX Runtime libraries of custom operators")

    @model_validator(mode="before")
    @classmethod
    def _build_among_artifacts(cls, value: object) -> object:
        if not isinstance(value, Mapping) or not isinstance(value.get("artifacts"), Mapping):
            return value
        artifacts = dict(value["artifacts"])
        return {**value, "artifacts": artifacts, "build": artifacts.pop("build")} if "build" in artifacts else value

    @model_validator(mode="after")
    def _some_artifact(self) -> SubjectSettings:
        if not self.artifacts and self.build is None:
            raise ValueError("artifacts is empty; name at least one stage, or a build")
        return self

    @field_validator("targets")
    @classmethod
    def _known_targets(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for target in value:
            _known_platform(target)
        if len(set(value)) < len(value):
            raise ValueError("names one twice")
        return value

    @model_validator(mode="after")
    def _one_way_to_name_targets(self) -> SubjectSettings:
        if self.targets and self.platform is not None:
            raise ValueError("give platform or targets, not both")
        return self

    def platforms(self, default: str) -> tuple[str, ...]:
        """The targets, at least one."""
        return self.targets or (self.platform or default,)

    _platform = field_validator("platform")(_known_platform)
