"""plan.json: the manifest of what must report, and leg.json: which leg a shard is, of which plan, commit and run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from driftgate.domain.plan import Leg, Plan
from driftgate.errors import StorageError
from driftgate.messages.message import message
from driftgate.storage.atomic import write_bytes

PLAN, LEG, ORIGIN = "plan.json", "leg.json", "origin.json"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Which commit and which run of the CI something is of; empty where it is no CI."""

    sha: str = ""
    run: str = ""
    attempt: str = ""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A subject on a target that is as it was in an earlier run, whose facts lie beside the manifest."""

    subject: str
    target: str
    digest: str
    run: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """All plans of a run with their legs."""

    plans: tuple[Plan, ...]
    provenance: Provenance = Provenance()
    profile: str | None = None
    unchanged: tuple[Unchanged, ...] = ()

    def plan_of(self, leg: str) -> tuple[Plan, Leg] | None:
        """The plan that has a leg of this id, and the leg."""
        return next(((plan, one) for plan in self.plans for one in plan.legs if one.id == leg), None)


@dataclass(frozen=True, slots=True)
class Shard:
    """What a shard says it is."""

    leg: str
    plan: str
    provenance: Provenance = Provenance()


class _StoredPlan(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    digest: str
    plan: Plan


class _StoredManifest(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_: Literal["driftgate.plan"] = "driftgate.plan"
    version: Literal[2] = 2
    provenance: Provenance
    profile: str | None = None
    unchanged: tuple[Unchanged, ...] = ()
    plans: tuple[_StoredPlan, ...]


_SHARD = TypeAdapter(Shard)
_ORIGIN = TypeAdapter(Provenance)


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write it. Raises StorageError."""
    stored = _StoredManifest(
        provenance=manifest.provenance,
        profile=manifest.profile,
        unchanged=manifest.unchanged,
        plans=tuple(_StoredPlan(digest=plan.digest, plan=plan) for plan in manifest.plans),
    )
    write_bytes(path, stored.model_dump_json(indent=1).encode())


def read_manifest(path: Path) -> Manifest:
    """Read it. Raises StorageError where it is not there, no manifest, or a plan is not what its digest says."""
    try:
        stored = _StoredManifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise StorageError(message("planfile-unreadable", path=str(path), reason=error.strerror or "")) from error
    except ValidationError as error:
        raise StorageError(message("planfile-garbled", path=str(path), reason=_first(error))) from error
    for one in stored.plans:
        if one.plan.digest != one.digest:
            raise StorageError(message("plan-tampered", path=str(path), subject=one.plan.subject))
    plans = tuple(one.plan for one in stored.plans)
    return Manifest(plans, stored.provenance, stored.profile, stored.unchanged)


def write_shard_note(folder: Path, shard: Shard) -> None:
    """Write leg.json beside the facts of a leg. Raises StorageError."""
    write_bytes(folder / LEG, json.dumps(_SHARD.dump_python(shard, mode="json"), indent=1).encode())


def write_origin(folder: Path, origin: Provenance) -> None:
    """Write origin.json beside a report: which commit and run it is of. Raises StorageError."""
    write_bytes(folder / ORIGIN, json.dumps(_ORIGIN.dump_python(origin, mode="json"), indent=1).encode())


def read_origin(folder: Path) -> Provenance:
    """What origin.json says; nothing where there is none. Raises StorageError where it is garbled."""
    path = folder / ORIGIN
    try:
        return _ORIGIN.validate_json(path.read_bytes())
    except FileNotFoundError:
        return Provenance()
    except OSError as error:
        raise StorageError(message("planfile-unreadable", path=str(path), reason=error.strerror or "")) from error
    except ValidationError as error:
        raise StorageError(message("planfile-garbled", path=str(path), reason=_first(error))) from error


def read_shard_note(folder: Path) -> Shard | None:
    """What leg.json in a folder says; None where there is none. Raises StorageError where it is garbled."""
    path = folder / LEG
    try:
        return _SHARD.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(message("planfile-unreadable", path=str(path), reason=error.strerror or "")) from error
    except ValidationError as error:
        raise StorageError(message("planfile-garbled", path=str(path), reason=_first(error))) from error


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
