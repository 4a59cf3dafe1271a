"""What a gate says as a document, schema `driftgate.gate` version 1."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from driftgate.domain.gates import GateLine, outcome_of
from driftgate.domain.judgement import Outcome
from driftgate.domain.results import EXIT_CODES
from driftgate.errors import StorageError
from driftgate.messages.message import message
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


def read_gate(folder: Path) -> GateDocument | None:
    """What gate.json in a folder says; None where there is none. Raises StorageError where it is garbled, of another
    version, or says of itself what its lines do not."""
    path = folder / GATE
    try:
        raw = json.loads(path.read_bytes())
        document = GateDocument.model_validate({"schema_": raw.pop("schema", None), **raw})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise StorageError(message("results-garbled", path=str(path), reason=str(error).splitlines()[0])) from error
    if document.outcome is not outcome_of(document.lines):
        raise StorageError(message("results-garbled", path=str(path), reason=f"outcome {document.outcome.value}"))
    return document


def gate_schema() -> Mapping[str, Any]:
    """The JSON Schema of what `driftgate gate --json` prints, version 1."""
    return published(TypeAdapter(GateDocument), "driftgate gate", "Every clause of a policy and what came of it.")
