"""From a job to packs for legs on boards, and from a pack to a job on the machine beside the board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from driftgate.backends.quantfile import signature_path
from driftgate.backends.registry import backend
from driftgate.domain.chain import FeedKind
from driftgate.domain.plan import Leg
from driftgate.domain.platforms import PLATFORMS
from driftgate.domain.runs import BOARD_BACKENDS
from driftgate.errors import ConfigError, StorageError, UsageError
from driftgate.masking.aliases import Aliases
from driftgate.messages.message import message
from driftgate.numerics.comparator import OutputMap
from driftgate.plan import Job
from driftgate.sessions import Artifact
from driftgate.settings.boards import BoardSettings
from driftgate.settings.load import Config
from driftgate.storage.pack import MODELS, Pack, PackedArtifact, PackedData, StoredPack, write_pack
from driftgate.storage.planfile import Provenance
from driftgate.storage.tensorfiles import tensors_digest

#: Options that go along; others name files and interpreters of this machine.
KEPT = ("model", "core", "priority", "timeout", "remote_root", "python")
KNOWN_HOSTS = "known_hosts"
SHOWN = 12  # characters of a digest


def board_stages(job: Job) -> tuple[str, ...]:
    """The stages of a job that run on boards."""
    return tuple(artifact.stage for artifact in job.artifacts if artifact.backend in BOARD_BACKENDS)


def pool_of(artifact: Artifact) -> str | None:
    """The name of an artifact's pool of boards."""
    boards = artifact.options.get("boards")
    return None if boards is None else str(boards.name)


def pack(job: Job, leg: Leg, config: Config, folder: Path, provenance: Provenance) -> None:
    """Write what one leg on a board needs. Raises SampleError for feeds that changed, StorageError."""
    artifacts, files, boards = [], [], {}
    for stage in leg.stages:
        artifact = job.artifact(stage)
        if artifact.path is None:
            raise UsageError(message("artifact-no-path", stage=stage, backend=artifact.backend))
        name = f"{stage}/{artifact.path.name}"
        files.append((name, artifact.path))
        signature = signature_path(artifact.path)
        files += [(f"{stage}/{signature.name}", signature)] if signature.exists() else []
        options = {key: _plain(artifact.options[key]) for key in KEPT if artifact.options.get(key) is not None}
        pool = pool_of(artifact)
        artifacts.append(PackedArtifact(stage=stage, backend=artifact.backend, file=name, options=options, board=pool))
        if pool is not None:
            boards[pool] = _described(config, pool, files)
    samples = job.plan.samples
    expected = dict(zip(samples.ids, samples.digests, strict=True))
    feeds = {
        sample: job.data.checked(sample, expected[sample])[FeedKind.RUNTIME] for sample in samples.of_blocks(leg.blocks)
    }
    stored = StoredPack(
        plan_digest=job.plan.digest,
        plan=replace(job.plan, legs=(leg,)),
        provenance=provenance,
        artifacts=tuple(artifacts),
        boards=boards,
        inputs={name: tuple(names) for name, names in job.inputs.items()},
        samples={sample: tensors_digest(tensors) for sample, tensors in feeds.items()},
    )
    write_pack(folder, stored, files, feeds)


def unpacked(found: Pack, environment: Mapping[str, str]) -> Job:
    """The job of a pack. Raises ConfigError for a pool that is not as it should be, or variables that are not set, and
    StorageError where a file is not what was planned."""
    artifacts = tuple(_artifact(found, one, environment) for one in found.stored.artifacts)
    planned = {artifact.stage: artifact.digest for artifact in found.plan.artifacts}
    for artifact in artifacts:
        digest, wanted = backend(artifact.backend).digest(artifact), planned.get(artifact.stage, "-")
        if digest != wanted:
            told = {"stage": artifact.stage, "found": digest[:SHOWN], "wanted": wanted[:SHOWN]}
            raise StorageError(message("pack-changed", path=str(artifact.path), **told))
    return Job(
        plan=found.plan,
        artifacts=artifacts,
        data=PackedData(found),
        keeping=None,
        inputs=found.stored.inputs,
        outputs=OutputMap(),
        state={},
    )


def hidden(found: Pack, environment: Mapping[str, str]) -> Aliases:
    """What a pack has of addresses and passwords, itself or by variables of the environment."""
    aliases = Aliases()
    for name, told in found.stored.boards.items():
        _boards(name, told).hide(aliases, name, environment)
    return aliases


def _boards(name: str, told: object) -> BoardSettings:
    try:
        return BoardSettings.model_validate(told)
    except ValueError as error:
        raise ConfigError(message("pack-board", board=name, reason=str(error).splitlines()[0])) from error


def _artifact(found: Pack, one: PackedArtifact, environment: Mapping[str, str]) -> Artifact:
    options: dict[str, Any] = {key: _tupled(value) for key, value in one.options.items()}
    if one.board is not None:
        section = _boards(one.board, found.stored.boards.get(one.board))
        w_stride = PLATFORMS[found.plan.target].w_stride
        options["boards"] = section.boards(
            one.board, root=found.folder / MODELS, w_stride=w_stride, environment=environment
        )
    return Artifact(one.stage, one.backend, found.folder / MODELS / one.file, options)


def _described(config: Config, pool: str, files: list[tuple[str, Path]]) -> dict[str, Any]:
    """A pool as the configuration has it; its known hosts, which are no secret, go along."""
    section = config.settings.boards[pool]
    said: dict[str, Any] = section.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if section.known_hosts is not None and (known := config.root / section.known_hosts.expanduser()).is_file():
        name = f"{KNOWN_HOSTS}-{pool}"
        files.append((name, known))
        said["known-hosts"] = name
    return said


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _tupled(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
