"""Every hostile text as every name, reason and log line, through every format: shown, and never obeyed."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from functools import cache

import pytest
from lxml import etree
from lxml.html import HtmlElement, document_fromstring
from rich.console import Console

from driftgate.domain.judgement import Outcome
from driftgate.domain.results import Results, Tool
from driftgate.escaping import commands, html, markdown
from driftgate.escaping.characters import lines, one_line, visible
from driftgate.escaping.urls import web_address
from driftgate.messages.message import message
from driftgate.reporting.annotations import annotate, encoded
from driftgate.reporting.comment import CommentLinks, comment
from driftgate.reporting.junit import junit
from driftgate.reporting.markdown import summary
from driftgate.reporting.terminal import show
from support.hostile import CORPUS, GROUPS, name
from support.measured import investigated
from support.rendered import LIVE, names, rendered, text_outside_code
from support.results import error_pair, hostile_pair, results
from support.runnerreads import commands_in, outputs_in

RUN = "https://github.com/acme/models/actions/runs/9"
OURS = {
    *("h3", "h4", "p", "strong", "code", "pre", "sub", "ul", "li", "details", "summary", "a", "br"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
#: A commit to GitHub, wherever it stands outside code.
COMMIT = re.compile(r"(?<!\w)(?=[0-9]*[a-f])[0-9a-f]{7,40}(?!\w)")

each = pytest.mark.parametrize("text", CORPUS, ids=name)


@cache
def broken(text: str) -> Results:
    """A failing subject made of `text`, and an innocent one that died with `text` in its log."""
    facts, judged = error_pair("innocent")
    log = f"Traceback\n{text}\n{text}"
    said = message("from-a-newer-version", stage=text, tail=log)
    checks = tuple(
        replace(check, verdicts=tuple(replace(verdict, reason=said) for verdict in check.verdicts), notes=(said,))
        if check.outcome is Outcome.ERROR
        else check
        for check in judged.checks
    )
    pairs = (investigated(*hostile_pair(text), (text, text)), (facts, replace(judged, checks=checks)))
    return replace(results(*pairs), tool=Tool(text, text))


#: Controls, surrogates and whatever else changes what is seen without being seen.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U0001fffe\U0001ffff\U000e0000-\U000e007f]"
)
#: The elements of a JUnit file, whatever the names are.
ELEMENTS = tuple(element.tag for element in etree.fromstring(junit(broken("x"))).iter())


def hidden(text: str) -> bool:
    """Whether a character is left that a reader cannot see."""
    return HIDDEN.search(text) is not None


def inert(page: str) -> HtmlElement:
    """The page as a tree, once nothing in it is alive."""
    page.encode("utf-8")
    assert not hidden(page)
    assert "<!--" not in page
    tree = rendered(page)
    assert names(tree) <= OURS
    prose = text_outside_code(tree)
    assert not LIVE.search(prose)
    assert not COMMIT.search(prose)
    assert [link.get("href") for link in tree.iter("a")] == [RUN] * sum(1 for _ in tree.iter("a"))
    assert {key for element in tree.iter() for key in element.attrib} <= {"align", "open", "lang", "href"}
    for table in tree.iter("table"):
        assert len({len(list(row)) for row in table.iter("tr")}) == 1
    return tree


def test_the_corpus_is_large_and_every_group_counts() -> None:
    assert len(CORPUS) >= 100
    assert all(GROUPS.values())


@each
def test_a_summary(text: str) -> None:
    tree = inert(summary(broken(text)))
    assert [len(list(table.iter("tr"))) for table in tree.iter("table")][:2] == [3, 7]


@each
def test_a_comment(text: str) -> None:
    made = comment(broken(text), links=CommentLinks(RUN, RUN, text, text, 1, 1), limit=10**9)
    tree = inert(made)
    assert [len(list(table.iter("tr"))) for table in tree.iter("table")][:2] == [3, 7]
    folds = [fold for fold in tree.iter("details") if fold.getparent().tag == "body"]
    assert len(folds) == 2
    assert RUN in [link.get("href") for link in tree.iter("a")]
    assert made.splitlines()[0] == "### ❌ FAIL in 1 of 2 subjects"


@each
def test_a_junit_file(text: str) -> None:
    made = broken(text)
    tree = etree.fromstring(junit(made))
    whole = "".join([*map(str, tree.itertext()), *(str(v) for e in tree.iter() for v in e.attrib.values())])
    assert not hidden(whole)
    assert "[[attachment" not in whole.lower()
    assert tuple(element.tag for element in tree.iter()) == ELEMENTS


def shown(made: Results, *, is_terminal: bool) -> str:
    """What is printed."""
    file = io.StringIO()
    show(made, Console(file=file, width=200, force_terminal=is_terminal, color_system=None))
    return file.getvalue()


@each
def test_a_log(text: str) -> None:
    log = shown(broken(text), is_terminal=False)
    assert not hidden(log)
    assert commands_in(log) == []
    assert len(re.findall(r"\bPASS\b", log)) >= 8


@pytest.mark.parametrize("text", [*GROUPS["hidden"], *GROUPS["markup"], *GROUPS["links"]], ids=name)
def test_a_terminal(text: str) -> None:
    assert not hidden(shown(broken(text), is_terminal=True))


@each
def test_a_document_that_is_printed(text: str) -> None:
    document = json.dumps({text: [text]}, ensure_ascii=False, indent=1)
    shown = commands.disarmed_json(document)
    assert commands_in(shown) == []
    assert json.loads(shown) == {text: [text]}


@each
def test_annotations(text: str) -> None:
    made = json.loads(encoded(annotate(broken(text), file=text, line=lambda place: 7)))
    assert made
    for one in made:
        line = commands.annotation(one["level"], one["message"], title=one["title"], file=one["file"], line=one["line"])
        (read,) = commands_in(line)
        assert read.name == one["level"]
        assert read.data == visible(one["message"])
        wanted = {"file": one_line(text), "line": "7", "title": one_line(one["title"])}
        assert dict(read.properties) == {key: value for key, value in wanted.items() if value}


@each
def test_a_command_of_an_unknown_level(text: str) -> None:
    (read,) = commands_in(commands.annotation(text, text))
    assert (read.name, read.properties) == ("error", ())


@each
def test_outputs_of_a_step(text: str) -> None:
    file = commands.output("first", text) + commands.output("second", text)
    file.encode("utf-8")
    written = text.encode("utf-8", "backslashreplace").decode("utf-8")
    assert outputs_in(file) == {"first": written, "second": written}


@each
def test_an_html_page(text: str) -> None:
    page = (
        f'<html><body><p title="{html.text(text)}">{html.text(text)}</p>'
        f'<pre>{html.block(text)}</pre><a href="{html.href(text)}">x</a></body></html>'
    )
    page.encode("utf-8")
    assert not hidden(page)
    (body,) = document_fromstring(page).iter("body")
    assert [element.tag for element in body] == ["p", "pre", "a"]
    paragraph, block, link = body
    assert paragraph.get("title") == "".join(map(str, paragraph.itertext())) == one_line(text)
    assert "".join(map(str, block.itertext())).lstrip("\n") == lines(text).lstrip("\n")
    assert link.get("href") == "#" or str(link.get("href")).startswith(("http://", "https://"))


@each
def test_a_link_in_markdown(text: str) -> None:
    made = f"a {markdown.link(text, RUN)} {markdown.link('x', text)} b\n"
    tree = rendered(made)
    assert names(tree) <= {"p", "a"}
    addresses = [web_address(text)] if web_address(text) is not None else []
    assert [link.get("href") for link in tree.iter("a")] == [RUN, *addresses]
    assert not hidden(made)


@pytest.mark.parametrize("text", ["a\n::error::x", "  ::notice::x", "a ##[error]x", "\u3000::error::x"])
def test_the_reader_of_these_tests_sees_commands(text: str) -> None:
    assert len(commands_in(text)) == 1
    assert commands_in(commands.disarmed(text)) == []
