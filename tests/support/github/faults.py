"""What goes wrong at GitHub: each fault takes the place of one request's usual treatment, or comes around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from support.github import payloads
from support.github.exchange import Reply, Request

Usual = Callable[[], Reply]
#: Given the usual treatment, what happens instead; None: the connection is cut.
Treatment = Callable[[Usual], Reply | None]

SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
PRIMARY = "API rate limit exceeded for installation ID 1."


@dataclass(slots=True)
class Fault:
    """Befalls the next `times` requests of a method whose path the pattern is found in."""

    method: str
    pattern: str
    treatment: Treatment
    times: int = 1

    def takes(self, request: Request) -> bool:
        """Whether it befalls this request."""
        return self.times > 0 and self.method == request.method and bool(re.search(self.pattern, request.path))


def refused(status: int, words: str, headers: Mapping[str, str] | None = None) -> Treatment:
    """GitHub says no, and does nothing."""
    return lambda usual: Reply(status, payloads.refusal(status, words), headers or {})


def answered(reply: Reply) -> Treatment:
    """Something else answers."""
    return lambda usual: reply


def reset(usual: Usual) -> None:
    """The connection breaks before anything is done."""


def lost(usual: Usual) -> None:
    """It is done, and the reply never arrives."""
    usual()


def halved(usual: Usual) -> Reply:
    """It is done, and the connection breaks in the middle of the reply."""
    reply = usual()
    return Reply(reply.status, headers=reply.headers, raw=reply.body, whole=False)


def gateway(usual: Usual) -> Reply:
    """It is done, and a gateway on the way gives up before the reply."""
    usual()
    return Reply(502, payloads.refusal(502, "Server Error"))


def after(event: Callable[[], object]) -> Treatment:
    """Something happens just before it is done."""

    def treatment(usual: Usual) -> Reply:
        event()
        return usual()

    return treatment
