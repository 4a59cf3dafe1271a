"""Bundles that an enemy has made: each is refused with a sentence, whole, and nothing of it is left on disk."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import onnxruntime as ort  # type: ignore[import-untyped]
import pytest
from pydantic import TypeAdapter

from driftgate.commands.speaking import say
from driftgate.domain.plan import Plan
from driftgate.errors import StorageError
from driftgate.messages.english import ENGLISH
from driftgate.messages.message import message
from driftgate.messages.text import text
from driftgate.storage.archive import MOST_BYTES, MOST_ENTRIES
from driftgate.storage.bundle import MANIFEST, MANIFEST_BYTES, open_bundle, unpacked_bundle
from driftgate.storage.document import FACTS, RESULTS
from support.bundles import (
    FOLDER,
    RAN,
    Entry,
    as_json,
    changed,
    deflated,
    documents,
    environment,
    forge,
    forged,
    good,
    good_contents,
    good_entries,
    good_manifest,
    listed,
    places,
)
from support.commandline import Answer, call, process

CHUNKS, CHUNK = 20, 60
VERBS = ("explain", "report", "replay")
#: What a process may ask for, and what it may take to refuse something.
ADDRESS_SPACE, MOST_MEMORY = 3 << 30, 512 << 20
Contents = Mapping[str, bytes]


# --- a forgery on its way


@dataclass(slots=True)
class Forgery:
    """A good bundle that is about to become a bad one. `meant` is what may come out of it, if anything does."""

    random: Random
    entries: list[Entry] = field(default_factory=good_entries)
    manifest: dict[str, Any] = field(default_factory=good_manifest)
    meant: dict[str, bytes] = field(default_factory=lambda: dict(good_contents()))
    text: bytes | None = None  # MANIFEST.json, where it is not what `manifest` gives
    bare: bool = False  # without a MANIFEST.json
    bends: list[Callable[[bytes], bytes]] = field(default_factory=list)  # of the archive's bytes
    limit_bytes: int = MOST_BYTES

    @property
    def files(self) -> list[dict[str, Any]]:
        """The manifest's files."""
        found: list[dict[str, Any]] = self.manifest["files"]
        return found

    @property
    def document(self) -> bytes:
        """MANIFEST.json."""
        return as_json(self.manifest) if self.text is None else self.text

    def place(self) -> int:
        """Any entry's place."""
        return self.random.randrange(len(self.entries))

    def bend(self, **changes: Any) -> str:
        """Any entry with these changes, of which the manifest knows nothing; its name."""
        at = self.place()
        self.entries[at] = replace(self.entries[at], **changes)
        return str(self.entries[at].name)

    def add(self, entry: Entry) -> None:
        """One more file, at any place, which the manifest knows of."""
        self.entries.insert(self.random.randrange(len(self.entries) + 1), entry)
        self.files.extend(listed([entry], {}))

    def named(self, name: str) -> None:
        """Any file under this name: a new one or an old one, in the archive, in the manifest, or in both."""
        archived, told = self.random.choice(((True, True), (True, False), (False, True)))
        if self.random.random() < 0.5:
            entry = Entry(name, b"owned")
            self.entries += [entry] if archived else []
            self.files.extend(listed([entry], {}) if told else [])
            return
        at = self.place()
        old = self.entries[at].name
        if archived:
            self.entries[at] = replace(self.entries[at], name=name)
        if told:
            next(file for file in self.files if file["path"] == old)["path"] = name

    def listed_anew(self) -> None:
        """The manifest tells the truth about the entries as they are now."""
        self.manifest["files"] = listed(self.entries, {file["path"]: file["role"] for file in self.files})

    def written(self, path: Path) -> Path:
        """The archive."""
        content = forged(self.entries, None if self.bare else self.document)
        for bend in self.bends:
            content = bend(content)
        path.write_bytes(content)
        return path


@dataclass(frozen=True, slots=True)
class Kind:
    """A hostile change: what it is refused as, whether it may by chance change nothing that matters, and whether it
    is one of the manifest alone. Without codes it is none: what it gives must be opened."""

    act: Callable[[Forgery], None]
    codes: tuple[str, ...]
    chance: bool
    manifest: bool


KINDS: dict[str, Kind] = {}
Act = Callable[[Forgery], None]


def hostile(*codes: str, chance: bool = False, manifest: bool = False) -> Callable[[Act], Act]:
    """Adds a change to the table."""

    def added(act: Act) -> Act:
        KINDS[act.__name__] = Kind(act, codes, chance, manifest)
        return act

    return added


# --- names


#: They lead to the folder that is watched and no further, for the day on which one of them gets through.
@hostile("archive-name")
def climbing(made: Forgery) -> None:
    far = "../" * 20 + str(Path.cwd())[1:]
    near = ("../x", "../../x", "../../cwd/x", "../../outside.txt")
    made.named(made.random.choice((*near, f"{far}/x", f"digits/{far}/x")))


@hostile("archive-name")
def climbing_from_within(made: Forgery) -> None:
    made.named(made.random.choice(("a/../../x", "digits/../../x", "digits/J6M/../../../x", "a/..", "a/b/../x")))


@hostile("archive-name")
def rooted(made: Forgery) -> None:
    made.named(made.random.choice((f"{Path.cwd()}/x", f"/{Path.cwd()}/x", f"{Path.cwd().parent}/outside.txt", "/")))


@hostile("archive-name")
def of_a_drive(made: Forgery) -> None:
    made.named(made.random.choice(("C:\\x", "C:x", "c:/x", "\\\\?\\C:\\x", "digits/C:x", "x:stream")))


@hostile("archive-name")
def with_backslashes(made: Forgery) -> None:
    made.named(made.random.choice(("..\\x", "a\\..\\..\\x", "\\x", "digits\\x", "digits/..\\x")))


@hostile("archive-name")
def with_trailing_dots(made: Forgery) -> None:
    made.named(made.random.choice(("x.", "x...", "digits./x", "digits/x .", "x ", "digits /x", " x", "digits/ x")))


@hostile("archive-name")
def with_parts_that_are_none(made: Forgery) -> None:
    made.named(made.random.choice(("a//b", "./x", "a/./b", ".", "..", "", "a/", "digits/", "digits/J6M/")))


@hostile("archive-name")
def with_zeros(made: Forgery) -> None:
    made.named(made.random.choice(("x\0", "README.md\0.txt", "\0", "digits/\0x", "../x\0y")))


@hostile("archive-name")
def with_control_characters(made: Forgery) -> None:
    control = chr(made.random.choice((*range(1, 32), 127, 0x85, 0x9B, 0x2028, 0x2029)))
    made.named(made.random.choice((f"x{control}", f"digits/{control}x", f"a{control}/b")))


@hostile("archive-name")
def written_backwards(made: Forgery) -> None:
    mark = made.random.choice("\u202e\u202d\u2066\u200f\u200b\ufeff\u00ad")
    made.named(made.random.choice((f"exe{mark}gnp.x", f"digits/{mark}x")))


@hostile("archive-name")
def composed_in_another_way(made: Forgery) -> None:
    made.named(made.random.choice(("e\u0301", "digits/A\u030a", "\u212b", "digits/\uf900x", "o\u0308/x")))


@hostile("archive-name")
def of_devices(made: Forgery) -> None:
    device = made.random.choice(("con", "NUL", "aux", "PRN", "com1", "LPT9", "Con"))
    made.named(made.random.choice((device, f"{device}.txt", f"digits/{device}", f"{device}/x", f"{device}.tar.gz")))


@hostile("archive-name")
def with_wildcards(made: Forgery) -> None:
    made.named(made.random.choice(("*", "a?", 'digits/"x"', "a<b", "a>b", "a|b", "digits/*.npz")))


@hostile("archive-name")
def very_long(made: Forgery) -> None:
    made.named(made.random.choice(("x" * 241, "x" * 60000, "漢" * 81, "digits/" + "x" * 255)))


@hostile("archive-name")
def very_deep(made: Forgery) -> None:
    made.named("/".join("d" * made.random.choice((9, 30, 120))))


@hostile("archive-name", "results-invalid", manifest=True)
def half_of_a_surrogate_pair(made: Forgery) -> None:
    made.files.extend(listed([Entry(f"x{chr(made.random.randrange(0xD800, 0xE000))}", b"")], {}))


@hostile("archive-damaged")
def names_that_are_no_utf8(made: Forgery) -> None:
    made.entries.append(Entry(made.random.choice((b"\xff", b"x\xc3", b"\xed\xa0\x80", b"digits/\x80")), b"owned"))


# --- what an entry is


@hostile("archive-kind")
def links(made: Forgery) -> None:
    target = made.random.choice((b"/etc/passwd", b"../../x", b"results.json", b".", b"/"))
    made.bend(kind=stat.S_IFLNK, mode=0o777, content=target)
    made.listed_anew()


@hostile("archive-kind")
def devices(made: Forgery) -> None:
    made.bend(kind=made.random.choice((stat.S_IFCHR, stat.S_IFBLK)), content=b"")
    made.listed_anew()


@hostile("archive-kind")
def pipes_and_sockets(made: Forgery) -> None:
    made.bend(kind=made.random.choice((stat.S_IFIFO, stat.S_IFSOCK, 0o160000, 0o150000, 0o110000)))


@hostile("archive-kind")
def folders(made: Forgery) -> None:
    made.bend(kind=stat.S_IFDIR, mode=0o755, content=made.random.choice((b"", b"x")))
    made.listed_anew()


@hostile()
def odd_permissions(made: Forgery) -> None:
    made.bend(mode=made.random.choice((0o4755, 0o2755, 0o1777, 0, 0o777)), kind=made.random.choice((0, stat.S_IFREG)))


@hostile("archive-kind")
def encrypted(made: Forgery) -> None:
    made.bend(flags=made.random.choice((0x1, 0x41, 0x2041)))


@hostile("archive-damaged")
def encrypted_or_patched_in_ways_unknown(made: Forgery) -> None:
    made.bend(flags=made.random.choice((0x40, 0x20, 0x60)))


@hostile("archive-kind")
def packed_in_another_way(made: Forgery) -> None:
    made.bend(method=made.random.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)))


@hostile("archive-kind")
def packed_in_a_way_unknown(made: Forgery) -> None:
    made.bend(method=made.random.choice((1, 2, 6, 9, 93, 95, 97, 98, 99, 0xFFFF)))


@hostile("archive-damaged")
def packed_otherwise_than_it_says(made: Forgery) -> None:
    at = made.place()
    one = made.entries[at]
    made.entries[at] = replace(one, method=zipfile.ZIP_DEFLATED, packed=one.content or b"\xff")


@hostile("archive-damaged")
def of_a_later_format(made: Forgery) -> None:
    made.bend(needs=made.random.randint(64, 255))


# --- several entries


@hostile("archive-twice")
def two_of_one_name(made: Forgery) -> None:
    twin = made.random.choice(made.entries)
    content = made.random.choice((twin.content, b"another"))
    made.entries.insert(made.random.randrange(len(made.entries)), replace(twin, content=content))


@hostile("archive-twice")
def two_that_differ_by_case(made: Forgery) -> None:
    name = str(made.random.choice(made.entries).name)
    other = made.random.choice([other for other in (name.upper(), name.lower(), name.title()) if other != name])
    made.add(Entry(other, b"another"))


@hostile("archive-twice")
def two_that_differ_by_case_in_other_alphabets(made: Forgery) -> None:
    for name in made.random.choice((("straße", "STRASSE"), ("ſ", "s"), ("ς", "Σ"), ("ﬁ.txt", "FI.txt"), ("µ", "μ"))):
        made.add(Entry(name, b"x"))


@hostile("archive-twice")
def a_file_where_another_needs_a_folder(made: Forgery) -> None:
    made.add(Entry(made.random.choice(("digits", "DIGITS", "digits/J6M", "digits/j6m/LINK", "README.md/x", "a")), b""))
    made.add(Entry("a/b", b""))


@hostile("archive-twice")
def two_manifests(made: Forgery) -> None:
    name = made.random.choice((MANIFEST, MANIFEST.lower(), f"{MANIFEST}/x"))
    made.entries.insert(made.place(), Entry(name, made.document))


@hostile("archive-entries")
def too_many(made: Forgery) -> None:
    count = MOST_ENTRIES + made.random.randint(0, 100) - len(made.entries)
    made.entries += [Entry(f"n/{number}", b"", zipfile.ZIP_STORED) for number in range(count)]
    if made.random.random() < 0.5:
        made.listed_anew()


@hostile("archive-damaged")
def two_that_lie_at_one_place(made: Forgery) -> None:
    first, second = made.random.sample(range(len(made.entries)), 2)
    made.entries[second] = replace(made.entries[second], at=places(made.entries)[first])


@hostile("archive-damaged", chance=True)
def one_within_another(made: Forgery) -> None:
    """Both are as the manifest says, but the bytes of one are among those of the other."""
    inner = made.random.choice(made.entries)
    made.entries.remove(inner)
    outer = Entry("outer", forged([inner]), zipfile.ZIP_STORED)
    start = places([*made.entries, outer])[-1] - len(outer.content)
    made.entries += [outer, replace(inner, at=start)]
    made.files.extend(listed([outer], {}))
    made.meant["outer"] = outer.content


# --- sizes, sums, offsets


@hostile("archive-too-large")
def huge_by_their_own_account(made: Forgery) -> None:
    for at in made.random.sample(range(len(made.entries)), 3):
        made.entries[at] = replace(made.entries[at], said_bytes=0xFFFFFFFE)


@hostile("archive-too-large")
def huge_beyond_four_gigabytes(made: Forgery) -> None:
    size = made.random.choice((MOST_BYTES + 1, 1 << 40, 1 << 63, (1 << 64) - 1))
    made.bend(said_bytes=0xFFFFFFFF, extra=struct.pack("<HHQ", 1, 8, size))


@hostile("bundle-changed", "archive-shorter", "archive-damaged")
def larger_than_they_are(made: Forgery) -> None:
    _lying(made, made.random.choice((1, 100, 1 << 20, 1 << 31)))


@hostile("bundle-changed", "archive-damaged")
def smaller_than_they_are(made: Forgery) -> None:
    _lying(made, -made.random.randint(1, 10))


def _lying(made: Forgery, by: int) -> None:
    """The archive lies about a size, and now and then the manifest does as well."""
    at = made.place()
    one = made.entries[at]
    made.entries[at] = replace(one, said_bytes=len(one.content) + by)
    if made.random.random() < 0.5:
        next(file for file in made.files if file["path"] == one.name)["bytes"] += by


@cache
def zeros(mebibytes: int) -> Entry:
    """Very little that unpacks to very much."""
    content = bytes(mebibytes << 20)
    return Entry("bomb", content, packed=deflated(content))


@hostile("bundle-changed", "archive-damaged")
def a_bomb_that_says_it_is_small(made: Forgery) -> None:
    bomb = zeros(made.random.choice((8, 32)))
    made.add(bomb)
    at = made.entries.index(bomb)
    made.entries[at] = replace(bomb, said_bytes=1000)
    if made.random.random() < 0.5:
        made.files[-1]["bytes"] = 1000


@hostile()
def a_bomb_of_which_only_the_beginning_is_wanted(made: Forgery) -> None:
    beginning = bytes(1000)
    made.add(Entry("bomb", beginning))
    at = next(n for n, entry in enumerate(made.entries) if entry.name == "bomb")
    made.entries[at] = replace(zeros(32), said_bytes=1000, said_crc=zlib.crc32(beginning))
    made.meant["bomb"] = beginning


@hostile("archive-too-large")
def a_bomb_that_says_what_it_is(made: Forgery) -> None:
    made.add(zeros(made.random.choice((8, 32))))
    made.limit_bytes = made.random.choice((1 << 20, 7 << 20))


@hostile("archive-damaged")
def wrong_sums(made: Forgery) -> None:
    made.bend(said_crc=made.random.getrandbits(32))


@hostile("archive-damaged")
def other_bytes_under_the_same_sum(made: Forgery) -> None:
    """The packed bytes are cut off, spoilt or gone."""
    at = made.place()
    packed = deflated(made.entries[at].content)
    cut = made.random.choice((packed[: len(packed) // 2], b"", b"\0" * len(packed), b"\xff" * len(packed)))
    made.entries[at] = replace(made.entries[at], packed=cut)


@hostile("archive-damaged")
def elsewhere_than_they_say(made: Forgery) -> None:
    made.bend(at=made.random.choice((1, 13, 1 << 20, 0xFFFFFFFE)))


@hostile("archive-damaged", "archive-unreadable")
def far_beyond_the_end(made: Forgery) -> None:
    place = made.random.choice((1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1))
    made.bend(at=0xFFFFFFFF, extra=struct.pack("<HHQ", 1, 8, place))


@hostile("archive-damaged", "bundle-changed")
def extra_fields_cut_off(made: Forgery) -> None:
    made.bend(said_bytes=0xFFFFFFFF, extra=made.random.choice((struct.pack("<HHL", 1, 4, 7), b"\1\0\x08\0\1", b"\1\0")))


@hostile("archive-damaged")
def of_another_name_where_they_lie(made: Forgery) -> None:
    at = made.place()
    own = made.entries[at].raw_name
    other = made.random.choice((b"x" * len(own), own.upper() + b"x", b"../x", b"", b"\xff\xfe"))
    made.entries[at] = replace(made.entries[at], local_name=other)


# --- the archive's bytes


@hostile("archive-damaged")
def cut_short(made: Forgery) -> None:
    made.bends.append(lambda content: content[: made.random.randrange(len(content))])


#: A byte more or less may do anything but get past.
ANYTHING = tuple(code for code in ENGLISH if code.startswith(("archive-", "bundle-", "results-")))


@hostile(*ANYTHING, chance=True)
def flipped_bytes(made: Forgery) -> None:
    def bent(content: bytes) -> bytes:
        spoilt = bytearray(content)
        for _ in range(made.random.randint(1, 8)):
            spoilt[made.random.randrange(len(spoilt))] ^= made.random.randint(1, 255)
        return bytes(spoilt)

    made.bends.append(bent)


@hostile(*ANYTHING, chance=True)
def flipped_bytes_in_the_directory(made: Forgery) -> None:
    def bent(content: bytes) -> bytes:
        spoilt = bytearray(content)
        for _ in range(made.random.randint(1, 3)):
            spoilt[made.random.randrange(content.index(b"PK\1\2"), len(content))] ^= 1 << made.random.randrange(8)
        return bytes(spoilt)

    made.bends.append(bent)


@hostile(*ANYTHING, chance=True)
def bytes_put_in_or_taken_out(made: Forgery) -> None:
    def bent(content: bytes) -> bytes:
        at, count = made.random.randrange(len(content)), made.random.randint(1, 40)
        if made.random.random() < 0.5:
            return content[:at] + content[at + count :]
        return content[:at] + made.random.randbytes(count) + content[at:]

    made.bends.append(bent)


@hostile()
def junk_around_it(made: Forgery) -> None:
    """Before it, as of a file that unpacks itself, or behind it: what is in between is as it was."""
    before, behind = (made.random.randbytes(made.random.randint(0, 3000)).replace(b"PK", b"KP") for _ in range(2))
    made.bends.append(lambda content: before + content + behind)


@hostile("archive-damaged", "bundle-no-manifest", "bundle-other-files")
def junk_around_a_broken_directory(made: Forgery) -> None:
    before = made.random.randbytes(made.random.randint(1, 3000)).replace(b"PK", b"KP")
    field_at = made.random.choice((12, 16))  # of the directory's end: its size, its place
    by = made.random.choice((-46, -1, 1, 30, 46, 1 << 20))

    def bent(content: bytes) -> bytes:
        end = content.rindex(b"PK\5\6") + field_at
        (told,) = struct.unpack_from("<L", content, end)
        return before + content[:end] + struct.pack("<L", max(0, told + by)) + content[end + 4 :]

    made.bends.append(bent)


@hostile("bundle-no-manifest")
def a_second_end(made: Forgery) -> None:
    """A comment that is the end of an archive that has no files."""
    empty = forged([])

    def bent(content: bytes) -> bytes:
        return content[:-2] + struct.pack("<H", len(empty)) + empty

    made.bends.append(bent)


@hostile("archive-damaged", "bundle-no-manifest")
def no_archive_at_all(made: Forgery) -> None:
    other = made.random.choice((b"", b"PK", b"hello", b"\x1f\x8b" * 50, bytes(100), forged([]), b"PK\5\6" + bytes(17)))
    made.bends.append(lambda content: other)


# --- the manifest


@hostile("bundle-no-manifest")
def no_manifest(made: Forgery) -> None:
    made.bare = True


@hostile("bundle-no-manifest")
def manifest_of_another_name(made: Forgery) -> None:
    made.bare = True
    made.add(Entry(made.random.choice(("manifest.json", "MANIFEST.JSON", "x/MANIFEST.json")), made.document))


@cache
def spaces() -> bytes:
    """More than a manifest may have."""
    return b" " * (MANIFEST_BYTES + 1)


@hostile("bundle-no-manifest", manifest=True)
def manifest_without_an_end(made: Forgery) -> None:
    made.text = made.document + spaces()


@hostile("results-garbled", manifest=True)
def manifest_cut_short(made: Forgery) -> None:
    made.text = made.document[: made.random.randrange(len(made.document))]


@hostile("results-garbled", manifest=True)
def manifest_that_is_no_text(made: Forgery) -> None:
    junk = made.random.choice((b"\xff\xff\xff\xff", b"\x80", b"\xc3\x28", b"\0\0\0\0\0", made.random.randbytes(64)))
    at = made.random.randrange(len(made.document))
    made.text = b'{"' + made.document[:at] + b"\xff" + junk


@hostile("results-garbled", "results-invalid", manifest=True)
def manifest_nested_without_end(made: Forgery) -> None:
    depth = made.random.choice((300, 900, 960, 1500, 100_000))
    nested = made.random.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth))
    made.text = as_json({**made.manifest, "links": "@"}).replace(b'"@"', nested)


@hostile("results-other", manifest=True)
def manifest_of_another_schema(made: Forgery) -> None:
    wrong: object = made.random.choice(("driftgate.results", "driftgate.bundle ", None, 1, ["driftgate.bundle"], {}))
    made.manifest["schema"] = wrong
    if made.random.random() < 0.2:
        del made.manifest["schema"]


@hostile("results-version", manifest=True)
def manifest_of_another_version(made: Forgery) -> None:
    made.manifest["version"] = made.random.choice((0, 2, -1, "1", None, [1], 1.5, 10**30, 10**400, {"1": 1}))


@hostile("results-other", manifest=True)
def manifest_that_is_no_object(made: Forgery) -> None:
    made.text = as_json(made.random.choice(([], None, 3, "driftgate.bundle", [made.manifest], True)))


@hostile("results-invalid", manifest=True)
def manifest_of_wrong_types(made: Forgery) -> None:
    size = made.random.choice(("x", None, 0.5, [1], "NaN"))
    whole = {"tool": 5, "models_included": "perhaps", "budget_bytes": "much", "replay": "x", "links": {}, "files": {}}
    link: dict[str, object] = {
        "subject": None,
        "folder": 3,
        "samples": "0137",
        "sides": [[]],
        "outputs": [],
        "wanted": [{}],
    }
    wrong: dict[str, Mapping[str, object]] = {
        "whole": whole,
        "file": {"path": 5, "bytes": size, "sha256": [], "role": "king"},
        "link": link,
    }
    where = {"whole": made.manifest, "file": made.random.choice(made.files), "link": made.manifest["links"][0]}
    part = made.random.choice(tuple(wrong))
    name = made.random.choice(tuple(wrong[part]))
    where[part][name] = wrong[part][name]


@hostile("results-invalid", manifest=True)
def manifest_that_lacks_something(made: Forgery) -> None:
    where = made.random.choice((made.manifest, made.random.choice(made.files), made.manifest["links"][0]))
    needed = {"tool", "models_included", "budget_bytes", "links", "files", "path", "bytes", "sha256", "role", "folder"}
    del where[made.random.choice(sorted(needed & where.keys()))]


@hostile("results-invalid", manifest=True)
def manifest_of_odd_numbers(made: Forgery) -> None:
    odd = made.random.choice((b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1.5", b"1e-9"))
    at = made.random.randrange(len(made.files))
    made.files[at]["bytes"] = "@"
    made.text = as_json(made.manifest).replace(b'"@"', odd)


@hostile("bundle-changed", manifest=True)
def negative_sizes(made: Forgery) -> None:
    made.random.choice(made.files)["bytes"] = -made.random.choice((1, 100, 1 << 40, 10**30, 10**400))


@hostile("archive-too-large", manifest=True)
def immense_sizes(made: Forgery) -> None:
    made.random.choice(made.files)["bytes"] = made.random.choice((MOST_BYTES, 1 << 62, 1 << 64, 10**30))


@hostile("archive-too-large", "results-invalid", manifest=True)
def sizes_beyond_all_numbers(made: Forgery) -> None:
    for file in made.random.sample(made.files, made.random.randint(1, 10)):
        file["bytes"] = int("9" * made.random.choice((310, 400, 4000, 4300)))


@hostile("bundle-other-files", "archive-unreadable", manifest=True)
def listed_but_absent(made: Forgery) -> None:
    made.files.insert(made.random.randrange(len(made.files)), *listed([Entry("absent.txt", b"")], {}))


@hostile("bundle-other-files")
def there_but_not_listed(made: Forgery) -> None:
    if made.random.random() < 0.5:
        made.entries.insert(made.place(), Entry("more.txt", b"owned"))
    else:
        made.files.remove(made.random.choice(made.files))


@hostile("bundle-changed", manifest=True)
def wrong_digests(made: Forgery) -> None:
    file = made.random.choice(made.files)
    told = file["sha256"]
    file["sha256"] = made.random.choice((told[::-1], told.upper() + "X", "", "0" * 64, told[:-1], f"{told} "))


@hostile("bundle-changed", manifest=True)
def wrong_sizes(made: Forgery) -> None:
    made.random.choice(made.files)["bytes"] += made.random.choice((-1, 1, 10, 1 << 20))


@hostile("archive-name", manifest=True)
def listed_twice(made: Forgery) -> None:
    twin = dict(made.random.choice(made.files))
    twin["path"] = made.random.choice((twin["path"], twin["path"].upper(), twin["path"] + "/x"))
    made.files.insert(made.random.randrange(len(made.files)), twin)


@hostile("archive-name", manifest=True)
def lists_itself(made: Forgery) -> None:
    name = made.random.choice((MANIFEST, "manifest.json", f"{MANIFEST}/x"))
    made.files.insert(made.random.randrange(len(made.files)), *listed([Entry(name, b"x")], {}))


@hostile("archive-name", manifest=True)
def lists_what_is_elsewhere(made: Forgery) -> None:
    """The digest of the file elsewhere is right."""
    name = made.random.choice(("../outside.txt", "digits/../../outside.txt", f"{Path.cwd().parent}/outside.txt"))
    made.files.insert(made.random.randrange(len(made.files)), *listed([Entry(name, b"outside")], {}))


@hostile("archive-entries", manifest=True)
def lists_without_end(made: Forgery) -> None:
    made.files.extend(listed([Entry("x", b"")], {}) * MOST_ENTRIES)


@hostile("bundle-changed")
def exchanged_contents(made: Forgery) -> None:
    a, b = made.random.sample(range(len(made.entries)), 2)
    one, other = made.entries[a], made.entries[b]
    assert one.content != other.content
    made.entries[a], made.entries[b] = replace(one, content=other.content), replace(other, content=one.content)


@hostile("bundle-changed")
def another_content_of_the_same_length(made: Forgery) -> None:
    at = next(at for at in iter(made.place, -1) if made.entries[at].content)
    content = bytearray(made.entries[at].content)
    content[made.random.randrange(len(content))] ^= 1
    made.entries[at] = replace(made.entries[at], content=bytes(content))


# --- looking at them


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which all would be that got out: it holds the folder for temporary files and the one we work in."""
    for name in ("tmp", "cwd"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside.txt").write_bytes(b"outside")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path / "cwd")
    return tmp_path


def state(folder: Path) -> dict[str, tuple[int, int, int]]:
    """All that is below a folder: what it is, how large, since when."""
    found = {}
    for path in sorted(folder.rglob("*")):
        told = path.lstat()
        found[str(path.relative_to(folder))] = (told.st_mode, told.st_size, told.st_mtime_ns if path.is_file() else 0)
    return found


def files_below(folder: Path) -> Contents:
    """The content of every file below a folder, by name; a link is none."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if stat.S_ISREG(path.lstat().st_mode)
    }


def by_opening(path: Path, limit_bytes: int) -> Contents:
    with open_bundle(path, limit_bytes=limit_bytes) as bundle, tempfile.TemporaryDirectory() as folder:
        bundle.unpack(Path(folder))
        return files_below(Path(folder))


def by_unpacking(path: Path, limit_bytes: int) -> Contents:
    with unpacked_bundle(path, limit_bytes=limit_bytes) as (_, folder):
        return files_below(folder)


def faults(kind: Kind, path: Path, meant: Contents, limit_bytes: int) -> Iterator[str]:
    """What is wrong with how a path is looked at."""
    for look in (by_opening, by_unpacking):
        try:
            found = look(path, limit_bytes)
        except StorageError as error:
            yield from (f"{look.__name__}: {fault}" for fault in _unsaid(error, kind.codes))
        except Exception as error:
            yield f"{look.__name__} raised {type(error).__name__}: {error}"
        else:
            if kind.codes and not kind.chance:
                yield f"{look.__name__} opened it"
            elif found != meant:
                yield f"{look.__name__} opened it with other files or contents"


def _unsaid(error: StorageError, codes: tuple[str, ...]) -> Iterator[str]:
    try:
        told = [say(problem) for problem in error.problems]
    except Exception as failed:
        yield f"no sentence can be made of {error.problems[0].code}: {type(failed).__name__}: {failed}"
        return
    if len(told) != 1 or not told[0].strip() or error.problems[0].code not in ENGLISH:
        yield f"one sentence was wanted: {told}"
    elif error.problems[0].code not in codes:
        yield f"refused as {error.problems[0].code}, not as {codes}: {told[0][:300]}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_forgery_is_opened_and_none_leaves_anything_behind(chunk: int, watched: Path) -> None:
    found = []
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        made = Forgery(Random(seed))
        name = made.random.choice(tuple(KINDS))
        KINDS[name].act(made)
        path = made.written(watched / "bundle.zip")
        before = state(watched)
        found += [f"seed {seed}, {name}: {fault}" for fault in faults(KINDS[name], path, made.meant, made.limit_bytes)]
        if state(watched) != before:
            found.append(f"seed {seed}, {name}: left {sorted(state(watched).items() ^ before.items())}")
    assert not found, "\n".join(found)


def test_the_seeds_are_a_thousand_and_reach_every_kind() -> None:
    seen = {Random(seed).choice(tuple(KINDS)) for seed in range(CHUNKS * CHUNK)}
    assert CHUNKS * CHUNK >= 1000
    assert len(KINDS) >= 30
    assert seen == KINDS.keys()


def test_without_a_change_the_same_forgery_is_opened(watched: Path) -> None:
    path = Forgery(Random(0)).written(watched / "bundle.zip")
    assert by_opening(path, MOST_BYTES) == by_unpacking(path, MOST_BYTES) == good_contents()
    (watched / "good.zip").write_bytes(good())
    assert by_opening(watched / "good.zip", MOST_BYTES) == good_contents()


# --- the verbs


def asked(verb: str, path: Path, out: Path) -> Answer:
    """What a verb says to a bundle."""
    return call(verb, path, *(("--out", out) if verb == "report" else ()))


def assert_refused(answer: Answer) -> None:
    """Exit code 2 and one sentence on stderr, which is ours."""
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("driftgate: ")
    assert answer.err.endswith("\n")
    assert answer.err.count("\n") == 1
    assert_no_accident(answer)


def assert_no_accident(answer: Answer) -> None:
    """Whatever it came to, it was meant to."""
    head = ENGLISH["internal-error"].partition(",")[0]
    assert head == "internal error"
    assert head not in answer.err
    assert "Traceback" not in answer.err


def refused_forgery(name: str, path: Path) -> bool:
    """Write the first forgery of a kind that is not harmless by chance; False where none is."""
    kind = KINDS[name]
    for seed in range(60):
        made = Forgery(Random(seed))
        kind.act(made)
        made.written(path)
        if not kind.codes:
            return False
        if not kind.chance or _is_refused(path):
            return True
    return False


def _is_refused(path: Path) -> bool:
    try:
        by_unpacking(path, MOST_BYTES)
    except StorageError:
        return True
    return False


@pytest.mark.parametrize("name", [name for name in KINDS if name != "a_bomb_that_says_what_it_is"])
def test_every_verb_refuses_every_kind_with_one_sentence(name: str, watched: Path) -> None:
    path = watched / "the-bundle.zip"
    refused = refused_forgery(name, path)
    assert refused or not KINDS[name].codes or name == one_within_another.__name__  # Python decides over that one
    before = state(watched)
    for verb in VERBS:
        answer = asked(verb, path, watched / "out")
        if refused:
            assert_refused(answer)
            assert path.name in answer.err
            assert state(watched) == before
        else:
            assert answer.out != ""
            assert_no_accident(answer)


def test_a_good_bundle_is_explained_reported_and_replayed(watched: Path) -> None:
    path = watched / "bundle.zip"
    path.write_bytes(good())
    said = {verb: asked(verb, path, watched / "out") for verb in VERBS}
    assert said["replay"].code == 1
    assert "still fails" in said["replay"].out
    assert "digits J6M" in said["explain"].out
    assert "digits J6M" in said["report"].out
    for answer in said.values():
        assert_no_accident(answer)


# --- unpacked


FolderAct = Callable[[Path, Path, Random], None]
FOLDER_KINDS: dict[str, tuple[FolderAct, tuple[str, ...]]] = {}


def unpacked_hostile(*codes: str) -> Callable[[FolderAct], FolderAct]:
    """Adds a change of an unpacked bundle to the table; it is given its folder and one beside it."""

    def added(act: FolderAct) -> FolderAct:
        FOLDER_KINDS[act.__name__] = (act, codes)
        return act

    return added


def any_file(folder: Path, random: Random) -> Path:
    return folder / random.choice(sorted(good_contents()))


@unpacked_hostile("archive-kind")
def a_link_to_the_same_content(folder: Path, beside: Path, random: Random) -> None:
    path = any_file(folder, random)
    path.rename(beside / "moved")
    path.symlink_to(beside / "moved")


@unpacked_hostile("archive-kind")
def a_link_within(folder: Path, beside: Path, random: Random) -> None:
    path = any_file(folder, random)
    path.rename(folder / "moved")
    path.symlink_to(os.path.relpath(folder / "moved", path.parent))


@unpacked_hostile("archive-kind")
def a_link_above_a_file(folder: Path, beside: Path, random: Random) -> None:
    above = folder / random.choice(("digits", "digits/J6M", "digits/J6M/link", "digits/J6M/vendor"))
    above.rename(beside / "moved")
    above.symlink_to(beside / "moved", target_is_directory=True)


@unpacked_hostile("archive-kind")
def a_link_to_nowhere(folder: Path, beside: Path, random: Random) -> None:
    path = any_file(folder, random)
    path.unlink()
    path.symlink_to(random.choice(("/nowhere", path.name, "/dev/zero", "/etc/passwd")))


@unpacked_hostile("archive-kind")
def a_manifest_that_is_a_link(folder: Path, beside: Path, random: Random) -> None:
    (folder / MANIFEST).rename(beside / MANIFEST)
    (folder / MANIFEST).symlink_to(beside / MANIFEST)


@unpacked_hostile("bundle-changed")
def a_changed_file(folder: Path, beside: Path, random: Random) -> None:
    path = any_file(folder, random)
    content = bytearray(path.read_bytes() or b"x")
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


@unpacked_hostile("bundle-changed")
def a_file_that_grew_or_shrank(folder: Path, beside: Path, random: Random) -> None:
    path = any_file(folder, random)
    content = path.read_bytes()
    path.write_bytes(random.choice((content + b"x", content[:-1], b"", content * 2, content + bytes(3 << 20))))


@unpacked_hostile("archive-unreadable")
def a_missing_file(folder: Path, beside: Path, random: Random) -> None:
    any_file(folder, random).unlink()


@unpacked_hostile("archive-unreadable")
def a_missing_folder(folder: Path, beside: Path, random: Random) -> None:
    shutil.rmtree(folder / random.choice(("digits", "digits/J6M", "digits/J6M/link")))


@unpacked_hostile("archive-unreadable")
def a_file_instead_of_a_folder(folder: Path, beside: Path, random: Random) -> None:
    shutil.rmtree(folder / "digits")
    (folder / "digits").touch()


@unpacked_hostile("archive-kind")
def a_folder_instead_of_a_file(folder: Path, beside: Path, random: Random) -> None:
    path = any_file(folder, random)
    path.unlink()
    path.mkdir()


@unpacked_hostile("archive-kind")
def a_socket(folder: Path, beside: Path, random: Random) -> None:
    path = any_file(folder, random)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def an_unpacked_bundle(folder: Path) -> Path:
    """A good bundle as people unpack it."""
    folder.mkdir()
    with zipfile.ZipFile(forge(folder.parent / "good.zip", good_entries(), as_json(good_manifest()))) as archive:
        archive.extractall(folder)
    return folder


def test_an_unpacked_bundle_is_opened_and_what_else_lies_there_is_left_alone(watched: Path) -> None:
    folder = an_unpacked_bundle(watched / "unpacked")
    (folder / "notes.txt").write_text("mine")
    assert by_opening(folder, MOST_BYTES) == by_unpacking(folder, MOST_BYTES) == good_contents()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", FOLDER_KINDS)
def test_a_folder_that_was_changed_is_refused(name: str, seed: int, watched: Path) -> None:
    folder = an_unpacked_bundle(watched / "unpacked")
    (watched / "beside").mkdir()
    act, codes = FOLDER_KINDS[name]
    act(folder, watched / "beside", Random(seed))
    before = state(watched)
    assert list(faults(Kind(lambda made: None, codes, False, False), folder, {}, MOST_BYTES)) == [], f"seed {seed}"
    for verb in VERBS if seed == 0 else ():
        assert_refused(asked(verb, folder, watched / "out"))
    assert state(watched) == before


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.manifest])
def test_a_folder_with_a_forged_manifest_is_refused(name: str, seed: int, watched: Path) -> None:
    folder = an_unpacked_bundle(watched / "unpacked")
    made = Forgery(Random(seed))
    KINDS[name].act(made)
    (folder / MANIFEST).write_bytes(made.document)
    before = state(watched)
    assert list(faults(KINDS[name], folder, {}, MOST_BYTES)) == [], f"seed {seed}"
    for verb in VERBS if seed == 0 else ():
        assert_refused(asked(verb, folder, watched / "out"))
    assert state(watched) == before


def test_a_folder_without_a_manifest_is_no_bundle(watched: Path) -> None:
    folder = an_unpacked_bundle(watched / "unpacked")
    (folder / MANIFEST).unlink()
    with pytest.raises(StorageError, match=MANIFEST), open_bundle(folder):
        pass
    assert_refused(call("replay", folder))


@pytest.mark.parametrize("name", [MANIFEST, RESULTS, f"{FOLDER}/link/inputs.npz"])
def test_a_pipe_in_a_folder_is_refused_and_not_waited_for(name: str, watched: Path) -> None:
    folder = an_unpacked_bundle(watched / "unpacked")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert_refused(process("replay", folder))


def test_a_file_that_changes_after_it_was_looked_at_is_not_unpacked(watched: Path) -> None:
    folder = an_unpacked_bundle(watched / "unpacked")
    with open_bundle(folder) as bundle:
        for change in (b"another content", b""):
            (folder / "driftgate.log").write_bytes(change)
            with pytest.raises(StorageError, match=r"driftgate\.log"):
                bundle.unpack(watched / str(len(change)))
    assert not (watched / "driftgate.log").exists()


# --- what the manifest asks replay for


def of_side(**changes: Any) -> Callable[[Forgery, Path], None]:
    def act(made: Forgery, elsewhere: Path) -> None:
        told = {name: value(elsewhere) if callable(value) else value for name, value in changes.items()}
        made.manifest["links"][0]["sides"][0].update(told)

    return act


def of_link(change: Callable[[dict[str, Any], Path], None]) -> Callable[[Forgery, Path], None]:
    return lambda made, elsewhere: change(made.manifest["links"][0], elsewhere)


#: `elsewhere` has what a bundle has, and is none of its files.
ASKED: dict[str, Callable[[Forgery, Path], None]] = {
    "a model by its whole path": of_side(file=lambda elsewhere: f"{elsewhere}/{FOLDER}/{RAN}"),
    "a model further up": of_side(file=lambda elsewhere: f"{'../' * 20}{str(elsewhere)[1:]}/{FOLDER}/{RAN}"),
    "evidence by its whole path": of_link(lambda link, elsewhere: link.update(folder=f"{elsewhere}/{FOLDER}")),
    "evidence further up": of_link(
        lambda link, elsewhere: link.update(folder=f"{'../' * 20}{str(elsewhere)[1:]}/{FOLDER}")
    ),
    "threads that are no number": of_side(options=[["threads", "many"]]),
    "threads beyond all numbers": of_side(options=[["threads", 10**30]]),
    "libraries that are none": of_side(options=[["custom_ops", 5]]),
    "one side": of_link(lambda link, elsewhere: link.update(sides=link["sides"][:1])),
    "four sides": of_link(lambda link, elsewhere: link.update(sides=link["sides"] * 2)),
}


@pytest.mark.parametrize("name", ASKED)
def test_replay_cannot_be_told_where_the_manifest_leads_out_of_the_bundle_or_makes_no_sense(
    name: str, watched: Path
) -> None:
    elsewhere = an_unpacked_bundle(watched / "elsewhere")
    made = Forgery(Random(0))
    ASKED[name](made, elsewhere)
    answer = call("replay", made.written(watched / "bundle.zip"))
    assert_no_accident(answer)
    assert answer.code == 2


def test_replay_loads_no_library_that_the_manifest_names(watched: Path) -> None:
    made = Forgery(Random(0))
    of_side(options=[["custom_ops", "x"]])(made, watched)
    path = made.written(watched / "bundle.zip")
    Path("x").write_bytes(b"no library, but what we work in may hold one")
    answer = call("replay", path)
    assert_no_accident(answer)
    tried = text(message("ort-library", stage="quantized", path="x", reason="@")).partition("@")[0]
    assert tried not in answer.out + answer.err


def test_replay_does_not_start_as_many_threads_as_the_manifest_asks_for(
    watched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[int] = []

    def spied(model: str, options: ort.SessionOptions, **more: object) -> ort.InferenceSession:
        asked_for.append(options.intra_op_num_threads)
        raise ValueError("it is not started here")

    made = Forgery(Random(0))
    of_side(options=[["threads", 1_000_000]])(made, watched)
    path = made.written(watched / "bundle.zip")
    monkeypatch.setattr(ort, "InferenceSession", spied)
    assert_no_accident(call("replay", path))
    assert max(asked_for, default=0) <= 1024


# --- results.json and facts.npz that their manifest vouches for


def npy(header: str | bytes, content: bytes = b"", version: int = 1) -> bytes:
    """An array of any header."""
    told = header.encode() if isinstance(header, str) else header
    length = struct.pack("<H" if version == 1 else "<L", len(told))
    return b"\x93NUMPY" + bytes([version, 0]) + length + told + content


def array(descr: str, shape: object, content: bytes = b"") -> bytes:
    """An array of a header that has the right form."""
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n", content)


class Owned:
    """What would write a file if anybody unpickled it."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.system, ("touch owned",)


def endless(mebibytes: int) -> Entry:
    """A table that has as many bytes as it says, and very few where it lies."""
    block, head = bytes(1 << 20), array("'|u1'", f"({mebibytes << 20},)")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    once = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    crc = zlib.crc32(head)
    for _ in range(mebibytes):
        crc = zlib.crc32(block, crc)
    size = len(head) + (mebibytes << 20)
    return Entry("t00000.npy", b"", packed=start + once * mebibytes + packer.flush(), said_bytes=size, said_crc=crc)


FINE = array("'<f8'", "(1, 1)", bytes(8))
HEADERS = {
    "a shape of eight terabytes": array("'<f8'", "(1099511627776,)"),
    "a shape of three gigabytes": array("'|u1'", "(3221225472,)"),
    "a shape beyond all memory": array("'<f8'", "(4611686018427387904, 8)"),
    "a shape beyond all numbers": array("'<f8'", f"({10**30},)"),
    "a negative shape": array("'<f8'", "(-1,)"),
    "a shape of truths": array("'<f8'", "(True,)", bytes(8)),
    "a hundred axes": array("'<f8'", (1,) * 100, bytes(8)),
    "fewer bytes than it says": array("'<f8'", "(10,)", bytes(8)),
    "long texts": array("'<U500000000'", "(1,)", bytes(8)),
    "long bytes": array("'|V2000000000'", "(1,)", bytes(8)),
    "pickled objects": array("'|O'", "(1,)", pickle.dumps([Owned()])),
    "texts": array("'|S3'", "(1,)", b"abc"),
    "records": array("[('a', '<f8')]", "(1,)", bytes(8)),
    "records of nothing": array("[]", "(1,)", bytes(8)),
    "a type of no parts": array("()", "(1,)", bytes(8)),
    "a type of one part": array("('<f8',)", "(1,)", bytes(8)),
    "a type that is not closed": array("'i4,('", "(1,)", bytes(8)),
    "a header that is not closed": npy(b"{"),
    "a header of an open text": npy(b"{'descr': '''"),
    "a header out of line": npy(b"  x\n y\n"),
    "a header of open brackets": npy(b"(" * 900),
    "a header of minus signs": npy(b"-" * 5000 + b"1"),
    "a header of odd keys": npy(b"{1: 2, 'a': 3}"),
    "a header of lists for keys": npy(b"{[]: 1}"),
    "a header that is long": npy(b" " * 20_000),
    "a header of four gigabytes": npy(b"", version=2)[:8] + b"\xff" * 4,
    "another format": npy(b"{}", version=9),
    "no array": b"hello",
}


def one_table(table: bytes) -> bytes:
    return forged([Entry("t00000.npy", table)])


TABLES: dict[str, Callable[[], bytes]] = {
    **{name: partial(one_table, table) for name, table in HEADERS.items()},
    "an encrypted table": lambda: forged([Entry("t00000.npy", FINE, flags=1)]),
    "a patched table": lambda: forged([Entry("t00000.npy", FINE, flags=0x20)]),
    "a table packed in a way unknown": lambda: forged([Entry("t00000.npy", FINE, 99)]),
    "a table that unpacks into four gigabytes": lambda: forged(
        [Entry("t00000.npy", FINE, zipfile.ZIP_LZMA, packed=b"\x09\x04\x05\0\x5d\0\0\0\xffgarbage")]
    ),
    "a table that is packed in nonsense": lambda: forged(
        [Entry("t00000.npy", FINE, zipfile.ZIP_LZMA, packed=b"\x09\x04\x05\0\xff\xff\xff\xff\xffgarbage")]
    ),
    "a table beyond the end": lambda: forged(
        [Entry("t00000.npy", FINE, at=0xFFFFFFFF, extra=struct.pack("<HHQ", 1, 8, (1 << 64) - 1))]
    ),
    "no tables": lambda: forged([]),
    "no archive": lambda: b"hello",
    "nothing": lambda: b"",
}


def of_results(edit: Callable[[dict[str, Any]], object]) -> Callable[[], bytes]:
    def made() -> bytes:
        document = json.loads(documents()[RESULTS])
        edit(document)
        return as_json(document)

    return made


def nested(key: str, depth: int) -> Callable[[], bytes]:
    def made() -> bytes:
        document = {**json.loads(documents()[RESULTS]), key: "@"}
        return as_json(document).replace(b'"@"', b"[" * depth + b"]" * depth)

    return made


DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "cut short": lambda: documents()[RESULTS][:-40],
    "no text": lambda: b"\xff\xfe\xff" + documents()[RESULTS],
    "nothing": lambda: b"",
    "nested facts": nested("facts", 900),
    "facts nested without end": nested("facts", 50_000),
    "a tool nested without end": nested("tool", 50_000),
    "a version nested without end": nested("version", 50_000),
    "another schema": of_results(lambda told: told.update(schema="driftgate.bundle")),
    "another version": of_results(lambda told: told.update(version=2)),
    "a version beyond all numbers": of_results(lambda told: told.update(version=10**400)),
    "wrong types": of_results(lambda told: told.update(facts={})),
    "a plan that was changed": of_results(lambda told: told["facts"][0]["plan"].update(target="J6P")),
    "a table that is not there": of_results(lambda told: told["facts"][0]["measurements"][0].update(rows="t9")),
    "half a surrogate pair": of_results(lambda told: told["tool"].update(name="\ud800")),
}
#: What hostile file is in the bundle, and which verbs read it.
CASES: dict[str, tuple[str, Callable[[], bytes], tuple[str, ...]]] = {
    **{f"{FACTS}: {name}": (FACTS, make, VERBS) for name, make in TABLES.items()},
    f"{FACTS}: a table of 400 MiB of nothing": (FACTS, lambda: forged([endless(400)]), VERBS),
    **{f"{RESULTS}: {name}": (RESULTS, make, VERBS) for name, make in DOCUMENTS.items()},
    **{f"inputs.npz: {name}": (f"{FOLDER}/link/inputs.npz", make, ("replay",)) for name, make in TABLES.items()},
}
OF_RESULTS = [name for name, (_, _, verbs) in CASES.items() if verbs == VERBS]
OF_EVIDENCE = [name for name in CASES if name not in OF_RESULTS]
CHILD = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
from dataclasses import asdict
from pathlib import Path
from driftgate.errors import StorageError
from driftgate.storage.bundle import unpacked_bundle
from driftgate.storage.document import read_results
from support.commandline import call
for number, verbs in json.loads(sys.argv[2]).items():
    path = Path("bundles", f"{number}.zip")
    try:
        with unpacked_bundle(path) as (_, folder):
            read_results(folder)
        raised = "nothing"
    except StorageError as error:
        raised = f"StorageError of {len(error.problems)}: {error.problems[0].code}"
    except BaseException as error:
        raised = f"{type(error).__name__}: {error}"
    said = {}
    for verb in verbs:
        try:
            said[verb] = asdict(call(verb, path, *(("--out", "out") if verb == "report" else ())))
        except BaseException as error:
            said[verb] = f"{type(error).__name__}: {error}"
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"number": number, "raised": raised, "said": said, "most": most}), flush=True)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, dict[str, Any]]:
    """What came of each case in a process that has little memory, by its name; what was left there as `left`."""
    root = tmp_path_factory.mktemp("limited")
    for name in ("bundles", "tmp"):
        (root / name).mkdir()
    numbers = {f"{number:03}": name for number, name in enumerate(CASES)}
    for number, name in numbers.items():
        file, make, _ = CASES[name]
        (root / "bundles" / f"{number}.zip").write_bytes(changed({file: make()}))
    verbs = json.dumps({number: CASES[name][2] for number, name in numbers.items()})
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, str(ADDRESS_SPACE), verbs],
        cwd=root,
        env=environment(TMPDIR=str(root / "tmp"), COLUMNS="200"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        text=True,
    )
    found = {numbers[one["number"]]: one for one in map(json.loads, ran.stdout.splitlines())}
    assert found.keys() == CASES.keys(), f"it ended with {ran.returncode} after {len(found)} cases: {ran.stderr}"
    # .ses is of ONNX Runtime, which writes it when it is imported.
    left = sorted(
        str(path.relative_to(root)) for path in root.rglob("*") if path.suffix != ".zip" and path.name != ".ses"
    )
    return {**found, "left": {"left": left}}


@pytest.mark.parametrize("name", OF_RESULTS)
def test_hostile_results_in_a_valid_bundle_are_a_storage_error(
    name: str, answers: Mapping[str, dict[str, Any]]
) -> None:
    assert answers[name]["raised"].startswith("StorageError of 1: ")


@pytest.mark.parametrize("name", OF_RESULTS)
def test_hostile_results_in_a_valid_bundle_end_every_verb_with_one_sentence(
    name: str, answers: Mapping[str, dict[str, Any]]
) -> None:
    for verb in VERBS:
        told = answers[name]["said"][verb]
        assert isinstance(told, dict), f"{verb} raised {told}"
        assert_refused(Answer(**told))


@pytest.mark.parametrize("name", OF_EVIDENCE)
def test_replay_cannot_be_told_where_the_inputs_are_hostile(name: str, answers: Mapping[str, dict[str, Any]]) -> None:
    told = answers[name]["said"]["replay"]
    assert isinstance(told, dict), f"it raised {told}"
    assert_no_accident(Answer(**told))
    assert told["code"] == 2


def test_hostile_results_take_no_memory_and_leave_nothing(answers: Mapping[str, dict[str, Any]]) -> None:
    most = max(answers[name]["most"] for name in CASES)  # KiB
    assert most < MOST_MEMORY >> 10
    assert answers["left"]["left"] == ["bundles", "tmp"]


# --- results that have the right form and make no sense


def fewer_ids(told: dict[str, Any]) -> None:
    told["facts"][0]["plan"]["samples"]["ids"] = told["facts"][0]["plan"]["samples"]["ids"][:2]


def another_task(told: dict[str, Any]) -> None:
    told["facts"][0]["plan"]["scores"][0]["task"] = "clairvoyance"


def another_type(told: dict[str, Any]) -> None:
    told["facts"][0]["measurements"][0]["alignment"]["dtype_a"] = "nonsense"


def step_of_nothing(told: dict[str, Any]) -> None:
    told["facts"][0]["measurements"][0]["step"] = 0.0


def ties_beyond_all_numbers(told: dict[str, Any]) -> None:
    told["facts"][0]["measurements"][0]["alignment"]["ties"] = 10**400


SENSELESS: dict[str, Callable[[dict[str, Any]], None]] = {
    "no subject": lambda told: told.update(facts=[], judgement=None),
    "no runs": lambda told: told["facts"][0].update(runs=[]),
    "a chain without links": lambda told: told["facts"][0]["plan"]["chain"].update(stages=[], checks=[]),
    "fewer samples than digests": fewer_ids,
    "a task that nobody knows": another_task,
    "a type that nobody knows": another_type,
    "a step of nothing": step_of_nothing,
    "a number beyond all numbers": ties_beyond_all_numbers,
}


@pytest.mark.parametrize("name", SENSELESS)
def test_results_that_make_no_sense_are_no_accident(name: str, watched: Path) -> None:
    told = json.loads(documents()[RESULTS])
    SENSELESS[name](told)
    for facts in told["facts"]:
        facts["plan_digest"] = TypeAdapter(Plan).validate_json(as_json(facts["plan"])).digest
    path = watched / "bundle.zip"
    path.write_bytes(changed({RESULTS: as_json(told)}))
    for verb in VERBS:
        assert_no_accident(asked(verb, path, watched / "out"))
