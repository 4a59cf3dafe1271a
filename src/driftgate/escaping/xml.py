"""Foreign text in XML 1.0: forbidden and hidden characters visible, terminal colours gone, attachments not faked."""

from __future__ import annotations

import re

from driftgate.escaping import characters

#: Jenkins' junit-attachments plugin and GitLab read files that the text names in this form.
_ATTACHMENT = re.compile(r"\[(?=\[ATTACHMENT)", re.IGNORECASE)


def clean(text: str) -> str:
    """Text of an element, several lines allowed; quoting `<` and `&` is the serialiser's work."""
    return _ATTACHMENT.sub("[ ", characters.lines(text))


def line(text: str) -> str:
    """The value of an attribute, or one line of text."""
    return _ATTACHMENT.sub("[ ", characters.one_line(text))
