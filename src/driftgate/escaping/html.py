"""Foreign text in HTML pages: text and attribute values that stay what they are, links that only lead to the web."""

from __future__ import annotations

import html

from driftgate.escaping import characters
from driftgate.escaping.urls import web_address


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
