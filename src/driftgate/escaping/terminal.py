"""Foreign text on a terminal or in a log: no escape sequence, hidden character or runner's command gets through."""

from __future__ import annotations

import re

from driftgate.escaping import characters
from driftgate.escaping.commands import disarmed

LIMIT = 120  # characters of one name

#: A tag of rich's markup, and the backslashes before it.
_TAG = re.compile(r"(\\*)\[(?=[a-z#/@])")


def inert(text: str, limit: int | None = None) -> str:
    """One line, cut in the middle beyond `limit` characters."""
    shown = disarmed(characters.one_line(text))
    return shown if limit is None else characters.shortened(shown, limit)


def block(text: str) -> str:
    """Several lines."""
    return disarmed(characters.lines(text))


def markup(text: str) -> str:
    """One line for rich's markup; print it with `emoji=False`, or rich replaces `:names:` in it."""
    escaped = _TAG.sub(lambda match: match[1] * 2 + "\\[", inert(text))
    return f"{escaped} " if escaped.endswith("\\") else escaped
