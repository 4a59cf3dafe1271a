"""Scores: top-1, declared ones, drops across links, and the board against the float model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driftgate.domain.chain import PTQ, LinkKind
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Limit, LimitOrigin, Outcome, Policy
from driftgate.domain.plan import Plan, PlannedArtifact, ScoreSpec
from driftgate.domain.runs import Run, RunOutcome
from driftgate.domain.samples import SampleSet
from driftgate.domain.scores import ScoreRecords
from driftgate.judgement.judge import judge
from driftgate.judgement.scores import declared_value
from support.judging import a_plan, leg_facts

COUNT = 100
IDS = tuple(f"{n:04}" for n in range(COUNT))


def scored(correct: dict[str, int], *, declared: str | None = None, done: int = COUNT) -> Facts:
    """Facts in which each stage was scored, and nothing else was measured."""
    plan = Plan(
        subject="net",
        target="J6M",
        chain=PTQ,
        artifacts=tuple(PlannedArtifact(stage, "recorded", stage) for stage in correct),
        samples=SampleSet("test", IDS, IDS),
        scores=(ScoreSpec("top1", "classification", "higher", None, "labels", declared),),
    )
    records = tuple(
        ScoreRecords(
            stage,
            f"{stage}@1",
            "top1",
            ("correct", "total", "margin"),
            IDS[:done],
            np.array([[float(n < right), 1.0, 0.5] for n in range(done)]),
        )
        for stage, right in correct.items()
    )
    runs = tuple(
        Run(f"{stage}@1", "leg", stage, "recorded", stage, "", done, RunOutcome.PASSED, None, 0.0) for stage in correct
    )
    return Facts(plan=plan, runs=runs, scores=records)


@pytest.mark.parametrize(
    ("written", "right", "outcome"),
    [
        ("90/100", 90, Outcome.PASSED),
        ("90/100", 89, Outcome.FAILED),
        ("0.9", 90, Outcome.PASSED),
        ("90%", 90, Outcome.PASSED),
        ("90.00%", 89, Outcome.FAILED),
        ("0.90", 89, Outcome.FAILED),
    ],
)
def test_the_baseline_reaches_what_is_declared(written: str, right: int, outcome: Outcome) -> None:
    facts = scored({"pytorch": right, "onnx": right}, declared=written)
    assert judge(facts, Policy()).check("baseline").outcome is outcome


def test_a_declared_number_counts_as_rounded_in_its_last_digit() -> None:
    value, slack = declared_value("0.9889")
    lowest = value - slack
    assert lowest <= 356 / 360
    assert lowest > 355 / 360


def test_without_a_declared_score_the_baseline_was_not_asked_for() -> None:
    check = judge(scored({"pytorch": 90, "onnx": 90}), Policy()).check("baseline")
    assert (check.outcome, check.notes[0].code) == (Outcome.SKIPPED, "no-declared-score")


def drop_of(kind: LinkKind, before: int, after: int, policy: Policy | None = None) -> Outcome:
    candidate = {LinkKind.LOSSY: "calibrated", LinkKind.EQUIVALENT: "optimized_float"}[kind]
    reference = {LinkKind.LOSSY: "optimized_float", LinkKind.EQUIVALENT: "onnx"}[kind]
    judgement = judge(scored({reference: before, candidate: after}), policy or Policy())
    verdicts = [v for check in judgement.checks for v in check.verdicts if v.criterion == "score-drop"]
    return next(v.outcome for v in verdicts if v.target == f"{reference}..{candidate}")


def test_a_lossy_link_may_cost_one_percent_of_the_reference() -> None:
    assert drop_of(LinkKind.LOSSY, 100, 99) is Outcome.PASSED
    assert drop_of(LinkKind.LOSSY, 100, 98) is Outcome.FAILED
    assert drop_of(LinkKind.LOSSY, 50, 49) is Outcome.FAILED


def test_an_equivalent_link_may_cost_nothing() -> None:
    assert drop_of(LinkKind.EQUIVALENT, 90, 90) is Outcome.PASSED
    assert drop_of(LinkKind.EQUIVALENT, 90, 89) is Outcome.FAILED


def test_a_policy_sets_the_drop_by_check_and_the_link_has_the_last_word() -> None:
    by_check = ("float-int8", (Limit("score-drop", 0.05, LimitOrigin.POLICY),))
    by_link = ("optimized_float..calibrated", (Limit("score-drop", 0.0, LimitOrigin.POLICY),))
    assert drop_of(LinkKind.LOSSY, 100, 95, Policy(limits=(by_check,))) is Outcome.PASSED
    assert drop_of(LinkKind.LOSSY, 100, 99, Policy(limits=(by_check, by_link))) is Outcome.FAILED


def test_the_board_is_held_against_the_float_model_not_against_its_neighbour() -> None:
    facts = scored({"pytorch": 100, "quantized": 97, "hbm": 97})
    check = judge(facts, Policy()).check("board")
    assert check.outcome is Outcome.FAILED
    assert check.verdicts[0].value == pytest.approx(0.03)


def test_a_score_over_part_of_the_samples_proves_nothing() -> None:
    judgement = judge(scored({"pytorch": 60, "onnx": 60}, declared="60/100", done=60), Policy())
    assert judgement.check("baseline").outcome is Outcome.ERROR
    assert judgement.scores == ()


def test_a_required_check_that_was_not_measured_is_an_error() -> None:
    facts = scored({"pytorch": 90, "onnx": 90}, declared="90/100")
    check = judge(facts, Policy(required=("baseline", "bc-hbm"))).check("bc-hbm")
    assert check.outcome is Outcome.ERROR


def test_a_check_that_is_not_required_decides_nothing() -> None:
    facts = scored({"pytorch": 90, "onnx": 80}, declared="90/100")
    judgement = judge(facts, Policy(required=("baseline",)))
    assert judgement.check("pytorch-onnx").outcome is Outcome.FAILED
    assert judgement.outcome is Outcome.PASSED


def test_rows_behind_the_first_failure_are_hidden_with_their_numbers_kept() -> None:
    facts = scored({"pytorch": 90, "onnx": 80, "quantized": 80, "hbm": 80}, declared="90/100")
    judgement = judge(facts, Policy())
    assert judgement.first_failure == "pytorch-onnx"
    assert [c.slug for c in judgement.checks if c.hidden] == ["float-int8", "bc-hbm", "board"]
    assert judgement.check("board").verdicts


def test_an_output_that_the_score_does_not_cover_is_judged_by_itself() -> None:
    """Boxes that are wrong fail although the class scores keep their score."""
    plan = a_plan(LinkKind.LOSSY, 32)
    rng = np.random.default_rng(0)
    a = [{"prob": rng.random((1, 2)), "boxes": rng.standard_normal((1, 4))} for _ in range(32)]
    b = [{"prob": one["prob"], "boxes": rng.standard_normal((1, 4))} for one in a]
    spec = ScoreSpec("top1", "classification", "higher", "prob", "labels")
    plan = replace(plan, scores=(spec,))
    facts = leg_facts(plan, plan.samples.blocks, a, b)
    facts = replace(
        facts,
        scores=tuple(
            ScoreRecords(s, f"{s}@1", "top1", ("correct", "total", "margin"), plan.samples.ids, np.ones((32, 3)))
            for s in ("a", "b")
        ),
    )
    outcomes = {v.output: v.outcome for v in judge(facts, Policy()).checks[0].verdicts}
    assert outcomes == {"prob": Outcome.PASSED, "boxes": Outcome.FAILED, "top1": Outcome.PASSED}
