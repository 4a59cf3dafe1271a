"""The job summary: one glance, then the first failure, then everything folded; nothing foreign becomes markup."""

from __future__ import annotations

from dataclasses import replace

import pytest
from jinja2 import TemplateNotFound, UndefinedError
from jinja2.exceptions import SecurityError

from driftgate.domain.results import Results, Tool
from driftgate.escaping import markdown
from driftgate.reporting.markdown import LIMIT_BYTES, summary
from driftgate.reporting.templates import environment, folder
from support.golden import golden
from support.rendered import LIVE, names, rendered, text_outside_code
from support.results import (
    HOSTILE,
    crashed,
    error,
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

ALL = {
    "healthy": healthy,
    "failing": failing,
    "error": error,
    "segment two": segment_two,
    "crashed": crashed,
    "hostile": hostile,
    "several": several,
}
OURS = {
    *("h3", "h4", "p", "strong", "code", "pre", "sub", "ul", "li", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def cells(page: str, table: int = 0) -> list[list[str]]:
    """The text of one table, row by row."""
    found = list(rendered(page).iter("table"))[table]
    return [[str(cell.text_content()).strip() for cell in row] for row in found.iter("tr")]


def folds(page: str, tag: str) -> int:
    """How many lines start with a tag; elsewhere it is a foreign text."""
    return sum(line.startswith(tag) for line in page.splitlines())


@pytest.mark.parametrize("name", ["healthy", "failing"])
def test_the_page_is_the_golden_one(name: str) -> None:
    made = summary(ALL[name]())
    assert made == golden(f"summary-{name}.md", made)


def test_the_first_lines_say_it() -> None:
    page = summary(failing())
    assert page.startswith("### ❌ `digits` · J6M · FAIL at BC ↔ HBM\n")
    assert [row[1] for row in cells(page)] == [
        "Result",
        *["✅\xa0PASS"] * 4,
        "❌\xa0FAIL",
        "-",
    ]
    assert cells(page)[5] == [
        "BC ↔ HBM",
        "❌\xa0FAIL",
        "max abs error 0.5625",
        "≤\xa01e-05",
        "logits, sample 0137, channel 3",
        "",
    ]


def test_the_score_stands_under_the_table() -> None:
    assert "356/360 at every stage (7)" in summary(healthy())
    assert "356/360 from pytorch to quantized, 352/360 at hbm" in summary(failing())


def test_the_first_failure_is_told_before_anything_is_folded() -> None:
    page = summary(failing())
    told = page[page.index("First failure: BC ↔ HBM") : page.index("<details>")]
    assert "**max abs error 0.5625**, limit ≤&nbsp;1e-05, worst at sample `0137`, channel 3." in told
    assert "not investigated" in told
    assert "| 0.98213 |" in told


def test_what_stands_behind_the_first_failure_is_folded_with_its_numbers() -> None:
    page = summary(failing())
    behind = page[page.index("Behind the first failure: measured, not blamed") :]
    assert "score drop 1.124 %" in behind[: behind.index("</details>")]


def test_a_healthy_page_has_no_failure() -> None:
    page = summary(healthy())
    assert "First failure" not in page and "Behind" not in page and "not investigated" not in page


def test_environments_runs_and_the_whole_plan_are_there() -> None:
    made = failing()
    page = summary(made)
    assert made.facts[0].plan.digest in page
    assert "onnxruntime 1.20.1" in page
    assert "x86\\_64" in page


def test_a_crash_is_told_with_its_whole_text() -> None:
    page = summary(crashed())
    (block,) = list(rendered(page).iter("pre"))
    assert str(block.text_content()) == (
        'Traceback (most recent call last):\n  File "net.py", line 3\n```\nRuntimeError: out of memory\n'
    )


def test_several_subjects_stand_in_one_table_and_only_the_broken_are_open() -> None:
    page = summary(several())
    assert [row[:3] for row in cells(page)[1:]] == [
        ["digits", "J6M", "✅ PASS 6 of 6"],
        ["yolov8n", "J6M", "❌ FAIL at BC ↔ HBM"],
        ["lanes", "J6M", "⚠️ ERROR at BC ↔ HBM, J6 Regression"],
    ]
    outer = [fold for fold in rendered(page).iter("details") if fold.getparent().tag == "body"]
    assert [fold.get("open") is not None for fold in outer] == [False, True, True]


@pytest.mark.parametrize("name", ALL)
def test_every_fold_table_and_list_is_closed(name: str) -> None:
    page = summary(ALL[name]())
    assert folds(page, "<details") == folds(page, "</details>")
    tree = rendered(page)
    assert names(tree) <= OURS
    assert tree[-1].tag == "p" and str(tree[-1].text_content()) == "driftgate 0.1.0"
    for table in tree.iter("table"):
        widths = {len(list(row)) for row in table.iter("tr")}
        assert len(widths) == 1
        assert table.getnext() is None or table.getnext().tag != "table"


@pytest.mark.parametrize("made", [hostile(), results(healthy_pair(), hostile_pair())])
def test_hostile_names_stay_text(made: Results) -> None:
    page = summary(made)
    tree = rendered(page)
    assert names(tree) <= OURS
    assert not LIVE.search(text_outside_code(tree))
    assert {attribute for element in tree.iter() for attribute in element.attrib} <= {"align", "open", "lang"}
    assert "\x1b" not in page and "\u202e" not in page and "\x00" not in page
    page.encode("utf-8")


def test_hostile_names_do_not_change_the_shape_of_the_table() -> None:
    assert [len(row) for row in cells(summary(hostile()))] == [6] * 7
    assert [row[1] for row in cells(summary(hostile()))] == [row[1] for row in cells(summary(failing()))]


def test_no_judgement_is_an_error_page() -> None:
    page = summary(Results(Tool("driftgate", "0.1.0"), healthy().facts, None))
    assert page.startswith("### ⚠️ ERROR: nothing was judged")


def test_a_page_of_many_outputs_is_shortened_and_says_so() -> None:
    facts, judged = failing_pair()
    checks = list(judged.checks)
    many = tuple(
        replace(verdict("quantized..hbm", "decimals", 1.0, 1e-5, failed=True), output=f"output_{n}")
        for n in range(3000)
    )
    checks[4] = replace(checks[4], verdicts=many)
    page = summary(results((facts, replace(judged, checks=tuple(checks)))))
    assert len(page.encode()) < LIMIT_BYTES
    assert "Shortened: 2" in page
    assert len(cells(page)) == 7


def test_a_run_of_very_many_subjects_still_fits_and_keeps_its_overview() -> None:
    page = summary(results(*[hostile_pair()] * 60))
    assert len(page.encode()) <= LIMIT_BYTES
    assert len(cells(page)) == 61
    assert folds(page, "<details") == folds(page, "</details>")


def test_the_templates_of_the_source_tree_are_found() -> None:
    assert folder().joinpath("summary.md.j2").is_file()


def test_a_template_prints_nothing_unescaped() -> None:
    env = environment(finished=markdown.finished, filters={"code": markdown.code}, names={})
    source = "{% macro m(x) %}{{ x }} {{ x | code }}{% endmacro %}{{ m(name) }} {{ name ~ '!' }}"
    made = env.from_string(source).render(name="<b>`|")
    assert made == "&lt;b&gt;\\`\\| ``<b>`|`` &lt;b&gt;\\`\\|!"


def test_a_template_with_an_unknown_name_fails() -> None:
    env = environment(finished=markdown.finished, filters={}, names={})
    with pytest.raises(UndefinedError):
        env.from_string("{{ nothing }}").render()


def test_a_template_cannot_reach_python() -> None:
    env = environment(finished=markdown.finished, filters={}, names={})
    with pytest.raises(SecurityError):
        env.from_string("{{ ''.__class__.__mro__ }}").render()


@pytest.mark.parametrize("name", ["absent.j2", "../pyproject.toml"])
def test_only_templates_are_loaded(name: str) -> None:
    env = environment(finished=markdown.finished, filters={}, names={})
    with pytest.raises(TemplateNotFound):
        env.get_template(name)


def test_the_hostile_text_is_hostile() -> None:
    assert len(rendered(f"{HOSTILE.encode('utf-8', 'replace').decode()}\n").xpath("//img")) == 1
