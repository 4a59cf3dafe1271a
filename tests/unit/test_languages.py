"""The catalogues hold the same codes with the same parameters, and nothing is left in English."""

from __future__ import annotations

import re
import string

from driftgate.messages.chinese import CHINESE
from driftgate.messages.english import ENGLISH

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


def test_every_english_code_has_a_chinese_sentence() -> None:
    assert [code for code in ENGLISH if code not in CHINESE] == []


def test_no_chinese_sentence_is_of_an_unknown_code() -> None:
    assert [code for code in CHINESE if code not in ENGLISH] == []


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
    translated = [code for code in SHARED if CHINESE[code] != ENGLISH[code]]
    assert [code for code in translated if not CJK.search(prose(CHINESE[code]))] == []
