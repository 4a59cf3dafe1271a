"""The boundary between driftgate and whatever reaches a board: commands for its `sh`, bytes in and out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol


class Lost(Exception):
    """The connection is gone, or the board does not answer in time: worth another try. `step` is what was being done,
    in words without any address."""

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.step = step
        self.reason = reason


class Full(Exception):
    """There is no room on the board; the words are for a reader."""


@dataclass(frozen=True, slots=True)
class Host:
    """Where a board, or a jump host before it, is reached. `name` is what it is called in reports, which never show the
    address; `proxy` is a command whose stdin and stdout are the connection."""

    name: str
    address: str = field(repr=False)
    port: int = 22
    user: str = "root"
    password: str | None = field(default=None, repr=False)  # empty: an account without one
    key: Path | None = None
    uses_agent: bool = True
    known_hosts: Path | None = None  # the user's own where absent
    jump: Host | None = None
    proxy: tuple[str, ...] = ()
    connect_seconds: float = 15.0
    keepalive_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Done:
    """A command that came to its end."""

    stdout: bytes
    stderr: bytes
    code: int


class Channel(Protocol):
    """One command at work on the board. Every call raises Lost where the connection is gone."""

    def write(self, data: bytes) -> None:
        """Hand bytes to its stdin; all of them are taken, or Lost is raised."""

    def end_input(self) -> None:
        """Its stdin ends."""

    def read(self, size: int, *, seconds: float) -> bytes:
        """At most `size` bytes of its stdout, at least one unless it ended; Lost after `seconds` without any."""

    def wait(self, *, seconds: float) -> int:
        """Its exit code; Lost where it does not end in time."""

    def last_words(self) -> str:
        """The end of what it wrote to stderr so far."""

    def close(self) -> None:
        """Let go of it, whether it ended or not."""


class Transport(Protocol):
    """A way to one board, open as long as its `with` block. Safe to use from several threads."""

    @property
    def name(self) -> str:
        """What the board is called in reports."""

    def start(self, command: str) -> Channel:
        """Start a line of `sh` on the board. Raises Lost."""

    def run(self, command: str, *, stdin: bytes = b"", seconds: float) -> Done:
        """Run a line of `sh` to its end. Raises Lost."""

    def __enter__(self) -> Transport: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
