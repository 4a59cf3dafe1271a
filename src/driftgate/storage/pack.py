"""A pack: everything that a leg on a board needs, in one folder: its plan, the model, the feeds, how the board is
reached; no secrets, and nothing of the repository."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from driftgate.domain.chain import FeedKind
from driftgate.domain.plan import Leg, Plan
from driftgate.errors import SampleError, StorageError
from driftgate.messages.message import message
from driftgate.sessions import Tensor
from driftgate.storage.atomic import write_bytes
from driftgate.storage.npz import write_npz
from driftgate.storage.planfile import Provenance
from driftgate.storage.tensorfiles import open_source, tensors_digest

PACK = "pack.json"
SAMPLES, MODELS = "samples", "models"


class PackedArtifact(BaseModel):
    """An artifact of a leg: the backend, its file within the pack, its own options as JSON, and its pool of boards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stage: str
    backend: str
    file: str
    options: dict[str, Any] = Field(default_factory=dict)
    board: str | None = None


class StoredPack(BaseModel):
    """pack.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["driftgate.pack"] = "driftgate.pack"
    version: Literal[1] = 1
    plan_digest: str
    plan: Plan
    provenance: Provenance
    artifacts: tuple[PackedArtifact, ...]
    boards: dict[str, dict[str, Any]]
    inputs: dict[str, tuple[str, ...]]
    samples: dict[str, str]  # id → digest of its tensors


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack as it was read."""

    folder: Path
    stored: StoredPack

    @property
    def plan(self) -> Plan:
        """The plan, with the one leg that this is for."""
        return self.stored.plan

    @property
    def leg(self) -> Leg:
        """That leg."""
        return self.stored.plan.legs[0]


class PackedData:
    """The feeds in a pack, each checked against what the pack says of it."""

    def __init__(self, pack: Pack) -> None:
        self._source = open_source(pack.folder / SAMPLES)
        self._digests = pack.stored.samples
        self.raw = None
        self.runtime = self._source

    def ids(self) -> tuple[str, ...]:
        """The samples."""
        return self._source.ids

    def read(self, sample: str) -> dict[FeedKind, dict[str, Tensor]]:
        """One sample's feeds, of the runtime kind only. Raises SampleError."""
        feeds = self._source.read(sample)
        if tensors_digest(feeds) != self._digests.get(sample):
            raise SampleError(message("sample-changed", sample=sample))
        return {FeedKind.RAW: {}, FeedKind.RUNTIME: feeds}

    def checked(self, sample: str, digest: str) -> dict[FeedKind, dict[str, Tensor]]:
        """The same: what the plan's digest covers, the raw samples among it, is not all here."""
        return self.read(sample)


def write_pack(
    folder: Path,
    stored: StoredPack,
    files: Sequence[tuple[str, Path]],
    feeds: Mapping[str, Mapping[str, Tensor]],
) -> None:
    """Write a pack; `files` by their names within it. Raises StorageError."""
    try:
        for name, path in files:
            target = folder / MODELS / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(message("folder-not-written", path=str(folder), reason=reason)) from error
    for sample, tensors in feeds.items():
        write_npz(folder / SAMPLES / f"{sample}.npz", dict(tensors))
    write_bytes(folder / PACK, json.dumps(stored.model_dump(mode="json", by_alias=True), indent=1).encode())


def read_pack(folder: Path) -> Pack:
    """Read a pack. Raises StorageError where it is none, or names files outside of it."""
    path = folder / PACK
    try:
        stored = StoredPack.model_validate_json(path.read_bytes())
    except OSError as error:
        raise StorageError(message("planfile-unreadable", path=str(path), reason=error.strerror or "")) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise StorageError(message("planfile-garbled", path=str(path), reason=reason)) from error
    if stored.plan.digest != stored.plan_digest or len(stored.plan.legs) != 1:
        raise StorageError(message("plan-tampered", path=str(path), subject=stored.plan.subject))
    root = (folder / MODELS).resolve()
    for artifact in stored.artifacts:
        if not (folder / MODELS / artifact.file).resolve().is_relative_to(root):
            raise StorageError(message("pack-outside", path=str(path), file=artifact.file))
    return Pack(folder, stored)
