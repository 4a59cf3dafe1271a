"""Evidence bundles made by hand: a small but whole draft, bundles written of it, and archives forged to any form."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from driftgate.bundling import Draft, write_bundle
from driftgate.domain.bundles import (
    BundledLink,
    BundledOutputs,
    BundleManifest,
    Role,
    Side,
    Status,
    Wanted,
    Withheld,
)
from driftgate.domain.digest import digest
from driftgate.domain.evidence import Evidence, LinkNote
from driftgate.domain.judgement import Policy
from driftgate.evidencing import Item, LinkEvidence
from driftgate.messages.message import message
from driftgate.numerics.comparator import Comparator, OutputMap
from driftgate.storage.archive import of_bytes
from driftgate.storage.bundle import BUNDLE, MANIFEST
from driftgate.storage.document import encode_results
from driftgate.storage.evidencewriting import evidence_files
from support.models import answer, tiny
from support.project import inputs
from support.results import failing_pair, results

SUBJECT, TARGET, LINK = "digits", "J6M", "quantized..hbm"
SAMPLES = ("0137", "0001")
FOLDER = f"{SUBJECT}/{TARGET}"
RAN = "link/model_a.onnx"
#: An archive's fields: local header, entry of the directory, end of the directory.
_LOCAL, _ENTRY, _END = struct.Struct("<4s5H3L2H"), struct.Struct("<4s4B4H3L5H2L"), struct.Struct("<4s4H2LH")
_UTF8 = 0x800
_YEAR_1980 = (1 << 5) | 1


# --- a draft


@cache
def documents() -> Mapping[str, bytes]:
    """results.json and facts.npz of a subject that fails at its last link, which was measured on two samples."""
    facts, judged = failing_pair(SUBJECT)
    a, b = sides()
    comparator = Comparator(LINK, stages=("quantized", "hbm"), signatures=(None, None), outputs=OutputMap())
    for number, sample in enumerate(SAMPLES):
        comparator.add(0, sample, {"y": a[number : number + 1]}, {"y": b[number : number + 1]})
    runs = {run.stage: run.id for run in facts.runs}
    measured = replace(facts, measurements=comparator.measurements(runs["quantized"], runs["hbm"]))
    return encode_results(results((measured, judged)))


def sides() -> tuple[np.ndarray, np.ndarray]:
    """What the two sides of the failing link gave for its samples."""
    good = answer(inputs(len(SAMPLES)))
    return good, good + np.float32(0.5)


def common_items() -> tuple[Item, ...]:
    """What a bundle has whatever failed."""
    reports = {
        "junit.xml": (Role.REPORT, b"<testsuites/>\n" * 40),
        "summary.md": (Role.REPORT, b"| check | outcome |\n" * 40),
        "driftgate.log": (Role.LOG, b"2026-01-01 INFO leg digits/J6M/host/0\n" * 20),
        "driftgate.yaml": (Role.CONFIG, b"version: 1\n"),
        "versions.json": (Role.VERSIONS, b'{"python": "3.11"}\n'),
    }
    found = {name: (Role.FACTS, content) for name, content in documents().items()} | reports
    return tuple(Item(name, role, of_bytes(content)) for name, (role, content) in found.items())


def link_evidence() -> LinkEvidence:
    """The failing link: its evidence folder, the vendor's list, both sides; files of every role that may go."""
    a, b = sides()
    x = inputs(len(SAMPLES))
    evidence = Evidence(
        folder=Path(),
        feeds_a={"x": x},
        outputs_a={"y": a},
        outputs_b={"y": b},
        layers_a={"h": x * 2},
        layers_b={"h": x * 3},
        calib={"x": np.arange(300, dtype=np.float32)},
        link=LinkNote("quantized", "hbm", "exact", TARGET, "pull-request"),
    )
    made = evidence_files(evidence, samples=SAMPLES, subject=SUBJECT)
    files = {f"link/{name}": (role, content) for name, (role, content) in made.items()} | {
        RAN: (Role.MODEL, of_bytes(tiny().SerializeToString())),
        "repro/model.onnx": (Role.REPRO, of_bytes(b"smallest part" * 30)),
        "vendor/compile.log": (Role.VENDOR_FILE, of_bytes(b"INFO hb_compile\n" * 50)),
        "vendor/input_0_x.npy": (Role.VENDOR_DATA, of_bytes(x.tobytes() * 10)),
    }
    wanted = {
        "log": Wanted(message("keep-log"), Status.INCLUDED, (f"{FOLDER}/vendor/compile.log",)),
        "input": Wanted(message("keep-input"), Status.INCLUDED, (f"{FOLDER}/vendor/input_0_x.npy",)),
        "output": Wanted(message("keep-board-output"), Status.INCLUDED, (f"{FOLDER}/link/outputs_b.npz",)),
        "model": Wanted(message("keep-model", stage="quantized"), Status.INCLUDED, (f"{FOLDER}/{RAN}",)),
        "hbm": Wanted(
            message("keep-model", stage="hbm"),
            Status.WITHHELD,
            (f"{FOLDER}/vendor/digits.hbm",),
            message("keep-how-include"),
        ),
        "config": Wanted(message("keep-quant-config"), Status.MISSING, (), message("keep-how-quant-config")),
    }
    told = BundledLink(
        subject=SUBJECT,
        target=TARGET,
        folder=FOLDER,
        link=LINK,
        samples=SAMPLES,
        sides=(
            Side("quantized", "onnxruntime", digest("quantized"), f"{FOLDER}/{RAN}", (("level", "disabled"),)),
            Side("hbm", "recorded", digest("hbm")),
        ),
        outputs=BundledOutputs(),
        wanted=tuple(wanted.values()),
    )
    kept_back = Withheld(
        f"{FOLDER}/vendor/digits.hbm", Role.VENDOR_FILE, message("bundle-confidential"), 9, digest("digits.hbm")
    )
    items = tuple(Item(f"{FOLDER}/{name}", role, content) for name, (role, content) in files.items())
    return LinkEvidence(told, items, (kept_back,))


def draft(**changes: Any) -> Draft:
    """A whole draft with files of every role but that of the READMEs, after these changes."""
    whole = Draft(
        tool="driftgate 0.1.0",
        items=common_items(),
        links=(link_evidence(),),
        policies=((SUBJECT, Policy()),),
        models_included=True,
    )
    return replace(whole, **changes)


def weights(of: Draft) -> dict[Role, int]:
    """How many bytes the files of each role come to."""
    found: dict[Role, int] = {}
    for item in of.everything:
        found[item.role] = found.get(item.role, 0) + item.content.size_bytes
    return found


def texts(manifest: BundleManifest) -> dict[str, str]:
    """Two READMEs that say what is not in the bundle."""
    gone = ", ".join(role.value for role in manifest.sacrificed)
    return {"README.md": f"without: {gone}\n", "README.zh-CN.md": f"没有：{gone}\n"}


def written(folder: Path, **changes: Any) -> Path:
    """A bundle of the draft in a folder."""
    return write_bundle(folder / BUNDLE, draft(**changes), texts).path


def environment(**more: str) -> dict[str, str]:
    """That of a process which imports what stands beside the tests, as they do."""
    folders = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders)), **more}


def contents(path: Path) -> dict[str, bytes]:
    """Every file of an archive that is trusted, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# --- forgeries


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of an archive, and every lie that can be told of it: None and empty tell the truth.

    `kind` and `mode` are those of Unix; `said_bytes`, `said_crc`, `at` and `extra` stand in the directory alone;
    `local_name` in front of the content; `packed` is the content as it lies there.
    """

    name: str | bytes
    content: bytes = b""
    method: int = zipfile.ZIP_DEFLATED
    kind: int = stat.S_IFREG
    mode: int = 0o644
    flags: int = 0
    needs: int = 20
    packed: bytes | None = None
    said_bytes: int | None = None
    said_crc: int | None = None
    at: int | None = None
    extra: bytes = b""
    local_name: bytes | None = None

    @property
    def raw_name(self) -> bytes:
        """The name as it is written."""
        return self.name if isinstance(self.name, bytes) else self.name.encode("utf-8", "surrogatepass")

    @property
    def lying(self) -> bytes:
        """The content as it lies in the archive."""
        return deflated(self.content, self.method) if self.packed is None else self.packed


@cache
def deflated(content: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Content as an archive has it under one of the methods that zipfile knows; as it is under others."""
    if method not in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        return content
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("x", content)
        (info,) = archive.infolist()
    start = info.header_offset + _LOCAL.size + len("x")
    return stream.getvalue()[start : start + info.compress_size]


def places(entries: Iterable[Entry]) -> list[int]:
    """Where each of these entries lies in an archive of them, and where the first after them would."""
    found = [0]
    for entry in entries:
        local = entry.raw_name if entry.local_name is None else entry.local_name
        found.append(found[-1] + _LOCAL.size + len(local) + len(entry.lying))
    return found


def forged(entries: Iterable[Entry], manifest: bytes | None = None) -> bytes:
    """An archive of these entries as they are, and of a MANIFEST.json behind them."""
    every = (*entries, *(() if manifest is None else (Entry(MANIFEST, manifest),)))
    made, directory = bytearray(), bytearray()
    for entry in every:
        packed = entry.lying
        name, crc = entry.raw_name, zlib.crc32(entry.content)
        local = name if entry.local_name is None else entry.local_name
        flags, sizes = entry.flags | _UTF8, (len(packed), len(entry.content))
        at = len(made) if entry.at is None else entry.at
        fields = (flags, entry.method, 0, _YEAR_1980)
        made += _LOCAL.pack(b"PK\3\4", entry.needs, *fields, crc, *sizes, len(local), 0) + local + packed
        directory += _ENTRY.pack(
            b"PK\1\2",
            *(20, 3, entry.needs & 0xFF, 0),
            *fields,
            crc if entry.said_crc is None else entry.said_crc,
            len(packed),
            sizes[1] if entry.said_bytes is None else entry.said_bytes,
            *(len(name), len(entry.extra), 0, 0, 0),
            (entry.kind | entry.mode) << 16,
            at,
        )
        directory += name + entry.extra
    count = min(len(every), 0xFFFF)
    end = _END.pack(b"PK\5\6", 0, 0, count, count, len(directory), len(made), 0)
    return bytes(made + directory + end)


def forge(path: Path, entries: Iterable[Entry], manifest: bytes | None = None) -> Path:
    """Write such an archive."""
    path.write_bytes(forged(entries, manifest))
    return path


def listed(entries: Sequence[Entry], roles: Mapping[str, str]) -> list[dict[str, Any]]:
    """What a manifest says of these entries, truly; of unknown role they are logs."""
    return [
        {
            "path": (name := entry.raw_name.decode("utf-8", "surrogatepass")),
            "bytes": len(entry.content),
            "sha256": hashlib.sha256(entry.content).hexdigest(),
            "role": roles.get(name, Role.LOG.value),
        }
        for entry in entries
    ]


def as_json(document: object) -> bytes:
    """JSON that can hold any name, half of a surrogate pair included."""
    return json.dumps(document).encode("ascii")


@cache
def good() -> bytes:
    """The bytes of a good bundle."""
    with tempfile.TemporaryDirectory() as folder:
        return written(Path(folder)).read_bytes()


@cache
def good_contents() -> Mapping[str, bytes]:
    """Every file of a good bundle but its manifest, by name."""
    with zipfile.ZipFile(io.BytesIO(good())) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != MANIFEST}


def good_entries() -> list[Entry]:
    """The same as entries to forge an archive of."""
    return [Entry(name, content) for name, content in good_contents().items()]


def good_manifest() -> dict[str, Any]:
    """The manifest of a good bundle, to be changed at will."""
    with zipfile.ZipFile(io.BytesIO(good())) as archive:
        found: dict[str, Any] = json.loads(archive.read(MANIFEST))
    return found


def changed(files: Mapping[str, bytes]) -> bytes:
    """A bundle that is valid in itself, with other contents of these files."""
    entries = [replace(entry, content=files.get(str(entry.name), entry.content)) for entry in good_entries()]
    manifest = good_manifest()
    roles = {file["path"]: file["role"] for file in manifest["files"]}
    return forged(entries, as_json({**manifest, "files": listed(entries, roles)}))
