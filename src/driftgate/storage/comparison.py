"""A comparison of versions as a document of its own, schema `driftgate.comparison` version 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from driftgate.domain.comparisons import Change, Comparison
from driftgate.storage.document import encoded, published

SCHEMA: Literal["driftgate.comparison"] = "driftgate.comparison"
VERSION: Literal[1] = 1
COMPARISON = "comparison.json"


class ComparisonDocument(BaseModel):
    """comparison.json: each version with the one before it, the first of them the base."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_: Literal["driftgate.comparison"]
    version: Literal[1]
    change: Change
    exit_code: int
    comparisons: tuple[Comparison, ...]


def encode_comparison(steps: Sequence[Comparison], whole: Comparison) -> bytes:
    """The steps from version to version; `whole`, the last against the first, says change and exit code."""
    return encoded(
        ComparisonDocument(
            schema_=SCHEMA, version=VERSION, change=whole.change, exit_code=whole.exit_code, comparisons=tuple(steps)
        )
    )


def comparison_schema() -> Mapping[str, Any]:
    """The JSON Schema of comparison.json, version 1."""
    adapter = TypeAdapter(ComparisonDocument)
    return published(adapter, "driftgate comparison", "What became better or worse between versions.")
