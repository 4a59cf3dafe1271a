"""A request as the server got it, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is below the server's base path and without the query; header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    @property
    def token(self) -> str:
        """What stands behind `Bearer`; empty where nothing does."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass(frozen=True, slots=True)
class Reply:
    """`whole=False` promises the whole body, sends half of it and closes the connection."""

    status: int
    value: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    whole: bool = True

    @property
    def body(self) -> bytes:
        """The bytes: `raw` where given, else the value as JSON; empty for 204, 302 and 304."""
        if self.raw is not None:
            return self.raw
        return b"" if self.value is None else json.dumps(self.value).encode()


@dataclass(frozen=True, slots=True)
class Logged:
    """A request that was served; `reply` is None where the connection was cut instead."""

    request: Request
    reply: Reply | None

    @property
    def line(self) -> str:
        """Method, path and status."""
        return f"{self.request.method} {self.request.path} {self.reply.status if self.reply else 'cut'}"
