"""Names and units of evidence, which stand in facts as English words, as messages that any language has."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from functools import cache

from driftgate.messages.english import ENGLISH
from driftgate.messages.message import Message, message

NAMES, UNITS, OTHER = "term-", "evidence-unit-", "term-other"


def name(said: str) -> Message:
    """The message of a name; one that the catalogue does not have is said as it is."""
    return _message(said, NAMES)


def unit(said: str) -> Message | None:
    """The same of a unit; None for an empty one."""
    return _message(said, UNITS) if said else None


def _message(said: str, prefix: str) -> Message:
    plain, patterns = _table(prefix)
    if said in plain:
        return message(plain[said])
    for pattern, code in patterns:
        found = pattern.fullmatch(said)
        if found is not None:
            return message(code, **found.groupdict())
    return message(OTHER, said=said)


@cache
def _table(prefix: str) -> tuple[Mapping[str, str], tuple[tuple[re.Pattern[str], str], ...]]:
    """English words → code of those without parameters, and patterns of the others, those with more words first."""
    plain: dict[str, str] = {}
    patterns: list[tuple[int, re.Pattern[str], str]] = []
    for code, sentence in ENGLISH.items():
        if not code.startswith(prefix) or code == OTHER:
            continue
        parts = list(string.Formatter().parse(sentence))
        if all(field is None for _, field, _, _ in parts):
            plain[sentence] = code
            continue
        pattern = "".join(
            re.escape(words) + ("" if field is None else f"(?P<{field}>.+)") for words, field, _, _ in parts
        )
        patterns.append((sum(len(words) for words, _, _, _ in parts), re.compile(pattern, re.S), code))
    patterns.sort(key=lambda one: (-one[0], one[2]))
    return plain, tuple((pattern, code) for _, pattern, code in patterns)
