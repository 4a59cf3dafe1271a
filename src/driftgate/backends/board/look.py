"""What can be seen of a board from outside a run: system, tool, room, lock, clock. Nothing on it is changed."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from driftgate.backends.board import scripts
from driftgate.backends.board.boards import Boards
from driftgate.backends.board.lock import asked
from driftgate.backends.board.transport import Transport
from driftgate.vendor.cells import integer
from driftgate.vendor.console import plain_lines
from driftgate.vendor.runtime import runtime_versions

_VERSION = re.compile(r"(?<![\w.])\d+(?:\.\d+){1,3}")
CORES = "/sys/devices/system/bpu/core_num"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a board tells; None where it does not, as most of these are no part of what it must have."""

    system: str | None
    image: str | None
    cores: int | None
    ucp: str | None
    hbrt: str | None
    has_tool: bool
    free_bytes: int | None
    holder: str | None
    ahead_seconds: float | None  # of this machine's clock


def look(transport: Transport, boards: Boards) -> Seen:
    """Look at a board. Raises Lost."""
    folder = boards.folder
    tool = f"{scripts.exported(dict(boards.environment))}; {scripts.quoted(boards.tool)} -v < /dev/null 2>&1"
    version, _, code = _said(transport, f"{tool}; c=$?; echo; echo exit $c").rpartition("exit ")
    told = runtime_versions(list(plain_lines(version)))
    own = _VERSION.search(version)
    before = time.time()
    clock = integer(_said(transport, "date +%s 2>/dev/null").strip())
    now = (before + time.time()) / 2
    lock = _said(transport, f"cat {scripts.quoted(folder)}/lock/who 2>/dev/null").strip()
    return Seen(
        system=_first(_said(transport, "cat /proc/version 2>/dev/null || uname -s 2>/dev/null")),
        image=_first(_said(transport, "cat /etc/version 2>/dev/null")),
        cores=integer(_said(transport, f"cat {CORES} 2>/dev/null").strip()),
        ucp=told.ucp or (own[0] if own else None),
        hbrt=told.hbrt,
        has_tool=code.strip() not in ("126", "127"),
        free_bytes=_free(_said(transport, f"df -k {scripts.quoted(folder)} 2>/dev/null || df -k / 2>/dev/null")),
        holder=lock or None,
        ahead_seconds=None if clock is None else clock - now,
    )


def _said(transport: Transport, command: str) -> str:
    return asked(transport, command, step="look")


def _first(text: str) -> str | None:
    line = text.strip().partition("\n")[0].strip()
    return line[:80] or None


def _free(text: str) -> int | None:
    """The fourth column of the last line of df -k."""
    words = text.strip().split("\n")[-1].split()
    free = integer(words[3]) if len(words) > 4 else None
    return None if free is None else free * 1024
