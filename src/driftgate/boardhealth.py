"""What boards tell of themselves, as items of the doctor: reached or not, system, tool, room, lock, clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from driftgate.backends.board.boards import Boards
from driftgate.backends.board.look import Seen, look
from driftgate.backends.board.pool import all_hosts, open_board
from driftgate.backends.board.transport import Host, Lost, Transport
from driftgate.doctoring import HBRT, UCP, Item, State
from driftgate.errors import BackendError
from driftgate.messages.message import Message, message

LEAST_FREE = 256 << 20  # bytes that a model, its inputs and its dumps may need
#: A clock that is off is no fault of a run; logs are hard to read with one.
OFF_SECONDS = 60.0
Opener = Callable[[Boards, Host | None], Transport]


def boards(pools: Iterable[Boards], opened: Opener = open_board) -> Iterator[Item]:
    """Every board of these pools; one that cannot be reached is missing."""
    for pool in pools:
        for host in all_hosts(pool):
            yield _item(pool, host, opened)


def _item(pool: Boards, host: Host | None, opened: Opener) -> Item:
    name = pool.name if host is None else host.name
    item = Item(f"board {name}", State.MISSING, "", message("doctor-for-board"), needed=True)
    try:
        with opened(pool, host) as transport:
            seen = look(transport, pool)
    except Lost as error:
        return _with(item, State.MISSING, "", (message("doctor-board-away", board=name, reason=str(error)),))
    except BackendError as error:
        return _with(item, State.MISSING, "", error.problems)
    advice = tuple(_advice(pool, name, seen))
    state = State.MISSING if not seen.has_tool else State.ODD if advice else State.THERE
    return _with(item, state, ", ".join(_told(pool, seen)), advice, seen)


def _with(item: Item, state: State, found: str, advice: tuple[Message, ...], seen: Seen | None = None) -> Item:
    versions = ((UCP, seen.ucp), (HBRT, seen.hbrt)) if seen is not None else ()
    told = tuple((name, version) for name, version in versions if version is not None)
    return Item(item.name, state, found, item.purpose, item.needed, advice, told)


def _told(pool: Boards, seen: Seen) -> Iterator[str]:
    """What it tells, in words of numbers and names."""
    yield from (part for part in (pool.march, seen.system, seen.image) if part)
    if seen.cores is not None:
        yield f"{seen.cores} BPU"
    if seen.ucp is not None:
        yield f"UCP {seen.ucp}"
    if seen.hbrt is not None:
        yield f"HBRT {seen.hbrt}"
    if seen.free_bytes is not None:
        yield f"{seen.free_bytes >> 20} MiB"
    if seen.holder is not None:
        yield f"lock: {seen.holder}"
    if seen.ahead_seconds is not None:
        yield f"clock {seen.ahead_seconds:+.0f} s"


def _advice(pool: Boards, name: str, seen: Seen) -> Iterator[Message]:
    if not seen.has_tool:
        yield message("doctor-board-tool", board=name, tool=pool.tool)
    if seen.free_bytes is not None and seen.free_bytes < LEAST_FREE:
        yield message("doctor-board-room", board=name, folder=pool.folder, free_mib=seen.free_bytes >> 20)
    if seen.ahead_seconds is not None and abs(seen.ahead_seconds) > OFF_SECONDS:
        yield message("doctor-board-clock", board=name, seconds=round(seen.ahead_seconds))
