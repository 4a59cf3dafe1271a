"""Markdown as a reader of GitHub gets it: CommonMark with GitHub's extensions, raw HTML kept, as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

import cmarkgfm  # type: ignore[import-untyped]
from cmarkgfm.cmark import Options  # type: ignore[import-untyped]
from lxml.html import HtmlElement, document_fromstring


def rendered(markdown: str) -> HtmlElement:
    """The page's body as a tree; raw HTML is kept, so what slipped through escaping becomes an element."""
    page = cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
    (body,) = document_fromstring(f"<html><body>{page}</body></html>").iter("body")
    return cast(HtmlElement, body)


def names(page: HtmlElement) -> set[str]:
    """The names of all elements within the body."""
    return {str(element.tag) for element in page.iter() if isinstance(element.tag, str)} - {"body"}


def text_outside_code(page: HtmlElement) -> str:
    """All text in which GitHub looks for mentions, references and links."""
    return "".join(_outside(page))


def _outside(element: HtmlElement) -> Iterator[str]:
    if element.tag not in ("code", "pre"):
        yield element.text or ""
        for child in element:
            yield from _outside(child)
            yield child.tail or ""


#: What GitHub would turn into a mention, a reference to an issue, or a link.
LIVE = re.compile(r"(?<![\w/])@[A-Za-z0-9]|(?<!\w)#\d|(?i:\bgh-\d)|https?://|\bwww\.")
