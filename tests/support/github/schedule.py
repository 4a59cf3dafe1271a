"""Several runs at once, one request at a time: who comes next is drawn from a seed, so a schedule can be repeated.

Every run is a thread with a client of its own and real HTTP. Its requests wait at the server's gate; once every run
that is still going waits there, one of them is let through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from random import Random

from support.github.exchange import Request

STUCK_SECONDS = 60


class Turnstile:
    """The gate of a server; runs are told apart by their tokens."""

    def __init__(self, tokens: Sequence[str], draw: Random) -> None:
        self._draw = draw
        self._changed = threading.Condition()
        self._going = set(tokens)
        self._waiting: set[str] = set()
        self._let_through: str | None = None

    def __call__(self, request: Request) -> None:
        """Wait for the turn."""
        with self._changed:
            self._waiting.add(request.token)
            self._choose()
            if not self._changed.wait_for(lambda: self._let_through == request.token, STUCK_SECONDS):
                raise TimeoutError(f"{request.token} never got its turn")
            self._waiting.discard(request.token)
            self._let_through = None

    def leave(self, token: str) -> None:
        """A run has ended."""
        with self._changed:
            self._going.discard(token)
            self._choose()

    def _choose(self) -> None:
        if self._let_through is None and self._waiting and self._waiting == self._going:
            self._let_through = self._draw.choice(sorted(self._waiting))
            self._changed.notify_all()


def run_all(works: Mapping[str, Callable[[], object]], turnstile: Turnstile) -> dict[str, object]:
    """Every token's work in a thread of its own; what each returned, or the error it raised."""
    ended: dict[str, object] = {}

    def work(token: str) -> None:
        try:
            ended[token] = works[token]()
        except Exception as error:
            ended[token] = error
        finally:
            turnstile.leave(token)

    threads = [threading.Thread(target=work, args=(token,), daemon=True) for token in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * STUCK_SECONDS)
    return ended
