"""A child process that is spoken to in lines, and of which nothing is left when it is closed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import IO

TAIL_LINES = 20
TAIL_LINE_CHARACTERS = 300
LINE_LIMIT_BYTES = 1 << 26
POLL_SECONDS = 0.05
LAST_WORDS_SECONDS = 0.5
GRACE_SECONDS = 2.0


class ChildDied(Exception):
    """The child ended, or closed its end of the pipe, before it answered."""


class ChildSilent(Exception):
    """The child did not answer in time."""


class Child:
    """A process in a group of its own; leaving the `with` block ends the whole group."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it; raises OSError if the program cannot be run."""
        self._process = subprocess.Popen(
            [*command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._readers = (
            Thread(target=self._read_answers, args=(self._process.stdout,), daemon=True),
            Thread(target=self._read_tail, args=(self._process.stderr,), daemon=True),
        )
        for reader in self._readers:
            reader.start()

    def send(self, line: str) -> None:
        """Write one line. Raises ChildDied if nobody reads it."""
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            raise ChildDied
        try:
            stdin.write(line.encode() + b"\n")
            stdin.flush()
        except OSError as error:
            raise ChildDied from error

    def receive(self, seconds: float) -> str:
        """The next line it writes. Raises ChildDied or, after `seconds`, ChildSilent."""
        deadline = time.monotonic() + seconds
        while True:
            wait = POLL_SECONDS
            dead = self._has_ended()
            if dead:
                wait = LAST_WORDS_SECONDS
            try:
                line = self._lines.get(timeout=wait)
            except Empty:
                if dead:
                    raise ChildDied from None
                if time.monotonic() >= deadline:
                    raise ChildSilent from None
                continue
            if line is None:
                raise ChildDied
            return line.decode("utf-8", errors="replace").rstrip("\r\n")

    def last_words(self) -> str:
        """The last lines it wrote to stderr, bounded in number and length; empty if there are none."""
        if self._has_ended():
            self._readers[1].join(LAST_WORDS_SECONDS)
        return "\n".join(self._tail.copy())

    def terminate(self) -> None:
        """Ask the whole group to end now; `close` sees to it."""
        self._signal(signal.SIGTERM)

    def close(self) -> int:
        """Close its stdin, give it a moment, then end its whole group; returns the exit code."""
        if self._process.stdin is not None:
            with suppress(OSError):  # it died with unread input; closing is all that was wanted
                self._process.stdin.close()
        self._wait(GRACE_SECONDS)
        self.terminate()
        self._wait(GRACE_SECONDS)
        self._signal(signal.SIGKILL)
        code = self._process.wait()
        for reader, stream in zip(self._readers, (self._process.stdout, self._process.stderr), strict=True):
            reader.join(GRACE_SECONDS)
            if stream is not None and not reader.is_alive():
                stream.close()
        return code

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_answers(self, stream: IO[bytes]) -> None:
        while line := stream.readline(LINE_LIMIT_BYTES):
            self._lines.put(line)
        self._lines.put(None)

    def _read_tail(self, stream: IO[bytes]) -> None:
        while line := stream.readline(LINE_LIMIT_BYTES):
            said = line.decode("utf-8", errors="replace").rstrip()
            if said:
                self._tail.append(said[:TAIL_LINE_CHARACTERS])

    def _has_ended(self) -> bool:
        """Whether it is over. It is not reaped, so that its number still stands for its group and no other."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._has_ended() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS / 5)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is not None:
            return
        with suppress(ProcessLookupError, PermissionError):  # nobody of the group is left
            os.killpg(self._process.pid, number)
