"""Characters that change what a reader sees without being seen: found, removed or made visible."""

from __future__ import annotations

import re

#: Escape sequences that terminals obey: CSI, OSC and friends, two-character ones; in 7 and 8 bits.
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-Z\\-~]"
)

#: C0 without TAB, LF and CR; DEL and C1; Arabic letter mark, zero-width space, marks, embeddings and isolates of
#: both directions, invisible operators, byte-order mark, interlinear marks; surrogates, non-characters, tags.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f"
    + "".join(chr(plane << 16 | low) for plane in range(1, 17) for low in (0xFFFE, 0xFFFF))
    + "]"
)

_BREAK = re.compile("\r\n|[\r\n\u2028\u2029]")


def _code_point(match: re.Match[str]) -> str:
    return f"#x{ord(match[0]):02X}"


def visible(text: str) -> str:
    """The text without escape sequences, every other hidden character written as `#x1B`; lines stay lines."""
    return _HIDDEN.sub(_code_point, _ANSI.sub("", text))


def one_line(text: str) -> str:
    """`visible`, with line ends written as ⏎ and tabs as spaces."""
    return visible(_BREAK.sub("⏎", text)).replace("\t", " ")


def lines(text: str) -> str:
    """`visible`, with every kind of line end written as LF."""
    return visible(_BREAK.sub("\n", text))


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, cut in the middle: a tensor's name says most at its two ends."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    tail = limit - 1 - head
    return f"{text[:head]}…{text[len(text) - tail :]}"
