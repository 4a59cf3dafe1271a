"""Models on the board by their content: sent once, within a quota, the one that was not used for longest goes first."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from driftgate.backends.board import scripts
from driftgate.backends.board.lock import asked
from driftgate.backends.board.transport import Full, Lost, Transport

CHUNK = 1 << 18
#: A board that takes less than this a second, in bytes, is taken for one that takes nothing.
LEAST_RATE = 10_000


@dataclass(frozen=True, slots=True)
class Cached:
    """A model in the cache: its bytes, and the number of when it was used, by the clock of whoever used it."""

    digest: str
    size: int
    used: int


def model_on_board(transport: Transport, folder: str, file: Path, *, quota_bytes: int) -> str:
    """The path of a file's content on the board, sent if it is not there. Raises Lost and Full."""
    digest, size = _digest(file), file.stat().st_size
    there = {one.digest: one for one in _listing(transport, folder)}
    path = f"{folder}/cache/{digest}.hbm"
    if digest not in there or there[digest].size != size:
        going = tuple(superfluous(tuple(there.values()), size, quota_bytes))
        asked(transport, scripts.forget(folder, [digest, *going]), step="cache")
        send(transport, path, _chunks(file), size=size, step="send model")
    asked(transport, scripts.mark(folder, digest, size, int(time.time())), step="cache")
    return path


def send(transport: Transport, path: str, chunks: Iterable[bytes], *, size: int, step: str) -> None:
    """Write a file on the board. It is whole once this returns: the board's `cat` ended well, and all was sent."""
    channel = transport.start(scripts.store(path))
    try:
        try:
            for chunk in chunks:
                channel.write(chunk)
            channel.end_input()
            code = channel.wait(seconds=60.0 + size / LEAST_RATE)
        except Lost as error:
            words = channel.last_words()
            if "space" in words.lower() or "quota" in words.lower():
                raise Full(words.strip()[-200:]) from error
            raise
        if code:
            words = channel.last_words().strip()[-200:]
            raise Full(words or f"{step}: exit code {code}")
    finally:
        channel.close()


def superfluous(there: tuple[Cached, ...], size: int, quota_bytes: int) -> Iterator[str]:
    """Those that must go so that one more fits."""
    held = sum(one.size for one in there) + size
    for one in sorted(there, key=lambda one: one.used):
        if held <= quota_bytes:
            return
        held -= one.size
        yield one.digest


def _listing(transport: Transport, folder: str) -> Iterator[Cached]:
    for line in asked(transport, scripts.cached(folder), step="cache").splitlines():
        words = line.split()
        if len(words) == 3 and words[1].isdigit() and words[2].isdigit() and len(words[0]) == 64:
            yield Cached(words[0], int(words[1]), int(words[2]))


def _digest(file: Path) -> str:
    sha = hashlib.sha256()
    for chunk in _chunks(file):
        sha.update(chunk)
    return sha.hexdigest()


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            yield chunk
