"""The comment on a pull request: one glance says it, nothing is cut apart, a user's template changes what it wants."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
from lxml.html import HtmlElement

from driftgate.domain.judgement import Outcome
from driftgate.domain.results import Results, Tool
from driftgate.errors import ConfigError
from driftgate.messages.message import message
from driftgate.reporting.budget import characters, fitting, utf8_bytes
from driftgate.reporting.comment import LIMIT, CommentLinks, comment
from driftgate.reporting.markdown import LIMIT_BYTES, summary
from driftgate.reporting.view.bars import Bars
from driftgate.reporting.view.comment import Comment
from support.golden import golden
from support.hostile import CORPUS
from support.measured import investigated, measured
from support.rendered import LIVE, names, rendered, text_outside_code
from support.results import (
    crashed,
    error,
    error_pair,
    failing,
    failing_pair,
    healthy,
    healthy_pair,
    hostile,
    hostile_pair,
    results,
    segment_two,
    several,
    verdict,
)

LINKS = CommentLinks(
    run_url="https://github.com/acme/models/actions/runs/9",
    archive_url="https://github.com/acme/models/actions/runs/9/artifacts/77",
    archive_digest="sha256:" + "ab" * 32,
    head_sha="a1b2c3d4e5f60718293a4b5c6d7e8f9001122334",
    run_number=42,
    attempt=2,
)
NONE = CommentLinks()
ERRORS = [0.0] * 120 + [0.5625] * 6 + [0.1] * 234


def measured_failing() -> Results:
    """One subject that fails on the board, with the errors of its samples."""
    facts, judged = failing_pair()
    return results((measured(facts, ERRORS), judged))


def many(passing: int, failing: int, errors: int) -> Results:
    """A run of many subjects."""
    return results(
        *(healthy_pair(f"good{n:03}") for n in range(passing)),
        *(failing_pair(f"bad{n:03}") for n in range(failing)),
        *(error_pair(f"absent{n:03}") for n in range(errors)),
    )


MANY = many(40, 6, 3)
MORE = many(3, 60, 20)
ALL: dict[str, Callable[[], Results]] = {
    "healthy": healthy,
    "failing": measured_failing,
    "error": error,
    "crashed": crashed,
    "segment two": segment_two,
    "several": several,
    "hostile": hostile,
    "nothing": lambda: Results(Tool("driftgate", "0.1.0"), (), None),
}
WHOLE = {*("h3", "h4", "p", "strong", "code", "pre", "sub", "ul", "li", "details", "summary", "a", "br", "blockquote")}
WHOLE |= {"table", "thead", "tbody", "tr", "th", "td"}


def made(of: Results, limit: int = LIMIT, links: CommentLinks = LINKS) -> str:
    return comment(of, links=links, limit=limit)


def shape(page: str) -> HtmlElement:
    """The page as a tree whose folds, fences and tables are whole."""
    tree = rendered(page)
    assert names(tree) <= WHOLE
    starts = [line for line in page.splitlines() if line.startswith("<details")]
    assert len(starts) == page.splitlines().count("</details>")
    assert tree[-1].tag == "p" and "driftgate" in str(tree[-1].text_content())
    for table in tree.iter("table"):
        assert len({len(list(row)) for row in table.iter("tr")}) == 1
    return tree


def cells(page: str, table: int = 0) -> list[list[str]]:
    found = list(rendered(page).iter("table"))[table]
    return [[str(cell.text_content()).strip() for cell in row] for row in found.iter("tr")]


def glance(page: str) -> list[str]:
    """What is seen before anything is unfolded."""
    return [line for line in page.partition("<details>")[0].splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("healthy", made(healthy())),
        ("failing", made(measured_failing())),
        ("several", made(several())),
        ("shortened", made(MANY, 12_000)),
        ("counts", made(MANY, 700)),
    ],
)
def test_the_comment_is_the_golden_one(name: str, text: str) -> None:
    assert text == golden(f"comment-{name}.md", text)


def test_the_first_lines_say_what_and_of_which_commit() -> None:
    lines = glance(made(failing()))
    assert lines[0] == "### ❌ `digits` · J6M · FAIL at BC ↔ HBM"
    assert lines[1] == "Commit `a1b2c3d` · run 42, attempt 2"
    assert [row[1] for row in cells(made(failing()))][1:] == [*["✅\xa0PASS"] * 4, "❌\xa0FAIL", "-"]


def test_the_first_failure_comes_with_its_numbers_its_samples_and_what_to_do() -> None:
    told = "\n".join(glance(made(measured_failing())))
    assert "**max abs error 0.5625**, limit ≤&nbsp;1e-05, worst at sample `0137`, channel 3." in told
    assert "| 0.98213 |" in told
    assert f"\n`{'▁' * 20}█{'▂' * 39}`\n" in told
    assert "**Next:** not investigated" in told
    assert "Score `top1`: `██████▁` **356/360 from pytorch to quantized, 352/360 at hbm**" in told


@pytest.mark.parametrize("name", ALL)
def test_one_glance_is_no_longer_than_a_screen(name: str) -> None:
    assert len(glance(made(ALL[name]()))) <= 25


def test_twenty_broken_outputs_still_fit_a_glance_and_stand_in_the_details() -> None:
    facts, judged = failing_pair()
    checks = list(judged.checks)
    broken = tuple(
        replace(verdict("quantized..hbm", "decimals", 1.0, 1e-5, failed=True), output=f"out{n}") for n in range(20)
    )
    checks[4] = replace(checks[4], verdicts=broken, notes=(message("bit-equal"),) * 9)
    page = made(results((facts, replace(judged, checks=tuple(checks)))))
    assert len(glance(page)) <= 28
    assert "15 more outputs are broken on this link" in page
    assert all(f"`out{n}`" in page.partition("<details>")[2] for n in range(12))


def test_an_investigation_names_the_first_node_and_folds_the_others() -> None:
    nodes = tuple(f"/block{n}/conv/Conv" for n in range(30))
    of = results(investigated(*failing_pair(), nodes))
    page = made(of)
    seen, _, folded = page.partition("<details>")
    assert "`Conv` `/block0/conv/Conv`" in seen and "/block1/" not in seen
    assert "/block19/" in folded and "/block20/" not in folded
    assert "/block1/" not in made(of, 4_000) and "/block0/" in made(of, 4_000)
    shape(page)


def test_the_links_say_where_the_rest_is_and_what_it_must_be() -> None:
    (*_, last) = shape(made(failing()))
    assert [link.get("href") for link in last.iter("a")] == [LINKS.run_url, LINKS.archive_url]
    assert [str(code.text_content()) for code in last.iter("code")] == [LINKS.archive_digest]


def test_without_a_run_there_are_no_links() -> None:
    page = made(failing(), links=NONE)
    assert "a" not in names(shape(page))
    assert "Commit" not in page and "run" not in page.splitlines()[1]


@pytest.mark.parametrize(
    ("links", "said"),
    [
        (CommentLinks(head_sha="b" * 40), "Commit `bbbbbbb`"),
        (CommentLinks(run_number=7), "run 7"),
        (CommentLinks(run_number=7, attempt=1), "run 7, attempt 1"),
    ],
)
def test_what_is_known_of_the_run_is_said(links: CommentLinks, said: str) -> None:
    assert made(healthy(), links=links).splitlines()[2] == said


def test_several_subjects_stand_in_one_table_the_worst_first_and_folded() -> None:
    page = made(several())
    assert page.splitlines()[0] == "### ❌ FAIL in 1 of 3 subjects"
    assert glance(page)[1].startswith("1 failed, 1 without a result, 1 passed · Commit `a1b2c3d`")
    assert [row[0] for row in cells(page)] == ["Subject", "yolov8n", "lanes", "digits"]
    outer = [fold for fold in shape(page).iter("details") if fold.getparent().tag == "body"]
    assert [fold.get("open") for fold in outer] == [None] * 3
    assert len(glance(page)) == 7


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (results(), "⚠️ ERROR: nothing was judged"),
        (Results(Tool("driftgate", "0.1.0"), healthy().facts, None), "⚠️ ERROR: nothing was judged"),
    ],
)
def test_no_subject_is_an_error(of: Results, said: str) -> None:
    page = made(of)
    assert page.splitlines()[0] == f"### {said}"
    assert "✅" not in page and "PASS" not in page
    shape(page)


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.SKIPPED])
def test_what_is_not_established_never_looks_like_a_pass(outcome: Outcome) -> None:
    facts, judged = error_pair()
    for of in (
        results((facts, replace(judged, outcome=outcome))),
        results(healthy_pair("a"), (facts, replace(judged, outcome=outcome))),
    ):
        for limit in (LIMIT, 1500, 700):
            first = made(of, limit).splitlines()[0]
            assert "✅" not in first and "PASS" not in first and "ERROR" in first


@pytest.mark.parametrize("name", ALL)
def test_every_fold_table_and_fence_is_whole(name: str) -> None:
    shape(made(ALL[name]()))


LIMITS = [60_000, 30_000, 20_000, 12_000, 8_000, 5_000, 3_000, 1_500, 1_000, 700]


@pytest.mark.parametrize("of", [MANY, MORE, many(60, 0, 0), failing(), crashed()])
def test_a_comment_is_never_too_long_and_says_what_it_leaves_out(of: Results) -> None:
    whole = made(of, 10**9)
    for limit in LIMITS:
        page = made(of, limit)
        assert characters(page) <= limit
        shape(page)
        assert ("Shortened to fit" in page) == (page != whole)
        assert page.splitlines()[0] == whole.splitlines()[0]


def test_less_room_never_shows_more() -> None:
    lengths = [characters(made(MANY, limit)) for limit in LIMITS]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) >= 5


def test_what_fails_is_the_last_to_go() -> None:
    page = made(MANY, 12_000)
    assert all(f"`bad00{n}`" in page and f"<code>bad00{n}</code>" in page for n in range(6))
    assert "<code>good" not in page
    page = made(MANY, 3_000)
    assert all(f"`bad00{n}`" in page for n in range(6)) and "`absent002`" in page
    assert "`good000`" not in page
    assert "40 passing subjects from the overview" in page
    assert made(MANY, 700).splitlines()[2].startswith("6 failed, 3 without a result, 40 passed")


def test_failures_that_do_not_fit_are_counted() -> None:
    for limit, seen in ((LIMIT, 200), (3_000, 20)):
        page = made(many(0, 230, 0), limit)
        assert len(cells(page)) == 1 + seen
        assert f"{230 - seen} subjects that fail or have no result from the overview" in page


@pytest.mark.parametrize("said", [("job summary", LINKS), ("results.json", NONE)])
def test_what_is_left_out_is_to_be_found(said: tuple[str, CommentLinks]) -> None:
    place, links = said
    (quote,) = shape(made(MANY, 1500, links)).iter("blockquote")
    assert place in str(quote.text_content())


def test_code_points_outside_the_basic_plane_count_twice() -> None:
    assert characters("a🙂") == 3 and utf8_bytes("a🙂") == 5
    page = made(results(hostile_pair("🙂" * 400), *[hostile_pair("🙂" * 400)] * 30), 20_000)
    assert len(page.encode("utf-16-le")) // 2 <= 20_000
    shape(page)


def test_versions_are_made_only_until_one_fits() -> None:
    assert fitting([["aa", "aa"], ["a", "", "a"], ["a"]], len, 3) == "aa"
    assert fitting([["aaaa"]], len, 3) is None
    versions, parts = iter([["aa"], ["a"]]), iter("abcdef")
    assert fitting(versions, len, 2) == "aa" and list(versions) == [["a"]]
    assert fitting([parts], len, 2) is None and list(parts) == ["d", "e", "f"]


def test_the_same_results_give_the_same_comment() -> None:
    assert made(MANY) == made(MANY)


def test_a_limit_that_nothing_fits_is_an_error() -> None:
    with pytest.raises(ConfigError, match="longer than 50 characters"):
        made(healthy(), 50)


def test_a_job_summary_of_thousands_of_subjects_keeps_its_first_line() -> None:
    page = summary(results(*[hostile_pair()] * 700))
    assert utf8_bytes(page) <= LIMIT_BYTES
    assert page.startswith("### ❌ FAIL in 700 of 700 subjects")


# --- a user's own template


def own(folder: Path, text: str, of: Results | None = None, limit: int = LIMIT) -> str:
    file = folder / "mine.md.j2"
    file.write_text(text, encoding="utf-8")
    return comment(of or failing(), links=LINKS, template=file, limit=limit)


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        own(folder, text)
    return str(caught.value)


EXTENDS = '{% extends "comment.md.j2" %}\n'
EVERY_HOSTILE = results(*(hostile_pair(text) for text in CORPUS))
FIELDS = [field.name for kind in (Comment, CommentLinks, Bars) for field in fields(kind)]
BLOCKS = ("headline", "run", "overview", "subject", "table", "failure", "scores", "details", "left_out", "links")


def test_an_empty_extension_changes_nothing(tmp_path: Path) -> None:
    assert own(tmp_path, EXTENDS) == made(failing())


@pytest.mark.parametrize("block", BLOCKS)
def test_every_block_can_be_replaced(tmp_path: Path, block: str) -> None:
    text = EXTENDS + f"{{% block {block} %}}MINE\n{{% endblock %}}"
    page = own(tmp_path, text, MANY if block in ("overview", "left_out") else failing())
    assert "MINE" in page


@pytest.mark.parametrize("block", ["subject", "table", "failure", "scores", "details"])
def test_the_blocks_of_a_subject_know_it(tmp_path: Path, block: str) -> None:
    text = EXTENDS + f"{{% block {block} %}}of {{{{ one.name | code }}}}\n{{{{ super() }}}}{{% endblock %}}"
    page = own(tmp_path, text, several())
    assert [f"of `{name}`" in page for name in ("yolov8n", "lanes", "digits")] == [True] * 3


def test_a_template_of_ones_own_needs_nothing_of_ours(tmp_path: Path) -> None:
    text = "{% for one in comment.pages %}{{ icon(one.cell) }} {{ one.name | code }}{% endfor %} {{ links.head_sha }}"
    assert own(tmp_path, text, several()).startswith("❌ `yolov8n`⚠️ `lanes`✅ `digits`")


@pytest.mark.parametrize(
    "expression",
    [
        "one.name",
        "one.name | code",
        "one.name ~ '!'",
        "(one.name | code) ~ one.name",
        "[one.name | code, one.name] | join(', ')",
        "[one.name, one.target] | join",
        "one.headline ~ one.name",
        "one.name | upper",
        "one.name | replace('a', 'b')",
        "one.failure.lines[0].reason ~ '@octocat'",
        "'%s' | format(one.name)",
    ],
)
def test_what_a_template_prints_is_escaped(tmp_path: Path, expression: str) -> None:
    source = f"{{% for one in comment.pages %}}a {{{{ {expression} }}}} b{{% endfor %}}"
    tree = rendered(own(tmp_path, source, EVERY_HOSTILE, 10**9))
    assert names(tree) <= {"p", "code"}
    assert not LIVE.search(text_outside_code(tree))


@pytest.mark.parametrize(
    "filter_name", ["safe", "e", "escape", "forceescape", "urlize", "xmlattr", "tojson", "striptags", "random"]
)
def test_nothing_can_be_printed_unescaped(tmp_path: Path, filter_name: str) -> None:
    assert f"No filter named '{filter_name}'" in complaint(tmp_path, f"x\n{{{{ comment.tool | {filter_name} }}}}")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a\nb\n{% if %}\n", 3, "Expected an expression"),
        ("a\n{% endfor %}", 2, "Encountered unknown tag"),
        ("{% block x %}\n", 1, "Unexpected end of template"),
        ("a\n\n{{ nothing }}", 3, "'nothing' is undefined"),
        ("a\n{{ comment.nothing }}", 2, "has no attribute 'nothing'"),
        ("a\n{{ 1 / 0 }}", 2, "division by zero"),
        ("a\n{{ 'a' + 1 }}", 2, "str"),
        ("a\n{{ comment.pages[9].name }}", 2, "has no element 9"),
        ("a\n{{ links.head_sha.encode('x') }}", 2, "unknown encoding"),
        ("a\n{{ comment.pages | nofilter }}", 2, "No filter named 'nofilter'"),
        (EXTENDS + "{% block table %}\n{{ one.nothing }}\n{% endblock %}", 3, "has no attribute 'nothing'"),
        (EXTENDS + "\n{{ self.nothing() }}{% block a %}\n\n{{ x }}{% endblock %}", 1, ""),
        ('a\n{% extends "other.md.j2" %}', 2, "other.md.j2"),
        ('a\n{% include "/etc/passwd" %}', 2, "/etc/passwd"),
        ('a\n{% include "../pyproject.toml" %}', 2, "../pyproject.toml"),
        ('{% import "mine.md.j2" as x %}', 1, "mine.md.j2"),
        ("a\n{{ label.__globals__ }}", 2, "unsafe"),
        ("a\n{{ comment.__class__.__mro__ }}", 2, "unsafe"),
        ("a\n{{ comment | attr('__class__') }}", 2, "unsafe"),
        ("a\n{{ comment['__class__'] }}", 2, "unsafe"),
        ("a\n{{ '{0.__class__}'.format(comment) }}", 2, "unsafe"),
        ("a\n{{ lipsum.__globals__['os'] }}", 2, "unsafe"),
        ("a\n{{ [1].append(2) }}", 2, "unsafe"),
        ("a\n{{ range(10 ** 9) }}", 2, "Range too big"),
        ("a\n{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", 2, "recursion"),
    ],
)
def test_a_wrong_template_is_an_error_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    if not said:
        assert own(tmp_path, text) == made(failing())
        return
    told = complaint(tmp_path, text)
    assert f"mine.md.j2, line {line}: " in told
    assert said in told


def test_a_template_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.j2 cannot be read: No such file"):
        comment(failing(), links=NONE, template=tmp_path / "none.j2")


def test_a_template_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "image.j2").write_bytes(b"\x89PNG\xff")
    with pytest.raises(ConfigError, match=r"image\.j2 cannot be read"):
        comment(failing(), links=NONE, template=tmp_path / "image.j2")


def test_a_template_without_bounds(tmp_path: Path) -> None:
    loops = "{% for a in range(90000) %}{% for b in range(90000) %}{{ a }}{{ b }}{% endfor %}{% endfor %}"
    assert "longer than 65000 characters even" in complaint(tmp_path, loops)
    assert "longer than 262144 bytes" in complaint(tmp_path, "x" * 262_145)
    assert "writes nothing" in complaint(tmp_path, "{# x #}\n")
    assert "longer than 65000 characters even" in complaint(tmp_path, "x" * 65_001)


def test_a_templates_page_degrades_as_ours_does(tmp_path: Path) -> None:
    page = own(tmp_path, EXTENDS + "{% block links %}driftgate, ours{% endblock %}", MANY, limit=3_000)
    assert characters(page) <= 3_000
    assert page.endswith("driftgate, ours")
    assert "`good000`" not in page and "`bad000`" in page


# --- docs/comment-template.md

DOCS = (Path(__file__).parents[2] / "docs" / "comment-template.md").read_text("utf-8")


def test_the_example_of_the_documentation_works(tmp_path: Path) -> None:
    example = DOCS.partition("```jinja\n")[2].partition("```\n")[0]
    page = own(tmp_path, example)
    assert "Ask the quantisation team before you merge. Commit `a1b2c3d`" in page
    assert "- `top1`: 356/360 from pytorch to quantized, 352/360 at hbm\n" in page
    shape(page)


@pytest.mark.parametrize("name", [*BLOCKS, *FIELDS])
def test_every_block_and_value_is_documented(name: str) -> None:
    assert re.search(rf"`(?:one\.|comment\.|links\.)?{name}`", DOCS)


def test_no_other_block_is_documented() -> None:
    table = DOCS.partition("## Blocks")[2].partition("## Values")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == list(BLOCKS)
