"""This machine as a board: the commands of a transport as processes, each in a group of its own."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from types import TracebackType
from typing import IO

from driftgate.backends.board.running import ENDING, STALLED_SECONDS, done
from driftgate.backends.board.streams import Backlog, Tail
from driftgate.backends.board.transport import Done, Lost, Transport

READ_BYTES = 1 << 16
POLL_SECONDS = 0.02
GRACE_SECONDS = 2.0


def open_local(name: str) -> Transport:
    """A transport to this machine, called `name`."""
    return LocalTransport(name)


class LocalChannel:
    """A process group; of which nothing is left when it is closed."""

    def __init__(self, command: str) -> None:
        """Start it; raises OSError where `sh` cannot be run."""
        self._process = subprocess.Popen(
            ["sh", "-c", command + ENDING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._stdin = self._process.stdin
        if self._stdin is not None:
            os.set_blocking(self._stdin.fileno(), False)
        self._input_lock = Lock()
        self._closing = Lock()
        self._backlog = Backlog()
        self._tail = Tail()
        self._readers = (
            Thread(target=_pump, args=(self._process.stdout, self._backlog.put, self._backlog.end), daemon=True),
            Thread(target=_pump, args=(self._process.stderr, self._tail.add), daemon=True),
        )
        for reader in self._readers:
            reader.start()

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left of it."""
        return self._process.returncode is not None

    def write(self, data: bytes) -> None:
        """See Channel."""
        view = memoryview(data)
        stalled = time.monotonic() + STALLED_SECONDS
        while view:
            taken = self._written(view)
            view = view[taken:]
            if taken:
                stalled = time.monotonic() + STALLED_SECONDS
            elif time.monotonic() > stalled:
                raise Lost("writing to a command", f"it took nothing for {STALLED_SECONDS:g} s")

    def end_input(self) -> None:
        """See Channel."""
        with self._input_lock:
            if self._stdin is not None:
                self._stdin.close()
                self._stdin = None

    def read(self, size: int, *, seconds: float) -> bytes:
        """See Channel."""
        try:
            return self._backlog.take(size, seconds)
        except TimeoutError:
            raise Lost("reading from a command", f"it wrote nothing for {seconds:.3g} s") from None

    def wait(self, *, seconds: float) -> int:
        """See Channel."""
        deadline = time.monotonic() + seconds
        while (code := self._code()) is None:
            if time.monotonic() > deadline:
                raise Lost("waiting for a command", f"it did not end within {seconds:.3g} s")
            time.sleep(POLL_SECONDS)
        return code

    def errors(self) -> bytes:
        """See Command."""
        if self._code() is not None:
            self._readers[1].join(GRACE_SECONDS / 4)
        return self._tail.content()

    def last_words(self) -> str:
        """See Channel."""
        self.errors()
        return self._tail.words()

    def close(self) -> None:
        """See Channel: its whole group ends."""
        self.end_input()
        with self._closing:
            if self.is_closed:
                return
            self._signal(signal.SIGTERM)
            with suppress(Lost):
                self.wait(seconds=GRACE_SECONDS)
            self._signal(signal.SIGKILL)
            self._process.wait()
        self._backlog.end()
        for reader, stream in zip(self._readers, (self._process.stdout, self._process.stderr), strict=True):
            reader.join(GRACE_SECONDS)
            if stream is not None and not reader.is_alive():
                stream.close()

    def _written(self, view: memoryview) -> int:
        """How many bytes its stdin took now, after waiting a moment for room."""
        with self._input_lock:
            if self._stdin is None:
                raise Lost("writing to a command", "its input was ended")
            try:
                return os.write(self._stdin.fileno(), view)
            except BlockingIOError:
                room = select.poll()
                room.register(self._stdin, select.POLLOUT)
                room.poll(POLL_SECONDS * 1000)
                return 0
            except BrokenPipeError:
                raise Lost("writing to a command", "it reads no more") from None

    def _code(self) -> int | None:
        """Its exit code, once it ended. It is not reaped before it is closed, so that its number still stands for its
        group and no other."""
        if self._process.returncode is not None:
            code = self._process.returncode
            return code if code >= 0 else 128 - code
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else 128 + ended.si_status

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # nobody of the group is left
            os.killpg(self._process.pid, number)


class LocalTransport:
    """See Transport."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._channels: list[LocalChannel] = []
        self._lock = Lock()
        self._is_open = True

    @property
    def name(self) -> str:
        """See Transport."""
        return self._name

    def start(self, command: str) -> LocalChannel:
        """See Transport."""
        with self._lock:
            if not self._is_open:
                raise Lost("starting a command", "the connection is closed")
            try:
                channel = LocalChannel(command)
            except OSError as error:
                raise Lost("starting a command", error.strerror or type(error).__name__) from error
            self._channels = [*(one for one in self._channels if not one.is_closed), channel]
        return channel

    def run(self, command: str, *, stdin: bytes = b"", seconds: float) -> Done:
        """See Transport."""
        return done(self.start(command), stdin, seconds=seconds)

    def __enter__(self) -> LocalTransport:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_open = False
        for channel in self._channels:
            channel.close()


def _pump(stream: IO[bytes] | None, put: Callable[[bytes], None], end: Callable[[], None] = lambda: None) -> None:
    while stream is not None and (data := stream.read(READ_BYTES)):
        put(data)
    end()
