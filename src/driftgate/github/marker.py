"""The hidden first line of our comment: which workflow it is of, and which run its content is from."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from driftgate.github.environment import RunContext

KEY_DIGITS = 16

_LINE = re.compile(
    r"<!-- driftgate v1 key=(?P<key>[0-9a-f]{16}) run=(?P<run>[1-9]\d{0,18}) attempt=(?P<attempt>[1-9]\d{0,18}) "
    r"sha=(?P<sha>[0-9a-f]{40}|[0-9a-f]{64}) id=(?P<id>[1-9]\d{0,18}) -->\s*"
)


@dataclass(frozen=True, slots=True)
class Marker:
    """`key` tells workflows apart; run number and attempt give the order; `sha` and `run_id` are for people."""

    key: str
    run_number: int
    run_attempt: int
    head_sha: str
    run_id: int

    @property
    def order(self) -> tuple[int, int]:
        """What is compared: the higher one is newer."""
        return (self.run_number, self.run_attempt)

    @property
    def line(self) -> str:
        """The first line, without its end."""
        return (
            f"<!-- driftgate v1 key={self.key} run={self.run_number} attempt={self.run_attempt} "
            f"sha={self.head_sha} id={self.run_id} -->"
        )


def marker_of(context: RunContext, key: str = "") -> Marker:
    """The marker of a run; `key` tells several comments of one workflow apart, such as the legs of a matrix.

    The workflow is told by its file where the server names it, since run numbers count for each file.
    """
    parts = (context.repository.casefold(), context.workflow_path or context.workflow, key)
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return Marker(
        key=digest[:KEY_DIGITS],
        run_number=context.run_number,
        run_attempt=context.run_attempt,
        head_sha=context.head_sha,
        run_id=context.run_id,
    )


def read_marker(body: str) -> Marker | None:
    """The marker on the first line of a comment; one on any other line does not count."""
    found = _LINE.fullmatch(body.split("\n", 1)[0])
    if found is None:
        return None
    return Marker(found["key"], int(found["run"]), int(found["attempt"]), found["sha"], int(found["id"]))
