"""The Chinese catalogue has every message, as compiled too; the parameters are the same; nothing is left in English."""

from __future__ import annotations

import gettext
import re
import string

import catalogue
import pytest
from babel.messages.catalog import Catalog

from driftgate.messages.english import ENGLISH
from driftgate.messages.message import Message
from driftgate.messages.text import DOMAIN, LOCALES, in_language, text
from support.languages import CHINESE

#: Units that are written the same in every language, though they look like words.
UNITS = frozenset({"unit-ulp"})

SHARED = [code for code in ENGLISH if code in CHINESE]

WORD = re.compile("[a-z]{3,}")
CJK = re.compile("[\u4e00-\u9fff]")


def parameters(sentence: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None)


def prose(sentence: str) -> str:
    """The sentence without its placeholders."""
    return " ".join(literal for literal, _, _, _ in string.Formatter().parse(sentence))


def test_the_catalogue_has_every_message_and_no_other() -> None:
    assert list(catalogue.problems(catalogue.read())) == []


def test_the_catalogue_has_the_order_of_the_english_one() -> None:
    assert list(CHINESE) == list(ENGLISH)


def test_what_the_build_compiled_is_what_the_catalogue_says() -> None:
    """Where this fails after a change of the .po: `make test` compiles it."""
    with (LOCALES / "zh_CN" / "LC_MESSAGES" / f"{DOMAIN}.mo").open("rb") as stream:
        compiled = gettext.GNUTranslations(stream)
    assert {code: compiled.pgettext(code, sentence) for code, sentence in ENGLISH.items()} == CHINESE


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("missing", "not translated: archive-unreadable"),
        ("empty", "not translated: archive-unreadable"),
        ("fuzzy", "translated from another sentence: archive-unreadable"),
        ("stale", "translated from another sentence: archive-unreadable"),
        ("unused", "of no message: nobody-says-this"),
    ],
)
def test_what_is_missing_stale_or_unused_is_told(broken: str, said: str) -> None:
    known = Catalog(locale="zh_CN")
    for code, sentence in ENGLISH.items():
        flags, english, chinese = set[str](), sentence, CHINESE[code]
        if code == "archive-unreadable":
            if broken == "missing":
                continue
            chinese = "" if broken == "empty" else chinese
            flags = {"fuzzy"} if broken == "fuzzy" else flags
            english = "It said something else" if broken == "stale" else english
        known.add(english, chinese, context=code, flags=flags)
    if broken == "unused":
        known.add("Nobody says this", "没有人这样说", context="nobody-says-this")
    assert list(catalogue.problems(known)) == [said]


def test_a_changed_sentence_keeps_its_translation_to_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGLISH, "archive-unreadable", "Another sentence")
    monkeypatch.setitem(ENGLISH, "new-one", "A new one")
    made = {str(entry.context): entry for entry in catalogue.updated(catalogue.read()) if entry.id}
    changed = made["archive-unreadable"]
    assert (changed.id, changed.string, changed.fuzzy) == ("Another sentence", CHINESE["archive-unreadable"], True)
    assert (made["new-one"].id, made["new-one"].string, made["new-one"].fuzzy) == ("A new one", "", False)
    assert not made["unit-ulp"].fuzzy


def test_a_code_of_another_version_is_shown_as_it_is() -> None:
    with in_language("zh"):
        assert text(Message("of-tomorrow", (("count", 3),))) == "of-tomorrow count=3"


def test_both_sentences_use_the_same_parameters() -> None:
    assert [code for code in SHARED if parameters(CHINESE[code]) != parameters(ENGLISH[code])] == []


def test_parameters_are_plain_names() -> None:
    formatted = [
        code
        for code in SHARED
        for _, name, spec, conversion in string.Formatter().parse(CHINESE[code])
        if name is not None and (spec or conversion)
    ]
    assert formatted == []


def test_no_sentence_is_left_in_english() -> None:
    same = [code for code in SHARED if CHINESE[code] == ENGLISH[code] and code not in UNITS]
    assert [code for code in same if WORD.search(prose(ENGLISH[code]))] == []


def test_every_translated_sentence_is_chinese() -> None:
    translated = [code for code in SHARED if CHINESE[code] != ENGLISH[code] and not code.startswith("mark-")]
    assert [code for code in translated if not CJK.search(prose(CHINESE[code]))] == []


def test_every_mark_is_of_its_language() -> None:
    marks = [code for code in ENGLISH if code.startswith("mark-")]
    assert marks
    assert all(ENGLISH[code].isascii() and not CHINESE[code].isascii() and len(CHINESE[code]) == 1 for code in marks)
