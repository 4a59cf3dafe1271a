"""Names and units of evidence stand in facts in English: the catalogue has every one that any rule writes down."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import driftgate
import driftgate.messages.terms as terms
from driftgate.messages.message import message
from driftgate.messages.text import in_language, text

PACKAGE = Path(driftgate.__file__).parent
RULES = (*sorted((PACKAGE / "diagnosis").rglob("*.py")), *sorted((PACKAGE / "judgement").glob("*.py")))
RULES = (*RULES, PACKAGE / "boardcheck.py", PACKAGE / "misplaced.py")
#: Triples of other things: codes, modes, and a name that is made of two of the user's.
OTHERS = {"{} {}", "sigmoid", "sigmoid on both", "softmax", "softmax on both"}


def written(node: ast.expr) -> str | None:
    """A literal text, `{}` for each part of it that is computed; None for another expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def rows(module: Path) -> Iterator[tuple[str | None, str | None]]:
    """Name and unit of every row of evidence, as far as they are written out."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Tuple) and len(node.elts) == 3:
            name, value, unit = map(written, node.elts)
            if value is None and (name is not None or unit is not None):
                yield name, unit


@pytest.mark.parametrize("module", RULES, ids=[str(module.relative_to(PACKAGE)) for module in RULES])
def test_every_name_and_unit_that_a_rule_writes_is_in_the_catalogue(module: Path) -> None:
    unknown = []
    for name, unit in rows(module):
        if name is not None and name not in OTHERS and terms.name(name.replace("{}", "x1")).code == terms.OTHER:
            unknown.append(name)
        told = None if unit is None else terms.unit(unit.replace("{}", "7"))
        if told is not None and told.code == terms.OTHER and name not in OTHERS:
            unknown.append(str(unit))
    assert unknown == []


def test_a_rule_is_looked_through_at_all() -> None:
    found = [name for module in RULES for name, _ in rows(module) if name is not None]
    assert len(found) > 150
    assert "largest difference" in found


def test_names_keep_what_they_are_about() -> None:
    said = terms.name("clipped share of /relu1/Relu_output_0")
    assert text(said) == "clipped share of /relu1/Relu_output_0"
    with in_language("zh"):
        assert text(said) == "/relu1/Relu_output_0 的截断比例"
        assert text(terms.name("before")) == "试验前"
        assert text(terms.unit("of the range") or message("")) == "（占值域）"


def test_of_two_names_that_fit_the_one_with_more_words_is_meant() -> None:
    assert terms.name("step of x in the graph").code == "term-step-of-a-in-the-graph"
    assert terms.name("bits of x").code == "term-bits-of-a"


def test_what_the_catalogue_lacks_is_said_as_it_is() -> None:
    with in_language("zh"):
        assert text(terms.name("a name of a later version")) == "a name of a later version"
    assert terms.unit("") is None
