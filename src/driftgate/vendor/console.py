"""Console output as plain lines: without colours, progress bars and the prefixes of loggers."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
#: `2026-10-03 14:44:07,505 INFO `, with the date alone or brackets around it as some releases write it.
_PREFIX = re.compile(
    r"^\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?\s*(?:\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\]?:?)?\s?"
)


def plain_lines(text: str) -> Iterator[str]:
    """Lines without escapes; of what a carriage return overwrote only the last state."""
    for line in text.replace("\r\n", "\n").split("\n"):
        states = [state for state in _ESCAPES.sub("", line).split("\r") if state.strip()]
        yield states[-1].rstrip() if states else ""


def without_prefix(line: str) -> str:
    """A line without the date and level that a logger puts in front."""
    return _PREFIX.sub("", line, count=1)
