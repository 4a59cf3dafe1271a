"""Console output as plain lines: without colours, progress bars and the prefixes of loggers."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_LEVEL = r"\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\]?:?"
#: `2026-10-03 14:44:07,505 INFO `, with the date alone or brackets around it as some releases write it; in log files
#: the place in the source instead of a level; or the level alone (toolchain facts §2.4, §3).
_PREFIX = re.compile(
    r"^(?:\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?\s*"
    rf"(?:file: \S+ func: \S+ line No: \d+(?!\d)|{_LEVEL}(?!\S))?\s?|{_LEVEL}\s)"
)
#: Ends of values that a cut cannot have made: a closed tuple of numbers, a unit, a bar. Not the end of a name.
_CLOSED = re.compile(r"(?::\s*\([\d.,+\-e\s]*\)|\d ms\.?|\d FPS|\s\|)$")


def plain_lines(text: str) -> Iterator[str]:
    """Lines without escapes; of what a carriage return overwrote only the last state."""
    for line in text.replace("\r\n", "\n").split("\n"):
        states = [state for state in _ESCAPES.sub("", line).split("\r") if state.strip()]
        yield states[-1].rstrip() if states else ""


def without_prefix(line: str) -> str:
    """A line without the date and level that a logger puts in front."""
    return _PREFIX.sub("", line, count=1)


def said_lines(text: str) -> tuple[str, ...]:
    """Lines without escapes and prefixes, the last one too where the text may have been cut within it: for fixed
    sentences, which are whole if they are found."""
    return tuple(without_prefix(line) for line in plain_lines(text))


def whole_lines(text: str) -> tuple[str, ...]:
    """Lines without escapes and prefixes, the last one only where its form shows that nothing was cut: for values."""
    lines = said_lines(text)
    return lines if not lines[-1] or _CLOSED.search(lines[-1]) else lines[:-1]


def last_run(text: str, start: re.Pattern[str]) -> tuple[int, str]:
    """How many runs were appended to one log, by their first lines, and the text of the last."""
    starts = [at for at, line in enumerate(said_lines(text)) if start.match(line)]
    return max(1, len(starts)), "\n".join(text.split("\n")[starts[-1] :]) if len(starts) > 1 else text
