"""Foreign text in GitHub's Markdown: code spans, fenced blocks and prose that cannot become markup or a mention."""

from __future__ import annotations

import re

from driftgate.escaping.characters import lines, one_line, shortened
from driftgate.escaping.urls import web_address
from driftgate.messages.message import Message
from driftgate.messages.text import text

LIMIT = 120  # characters of a code span
BLOCK_LIMIT = 8000  # characters of a fenced block

_BACKTICKS = re.compile("`+")
_MARKUP = re.compile(r"[\\`*_\[\]|~$]")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
#: Where GitHub would see a mention, a reference or a link.
_LINKING = re.compile(r"@|(?i:gh-|www)(?=[\d.])|(?<=:)(?=//)|#(?=\d)")
#: Where it would see a commit: seven hexadecimal digits and more. Plain numbers are left as they are.
_COMMIT = re.compile(r"(?<!\w)(?=[0-9]*[a-f])[0-9a-f]{7,}(?!\w)")
_SIX = re.compile("[0-9a-f]{6}")
_BREAK = "&#8203;"
#: The beginning of an HTML comment, by which a bot knows its own; also in code, for whoever looks at the source.
_COMMENT = re.compile("<(?=!--)")
_KEPT = re.compile("\ue000(\\d+)\ue001")


class Markdown(str):
    """Text that is ready for a Markdown document; anything else is escaped before it is written."""

    __slots__ = ()

    def __html__(self) -> str:
        """The mark by which Jinja knows text that is not to be escaped again, also out of macros."""
        return self


def shown(text: str, limit: int = LIMIT) -> str:
    """One line as a code span shows it."""
    return shortened(_COMMENT.sub("< ", one_line(text)), limit)


def _short(text: str) -> str:
    return shortened(one_line(text), LIMIT)


def _fence(text: str, shortest: int) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(shortest, longest + 1)


def code(text: str, limit: int = LIMIT) -> Markdown:
    """A code span, in which GitHub neither links, mentions nor formats; outside of tables."""
    line = shown(text, limit) or " "
    fence = _fence(line, 1)
    padded = line.strip(" ") and (line[0] in " `" or line[-1] in " `")
    return Markdown(f"{fence} {line} {fence}" if padded else f"{fence}{line}{fence}")


def cell(text: str, limit: int = LIMIT) -> Markdown:
    """A code span within a table, where a bare `|` would end the cell even in code."""
    return Markdown(code(text, limit).replace("|", "\\|"))


def fenced(text: str, limit: int = BLOCK_LIMIT) -> Markdown:
    """A fenced block that nothing in the text can close; cut at a line's end where possible."""
    block = _COMMENT.sub("< ", lines(text))
    if len(block) > limit:
        kept = block[:limit]
        block = (kept[: kept.rfind("\n")] if "\n" in kept else kept) + "\n…"
    fence = _fence(block, 3)
    return Markdown(f"{fence}text\n{block}\n{fence}")


def link(title: Message | str, url: str) -> Markdown:
    """A link with a title; the title alone where the address is none of the web."""
    said = plain(title) if isinstance(title, str) else titled(title)
    address = web_address(url)
    return said if address is None else Markdown(f"[{said}](<{address.replace('&', '&amp;')}>)")


def _broken(text: str) -> str:
    """The text with U+E002 wherever a space of no width must keep apart what GitHub would turn into a link."""
    apart = _COMMIT.sub(lambda match: _SIX.sub("\\g<0>\ue002", match[0]), text)
    return _LINKING.sub("\\g<0>\ue002", apart)


def plain(text: str) -> Markdown:
    """Text within a line that stays text: no markup, HTML, mention, reference or link; in and outside of tables."""
    entities = "".join(_ENTITIES.get(character, character) for character in one_line(text))
    return Markdown(_MARKUP.sub(r"\\\g<0>", _broken(entities)).replace("\ue002", _BREAK))


def prose(message: Message, *, table: bool = False) -> Markdown:
    """The sentence of a message as text, its foreign parameters as code spans."""
    kept: list[str] = []

    def keep(value: str) -> str:
        kept.append(cell(value) if table else code(value))
        return f"\ue000{len(kept) - 1}\ue001"

    def kept_at(match: re.Match[str]) -> str:
        index = int(match[1][:9])
        return kept[index] if index < len(kept) else ""

    return Markdown(_KEPT.sub(kept_at, plain(text(message, keep))))


def titled(message: Message) -> Markdown:
    """The sentence of a message whose parameters are titles: text throughout, no code spans."""
    return plain(text(message, _short))


def finished(value: object) -> Markdown:
    """What a template may print: Markdown as it is, a message as its sentence, numbers, any other string as text."""
    if hasattr(value, "__html__"):
        return Markdown(value)
    if isinstance(value, Message):
        return prose(value, table=True)
    return plain(_short(str(value)))


def html(text: str, limit: int = LIMIT) -> Markdown:
    """Text within a line of raw HTML, such as the visible line of a folded part."""
    entities = "".join(_ENTITIES.get(character, character) for character in shortened(one_line(text), limit))
    return Markdown(_broken(entities).replace("\ue002", _BREAK).replace('"', "&quot;"))


def html_titled(message: Message) -> Markdown:
    """The sentence of a message within a line of raw HTML."""
    return html(text(message, _short), BLOCK_LIMIT)
