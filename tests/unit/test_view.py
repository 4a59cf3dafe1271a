"""What the reports show is prepared from facts and judgement, without a decision of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driftgate.domain.investigations import Investigation
from driftgate.domain.judgement import Finding, Outcome, Score, Verdict
from driftgate.domain.results import Results, Tool
from driftgate.messages.message import message
from driftgate.messages.text import text
from driftgate.reporting.view.links import failure, link_name, verdict_lines
from driftgate.reporting.view.page import page, shortened, subject
from driftgate.reporting.view.readings import reading
from driftgate.reporting.view.runs import measured_on, notes, run_lines
from driftgate.reporting.view.scores import score_lines, score_table
from driftgate.reporting.view.table import Place, headline, overall, place, rows
from support.results import (
    crashed,
    error,
    error_pair,
    failing,
    failing_pair,
    healthy,
    healthy_pair,
    results,
    segment_two,
    segment_two_pair,
    several,
    summary,
    verdict,
)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (healthy(), "PASS 6 of 6"),
        (failing(), "FAIL at BC ↔ HBM"),
        (error(), "ERROR at BC ↔ HBM, J6 Regression"),
        (segment_two(), "PASS 3 of 6 (3 not asked for)"),
    ],
)
def test_the_headline_says_it_in_one_line(made: Results, said: str) -> None:
    assert made.judgements is not None
    assert text(headline(made.judgements[0])) == said


def test_a_broken_row_that_nobody_requires_does_not_hide_in_the_headline() -> None:
    facts, judged = failing_pair()
    checks = tuple(
        replace(check, required=check.slug not in ("bc-hbm", "board"), hidden=False) for check in judged.checks
    )
    passed = replace(judged, outcome=Outcome.PASSED, checks=checks)
    assert text(headline(passed)) == "PASS 4 of 6 (0 not asked for, 2 not passed and not required)"
    assert message("row-optional") in rows(passed)[4].notes
    found = failure(passed, facts)
    assert found is not None and message("row-optional") in found.notes


def test_nothing_judged_is_an_error() -> None:
    _, judged = healthy_pair()
    assert text(headline(replace(judged, outcome=Outcome.ERROR, checks=()))) == "ERROR: nothing was judged"
    assert text(headline(replace(judged, outcome=Outcome.SKIPPED))) == "ERROR: nothing was judged"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (several(), "FAIL in 1 of 3 subjects"),
        (results(healthy_pair("a"), error_pair("b")), "ERROR in 1 of 2 subjects"),
        (results(healthy_pair("a"), healthy_pair("b")), "PASS in all 2 subjects"),
        (Results(Tool("driftgate", "0.1.0"), (), None), "ERROR: nothing was judged"),
    ],
)
def test_the_headline_over_several_subjects(made: Results, said: str) -> None:
    assert text(overall(made)) == said


def test_six_rows_and_those_behind_the_first_failure_show_nothing_of_their_own() -> None:
    _, judged = failing_pair()
    table = rows(judged)
    assert [row.cell for row in table] == ["PASS", "PASS", "PASS", "PASS", "FAIL", "-"]
    assert table[5].reading is None and table[5].place.output is None
    assert table[5].notes == (message("row-behind"),)


def test_a_row_shows_the_value_that_is_nearest_to_its_limit() -> None:
    _, judged = healthy_pair()
    shown = [
        (text(row.reading.title), row.reading.value, row.reading.relation, row.reading.limit)
        for row in rows(judged)
        if row.reading is not None
    ]
    assert shown == [
        ("score", "356/360", "≥", "0.9889"),
        ("error / range", "1.2e-06", "≤", "0.0001"),
        ("error / range", "2.43e-06", "≤", "0.0001"),
        ("cosine", "0.99931", "≥", "0.99"),
        ("max abs error", "4.1e-06", "≤", "1e-05"),
        ("score drop", "0", "≤", "1"),
    ]


def test_a_declared_score_is_shown_as_it_is_written() -> None:
    facts, judged = healthy_pair()
    first = rows(judged, facts.plan.scores)[0].reading
    assert first is not None and (first.value, first.relation, first.limit) == ("356/360", "≥", "356/360")


def test_a_row_that_was_not_asked_for_says_why() -> None:
    _, judged = segment_two_pair()
    row = rows(judged)[4]
    assert (row.cell, row.reading) == ("-", None)
    assert text(row.notes[0]) == "not asked for: no hbm"


def test_the_first_broken_link_is_shown_its_worst_output_first() -> None:
    facts, judged = failing_pair()
    checks = list(judged.checks)
    near = replace(verdict("quantized..hbm", "decimals", 2e-5, 1e-5, failed=True), output="boxes")
    later = verdict("elsewhere..hbm", "decimals", 9e9, 1e-5, failed=True)
    checks[4] = replace(checks[4], verdicts=(near, *checks[4].verdicts, later))
    found = failure(replace(judged, checks=tuple(checks)), facts)
    assert found is not None
    assert [line.place.output for line in found.lines] == ["logits", "boxes", "top1"]
    assert {line.link.candidate for line in found.lines} == {"hbm"}
    assert "elsewhere" not in {line.link.reference for line in found.lines}


def test_many_broken_outputs_are_counted_not_listed() -> None:
    facts, judged = failing_pair()
    checks = list(judged.checks)
    many = tuple(
        replace(verdict("quantized..hbm", "decimals", 1.0, 1e-5, failed=True), output=f"o{n}") for n in range(40)
    )
    checks[4] = replace(checks[4], verdicts=many)
    found = failure(replace(judged, checks=tuple(checks)), facts)
    assert found is not None
    assert len(found.lines) == 5
    assert found.notes[0].get("count") == 35


def test_without_an_experiment_no_cause_is_named() -> None:
    facts, judged = failing_pair()
    found = failure(judged, facts)
    assert found is not None and found.next == (message("not-investigated"),)


def test_after_an_investigation_its_next_step_is_shown() -> None:
    facts, judged = failing_pair()
    step = message("run-missing", stage="hbm")
    investigated = replace(facts, investigations=(Investigation("quantized..hbm"),))
    finding = Finding("nchw-nhwc", "quantized..hbm", True, (), next=step)
    found = failure(replace(judged, findings=(finding,)), investigated)
    assert found is not None
    assert [(line.code, line.next) for line in found.findings] == [("nchw-nhwc", step)]
    assert found.next == ()


def test_a_healthy_subject_has_no_failure() -> None:
    facts, judged = healthy_pair()
    one = subject(judged, facts)
    assert (one.failure, one.errors, one.behind) == (None, (), ())


def test_errors_are_listed_with_their_reasons() -> None:
    one = page(error()).subjects[0]
    assert [(title, text(lines[0].reason or message("-"))) for title, lines in one.errors] == [
        ("BC ↔ HBM", "no leg has reported the stage hbm"),
        ("J6 Regression", "no leg has reported the stage hbm"),
    ]


def test_a_long_text_is_shown_once() -> None:
    one = page(crashed()).subjects[0]
    assert [len(lines[0].long_texts) for _, lines in one.errors] == [1, 0]
    assert one.errors[0][1][0].long_texts[0].startswith("Traceback")


def test_links_are_shown_by_their_stages_and_kind() -> None:
    facts, _ = healthy_pair()
    known, check = link_name("quantized..hbm", facts), link_name("baseline", facts)
    assert (known.reference, known.candidate, known.kind) == ("quantized", "hbm", message("kind-compiled"))
    assert (check.reference, check.candidate, check.kind) == ("baseline", "", None)
    assert link_name("quantized..hbm", None).candidate == "hbm"


def test_what_stands_behind_the_first_failure_is_kept_apart() -> None:
    facts, judged = failing_pair()
    assert {line.link.reference for line in verdict_lines(judged, facts, hidden=True)} == {"board"}
    assert "board" not in {line.link.reference for line in verdict_lines(judged, facts, hidden=False)}


@pytest.mark.parametrize(
    ("criterion", "value", "limit", "failed", "shown"),
    [
        ("range", 1.23456789e-06, 1e-4, False, ("1.235e-06", "≤", "0.0001")),
        ("cosine", 0.9912345, 0.99, False, ("0.991235", "≥", "0.99")),
        ("cosine", 0.5, 0.99, True, ("0.5", "≥", "0.99")),
        ("decimals", 1.0000001e-05, 1e-05, True, ("1.0000001e-05", "≤", "1e-05")),
        ("ulp", float("nan"), 4.0, True, ("NaN", "≤", "4")),
        ("norm-ratio", float("inf"), 1.2, True, ("∞", "≤", "1.2")),
        ("sqnr", float("-inf"), 20.0, True, ("-∞", "≥", "20")),
        ("dead-channels", 0.0, 0.0, False, ("0", "≤", "0")),
        ("score-drop", 0.0112359, 0.01, True, ("1.124", "≤", "1")),
        ("of-tomorrow", 3.0, 2.0, True, ("3", "≤", "2")),
        ("of-tomorrow", 3.0, 2.0, False, ("3", "≥", "2")),
    ],
)
def test_a_number_stands_beside_its_limit(
    criterion: str, value: float, limit: float, failed: bool, shown: tuple[str, str, str]
) -> None:
    made = reading(verdict("a..b", criterion, value, limit, failed=failed))
    assert made is not None
    assert (made.value, made.relation, made.limit) == shown


def test_a_verdict_without_a_number_has_no_reading() -> None:
    assert reading(replace(verdict("a..b", "range", 1.0, 1.0), value=None)) is None
    assert reading(replace(verdict("a..b", "range", 1.0, 1.0), criterion=None)) is None


def test_metrics_that_a_link_has_not_stay_empty() -> None:
    facts, judged = healthy_pair()
    other = replace(summary("calibrated..quantized", error=0.1), metrics=(("lsb", 1.0),))
    metrics = subject(replace(judged, summaries=(summary("pytorch..onnx", error=0.0), other)), facts).metrics
    assert [text(column.title) for column in metrics.columns][-1] == "Max error"
    assert metrics.lines[0].values[-1] == ""
    assert metrics.lines[1].values == ("",) * 8 + ("1",)


def scored(*texts: str) -> tuple[Score, ...]:
    """The score `top1` at stages a, b, c, …"""
    return tuple(Score(stage, "top1", 0.0, 360, text) for stage, text in zip("abcdef", texts, strict=False))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("356/360",) * 3, ["356/360 at every stage (3)"]),
        (("356/360",), ["356/360 at a"]),
        (("356/360", "356/360", "352/360"), ["356/360 from a to b", "352/360 at c"]),
        (("356/360", "352/360", "356/360"), ["356/360 at a", "352/360 at b", "356/360 at c"]),
    ],
)
def test_a_score_is_one_line_over_the_stages(texts: tuple[str, ...], said: list[str]) -> None:
    (line,) = score_lines(scored(*texts))
    assert [text(part) for part in line.parts] == said


def test_several_scores_are_one_table() -> None:
    table = score_table((*scored("1/2", "2/2"), Score("a", "top5", 1.0, 2, "2/2")))
    assert table.names == ("top1", "top5")
    assert table.lines == (("a", ("1/2", "2/2")), ("b", ("2/2", "")))


def test_runs_stand_in_the_order_of_the_chain() -> None:
    facts, _ = healthy_pair()
    lines = run_lines(replace(facts, runs=facts.runs[::-1]))
    assert [line.stage for line in lines][:2] == ["pytorch", "onnx"]
    assert (lines[0].seconds, lines[0].samples, text(lines[0].outcome)) == ("0.2", 360, "complete")


def test_notes_are_said_once_and_by_whom() -> None:
    facts, judged = healthy_pair()
    said = message("not-asked", stages=("x",))
    runs = tuple(replace(run, notes=(said, said)) for run in facts.runs[:1])
    found = [note for note in notes(judged, replace(facts, runs=runs)) if note.text == said]
    assert [note.about for note in found] == ["pytorch"]


def test_how_much_was_measured_is_one_line() -> None:
    facts, judged = healthy_pair()
    assert text(measured_on(judged, facts)).startswith("360 real samples · policy pull-request · plan ")
    assert text(measured_on(judged, None)).startswith("judged without its facts · policy pull-request")


def test_a_judgement_is_shown_without_its_facts() -> None:
    whole = page(replace(failing(), facts=()))
    assert whole.subjects[0].runs == ()
    assert whole.subjects[0].failure is not None
    assert whole.subjects[0].failure.lines[0].link.candidate == "hbm"


def test_a_shortened_page_says_how_much_it_lost() -> None:
    whole = page(failing())
    short = shortened(whole, 3)
    one = short.subjects[0]
    assert len(one.judged) == len(one.metrics.lines) == len(one.runs) == 3
    assert one.rows == whole.subjects[0].rows
    assert one.left_out == (10 - 3) + (6 - 3) + (7 - 3) + (len(whole.subjects[0].notes) - 3)
    assert shortened(whole, 1000).subjects[0].left_out == 0


def test_a_difference_of_zero_stands_nowhere() -> None:
    assert place(verdict("a..b", "decimals", 0.0, 1e-5)) == Place("logits")
    assert place(verdict("a..b", "decimals", 1e-6, 1e-5)) == Place("logits", "0137", 3)


def test_a_broken_score_is_shown_with_the_metrics_of_its_link() -> None:
    facts, judged = failing_pair()
    checks = list(judged.checks)
    checks[4] = replace(checks[4], verdicts=checks[4].verdicts[1:])
    found = failure(replace(judged, checks=tuple(checks)), facts)
    assert found is not None
    assert [line.output for line in found.metrics.lines] == ["logits"]


@pytest.mark.parametrize("outcome", [Outcome.PASSED, Outcome.FAILED])
def test_a_loss_stands_below_its_limit_whatever_the_outcome(outcome: Outcome) -> None:
    """A policy may fail what is within noise, and pass what is explained: the side of the limit is the same."""
    verdict = Verdict("a..b", "top1", outcome, criterion="score-drop", value=0.0, limit=0.005)
    found = reading(verdict)
    assert found is not None
    assert found.relation == "≤"
