"""The stream under an SSH connection, which notices by itself when the other side is gone.

A link that is cut brings no error: packets just vanish, and TCP goes on trying for a quarter of an hour. paramiko's own
keep-alive asks for no answer, so it notices nothing either, and TCP_USER_TIMEOUT knows neither proxies nor what lies
behind a jump host. paramiko comes back to its stream ten times a second, reading as well as writing; so the stream
itself, asked again, says when nothing was heard for too long, and no thread can stay stuck in it.
"""

from __future__ import annotations

import time
from typing import Protocol

#: Read at once from the kernel: paramiko asks for 16 bytes, then for the rest of a packet.
AHEAD_BYTES = 1 << 18


class Stream(Protocol):
    """What a Wire needs of a socket, or of a channel through another connection."""

    def send(self, data: bytes, /) -> int: ...
    def recv(self, size: int, /) -> bytes: ...
    def settimeout(self, seconds: float | None, /) -> None: ...
    def close(self) -> None: ...


class Wire:
    """A socket for paramiko."""

    def __init__(self, stream: Stream) -> None:
        self.ended_by = ""  # why it ended, in words; empty while it lasts, and when it was closed from this side
        self._stream = stream
        self._ahead = memoryview(b"")
        self._limit_seconds = float("inf")
        self._heard = time.monotonic()
        self._closed = False  # paramiko looks at it, as sockets have it

    def expect(self, seconds: float) -> None:
        """From now on the other side is gone once nothing was heard from it for so long."""
        self._heard = time.monotonic()
        self._limit_seconds = seconds

    def send(self, data: bytes) -> int:
        """As a socket's; EOFError when the other side is gone."""
        self._check_end()
        try:
            return self._stream.send(data)
        except TimeoutError:
            self._check_silence()
            raise
        except OSError as error:
            self._end(error.strerror or type(error).__name__)
            raise

    def recv(self, size: int) -> bytes:
        """As a socket's; EOFError when the other side is gone."""
        if not self._ahead:
            self._check_end()
            self._ahead = memoryview(self._received(max(size, AHEAD_BYTES)))
        taken, self._ahead = self._ahead[:size].tobytes(), self._ahead[size:]
        return taken

    def settimeout(self, seconds: float | None) -> None:
        """How long one `send` or `recv` may wait."""
        self._stream.settimeout(seconds)

    def close(self) -> None:
        """Close the stream."""
        self._closed = True
        self._stream.close()

    def _received(self, size: int) -> bytes:
        try:
            data = self._stream.recv(size)
        except TimeoutError:
            self._check_silence()
            raise
        except OSError as error:
            self._end(error.strerror or type(error).__name__)
            raise
        if not data:
            self._end("the other side closed it")
        self._heard = time.monotonic()
        return data

    def _end(self, reason: str) -> None:
        if not self._closed:
            self.ended_by = self.ended_by or reason

    def _check_end(self) -> None:
        if self.ended_by or self._closed:
            raise EOFError

    def _check_silence(self) -> None:
        """A slow link is not silent: a board that takes what is sent widens the window every few packets."""
        if time.monotonic() - self._heard > self._limit_seconds:
            self._end(f"nothing was heard for {self._limit_seconds:g} s")
            raise EOFError
