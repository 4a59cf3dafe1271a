"""Foreign text stays text in every format it goes into."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree
from rich.text import Text

from driftgate.errors import StorageError
from driftgate.escaping import commands, markdown, terminal, xml
from driftgate.escaping.characters import one_line, shortened, visible
from driftgate.messages.message import message
from support.hostile import CORPUS
from support.rendered import LIVE, names, rendered, text_outside_code
from support.runnerreads import commands_in, outputs_in

ANY = st.one_of(st.sampled_from(CORPUS), st.text(), st.text(alphabet="`|\\ \n<>@#[]&\x1b:%,a1"))


def foreign(test: Callable[[str], None]) -> Callable[[], None]:
    """Run a test on the whole corpus and on whatever Hypothesis finds."""
    for text in CORPUS:
        test = example(text)(test)
    made: Callable[[], None] = given(ANY)(test)
    return made


#: Characters that a reader does not see or that turn what stands beside them.
HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f\ufeff]")


def hidden_in(text: str) -> bool:
    """Whether a control, surrogate or bidirectional character is left."""
    return any(unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n" for c in text) or bool(HIDDEN.search(text))


def code_text(page: str) -> str:
    """The text of the page's only code element."""
    (code,) = rendered(page).iter("code")
    return str(code.text_content())


@foreign
def test_nothing_hidden_is_left(text: str) -> None:
    assert not hidden_in(visible(text).replace("\r", ""))
    assert "\n" not in one_line(text)
    one_line(text).encode("utf-8")


def test_hidden_characters_are_shown_by_their_code() -> None:
    assert one_line("a\x1b[31mred\x1b[0m\x00\u202eb\r\nc") == "ared#x00#x202Eb⏎c"


@given(ANY, st.integers(8, 40))
def test_a_long_name_keeps_its_two_ends(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(short) <= limit
    assert short == text if len(text) <= limit else (short[:3], short[-2:]) == (text[:3], text[-2:])


@foreign
def test_a_code_span_shows_the_text_and_nothing_else(text: str) -> None:
    page = f"before {markdown.code(text)} after"
    assert names(rendered(page)) == {"p", "code"}
    assert code_text(page) == (markdown.shown(text) or " ")


@given(ANY, ANY)
def test_a_table_keeps_its_cells(left: str, right: str) -> None:
    page = rendered(f"| a | b |\n|:--|:--|\n| {markdown.cell(left)} | {markdown.cell(right)} |\n")
    assert names(page) == {"table", "thead", "tbody", "tr", "th", "td", "code"}
    cells = [str(cell.text_content()) for cell in page.iter("td")]
    assert cells == [markdown.shown(text) or " " for text in (left, right)]


@foreign
def test_a_fenced_block_is_closed_by_its_own_fence_only(text: str) -> None:
    page = rendered(f"{markdown.fenced(text)}\n\nafter\n")
    assert names(page) == {"pre", "code", "p"}
    assert [str(p.text_content()) for p in page.iter("p")] == ["after"]


def test_a_long_block_is_cut_at_a_line() -> None:
    block = markdown.fenced("one\ntwo\nthree", limit=9)
    assert block == "```text\none\ntwo\n…\n```"


@foreign
def test_plain_text_is_no_markup_and_reaches_nobody(text: str) -> None:
    page = rendered(f"before {markdown.plain(text)} after\n")
    assert names(page) == {"p"}
    assert not LIVE.search(text_outside_code(page))


@foreign
def test_plain_text_stays_in_its_cell(text: str) -> None:
    page = rendered(f"| a | b |\n|:--|:--|\n| x {markdown.plain(text)} | y |\n")
    assert names(page) == {"table", "thead", "tbody", "tr", "th", "td"}
    assert [str(cell.text_content()) for cell in page.iter("td")][1:] == ["y"]


def test_plain_text_reads_as_written() -> None:
    page = rendered(markdown.plain("BC ↔ HBM <b> a|b *c* _d_ [e](f) & `g`"))
    assert str(page.text_content()).strip() == "BC ↔ HBM <b> a|b *c* _d_ [e](f) & `g`"


@given(ANY, ANY)
def test_a_sentence_shows_its_parameters_as_code(name: str, value: str) -> None:
    said = message("merge-conflict", fact=name, key=value)
    page = rendered(f"- {markdown.prose(said)}\n")
    assert names(page) == {"ul", "li", "code"}
    shown = [str(code.text_content()) for code in page.iter("code")]
    assert shown == [markdown.shown(text) or " " for text in (name, value)]


@given(ANY, ANY)
def test_a_sentence_of_another_version_is_harmless(code: str, name: str) -> None:
    page = rendered(f"- {markdown.prose(message(code, **{name: code}))}\n")
    assert names(page) <= {"ul", "li", "code"}
    assert not LIVE.search(text_outside_code(page))


@foreign
def test_a_folded_part_shows_a_name(text: str) -> None:
    page = rendered(f"<details><summary>{markdown.html(text)}</summary>\n\nbody\n\n</details>\n")
    assert names(page) == {"details", "summary", "p"}
    assert not LIVE.search(text_outside_code(page))


def test_templates_print_plain_strings_escaped() -> None:
    assert markdown.finished("<b>") == "&lt;b&gt;"
    assert markdown.finished(markdown.code("<b>")) == "`<b>`"
    assert markdown.finished(message("merge-plans", digests=("a|b",))).startswith("the shards belong")
    assert "`a\\|b`" in markdown.finished(message("merge-plans", digests=("a|b",)))


@foreign
def test_xml_takes_every_text(text: str) -> None:
    element = etree.Element("a", {"b": xml.line(text)})
    element.text = xml.clean(text)
    read = etree.fromstring(etree.tostring(element))
    assert read.get("b") == xml.line(text)
    assert (read.text or "") == xml.clean(text)
    assert not hidden_in(xml.clean(text))
    assert "[[attachment" not in xml.clean(text).lower()


def test_forbidden_characters_are_visible_in_xml() -> None:
    assert xml.clean("\x1b[1mbold\x1b[0m\x1b \x00\ufffe\ud800\n") == "bold#x1B #x00#xFFFE#xD800\n"


@foreign
def test_a_terminal_gets_one_inert_line(text: str) -> None:
    assert not hidden_in(terminal.inert(text).replace("\t", ""))
    assert not hidden_in(terminal.block(text))
    assert "\n" not in terminal.inert(text)
    assert len(terminal.inert(text, 20)) <= 20


@foreign
def test_rich_finds_no_markup(text: str) -> None:
    shown = Text.from_markup(f"{terminal.markup(text)}[bold]ours[/bold]", emoji=False)
    assert [span.style for span in shown.spans] == ["bold"]
    if "\\" not in text:
        assert shown.plain == f"{terminal.inert(text)}ours"


@foreign
def test_a_command_is_one_line_that_the_runner_reads_back(text: str) -> None:
    line = commands.error(text, title=text, line=3)
    assert "\n" not in line and "\r" not in line
    match = re.fullmatch(r"::error line=3,title=([^:,]*)::(.*)", line)
    assert match is not None
    title, said = (
        part.replace("%3A", ":").replace("%2C", ",").replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
        for part in match.groups()
    )
    assert title == one_line(text)
    assert said == visible(text)


def test_every_level_has_its_command() -> None:
    assert commands.warning("a", title="b", file="c.yaml", line=2) == "::warning file=c.yaml,line=2,title=b::a"
    assert commands.notice("a") == "::notice::a"


@foreign
def test_a_log_line_is_no_command(text: str) -> None:
    for line in (terminal.inert(text), f"  {terminal.inert(text, 40)}", terminal.block(text)):
        assert commands_in(line) == []


def test_a_comment_in_code_is_no_comment_in_the_source() -> None:
    assert markdown.code("<!-- driftgate -->") == "`< !-- driftgate -->`"
    assert "<!--" not in markdown.fenced("a\n<!-- driftgate -->")


def test_a_commit_in_prose_is_kept_apart() -> None:
    assert markdown.plain("deadbee 1234567 0.0001") == "deadbe&#8203;e 1234567 0.0001"


def test_a_command_without_properties() -> None:
    assert commands.error("100%: a\nb") == "::error::100%25: a%0Ab"


def test_foreign_output_stands_between_stop_and_resume() -> None:
    assert commands.stop("t0k3n") == "::stop-commands::t0k3n"
    assert commands.resume("t0k3n") == "::t0k3n::"


@given(ANY, ANY)
def test_an_output_cannot_become_two(first: str, second: str) -> None:
    file = commands.output("first", first) + commands.output("second-1", second)
    written = [value.encode("utf-8", "backslashreplace").decode("utf-8") for value in (first, second)]
    assert outputs_in(file) == {"first": written[0], "second-1": written[1]}


def test_delimiters_are_never_the_same() -> None:
    assert commands.output("a", "b") != commands.output("a", "b")


def test_a_value_that_knows_the_delimiter_is_refused() -> None:
    with pytest.raises(StorageError, match="outcome contains the random delimiter"):
        commands.output("outcome", "x\nEOF\nreport<<EOF", delimiter="EOF")


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a\nb", "a\n", "a<<b", "1a"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(StorageError, match="is no name of an output"):
        commands.output(name, "value")
