"""The sample manifest: which samples there are and what is in them, so that a plan needs no data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from driftgate.domain.samples import BLOCK, Origin, SampleSet
from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.storage.atomic import write_bytes
from driftgate.storage.tensorfiles import TensorSource, tensors_digest

SCHEMA = "driftgate.samples"


class ManifestSample(BaseModel):
    """One sample: its id and the SHA-256 of its tensors (names, types, shapes, values)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    digest: str


class Manifest(BaseModel):
    """samples.json, version 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal["driftgate.samples"]
    version: Literal[1]
    name: str
    origin: Origin = Origin.REAL
    block: int = BLOCK
    samples: tuple[ManifestSample, ...]

    @model_validator(mode="after")
    def _sound(self) -> Manifest:
        ids = [sample.id for sample in self.samples]
        if not ids:
            raise ValueError("no samples")
        if len(set(ids)) != len(ids):
            raise ValueError("an id stands twice: " + next(i for i in ids if ids.count(i) > 1))
        if self.block < 1:
            raise ValueError("block must be 1 or more")
        return self


def read_manifest(path: Path) -> SampleSet:
    """The samples a manifest lists. Raises SampleError."""
    try:
        raw = json.loads(path.read_bytes())
    except OSError as error:
        raise SampleError(message("manifest-absent", path=str(path), reason=error.strerror or "")) from error
    except ValueError as error:
        raise SampleError(message("manifest-garbled", path=str(path), reason=str(error))) from error
    if isinstance(raw, dict) and "schema" in raw:
        raw["schema_"] = raw.pop("schema")
    try:
        manifest = Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part).rstrip("_") for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise SampleError(
            message("manifest-invalid", path=str(path), where=where or path.name, reason=reason)
        ) from error
    return SampleSet(
        name=manifest.name,
        ids=tuple(sample.id for sample in manifest.samples),
        digests=tuple(sample.digest for sample in manifest.samples),
        origin=manifest.origin,
        block=manifest.block,
    )


def write_manifest(path: Path, samples: SampleSet) -> None:
    """Write a manifest, whole or not at all. Raises StorageError."""
    document = {
        "schema": SCHEMA,
        "version": 1,
        "name": samples.name,
        "origin": samples.origin.value,
        "block": samples.block,
        "samples": [{"id": i, "digest": d} for i, d in zip(samples.ids, samples.digests, strict=True)],
    }
    write_bytes(path, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())


def digests(source: TensorSource) -> Iterator[tuple[str, str]]:
    """Read every sample once: its id and the digest of its tensors."""
    for sample in source.ids:
        yield sample, tensors_digest(source.read(sample))


def manifest_schema() -> Mapping[str, Any]:
    """The JSON Schema of samples.json, version 1."""
    schema = TypeAdapter(Manifest).json_schema()
    properties = schema["properties"]
    schema["properties"] = {"schema": properties.pop("schema_"), **properties}
    schema["required"] = ["schema" if name == "schema_" else name for name in schema["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "driftgate samples"}
