"""What belongs together across files: version, changelog, package data, catalogue and the code that speaks."""

from __future__ import annotations

import ast
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import driftgate
from driftgate.messages.english import ENGLISH

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "driftgate"


def test_the_command_line_tells_the_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "driftgate", "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert driftgate.__version__ in done.stdout


def test_the_changelog_opens_with_this_version() -> None:
    heading = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert heading is not None
    assert driftgate.__version__ in heading[1]


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert (ROOT / "NOTICE").read_text("utf-8").strip()


def test_the_package_says_that_it_is_typed() -> None:
    assert (SRC / "py.typed").is_file()


def test_every_code_that_is_said_has_a_sentence() -> None:
    said = {code for code, _ in messages()}
    assert said
    assert sorted(said - set(ENGLISH)) == []


def test_every_sentence_gets_the_values_it_names() -> None:
    wrong = [
        f"{code}: the sentence names {sorted(wanted)}, the code gives {sorted(given)}"
        for code, given in messages()
        if (wanted := placeholders(ENGLISH.get(code, ""))) - given
    ]
    assert wrong == []


def test_every_sentence_is_used() -> None:
    """By its code, in Python or in a template, or by a code that is put together from a beginning and a value."""
    constants, beginnings = set[str](), set[str]()
    for file in sources():
        if file != SRC / "messages" / "english.py":
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
                    beginnings.add(str(node.values[0].value))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    constants.add(node.value)
                    beginnings.add(node.value)
    pages = "".join(file.read_text("utf-8") for file in (ROOT / "templates").rglob("*.j2"))
    constants |= set(re.findall(r"""["']([a-z0-9-]+)["']""", pages))
    composed = tuple(beginning for beginning in beginnings if re.fullmatch(r"[a-z]+-(?:[a-z]+-)*", beginning))

    assert [code for code in ENGLISH if code not in constants and not code.startswith(composed)] == []


def test_placeholders_have_no_format() -> None:
    """A format would apply to the quoted text of a value, not to the value."""
    formatted = [
        code
        for code, sentence in ENGLISH.items()
        for _, name, form, conversion in string.Formatter().parse(sentence)
        if name is not None and (form or conversion or not name.isidentifier())
    ]
    assert formatted == []


def sources() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def messages() -> Iterator[tuple[str, set[str]]]:
    """Code and names of values of every `message("code", name=…)` that is written out in full."""
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "message"):
                continue
            if not (node.args and isinstance(node.args[0], ast.Constant)):
                continue
            names = [keyword.arg for keyword in node.keywords]
            if None not in names:
                yield str(node.args[0].value), {name for name in names if name is not None}


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None}
