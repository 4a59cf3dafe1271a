"""Which board of a pool is used: the first whose lock is free; a board that is away is tried again, and power-cycled
once where that is configured."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from driftgate.backends.board.boards import Boards
from driftgate.backends.board.local import open_local
from driftgate.backends.board.lock import POLL_SECONDS, Candidate, Lock
from driftgate.backends.board.transport import Full, Host, Lost, Transport
from driftgate.errors import BackendError
from driftgate.messages.message import message

RETRY_SECONDS = 5.0
POWER_SECONDS = 120.0


@dataclass(slots=True)
class _Place:
    """A board of the pool while it is being asked for."""

    host: Host | None  # None: this machine
    candidate: Candidate | None = None
    tried: float = float("-inf")
    away: str = ""
    refused: BackendError | Full | None = None
    cycled: bool = False
    holder: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """A board that is ours, and how it was reached."""

    lock: Lock
    host: Host | None


@dataclass(slots=True)
class Pool:
    """Asks the boards of a pool in turn."""

    boards: Boards
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    opened: Callable[[Boards, Host | None], Transport] = field(default_factory=lambda: open_board)

    def take(self, *, only: Host | None = None, former: str = "") -> Taken:
        """The first board that is free. `only` one of them, where a run goes on that began there as `former`.

        Raises BackendError where none can be reached, all refuse, or none becomes free in time; Full where none has
        room; Lost where the only one cannot be reached.
        """
        hosts: Sequence[Host | None] = (only,) if only is not None else self.boards.places()
        places = [_Place(host) for host in hosts]
        begun = self.clock()
        taken: _Place | None = None
        try:
            while True:
                taken = next((place for place in places if self._ask(place, former)), None)
                if taken is not None and taken.candidate is not None:
                    return Taken(Lock(taken.candidate), taken.host)
                self._complain(places, self.clock() - begun, only is not None)
                self.sleep(POLL_SECONDS)
        finally:
            for place in places:
                if place is not taken and place.candidate is not None:
                    with contextlib.suppress(Lost):
                        place.candidate.transport.__exit__(None, None, None)

    def _ask(self, place: _Place, former: str) -> bool:
        """Whether a board is ours now."""
        if place.refused is not None:
            return False
        try:
            if place.candidate is None:
                if self.clock() - place.tried < RETRY_SECONDS:
                    return False
                place.tried = self.clock()
                transport = self.opened(self.boards, place.host)
                folder = self.boards.folder
                place.candidate = Candidate(transport, folder, self.boards.lease_seconds, former=former)
            holder = place.candidate.try_lock(self.clock)
        except Lost as error:
            place.away, place.candidate = str(error), None
            self._power_cycle(place)
            return False
        except (BackendError, Full) as error:
            place.refused = error
            return False
        place.away, place.holder = "", holder or ""
        return holder is None

    def _complain(self, places: Sequence[_Place], seconds: float, is_only: bool) -> None:
        """Raises what ends the waiting."""
        refused = [place.refused for place in places if place.refused is not None]
        if len(refused) == len(places):
            raise refused[0]
        away = [place for place in places if place.away]
        if is_only and away:
            raise Lost("connect", away[0].away)
        if len(away) + len(refused) == len(places) and seconds >= self.boards.patience_seconds:
            raise BackendError(message("board-unreachable", board=self.boards.name, reason=away[0].away))
        if seconds >= self.boards.wait_seconds:
            holders = tuple(place.holder or place.away or "?" for place in places)
            seconds = self.boards.wait_seconds
            raise BackendError(message("board-busy", board=self.boards.name, seconds=seconds, holders=holders))

    def _power_cycle(self, place: _Place) -> None:
        """Switch a board that is away off and on, once."""
        if not self.boards.power_cycle or place.cycled:
            return
        place.cycled = True
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                self.boards.power_cycle,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=POWER_SECONDS,
                check=False,
            )
        end = self.clock() + self.boards.boot_seconds
        while self.clock() < end:
            try:
                with self.opened(self.boards, place.host):
                    return
            except Lost:
                self.sleep(1.0)


def open_board(boards: Boards, host: Host | None) -> Transport:
    """The way to one board. Raises Lost, and BackendError where it refuses."""
    if host is None:
        return open_local(boards.name)
    from driftgate.backends.board.ssh import open_ssh  # a large library, that a board in this machine does not need

    return open_ssh(host)


def all_hosts(boards: Boards) -> Iterator[Host | None]:
    """Those of a pool, or this machine."""
    yield from boards.places()
