"""Foreign text in HTML pages: text and attribute values that stay what they are, links that only lead to the web."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode

from driftgate.escaping import characters
from driftgate.escaping.urls import web_address
from driftgate.messages.message import Message
from driftgate.messages.text import text as sentence

LIMIT = 120  # characters of one name
BLOCK_LIMIT = 8000  # characters of a block

_KEPT = re.compile("\ue000(\\d+)\ue001")
#: What could end a script element, or is a line's end to a script.
_SCRIPTED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


class Html(str):
    """Text that is ready for an HTML document; anything else is escaped before it is written."""

    __slots__ = ()

    def __html__(self) -> str:
        """The mark by which Jinja knows text that is not to be escaped again, also out of macros."""
        return self


def text(value: str, limit: int | None = None) -> str:
    """One line of an element's text, or an attribute's value in quotes; cut in the middle beyond `limit` characters."""
    shown = characters.one_line(value)
    return html.escape(shown if limit is None else characters.shortened(shown, limit), quote=True)


def block(value: str) -> str:
    """The text of a `pre`: several lines. The first may be empty, which HTML would drop."""
    shown = html.escape(characters.lines(value), quote=True)
    return f"\n{shown}" if shown.startswith("\n") else shown


def href(url: str) -> str:
    """The value of an `href` in quotes; `#` for what is no http(s) address."""
    address = web_address(url)
    return "#" if address is None else html.escape(address, quote=True)


def code(value: str, limit: int = LIMIT) -> Html:
    """A name, as a `code` element."""
    return Html(f"<code>{text(value, limit)}</code>")


def pre(value: str, limit: int = BLOCK_LIMIT) -> Html:
    """Several lines as a `pre` element that a keyboard can scroll; cut beyond `limit` characters."""
    kept = value if len(value) <= limit else f"{value[:limit]}\n…"
    return Html(f'<pre tabindex="0">{block(kept)}</pre>')


def png(content: bytes) -> Html:
    """A PNG as the address of an image, for an attribute in quotes."""
    return Html(f"data:image/png;base64,{b64encode(content).decode('ascii')}")


def prose(message: Message) -> Html:
    """The sentence of a message as text, its foreign parameters as `code` elements."""
    kept: list[str] = []

    def keep(value: str) -> str:
        kept.append(code(value))
        return f"\ue000{len(kept) - 1}\ue001"

    def kept_at(match: re.Match[str]) -> str:
        index = int(match[1][:9])
        return kept[index] if index < len(kept) else ""

    return Html(_KEPT.sub(kept_at, text(sentence(message, keep))))


def titled(message: Message) -> Html:
    """The sentence of a message whose parameters are titles: text throughout, also for attributes."""
    return Html(text(sentence(message, lambda value: characters.shortened(characters.one_line(value), LIMIT))))


def finished(value: object) -> Html:
    """What a template may print: HTML as it is, a message as its sentence, numbers, any other string as text."""
    if hasattr(value, "__html__"):
        return Html(value)
    if isinstance(value, Message):
        return prose(value)
    return Html(text(str(value), LIMIT))


def json_data(value: object) -> Html:
    """A JSON value within a `script` element, whose end no text in it can be. Raises ValueError for NaN."""
    encoded = json.dumps(_visible(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Html(encoded.translate(_SCRIPTED))


def _visible(value: object) -> object:
    if isinstance(value, str):
        return characters.one_line(value)
    if isinstance(value, dict):
        return {characters.one_line(str(key)): _visible(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_visible(item) for item in value]
    return value
