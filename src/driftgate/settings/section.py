"""What all sections share: keys with hyphens, nothing unknown, nothing mutable."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


def hyphens(name: str) -> str:
    return name.replace("_", "-")


class Section(BaseModel):
    """A mapping in driftgate.yaml."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=hyphens, validate_default=True, protected_namespaces=()
    )
