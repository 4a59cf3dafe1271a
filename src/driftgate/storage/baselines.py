"""Baselines that were fetched: the archive of a former run, believed only where all of it fits that run; and the note
beside it, which says where it is from, or why there is none."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from driftgate.domain.judgement import Outcome
from driftgate.errors import StorageError
from driftgate.messages.message import Message, message
from driftgate.storage.archive import Archive
from driftgate.storage.atomic import write_bytes
from driftgate.storage.document import FACTS, RESULTS, read_results
from driftgate.storage.folder import remove_tree
from driftgate.storage.history import HISTORY
from driftgate.storage.planfile import ORIGIN, Provenance, read_origin

NOTE = "baseline.json"
#: All that is taken out of the archive; a baseline is numbers, and nothing of it is run.
TAKEN = (RESULTS, FACTS, ORIGIN, HISTORY)
NEEDED = (RESULTS, FACTS, ORIGIN)
#: What an archive of a report may hold, packed and unpacked.
MOST_BYTES, MOST_UNPACKED_BYTES = 512 << 20, 4 << 30
#: A table that unpacks to more than this is no table of ours.
MOST_TAKEN_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Baseline:
    """Where a baseline is from, or the `problem` why there is none: what it is called, commit and number of its run,
    the commit at which head and base parted, and the SHA-256 of the archive; empty where nobody knows."""

    label: str
    sha: str = ""
    run: str = ""
    parted_at: str = ""
    sha256: str = ""
    problem: Message | None = None


_BASELINE = TypeAdapter(Baseline)


def write_note(folder: Path, baseline: Baseline) -> None:
    """Write baseline.json. Raises StorageError."""
    write_bytes(folder / NOTE, json.dumps(_BASELINE.dump_python(baseline, mode="json"), indent=1).encode())


def read_note(folder: Path) -> Baseline | None:
    """What baseline.json in a folder says; None where there is none. Raises StorageError where it is garbled."""
    path = folder / NOTE
    try:
        return _BASELINE.validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageError(message("planfile-unreadable", path=str(path), reason=error.strerror or "")) from error
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise StorageError(message("planfile-garbled", path=str(path), reason=reason)) from error


def unpack_baseline(content: bytes, sha256: str, origin: Provenance, folder: Path) -> str:
    """Take a former run's results out of its archive into a new folder; the archive's SHA-256.

    `sha256` is what the server says of the archive, empty where it says nothing; `origin` is the run that it must be
    of. Raises StorageError, and leaves no folder, where the archive is damaged, lacks results or their origin, is of
    another run or commit, was not passed, or was written in a form that this driftgate does not know.
    """
    found = hashlib.sha256(content).hexdigest()
    if sha256 and sha256 != found:
        raise StorageError(message("baseline-digest", found=found[:12], wanted=sha256[:12]))
    remove_tree(folder)
    packed = folder / ".archive.zip"
    write_bytes(packed, content)
    try:
        _take(packed, folder)
        packed.unlink()
        _believe(folder, origin)
    except BaseException:
        remove_tree(folder)
        raise
    return found


def _take(packed: Path, folder: Path) -> None:
    archive = Archive(packed, limit_bytes=MOST_UNPACKED_BYTES)
    try:
        absent = tuple(name for name in NEEDED if name not in archive.names)
        if absent:
            raise StorageError(message("baseline-incomplete", files=absent))
        for name in TAKEN:
            if name in archive.names:
                if archive.size_bytes(name) > MOST_TAKEN_BYTES:
                    size = archive.size_bytes(name)
                    told = message("archive-too-large", path=name, bytes=size, limit_bytes=MOST_TAKEN_BYTES)
                    raise StorageError(told)
                write_bytes(folder / name, b"".join(archive.chunks(name)))
    finally:
        archive.close()


def _believe(folder: Path, wanted: Provenance) -> None:
    origin = read_origin(folder)
    if (origin.sha, origin.run) != (wanted.sha, wanted.run):
        raise StorageError(
            message(
                "baseline-other-run",
                found=origin.sha[:12] or "-",
                run=origin.run or "-",
                wanted=wanted.sha[:12],
                wanted_run=wanted.run,
            )
        )
    results = read_results(folder)
    plans = {facts.plan.key: facts.plan.digest for facts in results.facts}
    judged = {one.key: one.plan for one in results.judgements or ()}
    if not judged or plans != judged:
        raise StorageError(message("baseline-plan", subjects=tuple(sorted({name for name, _ in {*plans, *judged}}))))
    if results.outcome is not Outcome.PASSED:
        raise StorageError(message("baseline-not-passed", outcome=results.outcome.value))
