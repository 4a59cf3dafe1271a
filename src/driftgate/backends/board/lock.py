"""One user of a board at a time: a folder on the board that only one can make, with an owner and a beat.

Nothing depends on clocks: whoever waits takes the lock over when what it says has not changed for a lease by the
waiter's own clock.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from driftgate.backends.board import scripts
from driftgate.backends.board.transport import Full, Lost, Transport

SECONDS = 30.0  # one command of the lock may take
POLL_SECONDS = 0.5
#: How often the owner says that it lives, within a lease.
BEATS = 4


def token() -> str:
    """A word that nobody else has."""
    return secrets.token_hex(12)


def who() -> str:
    """Who this is, for others that wait; no address."""
    return f"{socket.gethostname().partition('.')[0]} {os.getpid()}"


def asked(transport: Transport, command: str, *, step: str, seconds: float = SECONDS) -> str:
    """What a short command says. Raises Lost where the board does not answer as our commands do."""
    mark = token()
    done = transport.run(scripts.told(mark, command), seconds=seconds)
    found = scripts.said(mark, done.stdout)
    if found is None:
        raise Lost(step, f"no answer: exit code {done.code}, {done.stderr[-200:].decode('utf-8', 'replace')!r}")
    return found.decode("utf-8", "replace")


@dataclass(slots=True)
class Candidate:
    """A board that is asked for, and what its lock said since when."""

    transport: Transport
    folder: str
    lease_seconds: float
    owner: str = field(default_factory=token)
    former: str = ""  # the owner that this was on an earlier connection
    _state: str = ""
    _since: float = 0.0

    def try_lock(self, clock: Callable[[], float] = time.monotonic) -> str | None:
        """None once the lock is ours, else who holds it. Raises Lost and Full."""
        command = (
            scripts.retake(self.folder, self.former, self.owner, who())
            if self.former
            else scripts.acquire(self.folder, self.owner, who())
        )
        said = asked(self.transport, command, step="lock").split("\n")
        if said[0] == "taken":
            return None
        if said[0] == "full":
            raise Full("the lock cannot be written")
        if said[0] != "held":
            raise Lost("lock", f"the folder for the lock cannot be made: {' '.join(said)[:200]!r}")
        state = "\n".join(said[1:])
        if state != self._state:
            self._state, self._since = state, clock()
        elif clock() - self._since >= self.lease_seconds:
            name = hashlib.sha256(state.encode()).hexdigest()[:16]
            command = scripts.take_over(self.folder, name, self.owner, who())
            if asked(self.transport, command, step="take over").startswith("taken"):
                return None
            self._since = clock()
        return said[2] if len(said) > 2 else "?"


class Lock:
    """A lock that is held: it beats until it is given back. `is_lost` once another has it."""

    def __init__(self, candidate: Candidate) -> None:
        self.transport = candidate.transport
        self.folder = candidate.folder
        self.owner = candidate.owner
        self.is_lost = False
        self._every = candidate.lease_seconds / BEATS
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="driftgate-lock", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        count = 0
        while not self._over.wait(self._every):
            count += 1
            try:
                answer = asked(self.transport, scripts.beat(self.folder, self.owner, count), step="lock")
            except Lost:
                return  # whoever works on the board notices it, too
            if answer.startswith("lost"):
                self.is_lost = True
                return

    def forget(self) -> None:
        """Stop beating, where the connection is gone; the board or the next user cleans up."""
        self._over.set()

    def release(self) -> None:
        """Give it back with all that lies in the run's folder. Raises Lost."""
        self.forget()
        self._thread.join(SECONDS)
        asked(self.transport, scripts.release(self.folder, self.owner), step="release")
