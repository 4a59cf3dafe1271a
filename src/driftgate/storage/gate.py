"""What a gate says as a document, schema `driftgate.gate` version 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from driftgate.domain.gates import GateLine, outcome_of
from driftgate.domain.judgement import Outcome
from driftgate.domain.results import EXIT_CODES
from driftgate.storage.document import encoded, published

SCHEMA: Literal["driftgate.gate"] = "driftgate.gate"
VERSION: Literal[1] = 1
GATE = "gate.json"


class GateDocument(BaseModel):
    """What `driftgate gate --json` prints."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_: Literal["driftgate.gate"]
    version: Literal[1]
    policy: str
    outcome: Outcome
    exit_code: int
    lines: tuple[GateLine, ...]


def encode_gate(lines: Sequence[GateLine], policy: str) -> bytes:
    """The lines of a policy with what they come to."""
    outcome = outcome_of(lines)
    return encoded(
        GateDocument(
            schema_=SCHEMA,
            version=VERSION,
            policy=policy,
            outcome=outcome,
            exit_code=EXIT_CODES[outcome],
            lines=tuple(lines),
        )
    )


def gate_schema() -> Mapping[str, Any]:
    """The JSON Schema of what `driftgate gate --json` prints, version 1."""
    return published(TypeAdapter(GateDocument), "driftgate gate", "Every clause of a policy and what came of it.")
