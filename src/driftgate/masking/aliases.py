"""Names that stand for addresses and secrets in whatever a board, a jump host or a library says."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote

SHORTEST_SECRET = 4  # a shorter one would be found in plain words
LONG_SECRET = 8  # from here on nobody says it by chance: it is found within other words as well
SHORTEST_LINE = 16  # of a secret of several lines
TELLING, CUT = 16, 24  # characters that tell a secret, and the length from which on a part of it is looked for
HIDDEN = "***"


class Aliases:
    """What must not be shown, each with the name that is shown for it. Grows as addresses are resolved."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._secrets: set[str] = set()
        self._words: re.Pattern[str] | None = None

    def add(self, hidden: str, name: str) -> None:
        """From now on `name` stands for `hidden`."""
        if hidden and hidden != name:
            self._names[hidden.lower()] = name
            self._words = None

    def add_secret(self, secret: str) -> None:
        """From now on nothing of `secret` is shown, in none of the forms in which programs write it down."""
        if len(secret.strip()) < SHORTEST_SECRET:
            return
        self.add(secret, HIDDEN)
        for form in _forms(secret):
            if len(form) >= LONG_SECRET:
                self._secrets.add(form)
        self._words = None

    def applied(self, text: str) -> str:
        """The text with every hidden word replaced; a longer word that holds an address or a short secret is another
        word."""
        if not self._names:
            return text
        if self._words is None:
            self._words = self._compiled()
        return self._words.sub(lambda found: self._names.get(found[0].lower(), HIDDEN), text)

    def holds(self, content: bytes) -> bool:
        """Whether a long secret stands in bytes that cannot be rewritten."""
        return any(secret.encode("utf-8", "surrogateescape") in content for secret in self._secrets)

    @property
    def longest_bytes(self) -> int:
        """The length of the longest secret that `holds` looks for."""
        return max((len(secret.encode("utf-8", "surrogateescape")) for secret in self._secrets), default=0)

    def _compiled(self) -> re.Pattern[str]:
        anywhere = "|".join(map(_pattern, sorted(self._secrets, key=len, reverse=True)))
        words = "|".join(re.escape(word) for word in sorted(self._names, key=len, reverse=True))
        bounded = rf"(?i:(?<![\w.-])(?:{words})(?![\w-]|\.\w))"
        return re.compile(f"{anywhere}|{bounded}" if anywhere else bounded)


def _pattern(secret: str) -> str:
    """A long secret wherever it stands, and also where its beginning or its end alone was left of it."""
    whole = re.escape(secret)
    if len(secret) < CUT:
        return whole
    begun, ended = re.escape(secret[:TELLING]), re.escape(secret[-TELLING:])
    return rf"{whole}|{begun}[^\s\"']*|(?<![^\s\"'])[^\s\"']{{0,{len(secret)}}}{ended}"


def _forms(secret: str) -> Iterator[str]:
    """A secret as it stands, quoted for an address, in JSON, and in base64; of several lines each that is long."""
    lines = [line.strip() for line in secret.splitlines() if len(line.strip()) >= SHORTEST_LINE]
    for one in (secret, secret.strip(), *(lines if len(lines) > 1 else ())):
        yield one
        yield quote(one, safe="", errors="surrogateescape")
        yield json.dumps(one)[1:-1]
        yield json.dumps(one, ensure_ascii=False)[1:-1]
        yield base64.b64encode(one.encode("utf-8", "surrogateescape")).decode("ascii").rstrip("=")
