"""A command that is run to its end over a channel, with all it has to read and write."""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Thread
from typing import Protocol

from driftgate.backends.board.transport import Channel, Done, Lost

READ_BYTES = 1 << 20

#: A command that takes nothing of its input for so long will not take more.
STALLED_SECONDS = 120.0

#: Ends the shell with the code of the command as shells count it, 128 and the number of the signal for one that was
#: killed: a shell that became its last command has none.
ENDING = "\nexit $?"


class Command(Channel, Protocol):
    """A channel that keeps the end of stderr."""

    def errors(self) -> bytes:
        """The end of what it wrote to stderr so far."""


def done(command: Command, stdin: bytes, *, seconds: float) -> Done:
    """See it to its end and let go of it. Raises Lost, also when it takes longer than `seconds` in all."""
    deadline = time.monotonic() + seconds
    writer = Thread(target=_feed, args=(command, stdin), daemon=True)
    writer.start()
    try:
        pieces = []
        while piece := command.read(READ_BYTES, seconds=max(deadline - time.monotonic(), 0.0)):
            pieces.append(piece)
        code = command.wait(seconds=max(deadline - time.monotonic(), 0.0))
        return Done(b"".join(pieces), command.errors(), code)
    finally:
        command.close()


def _feed(command: Command, stdin: bytes) -> None:
    """A command may end before it has read everything; its code tells, and so does `read` if the board is gone."""
    with suppress(Lost):
        command.write(stdin)
        command.end_input()
