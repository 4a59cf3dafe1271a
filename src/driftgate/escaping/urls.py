"""Foreign addresses: only what a browser opens as a web page, and nothing in it that ends a link or an attribute."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from driftgate.escaping.characters import one_line

#: What a URL may consist of (RFC 3986), without brackets and quotes, which mean something in Markdown and HTML.
_KEPT = "%:/?#@!$&*+,;=~-._"


def web_address(url: str) -> str | None:
    """The http(s) URL with every other character percent-encoded; None for any other address."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        return None
    return quote(one_line(url.strip()), safe=_KEPT)
