"""A writer that is killed while it writes: the bundle is the older one, whole, or none; a part is no bundle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import IO

from driftgate.bundling import write_bundle
from driftgate.domain.bundles import SACRIFICE, Role
from driftgate.storage.bundle import BUNDLE, looks_like_bundle, open_bundle
from support.bundles import draft, environment, texts

SEED, KILLS, LEAST_PARTS = 20, 20, 5
MEASURED = 3  # writes
ROLE_BYTES = 512 << 10
#: Imports once; for each folder that it is told, a process of its own writes bundles there until somebody kills it.
NURSERY = """
import os, sys
from dataclasses import replace
from pathlib import Path
from random import Random
from driftgate.bundling import write_bundle
from driftgate.domain.bundles import SACRIFICE
from driftgate.evidencing import Item
from driftgate.storage.archive import of_bytes
from support.bundles import draft, texts
random = Random(int(sys.argv[2]))
heavy = [Item(f"heavy/{role.value}", role, of_bytes(random.randbytes(int(sys.argv[1])))) for role in SACRIFICE]
whole = draft()
whole = replace(whole, items=(*whole.items, *heavy))
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # at once: two processes say something
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        for number in range(200):  # many more than it will be given the time for
            say("begin", number)
            write_bundle(Path(line.strip(), "bundle.zip"), replace(whole, tool=f"writer {number}"), texts)
            say("end", number)
        os._exit(0)
    say("pid", child)
    os.waitpid(child, 0)
    say("gone", child)
"""


@dataclass(slots=True)
class Writer:
    """A process that writes bundles into a folder, and what it has said so far."""

    pid: int
    lines: IO[str]
    said: list[str]

    def heard(self, line: str) -> None:
        """Wait until it says this."""
        while line not in self.said:
            told = "" if f"gone {self.pid}" in self.said else self.lines.readline()
            assert told, f"it ended before it said {line}: {self.said}"
            self.said.append(told.strip())

    def killed(self) -> None:
        """Kill it, and hear all that it said before."""
        if f"gone {self.pid}" not in self.said:
            os.kill(self.pid, signal.SIGKILL)
            self.heard(f"gone {self.pid}")


@contextmanager
def nursery() -> Iterator[subprocess.Popen[str]]:
    """The process that starts writers; closing its stdin ends it."""
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY, str(ROLE_BYTES), str(SEED)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as started:
        try:
            yield started
        finally:
            assert started.stdin is not None
            started.stdin.close()


@contextmanager
def writer(started: subprocess.Popen[str], folder: Path) -> Iterator[Writer]:
    """A writer in a new folder, which has begun its first bundle; it is killed at the end at the latest."""
    assert started.stdin is not None
    assert started.stdout is not None
    folder.mkdir()
    started.stdin.write(f"{folder}\n")
    started.stdin.flush()
    made = Writer(0, started.stdout, [])
    while not made.pid:
        told = started.stdout.readline().split()
        assert told, "nothing was started"
        if told[0] == "pid":
            made.pid = int(told[1])
        else:
            made.said.append(" ".join(told))
    try:
        made.heard("begin 0")
        yield made
    finally:
        made.killed()


def seconds_of_one(started: subprocess.Popen[str], folder: Path) -> float:
    """How long one bundle takes to be written."""
    with writer(started, folder) as measured:
        begun = time.monotonic()
        measured.heard(f"end {MEASURED - 1}")
        return (time.monotonic() - begun) / MEASURED


def parts_in(folder: Path) -> list[Path]:
    """What is there that is not the bundle."""
    return [path for path in folder.iterdir() if path.name != BUNDLE]


def assert_whole_or_absent(folder: Path, said: list[str]) -> None:
    """What a killed writer has left is one bundle at most, and one part at most, which nobody takes for one."""
    path, done = folder / BUNDLE, sum(line.startswith("end ") for line in said)
    assert path.exists() or done == 0
    if path.exists():
        with open_bundle(path) as bundle:
            assert bundle.manifest.tool in (f"writer {done - 1}", f"writer {done}")
            assert {file.role for file in bundle.manifest.files} == {*Role}
            assert bundle.manifest.sacrificed == ()
            sizes = {file.path: file.bytes for file in bundle.manifest.files}
            assert [sizes[f"heavy/{role.value}"] for role in SACRIFICE] == [ROLE_BYTES] * len(SACRIFICE)
    parts = parts_in(folder)
    assert len(parts) <= 1
    for part in parts:
        assert part.match(".bundle.zip.*.part")
        assert not looks_like_bundle(part)


def test_a_killed_writer_leaves_a_whole_bundle_or_none(tmp_path: Path) -> None:
    random, parts, absent = Random(SEED), 0, 0
    with nursery() as started:
        taken = seconds_of_one(started, tmp_path / "measured")
        for number in range(KILLS):
            folder = tmp_path / str(number)
            with writer(started, folder) as victim:
                victim.heard(f"begin {random.choice((0, 0, 1, 2))}")
                time.sleep(random.random() * taken)
            assert_whole_or_absent(folder, victim.said)
            parts += len(parts_in(folder))
            absent += not (folder / BUNDLE).exists()

            write_bundle(folder / BUNDLE, draft(), texts)
            assert [path.name for path in folder.iterdir()] == [BUNDLE]
            with open_bundle(folder / BUNDLE) as bundle:
                assert bundle.manifest.tool == draft().tool
    assert parts >= LEAST_PARTS, f"of {KILLS} kills only {parts} came while a file was being written (seed {SEED})"
    assert 0 < absent < KILLS
