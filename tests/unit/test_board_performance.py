"""Speed and memory of the board: what is judged, what an absent number does, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftgate.domain.chain import PTQ
from driftgate.domain.facts import Facts, ToolFacts
from driftgate.domain.judgement import Certainty, CheckResult, Limit, Outcome, Policy, Uncertainty, Verdict
from driftgate.domain.plan import Plan, PlannedArtifact, ScoreSpec
from driftgate.domain.results import Results, Tool
from driftgate.domain.runs import Performance, Run, RunOutcome, performance
from driftgate.domain.samples import SampleSet
from driftgate.domain.scores import ScoreRecords
from driftgate.judgement.criteria import LIMIT_NAMES, PERFORMANCE
from driftgate.judgement.judge import judge
from driftgate.judgement.performance import judge_performance
from driftgate.messages.message import message
from driftgate.messages.text import text
from driftgate.reporting.annotations import annotate
from driftgate.reporting.comment import CommentLinks, comment
from driftgate.reporting.junit import junit
from driftgate.reporting.markdown import summary
from driftgate.reporting.view.page import page, shortened
from driftgate.reporting.view.table import rows
from driftgate.settings.policies import LimitName
from support.boarded import board_pair, estimate, limit, told
from support.golden import golden
from support.rendered import LIVE, rendered, text_outside_code
from support.results import HOSTILE, results

IDS = tuple(f"{n:04}" for n in range(100))
RUN = "hbm@1"
POSITIVE = st.floats(1e-3, 1e6)
RUNS = st.lists(POSITIVE, min_size=1, max_size=7)
UNSOUND = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -1.0])


def measured(
    *found: Performance,
    stages: Sequence[str] = ("pytorch", "hbm"),
    right: dict[str, int] | None = None,
    tool_facts: tuple[ToolFacts, ...] = (),
    outcome: RunOutcome = RunOutcome.PASSED,
) -> Facts:
    """Facts of a chain whose board told `found`; `right` is how many of 100 samples a stage has right."""
    scores = right or {}
    spec = ScoreSpec("top1", "classification", "higher", None, "labels")
    reason = None if outcome is RunOutcome.PASSED else message("interrupted", done=3)
    return Facts(
        plan=Plan(
            subject="net",
            target="J6M",
            chain=PTQ,
            artifacts=tuple(PlannedArtifact(stage, "recorded", stage) for stage in stages),
            samples=SampleSet("test", IDS, IDS),
            scores=(spec,) if right else (),
        ),
        runs=tuple(
            Run(
                f"{stage}@1",
                "leg",
                stage,
                "recorded",
                stage,
                "",
                len(IDS),
                outcome if stage == "hbm" else RunOutcome.PASSED,
                reason if stage == "hbm" else None,
                0.0,
            )
            for stage in stages
        ),
        scores=tuple(
            ScoreRecords(
                stage,
                f"{stage}@1",
                "top1",
                ("correct", "total", "margin"),
                IDS,
                np.array([[float(n < count), 1.0, 0.5] for n in range(len(IDS))]),
            )
            for stage, count in scores.items()
        ),
        performance=found,
        tool_facts=tool_facts,
    )


def board(facts: Facts, *limits: Limit, uncertainty: Uncertainty = Uncertainty.WARN) -> CheckResult:
    """The row of the board under a policy with these limits."""
    return judge(facts, Policy(limits=(("board", limits),), uncertainty=uncertainty)).check("board")


def one(
    criterion: str,
    value: float,
    *found: Performance,
    uncertainty: Uncertainty = Uncertainty.WARN,
    declared: dict[str, float] | None = None,
) -> Verdict:
    """The only verdict of one limit."""
    (verdict,) = judge_performance(
        "board",
        "hbm",
        limits=[limit(criterion, value)],
        told=found,
        uncertainty=uncertainty,
        declared=declared or {},
    )
    return verdict


def test_a_performance_is_the_median_of_its_runs() -> None:
    made = performance(RUN, (3.0, 1.0, 2.0), (), source="hrt_model_exec perf", threads=2)
    assert (made.latency_ms, made.latencies_ms, made.fps) == (2.0, (3.0, 1.0, 2.0), None)


def test_without_limits_performance_is_shown_and_not_judged() -> None:
    check = board(measured(told(RUN)))
    assert (check.outcome, check.verdicts) == (Outcome.SKIPPED, ())
    assert [text(note) for note in check.notes] == [
        "not asked for: no score",
        "14.2 ms (13.9–14.8), 69.9 FPS, 9 MiB, 1 thread, core any",
    ]


def test_limits_of_speed_decide_the_row_without_a_score() -> None:
    facts = measured(told(RUN))
    assert board(facts, limit("latency-ms", 15), limit("fps", 60), limit("memory-mib", 9)).outcome is Outcome.PASSED
    for broken in (limit("latency-ms", 13), limit("fps", 80), limit("memory-mib", 8)):
        judged = board(facts, limit("latency-ms", 15), broken)
        assert judged.outcome is Outcome.FAILED
        assert [v.criterion for v in judged.verdicts if v.outcome is Outcome.FAILED] == [broken.criterion]


def test_speed_is_judged_of_a_board_that_runs_alone() -> None:
    facts = measured(told(RUN), stages=("hbm",))
    assert board(facts).notes[0].code == "no-link"
    assert board(facts, limit("latency-ms", 15)).outcome is Outcome.PASSED
    assert board(facts, limit("latency-ms", 13)).outcome is Outcome.FAILED


@pytest.mark.parametrize(("right", "most", "outcome"), [(100, 15, "passed"), (100, 13, "failed"), (97, 15, "failed")])
def test_score_and_speed_decide_together(right: int, most: float, outcome: str) -> None:
    facts = measured(told(RUN), right={"pytorch": 100, "hbm": right})
    check = board(facts, limit("latency-ms", most))
    assert check.outcome.value == outcome
    assert [verdict.criterion for verdict in check.verdicts] == ["score-drop", "latency-ms"]


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        ("latency-ms", "no latency of hbm was measured"),
        ("fps", "no frames a second of hbm were measured"),
        ("memory-mib", "the board did not tell how much memory hbm takes"),
        ("latency-rise", "no latency of hbm was measured"),
        ("fps-drop", "no frames a second of hbm were measured"),
    ],
)
def test_a_bounded_number_that_is_missing_is_an_error_that_names_it(criterion: str, said: str) -> None:
    nothing = Performance(RUN, None, None, threads=1, core="any")
    for facts in (measured(), measured(nothing), measured(told("pytorch@1"))):
        check = board(facts, limit(criterion, 1e6))
        assert check.outcome is Outcome.ERROR
        reason = check.verdicts[0].reason
        assert reason is not None and said in text(reason) and criterion in text(reason)


def test_a_missing_number_is_not_outvoted_by_a_good_score() -> None:
    facts = measured(right={"pytorch": 100, "hbm": 100})
    assert board(facts).outcome is Outcome.PASSED
    assert board(facts, limit("fps", 1)).outcome is Outcome.ERROR


def test_a_run_that_broke_off_is_an_error_however_fast_it_was() -> None:
    check = board(measured(told(RUN), outcome=RunOutcome.PARTIAL), limit("latency-ms", 15))
    assert check.outcome is Outcome.ERROR


@pytest.mark.parametrize(
    ("criterion", "said"), [("latency-rise", "no latency is declared"), ("fps-drop", "no frames a second are declared")]
)
def test_a_relative_limit_without_a_declared_number_is_an_error(criterion: str, said: str) -> None:
    check = board(measured(told(RUN)), limit(criterion, 0.05))
    assert check.outcome is Outcome.ERROR
    reason = check.verdicts[0].reason
    assert reason is not None and said in text(reason)


@pytest.mark.parametrize(
    ("criterion", "declared", "outcome"),
    [
        ("latency-rise", {"latency_ms": 100.0}, Outcome.PASSED),
        ("latency-rise", {"latency_ms": 99.9}, Outcome.FAILED),
        ("fps-drop", {"fps": 100.0}, Outcome.PASSED),
        ("fps-drop", {"fps": 100.1}, Outcome.FAILED),
        ("latency-rise", {"latency_ms": 0.0}, Outcome.ERROR),
        ("fps-drop", {"fps": math.nan}, Outcome.ERROR),
        ("fps-drop", {"latency_ms": 100.0}, Outcome.ERROR),
    ],
)
def test_a_relative_limit_is_held_against_what_is_declared(
    criterion: str, declared: dict[str, float], outcome: Outcome
) -> None:
    found = told(RUN, (105.0,), (95.0,))
    assert one(criterion, 0.05, found, declared=declared).outcome is outcome


def test_latency_is_that_of_the_fewest_threads_and_frames_those_of_the_most() -> None:
    single, double = told(RUN, (14.0,), (70.0,)), told(RUN, (20.0,), (120.0,), threads=2)
    facts = measured(double, single)
    assert board(facts, limit("latency-ms", 15), limit("fps", 100)).outcome is Outcome.PASSED
    assert [note.get("threads") for note in board(facts).notes[1:]] == [1, 2]


def test_of_two_cores_the_slower_one_decides_and_both_must_tell() -> None:
    fast, slow = replace(told(RUN, (14.0,), (70.0,)), core="0"), replace(told(RUN, (16.0,), (60.0,)), core="1")
    facts = measured(fast, slow)
    for criterion, value in (("latency-ms", 15), ("fps", 65)):
        assert board(facts, limit(criterion, value)).outcome is Outcome.FAILED
    silent = measured(fast, replace(slow, latency_ms=None, latencies_ms=()))
    assert board(silent, limit("latency-ms", 15)).outcome is Outcome.ERROR


def test_each_board_is_judged_and_the_slow_one_fails() -> None:
    facts = measured(told(RUN))
    (run,) = facts.runs_of("hbm")
    slow = replace(facts, runs=(*facts.runs, replace(run, id="hbm@2")), performance=(told(RUN), told("hbm@2", (30.0,))))
    check = board(slow, limit("latency-ms", 15))
    assert [verdict.outcome for verdict in check.verdicts] == [Outcome.PASSED, Outcome.FAILED]


@given(RUNS, POSITIVE)
def test_the_median_decides_and_runs_on_both_sides_of_the_limit_are_noise(runs: list[float], most: float) -> None:
    verdict = one("latency-ms", most, told(RUN, runs))
    assert verdict.outcome is (Outcome.PASSED if median(runs) <= most else Outcome.FAILED)
    both = min(runs) <= most < max(runs)
    assert [note.code for note in verdict.notes] == ["performance-noise"] * both
    assert verdict.certainty is (None if len(runs) == 1 else Certainty.WITHIN_NOISE if both else Certainty.CERTAIN)


@given(RUNS, POSITIVE)
def test_a_policy_that_fails_what_is_uncertain_wants_every_run_within_the_limit(runs: list[float], edge: float) -> None:
    strict = Uncertainty.FAIL
    latency = one("latency-ms", edge, told(RUN, runs), uncertainty=strict)
    assert latency.outcome is (Outcome.PASSED if max(runs) <= edge else Outcome.FAILED)
    rate = one("fps", edge, told(RUN, fps_runs=runs), uncertainty=strict)
    assert rate.outcome is (Outcome.PASSED if min(runs) >= edge else Outcome.FAILED)


@given(RUNS, POSITIVE, st.floats(0, 1), st.integers(-8, 8))
def test_relative_limits_know_no_unit(runs: list[float], declared: float, most: float, power: int) -> None:
    scale = 2.0**power
    scaled = [value * scale for value in runs]
    for criterion, key in (("latency-rise", "latency_ms"), ("fps-drop", "fps")):
        verdict = one(criterion, most, told(RUN, runs, runs), declared={key: declared})
        again = one(criterion, most, told(RUN, scaled, scaled), declared={key: declared * scale})
        assert again == verdict


@given(RUNS, UNSOUND, st.integers(0, 7), st.sampled_from(["latency-ms", "fps", "latency-rise", "fps-drop"]))
def test_a_number_that_none_can_have_measured_never_passes(
    runs: list[float], odd: float, place: int, criterion: str
) -> None:
    spoilt = [*runs[:place], odd, *runs[place:]]
    verdict = one(criterion, 1.0, told(RUN, spoilt, spoilt), declared={"latency_ms": 1.0, "fps": 1.0})
    assert verdict.outcome is Outcome.ERROR
    assert verdict.reason is not None and verdict.reason.code == "performance-unsound"


def test_a_median_that_its_runs_belie_is_not_believed() -> None:
    assert one("latency-ms", 15, replace(told(RUN), latency_ms=1.0)).outcome is Outcome.ERROR


@pytest.mark.parametrize(("microseconds", "slow"), [(7000.0, True), (7122.5, False), (7500.0, False), (0.0, False)])
def test_twice_as_slow_as_the_estimate_is_a_note_and_no_failure(microseconds: float, slow: bool) -> None:
    tool_facts = (ToolFacts("net.json", "perf", (("estimated-latency-us", microseconds),)),)
    check = board(measured(told(RUN), tool_facts=tool_facts), limit("latency-ms", 15))
    assert check.outcome is Outcome.PASSED
    assert ("performance-slow" in {note.code for note in check.notes}) is slow


def test_frames_stand_in_where_no_latency_is_told() -> None:
    said = text(board(measured(told(RUN, (), (30.0,)), tool_facts=(estimate(),))).notes[-1])
    assert said.startswith("30 FPS measured, 82.6 FPS by the compiler's static estimate: more than 2 times slower")
    fast = board(measured(told(RUN, (), (42.0,)), tool_facts=(estimate(),)))
    assert "performance-slow" not in {note.code for note in fast.notes}


def test_every_limit_of_the_settings_is_one_that_is_judged() -> None:
    assert set(get_args(LimitName)) == set(LIMIT_NAMES)
    assert set(PERFORMANCE) < set(LIMIT_NAMES)


def passing() -> Results:
    """One subject whose board is fast enough."""
    return results(board_pair(limit("latency-ms", 15), limit("fps", 60), limit("memory-mib", 16)))


def slow() -> Results:
    """One subject whose board is too slow, by a hair."""
    return results(board_pair(limit("latency-ms", 14), limit("fps", 60)))


@pytest.mark.parametrize(("name", "made"), [("board", passing()), ("slow", slow())])
def test_the_pages_are_the_golden_ones(name: str, made: Results) -> None:
    shown = summary(made)
    assert shown == golden(f"summary-{name}.md", shown)
    cases = junit(made).decode()
    assert cases == golden(f"junit-{name}.xml", cases)


def test_the_row_tells_speed_where_it_passes_and_what_broke_where_it_fails() -> None:
    for made, value, note in (
        (passing(), ("14.24", "≤", "15"), "14.2 ms (13.9–14.8), 69.9 FPS, 9 MiB, 1 thread, core any; estimate 12.1 ms"),
        (slow(), ("14.24", "≤", "14"), "within noise: 3 runs lie in 13.9 ms … 14.8 ms, on both sides of the limit"),
    ):
        assert made.judgements is not None
        row = rows(made.judgements[0])[-1]
        assert row.reading is not None
        assert (row.reading.value, row.reading.relation, row.reading.limit) == value
        assert text(row.notes[0]) == note


def test_a_comment_tells_speed_and_what_to_do() -> None:
    said = text_outside_code(rendered(comment(slow(), links=CommentLinks())))
    assert "Speed and memory on the board" in said
    assert "measure again with nothing else at work on the board" in said
    assert "not investigated" not in said


def test_an_annotation_tells_the_broken_limit() -> None:
    (found,) = annotate(slow())
    assert found.title == "digits: J6 Regression FAIL"
    assert found.message == "board: latency is 14.24 ms, wanted ≤ 14 ms"


def test_the_details_are_shortened_like_other_tables() -> None:
    facts, judged = board_pair(limit("latency-ms", 15))
    many = tuple(told(facts.performance[0].run, threads=count) for count in range(1, 9))
    whole = page(Results(Tool("driftgate", "0.1.0"), (replace(facts, performance=many),), (judged,)))
    assert [line.threads for line in whole.subjects[0].performance] == [str(count) for count in range(1, 9)]
    (short,) = shortened(whole, 3).subjects
    assert len(short.performance) == 3
    assert short.left_out >= 5


def test_hostile_words_of_a_board_stay_words() -> None:
    facts, judged = board_pair(limit("latency-ms", 15))
    (fast,) = facts.performance
    facts = replace(facts, performance=(replace(fast, core=HOSTILE, source=HOSTILE),))
    checked = judge(facts, Policy(limits=(("board", (limit("latency-ms", 15),)),)))
    made = results((facts, replace(judged, checks=(*judged.checks[:-1], checked.check("board")))))
    page_of = rendered(summary(made))
    assert not LIVE.search(text_outside_code(page_of))
    assert not list(page_of.iter("img"))
    assert b"\x1b" not in junit(made)


def test_runs_are_told_with_three_digits() -> None:
    note = board(measured(told(RUN, (0.12345, 0.1, 1234.56), (1999.6,)))).notes[-1]
    assert note.get("measured") == ("0.123 ms (0.1–1235)", "2000 FPS", "9 MiB")
