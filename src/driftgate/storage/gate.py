"""What a gate says as a document, schema `driftgate.gate` version 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from driftgate.domain.gates import GateLine, outcome_of
from driftgate.domain.judgement import Outcome
from driftgate.domain.results import EXIT_CODES
from driftgate.errors import StorageError
from driftgate.messages.message import message
from driftgate.storage.document import decoded, encoded, published

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


def read_gate(folder: Path) -> GateDocument | None:
    """What gate.json in a folder says; None where there is none. Raises StorageError where it is garbled, of another
    version, or says of itself what its lines do not."""
    path = folder / GATE
    if not path.exists():
        return None
    raw = decoded(path, SCHEMA, VERSION)
    try:
        document = GateDocument.model_validate(raw)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise StorageError(message("results-garbled", path=str(path), reason=reason)) from error
    if document.outcome is not outcome_of(document.lines):
        raise StorageError(message("results-garbled", path=str(path), reason=f"outcome {document.outcome.value}"))
    return document


def gate_schema() -> Mapping[str, Any]:
    """The JSON Schema of what `driftgate gate --json` prints, version 1."""
    return published(TypeAdapter(GateDocument), "driftgate gate", "Every clause of a policy and what came of it.")
