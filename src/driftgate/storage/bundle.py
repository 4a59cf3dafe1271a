"""bundle.zip: written whole or not at all, and read only where every byte is what its MANIFEST.json says."""

from __future__ import annotations

import hashlib
import json
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from driftgate.domain.bundles import BundledFile, BundleManifest
from driftgate.errors import StorageError
from driftgate.messages.message import message
from driftgate.storage.archive import MOST_BYTES, MOST_ENTRIES, Archive, Names, Written, is_safe
from driftgate.storage.document import encoded_json
from driftgate.storage.hashing import CHUNK_BYTES

BUNDLE, MANIFEST = "bundle.zip", "MANIFEST.json"
SCHEMA: Literal["driftgate.bundle"] = "driftgate.bundle"
VERSION: Literal[1] = 1
MANIFEST_BYTES = 32 << 20


class StoredManifest(BaseModel):
    """MANIFEST.json."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_: Literal["driftgate.bundle"]
    version: Literal[1]
    manifest: BundleManifest


class _Files(Protocol):
    """Where the files of a bundle are."""

    def chunks(self, name: str) -> Iterator[bytes]: ...

    def close(self) -> None: ...


class _Folder:
    """A bundle that was unpacked."""

    def __init__(self, path: Path) -> None:
        self._root = path

    def chunks(self, name: str) -> Iterator[bytes]:
        """A file's content; no link is followed, neither that of the file nor of a folder above it."""
        path = self._root
        try:
            for part in name.split("/"):
                path = path / part
                if stat.S_ISLNK(path.lstat().st_mode):
                    raise StorageError(message("archive-kind", path=str(self._root), name=name))
            if not stat.S_ISREG(path.lstat().st_mode):
                raise StorageError(message("archive-kind", path=str(self._root), name=name))
            with path.open("rb") as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise StorageError(message("archive-unreadable", path=str(path), reason=reason)) from error

    def close(self) -> None:
        """Nothing is held open."""


class Bundle:
    """A bundle whose every file was found to be as its manifest says."""

    def __init__(self, path: Path, manifest: BundleManifest, files: _Files) -> None:
        self.path = path
        self.manifest = manifest
        self._files = files
        self._known = {file.path: file for file in manifest.files}

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of all files but the manifest."""
        return tuple(self._known)

    def unpack(self, folder: Path, *, below: str = "") -> tuple[Path, ...]:
        """Write the files below a path of the bundle into a folder; all of them for an empty one. Raises StorageError,
        also where a file has changed since it was looked at."""
        made = []
        for name, file in self._known.items():
            if not name.startswith(below):
                continue
            target = folder / name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as stream:
                    _check(self.path, file, _hashed(self._files.chunks(name), file.bytes, stream))
            except OSError as error:
                reason = error.strerror or str(error)
                raise StorageError(message("file-not-written", path=str(target), reason=reason)) from error
            made.append(target)
        return tuple(made)


def looks_like_bundle(path: Path) -> bool:
    """Whether a path is meant as a bundle: a zip file, or a folder that has a manifest."""
    return (path / MANIFEST).is_file() if path.is_dir() else path.suffix.lower() == ".zip"


@contextmanager
def open_bundle(path: Path, *, limit_bytes: int = MOST_BYTES) -> Iterator[Bundle]:
    """Open a bundle, or the folder that one was unpacked into, and look at every byte of it. Raises StorageError for
    what is not wholly as its manifest says."""
    archive: Archive | None = None if path.is_dir() else Archive(path, limit_bytes=limit_bytes)
    files: _Files = _Folder(path) if archive is None else archive
    try:
        if archive is not None and (MANIFEST not in archive.names or archive.size_bytes(MANIFEST) > MANIFEST_BYTES):
            raise StorageError(message("bundle-no-manifest", path=str(path), wanted=MANIFEST))
        manifest = decode_manifest(_limited(files.chunks(MANIFEST), path), path)
        _check_names(path, manifest, None if archive is None else archive.names, limit_bytes)
        for file in manifest.files:
            if archive is not None and archive.size_bytes(file.path) != file.bytes:
                raise StorageError(message("bundle-changed", path=str(path), name=file.path))
            _check(path, file, _hashed(files.chunks(file.path), file.bytes))
        yield Bundle(path, manifest, files)
    finally:
        files.close()


@contextmanager
def unpacked_bundle(path: Path, *, limit_bytes: int = MOST_BYTES) -> Iterator[tuple[BundleManifest, Path]]:
    """A bundle's manifest and a private folder with its files, which is gone afterwards. Raises StorageError."""
    with open_bundle(path, limit_bytes=limit_bytes) as bundle, tempfile.TemporaryDirectory(prefix="driftgate-") as made:
        bundle.unpack(Path(made))
        yield bundle.manifest, Path(made)


def encode_manifest(manifest: BundleManifest) -> bytes:
    """MANIFEST.json."""
    stored = StoredManifest(schema_=SCHEMA, version=VERSION, manifest=manifest).model_dump(mode="json")
    document = {"schema": stored.pop("schema_"), "version": stored.pop("version"), **stored["manifest"]}
    return encoded_json(document)


def decode_manifest(content: bytes, path: Path) -> BundleManifest:
    """What MANIFEST.json says. Raises StorageError naming what is wrong."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StorageError(message("results-garbled", path=f"{path}/{MANIFEST}", reason=str(error))) from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise StorageError(message("results-other", path=f"{path}/{MANIFEST}", wanted=SCHEMA))
    if raw.get("version") != VERSION:
        found = str(raw.get("version"))
        raise StorageError(message("results-version", path=f"{path}/{MANIFEST}", found=found, wanted=VERSION))
    rest = {key: value for key, value in raw.items() if key not in ("schema", "version")}
    try:
        text = json.dumps({"schema_": SCHEMA, "version": VERSION, "manifest": rest})
        return StoredManifest.model_validate_json(text).manifest
    except (ValidationError, ValueError, RecursionError) as error:
        reason, where = str(error), MANIFEST
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            reason, where = first["msg"], ".".join(map(str, first["loc"][1:])) or MANIFEST
        raise StorageError(message("results-invalid", path=f"{path}/{MANIFEST}", where=where, reason=reason)) from error


def bundle_schema() -> Mapping[str, Any]:
    """The JSON Schema of MANIFEST.json, version 1."""
    schema = TypeAdapter(BundleManifest).json_schema(mode="serialization")
    head = {"schema": {"const": SCHEMA, "type": "string"}, "version": {"const": VERSION, "type": "integer"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "driftgate bundle",
        "description": "MANIFEST.json of an evidence bundle; additive within version 1.",
        "properties": {**head, **schema["properties"]},
        "required": ["schema", "version", *schema["required"]],
    }


def forget_parts(path: Path) -> None:
    """Remove what a writer of this file left that was killed; nobody takes it for the file. Raises StorageError."""
    parts = re.compile(rf"\.{re.escape(path.name)}\.\w+\.part")
    try:
        for part in path.parent.iterdir() if path.parent.is_dir() else ():
            if parts.fullmatch(part.name) and part.is_file():
                part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(message("folder-not-written", path=str(path.parent), reason=reason)) from error


def _check_names(path: Path, manifest: BundleManifest, there: tuple[str, ...] | None, limit_bytes: int) -> None:
    taken = Names()
    taken.take(MANIFEST)
    if len(manifest.files) > MOST_ENTRIES:
        raise StorageError(message("archive-entries", path=str(path), found=len(manifest.files), limit=MOST_ENTRIES))
    total = sum(max(0, file.bytes) for file in manifest.files)
    if total > limit_bytes:
        raise StorageError(message("archive-too-large", path=str(path), bytes=total, limit_bytes=limit_bytes))
    for file in manifest.files:
        if not is_safe(file.path) or not taken.take(file.path):
            raise StorageError(message("archive-name", path=str(path), name=file.path))
    for link in manifest.links:
        named = (link.folder, *(side.file for side in link.sides if side.file is not None))
        outside = next((name for name in named if not is_safe(name)), None)
        if outside is not None:
            raise StorageError(message("archive-name", path=str(path), name=outside))
        if len(link.sides) not in (0, 2):
            raise StorageError(message("bundle-sides", path=str(path), count=len(link.sides)))
    if there is not None:
        listed = {MANIFEST, *(file.path for file in manifest.files)}
        odd = tuple(sorted(listed.symmetric_difference(there)))
        if odd:
            raise StorageError(message("bundle-other-files", path=str(path), names=odd))


def _check(path: Path, file: BundledFile, found: Written) -> None:
    if (found.size_bytes, found.sha256) != (file.bytes, file.sha256):
        raise StorageError(message("bundle-changed", path=str(path), name=file.path))


def _hashed(chunks: Iterator[bytes], most: int, copy: BinaryIO | None = None) -> Written:
    """What there is, read no further than it may be long, with a copy of it where one is wanted."""
    sha, size = hashlib.sha256(), 0
    for chunk in chunks:
        sha.update(chunk)
        size += len(chunk)
        if size > most:
            break
        if copy is not None:
            copy.write(chunk)
    return Written("", size, sha.hexdigest())


def _limited(chunks: Iterator[bytes], path: Path) -> bytes:
    made = bytearray()
    for chunk in chunks:
        made += chunk
        if len(made) > MANIFEST_BYTES:
            raise StorageError(message("bundle-no-manifest", path=str(path), wanted=MANIFEST))
    return bytes(made)
