"""The `policies` section: limits by check or link, what is required, what uncertainty does."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from driftgate.domain.judgement import Clauses, Limit, LimitOrigin, Policy, Standing, Uncertainty
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
    limits: dict[str, LinkLimits] = Field(default_factory=dict, description="limits by check or link")

    @field_validator("accepts")
    @classmethod
    def _harmless(cls, codes: tuple[str, ...]) -> tuple[str, ...]:
        harmless = tuple(code.code for code in CODES.values() if code.verdict is Verdict.PASS)
        wrong = tuple(code for code in codes if code not in harmless)
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: not the code of a harmless cause; those are {', '.join(harmless)}")
        return codes

    @field_validator("limits", mode="before")
    @classmethod
    def _in_units(cls, limits: object) -> object:
        at_board = limits.get(BOARD) if isinstance(limits, Mapping) else None
        for name, unit in ABSOLUTE.items():
            if isinstance(at_board, Mapping) and isinstance(at_board.get(name), str):
                raise ValueError(f"{BOARD}.{name} is a number of {unit}; wanted: a number, not {at_board[name]}")
        return limits

    @field_validator("limits")
    @classmethod
    def _at_board(cls, limits: dict[str, LinkLimits]) -> dict[str, LinkLimits]:
        stray = [f"{place}.{name}" for place, said in limits.items() for name in said if name in PERFORMANCE]
        wrong = [name for name in stray if name.partition(".")[0] != BOARD]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: speed and memory are limited under {BOARD} and nowhere else")
        return limits

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
        clauses = Clauses(
            samples=clauses.samples if policy.samples is None else policy.samples,
            skipped=policy.skipped or clauses.skipped,
            regressions=policy.regressions or clauses.regressions,
            same_commit=clauses.same_commit if policy.same_commit is None else policy.same_commit,
        )
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
