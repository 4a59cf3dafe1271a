"""Every code that the source says stands in the catalogue, with the parameters its sentence needs."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import driftgate
from driftgate.messages.english import ENGLISH
from driftgate.messages.message import Message, message
from driftgate.messages.text import text

SOURCE = Path(driftgate.__file__).parent


def said() -> Iterator[tuple[str, str, frozenset[str] | None]]:
    """(place, code, parameter names or None where they are not written out) of every call of `message`."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "message"):
                continue
            code = node.args[0]
            if isinstance(code, ast.Constant) and isinstance(code.value, str):
                names = [keyword.arg for keyword in node.keywords]
                written = None if None in names else frozenset(str(name) for name in names)
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", code.value, written


def placeholders(code: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in string.Formatter().parse(ENGLISH[code]) if name is not None)


def test_every_code_has_a_sentence() -> None:
    assert [(place, code) for place, code, _ in said() if code not in ENGLISH] == []


def test_every_sentence_gets_its_parameters() -> None:
    short = [
        (place, code, sorted(placeholders(code) - names))
        for place, code, names in said()
        if code in ENGLISH and names is not None and placeholders(code) - names
    ]
    assert short == []


def test_placeholders_are_plain_names() -> None:
    parts = [part for sentence in ENGLISH.values() for part in string.Formatter().parse(sentence)]
    assert [name for _, name, spec, conversion in parts if name is not None and (spec or conversion)] == []


def test_parameters_are_quoted_and_the_sentence_is_not() -> None:
    told = message("merge-conflict", fact="Run", key="*x*")
    assert "disagree about <Run> <*x*>" in text(told, quote=lambda value: f"<{value}>")


def test_an_unknown_code_of_a_newer_document_is_shown_as_it_is() -> None:
    assert text(Message("from-the-future", (("n", 3),))) == "from-the-future n=3"


@pytest.mark.parametrize(("value", "shown"), [(0.000123456789, "0.000123457"), (3, "3"), (10**9, "1000000000")])
def test_numbers_read_well(value: float, shown: str) -> None:
    assert shown in text(Message("x", (("n", value),)))


def test_long_lists_say_how_long_they_are() -> None:
    assert "… (40)" in text(message("x", names=tuple(str(n) for n in range(40))))
