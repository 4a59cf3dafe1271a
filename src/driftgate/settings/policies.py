"""The `policies` section: limits by check or link, what is required, what uncertainty does."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from driftgate.comparing.history import MOST_RUNS
from driftgate.domain.judgement import (
    HISTORY_RUNS,
    REACHED_BY,
    Clauses,
    Limit,
    LimitOrigin,
    Policy,
    Slide,
    Slides,
    Standing,
    Uncertainty,
)
from driftgate.judgement.codes import CODES, Verdict
from driftgate.judgement.criteria import FPS, LATENCY, MEMORY, PERFORMANCE
from driftgate.settings.section import Section, hyphens


def _number(value: object) -> object:
    if isinstance(value, str) and value.endswith("%"):
        return float(value.rstrip("%")) / 100.0
    return value


LimitValue = Annotated[
    float,
    Field(allow_inf_nan=False),
    BeforeValidator(_number),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": "%$"}]}),
]
LimitName = Literal[
    "ulp",
    "range",
    "decimals",
    "integers",
    "lsb",
    "cosine",
    "centred-cosine",
    "bulk-cosine",
    "norm-ratio",
    "max-abs",
    "sqnr",
    "dead-channels",
    "score-drop",
    "latency-ms",
    "fps",
    "latency-rise",
    "fps-drop",
    "memory-mib",
]
LinkLimits = dict[LimitName, LimitValue]
#: The check whose row tells the board's speed and memory.
BOARD = "board"
#: Limits in units of their own, of which a percentage says nothing.
ABSOLUTE = {LATENCY: "milliseconds", FPS: "frames a second", MEMORY: "MiB"}


def _in_units(limits: object) -> object:
    at_board = limits.get(BOARD) if isinstance(limits, Mapping) else None
    for name, unit in ABSOLUTE.items():
        if isinstance(at_board, Mapping) and isinstance(at_board.get(name), str):
            raise ValueError(f"{BOARD}.{name} is a number of {unit}; wanted: a number, not {at_board[name]}")
    return limits


def _at_board(limits: dict[str, LinkLimits]) -> dict[str, LinkLimits]:
    stray = [f"{place}.{name}" for place, said in limits.items() for name in said if name in PERFORMANCE]
    wrong = [name for name in stray if name.partition(".")[0] != BOARD]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: speed and memory are limited under {BOARD} and nowhere else")
    return limits


#: Limits by check or link.
PlacedLimits = Annotated[dict[str, LinkLimits], BeforeValidator(_in_units), AfterValidator(_at_board)]


class HistorySettings(Section):
    """How far numbers may slide away from the level that two of the last runs reached; what is not named may."""

    runs: int = Field(default=HISTORY_RUNS, ge=REACHED_BY, le=MOST_RUNS, description="so many runs before this one")
    score_drop: LimitValue | None = Field(default=None, description="of a stage's score, as a share of that level")
    error_rise: LimitValue | None = Field(default=None, description="of an output's error on a link")
    latency_rise: LimitValue | None = Field(default=None, description="of the board's latency")
    fps_drop: LimitValue | None = Field(default=None, description="of the board's frames a second")
    memory_rise: LimitValue | None = Field(default=None, description="of what the model takes of the board's memory")

    @property
    def slides(self) -> Slides:
        """As judgement knows it."""
        said = ((slide, getattr(self, slide.name.lower())) for slide in Slide)
        return Slides(self.runs, tuple((slide, value) for slide, value in said if value is not None))


def _split_by_place(schema: dict[str, Any]) -> None:
    """The names of limits in the schema: all of them at `board`, elsewhere those of numbers and scores."""
    limits = schema["properties"]["limits"]["additionalProperties"]
    at_board = copy.deepcopy(limits)
    at_board["properties"] = {name: {"type": "number"} for name in ABSOLUTE}
    names = get_args(LimitName)
    at_board["propertyNames"] = {"enum": [*names]}
    limits["propertyNames"] = {"enum": [name for name in names if name not in PERFORMANCE]}
    schema["properties"][BOARD] = {**at_board, "description": "limits of the board's score, speed and memory"}


class PolicySettings(Section):
    """A policy. Every further key is a check's slug or a link `stage..stage` with its limits."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=hyphens, json_schema_extra=_split_by_place)

    extends: str | None = Field(default=None, description="the policy this one adds to")
    require: Literal["all"] | tuple[str, ...] | None = Field(
        default=None, description="checks that must be there; without it, those that have stages"
    )
    uncertainty: Uncertainty | None = Field(default=None, description="what a score or a speed within the noise does")
    accepts: tuple[str, ...] = Field(
        default=(),
        description="codes of harmless causes that pass a link when confirmed, such as rounding-lsb",
    )
    samples: int | None = Field(default=None, ge=1, description="real samples that there must be at least; for `gate`")
    skipped: Standing | None = Field(
        default=None, description="whether a row that nobody asked for may stand as `-`; for `gate`"
    )
    regressions: Standing | None = Field(
        default=None, description="whether results may be worse than the baseline; for `gate`"
    )
    same_commit: bool | None = Field(
        default=None, description="whether results must be of the commit that is gated; for `gate`"
    )
    history: HistorySettings | None = Field(
        default=None, description="how far numbers may slide over many runs; for `gate`"
    )
    same_artifacts: bool | None = Field(
        default=None, description="whether what ran must be what was built, by digest; for `gate`"
    )
    same_versions: bool | None = Field(
        default=None, description="whether all who ran a stage must have had the same software; for `gate`"
    )
    board_days: int | None = Field(
        default=None, ge=0, description="how old a board's result may be, in days; for `gate`"
    )
    limits: PlacedLimits = Field(default_factory=dict, description="limits by check or link")

    @field_validator("accepts")
    @classmethod
    def _harmless(cls, codes: tuple[str, ...]) -> tuple[str, ...]:
        harmless = tuple(code.code for code in CODES.values() if code.verdict is Verdict.PASS)
        wrong = tuple(code for code in codes if code not in harmless)
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: not the code of a harmless cause; those are {', '.join(harmless)}")
        return codes

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        own = {hyphens(name) for name in cls.model_fields} - {"limits"}
        return {
            **{key: item for key, item in value.items() if key in own},
            "limits": {key: item for key, item in value.items() if key not in own},
        }


def as_limits(
    said: Mapping[str, Mapping[LimitName, float]], origin: LimitOrigin
) -> tuple[tuple[str, tuple[Limit, ...]], ...]:
    """Limits by check or link, as judgement knows them."""
    return tuple(
        (place, tuple(Limit(criterion, value, origin) for criterion, value in limits.items()))
        for place, limits in said.items()
    )


def resolved(name: str, policies: Mapping[str, PolicySettings], slugs: tuple[str, ...]) -> Policy:
    """A policy with all that it extends, the nearest word last; `slugs` are what `require: all` means.

    Raises ValueError where it extends itself or one that is not there.
    """
    line: list[PolicySettings] = []
    seen: list[str] = []
    current: str | None = name
    while current is not None:
        if current in seen or current not in policies:
            raise ValueError(" -> ".join([*seen, current]))
        seen.append(current)
        line.insert(0, policies[current])
        current = policies[current].extends
    limits: dict[str, dict[str, Limit]] = {}
    required: tuple[str, ...] | None = None
    uncertainty = Uncertainty.WARN
    accepts: dict[str, None] = {}
    clauses = Clauses()
    for policy in line:
        clauses = _with_clauses(clauses, policy)
        for place, said in policy.limits.items():
            for criterion, value in said.items():
                limits.setdefault(place, {})[criterion] = Limit(criterion, value, LimitOrigin.POLICY)
        if policy.require is not None:
            required = slugs if policy.require == "all" else policy.require
        uncertainty = policy.uncertainty or uncertainty
        accepts.update(dict.fromkeys(policy.accepts))
    return Policy(
        name=name,
        limits=tuple((place, tuple(found.values())) for place, found in limits.items()),
        required=required,
        uncertainty=uncertainty,
        accepts=tuple(accepts),
        clauses=clauses,
    )


def _with_clauses(clauses: Clauses, policy: PolicySettings) -> Clauses:
    """The clauses with what a policy says of them."""
    named = ("samples", "skipped", "regressions", "same_commit", "same_artifacts", "same_versions", "board_days")
    said = {name: getattr(policy, name) for name in named if getattr(policy, name) is not None}
    if policy.history is not None:
        said["history"] = policy.history.slides
    return replace(clauses, **said)
