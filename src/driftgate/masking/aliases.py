"""Names that stand for addresses and secrets in whatever a board, a jump host or a library says."""

from __future__ import annotations

import re

SHORTEST_SECRET = 4  # a shorter one would be found in plain words


class Aliases:
    """What must not be shown, each with the name that is shown for it. Grows as addresses are resolved."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def add(self, hidden: str, name: str) -> None:
        """From now on `name` stands for `hidden`."""
        if hidden and hidden != name:
            self._names[hidden.lower()] = name

    def add_secret(self, secret: str) -> None:
        """From now on nothing of `secret` is shown."""
        if len(secret) >= SHORTEST_SECRET:
            self.add(secret, "***")

    def applied(self, text: str) -> str:
        """The text with every hidden word replaced; a longer word that holds one is another word."""
        if not self._names:
            return text
        words = "|".join(re.escape(word) for word in sorted(self._names, key=len, reverse=True))
        return re.sub(
            rf"(?<![\w.-])(?:{words})(?![\w-]|\.\w)", lambda found: self._names[found[0].lower()], text, flags=re.I
        )
