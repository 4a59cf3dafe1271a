"""What a command writes, kept in bounds until somebody asks for it."""

from __future__ import annotations

import time
from collections import deque
from threading import Condition, Lock

from driftgate.backends.process import TAIL_LINE_CHARACTERS, TAIL_LINES

TAIL_BYTES = 1 << 16

#: What a command may write before anybody reads: the outputs of a large network, so that a feed can be written to the
#: end first. It bounds the memory of one channel.
BACKLOG_BYTES = 1 << 27


class Tail:
    """The end of a stream."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._lock = Lock()

    def add(self, data: bytes) -> None:
        """More of the stream."""
        with self._lock:
            self._kept += data
            del self._kept[:-TAIL_BYTES]

    def content(self) -> bytes:
        """The last TAIL_BYTES of it."""
        with self._lock:
            return bytes(self._kept)

    def words(self) -> str:
        """Its last lines, bounded in number and length."""
        lines = (line.rstrip() for line in self.content().decode("utf-8", errors="replace").splitlines())
        return "\n".join([line[:TAIL_LINE_CHARACTERS] for line in lines if line][-TAIL_LINES:])


class Backlog:
    """Bytes on their way from one thread to another, BACKLOG_BYTES at most."""

    def __init__(self) -> None:
        self._pieces: deque[memoryview] = deque()
        self._size = 0
        self._ended = False
        self._changed = Condition()

    def put(self, data: bytes) -> None:
        """Add bytes; waits while it is full."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._size < BACKLOG_BYTES)
            if not self._ended:
                self._pieces.append(memoryview(data))
                self._size += len(data)
                self._changed.notify_all()

    def end(self) -> None:
        """Nothing comes any more; what is there can still be taken."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self, size: int, seconds: float) -> bytes:
        """At most `size` bytes, none at the end. Raises TimeoutError after `seconds` without any."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not self._pieces:
                if self._ended:
                    return b""
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                self._changed.wait(left)
            piece = self._pieces.popleft()
            if len(piece) > size:
                self._pieces.appendleft(piece[size:])
            taken = bytes(piece[:size])
            self._size -= len(taken)
            self._changed.notify_all()
            return taken
