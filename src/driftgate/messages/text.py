"""From a message to a sentence: looks the code up and fills in the parameters, each quoted by the caller."""

from __future__ import annotations

import gettext
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from driftgate.messages.english import ENGLISH
from driftgate.messages.message import Message, Param

#: Where the catalogues of other languages lie, as gettext wants it, and what they are called.
LOCALES, DOMAIN = Path(__file__).with_name("locale"), "driftgate"
LIST_LIMIT = 12
ENGLISH_LANGUAGE, CHINESE_LANGUAGE = "en", "zh"
#: What stands between the entries of a list.
BETWEEN = {ENGLISH_LANGUAGE: ", ", CHINESE_LANGUAGE: "、"}
_language: ContextVar[str] = ContextVar("language", default=ENGLISH_LANGUAGE)


@contextmanager
def in_language(language: str) -> Iterator[None]:
    """What is said within is said in this language: en or zh."""
    before = _language.set(language)
    try:
        yield
    finally:
        _language.reset(before)


def speak(language: str) -> None:
    """From now on everything is said in this language: en or zh."""
    _language.set(language)


def spoken() -> str:
    """The language that is spoken: en or zh."""
    return _language.get()


def number(value: float) -> str:
    """A number as people read it: up to six significant digits, integers in full."""
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) < 10**15):
        return str(value)
    try:
        return f"{value:.6g}"
    except OverflowError:
        return "∞" if value > 0 else "-∞"


def _filled(value: Param, quote: Callable[[str], str]) -> str:
    if isinstance(value, Message):
        return text(value, quote)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, tuple):
        between = BETWEEN[_language.get()]
        shown = between.join(quote(item) for item in value[:LIST_LIMIT])
        return shown if len(value) <= LIST_LIMIT else f"{shown}{between}… ({len(value)})"
    return number(value)


@cache
def _translations() -> gettext.NullTranslations:
    """The Chinese catalogue as the build compiled it, without the sentences that it lacks."""
    return gettext.translation(DOMAIN, LOCALES, ["zh_CN"], fallback=True)


def _sentence(code: str) -> str:
    """The sentence of a code in the language that is spoken. KeyError for one that nobody knows."""
    english = ENGLISH[code]
    return english if _language.get() == ENGLISH_LANGUAGE else _translations().pgettext(code, english)


def text(message: Message, quote: Callable[[str], str] = str) -> str:
    """The sentence of a message; `quote` makes each foreign string safe for the format it goes into.

    The sentence itself is ours and is not quoted. An unknown code or other parameters (a document of another
    version) show the code and its parameters instead of failing.
    """
    params = {name: _filled(value, quote) for name, value in message.params}
    try:
        return _sentence(message.code).format_map(params)
    except KeyError:
        return " ".join([quote(message.code), *(f"{name}={value}" for name, value in params.items())])
