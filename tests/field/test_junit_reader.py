"""The JUnit documents as a reader that is not ours takes them: counts, results and messages."""

from __future__ import annotations

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite  # type: ignore[import-not-found,unused-ignore]

from driftgate.domain.judgement import Outcome
from driftgate.domain.results import Results
from driftgate.reporting.junit import junit
from support.results import crashed, error, failing, healthy, hostile, several

MADE = {
    "healthy": healthy(),
    "failing": failing(),
    "error": error(),
    "crashed": crashed(),
    "hostile": hostile(),
    "several": several(),
}


def cases(made: Results) -> list[TestCase]:
    read = JUnitXml.fromstring(junit(made))
    return [case for suite in read for case in suite]


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_the_counts_that_are_stated_are_those_of_the_cases(made: Results) -> None:
    read = JUnitXml.fromstring(junit(made))
    for suite in read:
        assert isinstance(suite, TestSuite)
        kinds = [type(result) for case in suite for result in case.result]
        stated = (suite.tests, suite.failures, suite.errors, suite.skipped)
        assert stated == (len(list(suite)), kinds.count(Failure), kinds.count(Error), kinds.count(Skipped))


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_what_is_not_passed_has_a_message(made: Results) -> None:
    for case in cases(made):
        assert case.name
        assert case.classname
        assert all(result.message for result in case.result)


@pytest.mark.parametrize(("name", "kind"), [("failing", Failure), ("error", Error)])
def test_the_outcome_is_what_the_reader_finds(name: str, kind: type[Failure] | type[Error]) -> None:
    found = [type(result) for case in cases(MADE[name]) for result in case.result]
    assert kind in found
    assert MADE[name].outcome is (Outcome.FAILED if kind is Failure else Outcome.ERROR)


def test_healthy_is_green() -> None:
    assert [
        result for case in cases(MADE["healthy"]) for result in case.result if not isinstance(result, Skipped)
    ] == []
