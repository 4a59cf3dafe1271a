"""The sample manifest: which samples there are and what is in them, so that a plan needs no data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from driftgate.domain.samples import BLOCK, Origin, SampleSet
from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.storage.atomic import write_bytes
from driftgate.transforms.geometry import Geometry

SCHEMA = "driftgate.samples"

#: Size in bytes and time of change in nanoseconds of a file.
Stamp = tuple[int, int]


class ManifestGeometry(BaseModel):
    """Where an image lies in the network's input, in whole pixels: its own upright size, its size there, and the
    place of its top left corner, which is negative where a part is cut off."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int
    height: int
    resized_width: int
    resized_height: int
    left: int
    top: int


class ManifestSample(BaseModel):
    """One sample: its id and the SHA-256 of its tensors (names, types, shapes, values); and size in bytes and time of
    change in nanoseconds of its files, by which those that nobody touched are not read again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    digest: str
    geometry: ManifestGeometry | None = None
    files: dict[str, Stamp] | None = None


class Manifest(BaseModel):
    """samples.json, version 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal["driftgate.samples"]
    version: Literal[1]
    name: str
    origin: Origin = Origin.REAL
    block: int = BLOCK
    decoder: str | None = None
    preprocess: dict[str, Any] | None = None
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


@dataclass(frozen=True, slots=True)
class Listing:
    """What a manifest says of a data set.

    `geometry` is that of the samples made of images, `preprocess` the declaration that made them and `decoder`
    what decoded them. `files` are the stamps of each sample's files by their path from the manifest's folder;
    empty where a manifest tells none.
    """

    samples: SampleSet
    geometry: Mapping[str, Geometry] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, Stamp]] = field(default_factory=dict)
    preprocess: Mapping[str, Any] | None = None
    decoder: str | None = None


def read_listing(path: Path) -> Listing:
    """What a manifest says. Raises SampleError."""
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
    return Listing(
        samples=SampleSet(
            name=manifest.name,
            ids=tuple(sample.id for sample in manifest.samples),
            digests=tuple(sample.digest for sample in manifest.samples),
            origin=manifest.origin,
            block=manifest.block,
        ),
        geometry={s.id: Geometry(**s.geometry.model_dump()) for s in manifest.samples if s.geometry is not None},
        files={sample.id: sample.files for sample in manifest.samples if sample.files},
        preprocess=manifest.preprocess,
        decoder=manifest.decoder,
    )


def read_manifest(path: Path) -> SampleSet:
    """The samples a manifest lists. Raises SampleError."""
    return read_listing(path).samples


def write_manifest(path: Path, listing: Listing) -> None:
    """Write a manifest, whole or not at all. Raises StorageError."""
    samples = listing.samples
    document = {
        "schema": SCHEMA,
        "version": 1,
        "name": samples.name,
        "origin": samples.origin.value,
        "block": samples.block,
        **({"decoder": listing.decoder} if listing.decoder is not None else {}),
        **({"preprocess": listing.preprocess} if listing.preprocess is not None else {}),
        "samples": [
            {"id": sample, "digest": digest, **_more(listing, sample)}
            for sample, digest in zip(samples.ids, samples.digests, strict=True)
        ],
    }
    write_bytes(path, (_lines(document) + "\n").encode())


def _more(listing: Listing, sample: str) -> Mapping[str, object]:
    geometry, files = listing.geometry.get(sample), listing.files.get(sample)
    return {
        **({"geometry": asdict(geometry)} if geometry is not None else {}),
        **({"files": files} if files else {}),
    }


def _lines(document: Mapping[str, object]) -> str:
    """JSON with a line for each sample, so that a changed sample is one changed line."""
    parts = [f" {json.dumps(key)}: {_part(value)}" for key, value in document.items()]
    return "{\n" + ",\n".join(parts) + "\n}"


def _part(value: object) -> str:
    def dumped(part: object) -> str:
        return json.dumps(part, ensure_ascii=False)

    if isinstance(value, list):
        return "[\n" + ",\n".join(f"  {dumped(entry)}" for entry in value) + "\n ]"
    if isinstance(value, Mapping):
        return "{\n" + ",\n".join(f"  {dumped(key)}: {dumped(entry)}" for key, entry in value.items()) + "\n }"
    return dumped(value)


def manifest_schema() -> Mapping[str, Any]:
    """The JSON Schema of samples.json, version 1."""
    schema = TypeAdapter(Manifest).json_schema()
    properties = schema["properties"]
    schema["properties"] = {"schema": properties.pop("schema_"), **properties}
    schema["required"] = ["schema" if name == "schema_" else name for name in schema["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "driftgate samples"}
