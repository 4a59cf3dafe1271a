"""JUnit XML that strict readers take: counts that are right, every case with a name of its own, a message for
whatever is not passed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from lxml import etree

from driftgate.domain.judgement import CheckResult, Outcome
from driftgate.domain.results import Results, Tool
from driftgate.messages.message import message
from driftgate.reporting.junit import junit
from support.golden import golden
from support.results import (
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

ALL: dict[str, Callable[[], Results]] = {
    "healthy": healthy,
    "failing": failing,
    "error": error,
    "segment two": segment_two,
    "crashed": crashed,
    "hostile": hostile,
    "several": several,
    "same subject twice": lambda: results(healthy_pair(), hostile_pair()),
    "no judgement": lambda: Results(Tool("driftgate", "0.1.0"), healthy().facts, None),
}
#: Attributes and children that Jenkins' junit-10.xsd allows.
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"name", "classname", "time"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
    "properties": set[str](),
    "property": {"name", "value"},
    "system-out": set[str](),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "testcase": {"failure", "error", "skipped", "system-out"},
    "properties": {"property"},
}
TIME = re.compile(r"\d+\.\d{3}")


def read(made: Results) -> etree._Element:
    """The document as a reader gets it."""
    return etree.fromstring(junit(made))


def cases(made: Results, suite: str) -> list[etree._Element]:
    """The cases of one suite."""
    return read(made).xpath("testsuite[@name=$name]/testcase", name=suite)  # type: ignore[return-value]


@pytest.mark.parametrize("name", ALL)
def test_only_what_the_schema_allows(name: str) -> None:
    for element in read(ALL[name]()).iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
        if "time" in element.attrib:
            assert TIME.fullmatch(element.get("time", ""))


@pytest.mark.parametrize("name", ALL)
def test_the_counts_are_those_of_the_cases(name: str) -> None:
    root = read(ALL[name]())
    for holder in (root, *root.iter("testsuite")):
        found = list(holder.iter("testcase"))
        assert int(holder.get("tests", "-1")) == len(found)
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if holder.tag == "testsuite" or count != "skipped":
                assert int(holder.get(count, "-1")) == sum(case.find(tag) is not None for case in found)
        assert float(holder.get("time", "-1")) == pytest.approx(sum(float(case.get("time", "")) for case in found))


@pytest.mark.parametrize("name", ALL)
def test_every_case_has_a_name_of_its_own_and_at_most_one_result(name: str) -> None:
    found = list(read(ALL[name]()).iter("testcase"))
    names = [(case.get("classname"), case.get("name")) for case in found]
    assert len(set(names)) == len(names)
    assert all(classname and own for classname, own in names)
    for case in found:
        told = [child for child in case if child.tag in ("failure", "error", "skipped")]
        assert len(told) <= 1
        assert all(child.get("message") for child in told)
        assert case.get("time") is not None


def test_the_document_is_the_golden_one() -> None:
    made = junit(failing()).decode("utf-8")
    assert made == golden("junit-failing.xml", made)


def test_a_suite_a_check_and_a_case_a_link_and_output_or_score() -> None:
    root = read(healthy())
    assert [suite.get("name") for suite in root] == [
        "digits.J6M.baseline",
        "digits.J6M.pytorch-onnx",
        "digits.J6M.onnx-optimized",
        "digits.J6M.float-int8",
        "digits.J6M.bc-hbm",
        "digits.J6M.board",
    ]
    assert [case.get("name") for case in root[3].iter("testcase")] == [
        "optimized_float..calibrated logits",
        "optimized_float..calibrated score top1",
        "calibrated..quantized logits",
    ]


def test_a_fail_says_what_was_found_and_what_was_wanted() -> None:
    output, score = cases(failing(), "digits.J6M.bc-hbm")
    told = output.find("failure")
    assert told is not None
    assert told.get("message") == "max abs error is 0.5625, wanted ≤ 1e-05"
    assert told.get("type") == "decimals"
    assert {"kind=compiled", "sample=0137", "value=0.5625", "metric.cosine=0.98213"} <= set(
        (told.text or "").split("\n")
    )
    assert score.find("failure").get("message") == "score drop is 1.124 %, wanted ≤ 1 %"  # type: ignore[union-attr]


def test_what_stands_behind_the_first_failure_is_skipped_with_its_reason() -> None:
    (board,) = cases(failing(), "digits.J6M.board")
    skipped = board.find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "behind the first failure, BC ↔ HBM; judged FAIL for itself"
    assert "value=0.011236" in (board.findtext("system-out") or "")


def test_what_was_not_asked_for_is_skipped_with_its_reason() -> None:
    (case,) = cases(segment_two(), "digits.J6M.bc-hbm")
    skipped = case.find("skipped")
    assert case.get("name") == "bc-hbm"
    assert skipped is not None and skipped.get("message") == "not asked for: no hbm"


def test_what_could_not_be_established_is_an_error() -> None:
    (case,) = cases(error(), "digits.J6M.bc-hbm")
    told = case.find("error")
    assert told is not None
    assert (told.get("type"), told.get("message")) == ("run-missing", "no leg has reported the stage hbm")


def test_a_crash_keeps_its_lines() -> None:
    (case,) = cases(crashed(), "digits.J6M.bc-hbm")
    assert "line 3\n```\nRuntimeError: out of memory\n" in (case.findtext("error") or "")


def with_check(check: CheckResult) -> Results:
    """Failing results with another BC ↔ HBM row."""
    facts, judged = failing_pair()
    checks = tuple(check if old.slug == check.slug else old for old in judged.checks)
    return results((facts, replace(judged, checks=checks)))


@pytest.mark.parametrize(
    ("outcome", "tag", "said"),
    [
        (Outcome.FAILED, "failure", "the check failed; summary.md says why"),
        (Outcome.ERROR, "error", "could not be established; summary.md says why"),
        (Outcome.SKIPPED, "skipped", "not asked for"),
    ],
)
def test_an_outcome_that_no_verdict_accounts_for_is_a_case_of_its_own(outcome: Outcome, tag: str, said: str) -> None:
    passing = verdict("quantized..hbm", "decimals", 0.0, 1e-05)
    found = cases(with_check(CheckResult("bc-hbm", "BC ↔ HBM", outcome, (passing,))), "digits.J6M.bc-hbm")
    told = found[0].find(tag)
    assert told is not None and told.get("message") == said
    assert len(found) == 2


def test_several_verdicts_on_one_output_are_one_case_with_the_worst_of_them() -> None:
    good = verdict("quantized..hbm", "decimals", 0.0, 1e-05)
    partial = replace(good, outcome=Outcome.ERROR, criterion=None, reason=message("run-missing", stage="hbm"))
    bad = verdict("quantized..hbm", "max-abs", 2.0, 1.0, failed=True)
    row = CheckResult("bc-hbm", "BC ↔ HBM", Outcome.FAILED, (good, partial, bad))
    (case,) = cases(with_check(row), "digits.J6M.bc-hbm")
    assert case.find("failure") is not None
    assert (case.findtext("failure") or "").count("outcome=") == 3


def test_names_that_become_equal_are_numbered() -> None:
    colours = tuple(
        replace(verdict("quantized..hbm", "decimals", 0.0, 1e-05), output=output)
        for output in ("a", "\x1b[1ma", "\x1b[2ma", " ")
    )
    found = cases(with_check(CheckResult("bc-hbm", "BC ↔ HBM", Outcome.PASSED, colours)), "digits.J6M.bc-hbm")
    assert [case.get("name") for case in found] == [
        "quantized..hbm a",
        "quantized..hbm a (2)",
        "quantized..hbm a (3)",
        "quantized..hbm",
    ]


def test_each_stage_counts_its_seconds_once() -> None:
    root = read(healthy())
    assert float(root.get("time", "")) == pytest.approx(sum(run.seconds for run in healthy().facts[0].runs))


def test_seconds_are_written_without_an_exponent() -> None:
    facts, judged = healthy_pair()
    runs = tuple(replace(run, seconds=seconds) for run, seconds in zip(facts.runs, (1e-7, 1e6, 1.23456), strict=False))
    root = read(results((replace(facts, runs=runs), judged)))
    assert [case.get("time") for case in root.iter("testcase")][:3] == ["0.000", "1000000.000", "0.000"]


def test_hostile_names_stay_text() -> None:
    document = junit(hostile())
    root = etree.fromstring(document)
    everything = str(root.xpath("string()")) + "".join(str(value) for value in root.xpath("//@*"))  # type: ignore[union-attr]
    assert "[[ATTACHMENT" not in everything
    assert "#x00#x202Egnp.exe" in everything
    assert b"\x1b" not in document and b"&#27;" not in document
    assert all(line.count("=") for line in (root.findtext(".//system-out") or "").split("\n"))


def test_a_judgement_without_facts_is_still_a_document() -> None:
    root = read(replace(failing(), facts=()))
    assert (root.get("tests"), root.get("failures")) == ("11", "2")
