"""Bundles as they are written: the same bytes each time, smaller where they must be, whole or not at all."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from driftgate.bundling import Draft, notes_on, write_bundle
from driftgate.domain.bundles import SACRIFICE, BundleManifest, Role, Status
from driftgate.errors import StorageError
from driftgate.evidencing import Item
from driftgate.messages.message import message
from driftgate.storage.archive import of_bytes, of_file
from driftgate.storage.bundle import BUNDLE, MANIFEST, open_bundle
from driftgate.storage.hashing import file_digest
from support.bundles import common_items, contents, draft, environment, link_evidence, texts, weights, written
from support.results import HOSTILE

STAYS = {Role.FACTS, Role.LOG, Role.CONFIG, Role.VERSIONS}
#: Entries of the vendor's list in the draft, and the role of the file that each of them is.
INCLUDED = {
    "keep-log": Role.VENDOR_FILE,
    "keep-input": Role.VENDOR_DATA,
    "keep-board-output": Role.LINK,
    "keep-model": Role.MODEL,
}


def opened(path: Path) -> BundleManifest:
    """The manifest of a bundle of which every byte was looked at."""
    with open_bundle(path) as bundle:
        return bundle.manifest


def below(folder: Path) -> list[str]:
    """All that lies in a folder, hidden or not."""
    return sorted(path.name for path in folder.iterdir())


# --- the archive


def test_the_same_draft_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (written(tmp_path / name) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != written(tmp_path / "other", tool="driftgate 0.2.0").read_bytes()


def test_any_program_reads_it_and_it_tells_nothing_of_the_machine_that_wrote_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(written(tmp_path)) as archive:
        assert archive.testzip() is None
        infos = archive.infolist()
        assert len(infos) == len(draft().everything) + 3
        assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.external_attr >> 16 for info in infos} == {stat.S_IFREG | 0o644}
        assert {info.create_system for info in infos} == {3}
        assert infos[0].filename == "README.md"
        assert infos[-1].filename == MANIFEST
    assert stat.S_IMODE((tmp_path / BUNDLE).stat().st_mode) == 0o644
    assert below(tmp_path) == [BUNDLE]


def test_every_file_is_what_it_was_made_of_and_stands_in_the_manifest(tmp_path: Path) -> None:
    made = write_bundle(tmp_path / BUNDLE, draft(), texts)
    assert made.sha256 == file_digest(tmp_path / BUNDLE)
    assert (made.manifest, made.trouble) == (opened(tmp_path / BUNDLE), ())
    found = contents(tmp_path / BUNDLE)
    assert {file.path for file in made.manifest.files} | {MANIFEST} == found.keys()
    assert {(file.path, file.role) for file in made.manifest.files if file.role is not Role.README} == {
        (item.path, item.role) for item in draft().everything
    }
    assert found["driftgate.yaml"] == b"version: 1\n"
    assert found["README.md"] == b"without: \n"
    assert [note.code for note in notes_on(made)] == ["bundle-written"]


@pytest.mark.parametrize(
    "name", [HOSTILE.encode("utf-8", "ignore").decode(), b"model-\xc4\xa3.onnx".decode("utf-8", "surrogateescape")]
)
def test_a_bundle_is_opened_whatever_a_stranger_has_named(name: str, tmp_path: Path) -> None:
    """Such as a file whose name is no UTF-8, which Python gives with halves of surrogate pairs."""
    evidence = link_evidence()
    told = replace(evidence.link, notes=(message("ort-refused", stage="hbm", path="x", reason=name),))
    whole = draft(tool=name, links=(replace(evidence, link=told),))
    made = write_bundle(tmp_path / BUNDLE, whole, texts)
    assert opened(tmp_path / BUNDLE).files == made.manifest.files


def test_a_file_whose_name_is_taken_is_kept_back_and_said(tmp_path: Path) -> None:
    twins = tuple(Item(name, Role.LOG, of_bytes(b"twin")) for name in ("DRIFTGATE.LOG", "readme.MD", "manifest.json"))
    made = write_bundle(tmp_path / BUNDLE, draft(items=(*common_items(), *twins)), texts)
    taken = {one.path for one in opened(tmp_path / BUNDLE).withheld if one.reason.code == "bundle-name-taken"}
    assert taken == {"driftgate.log", "readme.MD", "manifest.json"}  # of two equals the first by name is kept
    assert made.manifest.sacrificed == ()


# --- what goes first


def status_of(manifest: BundleManifest) -> dict[str, tuple[Status, str | None]]:
    """The vendor's list: code of the entry, with the stage of a model → its status, and how to get it."""
    found = {}
    for one in manifest.links[0].wanted:
        name = one.what.code if one.what.get("stage") != "hbm" else "hbm"
        found[name] = (one.status, None if one.how is None else one.how.code)
    return found


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize("gone", range(len(SACRIFICE) + 1))
def test_roles_go_one_after_the_other(gone: int, spare: int, tmp_path: Path) -> None:
    weight = weights(draft())
    assert weight.keys() == {*SACRIFICE, *STAYS}
    room = sum(weight.values()) - sum(weight[role] for role in SACRIFICE[:gone])
    whole = draft(budget_bytes=room + spare)
    manifest = write_bundle(tmp_path / BUNDLE, whole, texts).manifest
    assert opened(tmp_path / BUNDLE) == manifest

    left_out = SACRIFICE[:gone]
    assert manifest.sacrificed == left_out
    assert {file.role for file in manifest.files} == {*SACRIFICE[gone:], *STAYS, Role.README}
    withheld = {one.path: (one.role, one.bytes) for one in manifest.withheld if one.reason.code == "bundle-for-size"}
    assert withheld == {
        item.path: (item.role, item.content.size_bytes) for item in whole.everything if item.role in left_out
    }
    expected: dict[str, tuple[Status, str | None]] = {
        name: (Status.WITHHELD, "keep-how-size") if role in left_out else (Status.INCLUDED, None)
        for name, role in INCLUDED.items()
    }
    assert status_of(manifest) == {
        **expected,
        "hbm": (Status.WITHHELD, "keep-how-include"),
        "keep-quant-config": (Status.MISSING, "keep-how-quant-config"),
    }
    told = ", ".join(role.value for role in left_out)
    assert contents(tmp_path / BUNDLE)["README.md"].decode() == f"without: {told}\n"


@pytest.mark.parametrize("gone", range(len(SACRIFICE)))
def test_one_byte_less_and_one_role_more_goes(gone: int, tmp_path: Path) -> None:
    weight = weights(draft())
    room = sum(weight.values()) - sum(weight[role] for role in SACRIFICE[:gone])
    made = write_bundle(tmp_path / BUNDLE, draft(budget_bytes=room - 1), texts)
    assert made.manifest.sacrificed == SACRIFICE[: gone + 1]
    assert [note.code for note in notes_on(made)] == ["bundle-written", "bundle-smaller"]


def test_roles_that_have_no_files_are_not_said_to_have_gone(tmp_path: Path) -> None:
    evidence = link_evidence()
    items = tuple(item for item in evidence.items if item.role not in (Role.CALIBRATION, Role.LAYERS, Role.MODEL))
    whole = draft(links=(replace(evidence, items=items),))
    room = sum(weights(whole).values()) - weights(whole)[Role.REPRO]
    manifest = write_bundle(tmp_path / BUNDLE, replace(whole, budget_bytes=room), texts).manifest
    assert manifest.sacrificed == (Role.REPRO,)


def test_the_order_is_the_one_that_was_agreed() -> None:
    assert [role.value for role in SACRIFICE] == [
        *("calibration", "layers", "repro", "vendor-file", "model", "vendor-data", "report", "link")
    ]
    assert {*Role} - {*SACRIFICE, Role.README} == STAYS


def test_what_must_stay_and_is_too_large_leaves_no_file(tmp_path: Path) -> None:
    least = sum(weight for role, weight in weights(draft()).items() if role in STAYS)
    written(tmp_path / "just", budget_bytes=least)
    (tmp_path / "none").mkdir()
    with pytest.raises(StorageError) as caught:
        written(tmp_path / "none", budget_bytes=least - 1)
    assert [problem.code for problem in caught.value.problems] == ["bundle-too-large"]
    assert f"{least} bytes" in str(caught.value)
    assert below(tmp_path / "none") == []


# --- an older bundle in the same place


def failing(how: str, folder: Path) -> Draft:
    """A draft that cannot be written."""
    if how == "too large":
        return draft(budget_bytes=10)
    path = folder / "gone.log"
    path.write_bytes(b"log")
    item = Item("driftgate.log", Role.LOG, of_file(path))
    path.unlink()
    return draft(items=(*(one for one in common_items() if one.path != item.path), item))


@pytest.mark.parametrize("how", ["too large", "a file is gone"])
def test_where_the_new_one_fails_the_older_one_stays_whole(how: str, tmp_path: Path) -> None:
    path = written(tmp_path / "out", tool="the older one")
    before = path.read_bytes()
    with pytest.raises(StorageError):
        write_bundle(path, failing(how, tmp_path), texts)
    assert path.read_bytes() == before
    assert opened(path).tool == "the older one"
    assert below(path.parent) == [BUNDLE]


def test_a_new_one_takes_the_place_of_the_older_one(tmp_path: Path) -> None:
    path = written(tmp_path, tool="the older one")
    assert opened(written(tmp_path, tool="the newer one")).tool == "the newer one"
    assert below(tmp_path) == [path.name]


def test_whoever_is_reading_the_older_one_reads_it_to_its_end(tmp_path: Path) -> None:
    path = written(tmp_path, tool="the older one")
    before = path.read_bytes()
    with path.open("rb") as held:
        assert written(tmp_path, tool="the newer one").read_bytes() != before
        assert held.read() == before


def test_parts_of_a_writer_that_was_killed_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".bundle.zip.abc.part", ".bundle.zip.def.part", ".other.zip.abc.part", "bundle.zip.part", "mine.txt"):
        (tmp_path / name).write_bytes(b"PK\3\4")
    written(tmp_path)
    assert below(tmp_path) == [".other.zip.abc.part", BUNDLE, "bundle.zip.part", "mine.txt"]


def test_the_parts_of_other_bundles_are_left_alone_whatever_this_one_is_called(tmp_path: Path) -> None:
    (tmp_path / ".other.zip.abc.part").write_bytes(b"PK\3\4")
    (tmp_path / ".[a]*.zip.abc.part").write_bytes(b"PK\3\4")
    for name in ("[a]*.zip", "*.zip"):
        write_bundle(tmp_path / name, draft(), texts)
        assert (tmp_path / ".other.zip.abc.part").exists(), name
    assert not (tmp_path / ".[a]*.zip.abc.part").exists()


def test_a_folder_that_has_the_name_of_a_part_is_a_storage_error_at_most(tmp_path: Path) -> None:
    (tmp_path / ".bundle.zip.mine.part").mkdir()
    try:
        written(tmp_path)
    except StorageError:
        assert not (tmp_path / BUNDLE).exists()
    else:
        opened(tmp_path / BUNDLE)


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"file/bundle\.zip") as caught:
        written(tmp_path / "file")
    assert caught.value.problems[-1].code == "bundle-none"
    (tmp_path / BUNDLE).mkdir()
    with pytest.raises(StorageError, match=r"bundle\.zip"):
        written(tmp_path)
    assert below(tmp_path) == [BUNDLE, "file"]


# --- files that change under our hands


def with_source(role: Role, name: str, path: Path) -> Draft:
    """The draft, of which one file is read from this path when it is written."""
    return draft(items=(*(one for one in common_items() if one.path != name), Item(name, role, of_file(path))))


def test_a_file_that_may_go_and_vanishes_leaves_a_bundle_without_it(tmp_path: Path) -> None:
    source = tmp_path / "summary.md"
    source.write_bytes(b"| check |\n")
    whole = with_source(Role.REPORT, "summary.md", source)
    source.unlink()
    made = write_bundle(tmp_path / "out" / BUNDLE, whole, texts)
    manifest = opened(tmp_path / "out" / BUNDLE)
    assert manifest == made.manifest
    assert "summary.md" not in {file.path for file in manifest.files}
    assert [(one.path, one.reason.code) for one in manifest.withheld if one.path == "summary.md"] == [
        ("summary.md", "bundle-unreadable")
    ]
    assert manifest.sacrificed == (), "no other file goes for it"
    assert {file.role for file in manifest.files} >= STAYS
    assert [problem.code for problem in made.trouble] == ["artifact-unreadable"]
    assert made.trouble[0].get("path") == str(source)
    assert [note.code for note in notes_on(made)][-1] == "artifact-unreadable"
    assert below(tmp_path / "out") == [BUNDLE]


def test_a_file_that_must_stay_and_vanishes_leaves_none(tmp_path: Path) -> None:
    source = tmp_path / "driftgate.log"
    source.write_bytes(b"log")
    whole = with_source(Role.LOG, "driftgate.log", source)
    source.unlink()
    with pytest.raises(StorageError, match=r"driftgate\.log") as caught:
        write_bundle(tmp_path / "out" / BUNDLE, whole, texts)
    assert [problem.code for problem in caught.value.problems] == ["artifact-unreadable", "bundle-none"]
    assert below(tmp_path / "out") == []


@pytest.mark.parametrize("content", [b"", b"longer than it was when it was looked at", bytes(3 << 20)])
def test_a_file_that_changes_before_it_is_written_is_in_the_bundle_as_it_was_then(
    content: bytes, tmp_path: Path
) -> None:
    source = tmp_path / "driftgate.log"
    source.write_bytes(b"as it was")
    whole = with_source(Role.LOG, "driftgate.log", source)
    source.write_bytes(content)
    write_bundle(tmp_path / BUNDLE, whole, texts)
    told = next(file for file in opened(tmp_path / BUNDLE).files if file.path == "driftgate.log")
    assert told.bytes == len(content)
    assert contents(tmp_path / BUNDLE)["driftgate.log"] == content


# --- a full disk


ROLE_BYTES = 40_000
CHILD = """
import json, resource, signal, sys
from dataclasses import replace
from pathlib import Path
from random import Random
from driftgate.bundling import write_bundle
from driftgate.domain.bundles import SACRIFICE
from driftgate.errors import StorageError
from driftgate.evidencing import Item
from driftgate.storage.archive import of_bytes
from support.bundles import draft, texts
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
random = Random(11)
heavy = [Item(f"heavy/{role.value}", role, of_bytes(random.randbytes(int(sys.argv[1])))) for role in SACRIFICE]
whole = draft()
whole = replace(whole, items=(*whole.items, *heavy))
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for size in map(int, sys.argv[2:]):
    told = {"size": size}
    for when in ("fresh", "over"):
        path = Path(f"{when}-{size}", "bundle.zip")
        if when == "over":
            write_bundle(path, replace(whole, tool="the older one"), texts)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            made = write_bundle(path, whole, texts)
            told[when] = {
                "trouble": [problem.code for problem in made.trouble],
                "sacrificed": [role.value for role in made.manifest.sacrificed],
                "sha256": made.sha256,
            }
        except StorageError as error:
            told[when] = {"error": [problem.code for problem in error.problems]}
        except BaseException as error:
            told[when] = {"raised": f"{type(error).__name__}: {error}"}
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    print(json.dumps(told), flush=True)
"""
SIZES = (0, 1, 100, 9_000, *range(15_000, 400_000, 25_000), 1 << 20)


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[int, dict[str, Any]]]:
    """What came of writing where files may have so many bytes and no more, and the folder where it was tried."""
    root = tmp_path_factory.mktemp("full")
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, str(ROLE_BYTES), *map(str, SIZES)],
        cwd=root,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    return root, {one["size"]: one for one in told}


@pytest.mark.parametrize("size", SIZES)
def test_a_full_disk_leaves_a_smaller_bundle_or_none_and_says_which(
    size: int, full_disk: tuple[Path, Mapping[int, dict[str, Any]]]
) -> None:
    root, answers = full_disk
    for when in ("fresh", "over"):
        told, path = answers[size][when], root / f"{when}-{size}" / BUNDLE
        assert "raised" not in told
        if "error" in told:
            assert told["error"] == ["file-not-written", "bundle-none"]
            assert below(path.parent) == ([] if when == "fresh" else [BUNDLE])
            if when == "over":
                assert opened(path).tool == "the older one"
                assert opened(path).sacrificed == ()
            continue
        assert below(path.parent) == [BUNDLE]
        assert path.stat().st_size <= size
        assert told["sha256"] == file_digest(path)
        manifest = opened(path)
        assert manifest.tool == draft().tool
        assert [role.value for role in manifest.sacrificed] == told["sacrificed"]
        assert manifest.sacrificed == SACRIFICE[: len(manifest.sacrificed)]
        assert told["trouble"] == (["file-not-written"] if manifest.sacrificed else [])
        there = {file.role for file in manifest.files}
        assert there == {*SACRIFICE[len(manifest.sacrificed) :], *STAYS, Role.README}
        assert {one.role for one in manifest.withheld if one.reason.code == "bundle-for-size"} == {*manifest.sacrificed}


def test_the_more_room_there_is_the_more_is_kept(full_disk: tuple[Path, Mapping[int, dict[str, Any]]]) -> None:
    _, answers = full_disk
    for when in ("fresh", "over"):
        lost = [len(answers[size][when].get("sacrificed", (*SACRIFICE, "all"))) for size in SIZES]
        assert lost == sorted(lost, reverse=True)
        assert lost[0] == len(SACRIFICE) + 1
        assert lost[-1] == 0
        assert {*lost} >= {*range(len(SACRIFICE) - 1)}  # most roles were the last to go at some size


def test_no_more_goes_than_the_disk_asks_for(full_disk: tuple[Path, Mapping[int, dict[str, Any]]]) -> None:
    """Where one role less had gone, the file would have been larger than it may be."""
    root, answers = full_disk
    for size in SIZES:
        told = answers[size]["fresh"]
        if told.get("sacrificed"):
            assert (root / f"fresh-{size}" / BUNDLE).stat().st_size + ROLE_BYTES > size
