"""Versions held against each other: the demo, with what changed between two of its versions planted on purpose."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from driftgate.comparing.compare import compare_results
from driftgate.comparing.pairing import pair_samples
from driftgate.comparing.trend import trends
from driftgate.domain.comparisons import Change, Comparison, Row, RowKind, SubjectComparison, Thing
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Outcome
from driftgate.domain.results import Results
from driftgate.domain.samples import SampleSet
from driftgate.storage.comparison import comparison_schema
from driftgate.storage.document import encode_results, read_results
from driftgate.storage.folder import write_all
from support.commandline import call
from support.edits import (
    edited,
    environment,
    error_times,
    other_artifacts,
    speed,
    told,
    undeclared,
    wrong_on,
)

FLOAT = ("pytorch", "onnx", "optimized_float")
INTEGER = ("calibrated", "ptq", "quantized", "hbm")
INT8_LINK = "optimized_float..calibrated"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The healthy demo."""
    out = tmp_path_factory.mktemp("demo")
    assert call("demo", "--out", out).code == 0
    return read_results(out)


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The demo with another calibration."""
    out = tmp_path_factory.mktemp("spoilt")
    assert call("demo", "--fault", "calibration-range", "--out", out).code == 1
    return read_results(out)


def compared(base: Results, head: Results) -> Comparison:
    return compare_results(base, head, labels=("v1", "v2"))


def only(found: Comparison) -> SubjectComparison:
    (one,) = found.subjects
    return one


def row(one: SubjectComparison, kind: RowKind, *key: str) -> Row:
    (found,) = [row for row in one.rows if row.kind is kind and row.key == key]
    return found


# --- three versions


def test_a_version_is_the_same_as_itself(demo: Results) -> None:
    found = compared(demo, demo)
    assert (found.change, found.exit_code) == (Change.SAME, 0)
    assert only(found).changed == ()
    assert {one.change for one in only(found).rows} == {Change.SAME}


def test_a_better_score_with_a_worse_int8_is_worse_and_begins_at_int8(demo: Results) -> None:
    """Retrained: the network learned, its quantised form lost."""
    head = edited(demo, other_artifacts(*FLOAT, *INTEGER), wrong_on(4, *FLOAT, right=True), wrong_on(12, *INTEGER))
    found = compared(demo, head)
    one = only(found)
    assert found.exit_code == 1
    assert row(one, RowKind.SCORE, "pytorch", "top1").head_text == "360/360"
    assert row(one, RowKind.SCORE, "pytorch", "top1").change is Change.SAME  # four samples more are within the noise
    assert row(one, RowKind.SCORE, "hbm", "top1").change is Change.WORSE
    loss = row(one, RowKind.LOSS, INT8_LINK, "top1")
    assert (loss.change, loss.base_text, loss.head_text) == (Change.WORSE, "0", "0.04444")
    assert loss.low is not None
    assert loss.low > 0
    assert one.moved is not None
    assert one.moved.at == INT8_LINK
    assert {c.name for c in one.changed if c.what is Thing.ARTIFACT} == {*FLOAT, *INTEGER}


def test_a_toolchain_only_change_is_named(demo: Results) -> None:
    """The same network through another compiler: nothing but the compiled form is another one."""
    base = edited(demo, told("log", version_hbdk="4.2.1"))
    head = edited(demo, other_artifacts("hbm"), told("log", version_hbdk="4.3.0"), wrong_on(20, "hbm"))
    one = only(compared(base, head))
    assert [(c.what, c.name, c.base, c.head) for c in one.changed if c.what is Thing.TOOLCHAIN] == [
        (Thing.TOOLCHAIN, "hbdk", "4.2.1", "4.3.0")
    ]
    assert [c.name for c in one.changed if c.what is Thing.ARTIFACT] == ["hbm"]
    assert one.moved is not None
    assert one.moved.at == "quantized..hbm"


def test_a_data_change_is_said_and_numbers_are_those_of_the_common_samples(demo: Results) -> None:
    def fewer(facts: Facts) -> Facts:
        kept = facts.plan.samples.ids[40:]
        renamed = {old: f"new-{old}" for old in kept}
        samples = SampleSet("digits", tuple(renamed.values()), facts.plan.samples.digests[40:])
        scores = tuple(
            one.with_rows((renamed[sample], rows) for sample, rows in one.by_sample().items() if sample in renamed)
            for one in facts.scores
        )
        places = [m.samples.index(sample) for m in facts.measurements[:1] for sample in kept]
        measurements = tuple(
            replace(m, samples=tuple(renamed.values()), rows=m.rows.take(np.array(places)), blocks=(), channels=None)
            for m in facts.measurements
        )
        return replace(facts, plan=replace(facts.plan, samples=samples), scores=scores, measurements=measurements)

    found = compared(edited(demo, undeclared), edited(demo, undeclared, fewer))
    one = only(found)
    assert (one.paired.common, one.paired.base, one.paired.head) == (320, 360, 320)
    assert [c.base + " " + c.head for c in one.changed if c.what is Thing.SAMPLES] == ["360 320"]
    score = row(one, RowKind.SCORE, "hbm", "top1")
    assert (score.n, score.change) == (320, Change.SAME)
    assert score.base_text == score.head_text
    assert score.base_text.endswith("/320")
    assert found.exit_code == 0


def test_no_sample_in_common_is_not_comparable(demo: Results) -> None:
    def others(facts: Facts) -> Facts:
        digests = tuple("0" * 64 for _ in facts.plan.samples.digests)
        return replace(facts, plan=replace(facts.plan, samples=replace(facts.plan.samples, digests=digests)))

    found = compared(demo, edited(demo, others))
    assert (found.change, found.exit_code) == (Change.UNKNOWN, 2)
    assert only(found).problem is not None


# --- one thing at a time


def test_a_planted_fault_is_worse_and_its_cause_is_new(demo: Results, spoilt: Results) -> None:
    one = only(compared(demo, spoilt))
    assert row(one, RowKind.CHECK, "float-int8").change is Change.WORSE
    assert row(one, RowKind.FINDING, INT8_LINK, "calibration-not-representative").change is Change.WORSE
    assert {c.name for c in one.changed} == set(INTEGER)
    assert one.moved is not None
    assert (one.moved.at, one.moved.op) == (INT8_LINK, "Input")
    back = only(compared(spoilt, demo))
    assert back.change is Change.BETTER
    assert row(back, RowKind.FINDING, INT8_LINK, "calibration-not-representative").change is Change.GONE


def test_slow_erosion_under_the_limit_is_worse(demo: Results) -> None:
    """Every check passes as before."""
    head = edited(demo, other_artifacts("calibrated"), error_times(1.3, INT8_LINK))
    one = only(compared(demo, head))
    assert {r.change for r in one.rows if r.kind is RowKind.CHECK} == {Change.SAME}
    link = row(one, RowKind.LINK, INT8_LINK, "logits")
    assert link.change is Change.WORSE
    assert link.low == pytest.approx(1.3)
    assert one.change is Change.WORSE


@pytest.mark.parametrize(("factor", "change"), [(1.05, Change.SAME), (0.96, Change.SAME), (0.7, Change.BETTER)])
def test_errors_that_hardly_grow_are_the_same(factor: float, change: Change, demo: Results) -> None:
    head = edited(demo, other_artifacts("calibrated"), error_times(factor, INT8_LINK))
    assert row(only(compared(demo, head)), RowKind.LINK, INT8_LINK, "logits").change is change


def test_noise_of_floats_is_no_growth(demo: Results) -> None:
    head = edited(demo, other_artifacts("onnx"), error_times(2.5, "pytorch..onnx"))
    assert row(only(compared(demo, head)), RowKind.LINK, "pytorch..onnx", "logits").change is Change.SAME


def test_the_same_artifact_elsewhere_is_drift_and_no_regression(demo: Results) -> None:
    head = edited(demo, environment("hbm", cpu="another"), wrong_on(30, "hbm"), error_times(9, "quantized..hbm"))
    found = compared(demo, head)
    one = only(found)
    assert row(one, RowKind.SCORE, "hbm", "top1").change is Change.DRIFT
    assert not [r for r in one.worse if r.kind in (RowKind.SCORE, RowKind.LINK)]
    assert [(c.name, c.head) for c in one.changed if c.what is Thing.ENVIRONMENT] == [("hbm cpu", "another")]


def test_few_flips_are_noise_and_many_are_not(demo: Results) -> None:
    few, many = (edited(demo, other_artifacts("hbm"), wrong_on(count, "hbm")) for count in (3, 20))
    changes = [row(only(compared(demo, head)), RowKind.SCORE, "hbm", "top1").change for head in (few, many)]
    assert changes == [Change.SAME, Change.WORSE]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ((10.0, 10.1, 10.2), (10.1, 10.15, 10.3), Change.SAME),
        ((10.0, 10.1, 10.2), (10.4, 10.5, 10.6), Change.WORSE),
        ((10.4, 10.5, 10.6), (10.0, 10.1, 10.2), Change.BETTER),
        ((10.0,), (10.4,), Change.SAME),  # measured once
        ((10.0,), (10.6,), Change.WORSE),
    ],
)
def test_latency_counts_beyond_its_spread(
    old: tuple[float, ...], new: tuple[float, ...], change: Change, demo: Results
) -> None:
    base, head = edited(demo, speed(*old)), edited(demo, other_artifacts("hbm"), speed(*new))
    assert row(only(compared(base, head)), RowKind.SPEED, "hbm", "1", "0").change is change


def test_operators_on_the_cpu_and_sizes_are_told_and_do_not_count(demo: Results) -> None:
    base = edited(demo, told("node_info", cpu=("a",), nodes=40), told("artifact", source="hbm", bytes=1000))
    head = edited(demo, told("node_info", cpu=("a", "b"), nodes=40), told("artifact", source="hbm", bytes=1200))
    one = only(compared(base, head))
    assert (row(one, RowKind.BUILD, "node_info", "cpu").base, row(one, RowKind.BUILD, "node_info", "cpu").head) == (
        1,
        2,
    )
    assert row(one, RowKind.BUILD, "hbm", "bytes").change is Change.WORSE
    assert row(one, RowKind.BUILD, "node_info", "nodes").change is Change.SAME
    assert one.change is Change.SAME


@pytest.mark.parametrize(
    ("old", "new", "change", "code"),
    [
        (Outcome.PASSED, Outcome.PASSED, Change.SAME, 0),
        (Outcome.PASSED, Outcome.FAILED, Change.WORSE, 1),
        (Outcome.PASSED, Outcome.ERROR, Change.UNKNOWN, 2),
        (Outcome.PASSED, Outcome.SKIPPED, Change.GONE, 2),
        (Outcome.FAILED, Outcome.PASSED, Change.BETTER, 0),
        (Outcome.FAILED, Outcome.FAILED, Change.SAME, 0),
        (Outcome.FAILED, Outcome.ERROR, Change.UNKNOWN, 2),
        (Outcome.FAILED, Outcome.SKIPPED, Change.GONE, 2),
        (Outcome.ERROR, Outcome.PASSED, Change.UNKNOWN, 2),
        (Outcome.ERROR, Outcome.FAILED, Change.UNKNOWN, 2),
        (Outcome.ERROR, Outcome.ERROR, Change.UNKNOWN, 2),
        (Outcome.ERROR, Outcome.SKIPPED, Change.UNKNOWN, 2),
        (Outcome.SKIPPED, Outcome.PASSED, Change.NEW, 0),
        (Outcome.SKIPPED, Outcome.FAILED, Change.NEW, 0),
        (Outcome.SKIPPED, Outcome.ERROR, Change.UNKNOWN, 2),
        (Outcome.SKIPPED, Outcome.SKIPPED, Change.SAME, 0),
    ],
)
def test_every_pair_of_outcomes(old: Outcome, new: Outcome, change: Change, code: int, demo: Results) -> None:
    """A check that nobody asked for any more is never the same or better."""

    def with_outcome(outcome: Outcome) -> Results:
        (judgement,) = demo.judgements or ()
        checks = tuple(
            replace(check, outcome=outcome) if check.slug == "bc-hbm" else check for check in judgement.checks
        )
        return replace(demo, judgements=(replace(judgement, checks=checks),))

    found = compared(with_outcome(old), with_outcome(new))
    assert row(only(found), RowKind.CHECK, "bc-hbm").change is change
    assert found.exit_code == code


@pytest.mark.parametrize("shift", [0, 1])
def test_scores_by_other_labels_are_incomparable(demo: Results, shift: int) -> None:
    """By what the labels of the samples say, not by the file that says it."""

    def relabelled(facts: Facts) -> Facts:
        specs = tuple(replace(spec, labels="other") for spec in facts.plan.scores)
        scores = []
        for records in facts.scores:
            values = records.values.copy()
            values[:, records.columns.index("label")] += shift
            scores.append(replace(records, values=values))
        return replace(facts, plan=replace(facts.plan, scores=specs), scores=tuple(scores))

    found = compared(demo, edited(demo, relabelled))
    one = only(found)
    assert row(one, RowKind.SCORE, "hbm", "top1").change is (Change.UNKNOWN if shift else Change.SAME)
    assert bool([r for r in one.rows if r.kind is RowKind.LOSS]) is not bool(shift)
    assert [c.name for c in one.changed if c.what is Thing.SCORING] == (["top1 labels"] if shift else [])
    assert found.exit_code == (2 if shift else 0)


def test_nothing_finite_any_more_is_worse(demo: Results) -> None:
    def broken(facts: Facts) -> Facts:
        made = []
        for m in facts.measurements:
            counts = m.rows.broken.copy()
            counts[0] = 1 if m.link == "quantized..hbm" else counts[0]
            made.append(replace(m, rows=replace(m.rows, broken=counts)))
        return replace(facts, measurements=tuple(made))

    link = row(only(compared(demo, edited(demo, broken))), RowKind.LINK, "quantized..hbm", "logits")
    assert (link.change, link.head_text) == (Change.WORSE, "NaN")


def test_subjects_that_only_one_version_has(demo: Results, spoilt: Results) -> None:
    def called(name: str, results: Results) -> Results:
        return edited(results, lambda facts: replace(facts, plan=replace(facts.plan, subject=name)))

    found = compared(called("old", demo), called("new", demo))
    assert (found.new, found.gone, found.subjects) == ((("new", "J6M"),), (("old", "J6M"),), ())
    assert found.exit_code == 2


def test_another_target_of_the_same_subject_is_compared_and_said(demo: Results) -> None:
    head = edited(demo, lambda facts: replace(facts, plan=replace(facts.plan, target="J6P")))
    one = only(compared(demo, head))
    assert one.target == "J6P"
    assert (one.changed[0].what, one.changed[0].base, one.changed[0].head) == (Thing.TARGET, "J6M", "J6P")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from("abcdef"), max_size=12), st.lists(st.sampled_from("abcdef"), max_size=12))
def test_samples_are_paired_one_to_one_by_content(old: list[str], new: list[str]) -> None:
    base = SampleSet("s", tuple(f"o{n}" for n in range(len(old))), tuple(old))
    head = SampleSet("s", tuple(f"n{n}" for n in range(len(new))), tuple(new))
    pairs = pair_samples(base, head)
    content = dict(zip((*base.ids, *head.ids), (*old, *new), strict=True))
    assert all(content[theirs] == content[mine] for theirs, mine in pairs.names.items())
    assert len(set(pairs.names.values())) == len(pairs.names)
    assert pairs.counts.common == sum(min(old.count(letter), new.count(letter)) for letter in "abcdef")


# --- the verb


def write(results: Results, folder: Path) -> Path:
    write_all(folder, encode_results(results))
    return folder


def test_the_verb_says_what_is_worse_and_writes_it(demo: Results, spoilt: Results, tmp_path: Path) -> None:
    v1, v2 = write(demo, tmp_path / "v1"), write(spoilt, tmp_path / "v2")
    told = call("compare", v1, v2, "--out", tmp_path / "out")
    assert (told.code, told.err) == (1, "")
    assert "digits J6M: v1 → v2" in told.out
    assert f"It begins at {INT8_LINK}" in told.out
    assert "worse: check float-int8, PASS → FAIL" in told.out
    document = json.loads((tmp_path / "out" / "comparison.json").read_bytes())
    Draft202012Validator(dict(comparison_schema())).validate(document)
    assert (document["schema"], document["change"], document["exit_code"]) == ("driftgate.comparison", "worse", 1)
    assert "| ❌&nbsp;worse | check `float-int8` | PASS | FAIL |  |" in (tmp_path / "out" / "comparison.md").read_text()
    assert json.loads(call("compare", v1, v2, "--json").out) == document
    assert call("compare", v2, v1).code == 0


def test_several_versions_are_a_trend_with_bars(demo: Results, spoilt: Results, tmp_path: Path) -> None:
    places = [write(one, tmp_path / name) for name, one in (("v1", demo), ("v2", spoilt), ("v3", demo))]
    told = call("compare", *places, "--out", tmp_path / "out")
    assert told.code == 0  # the last against the first
    line = next(line for line in told.out.splitlines() if "score top1 at hbm" in line and "▁" in line)
    assert line.split()[-4:] == ["356/360", "28/360", "356/360", "█▁█"]
    assert "`█▁█`" in (tmp_path / "out" / "comparison.md").read_text("utf-8")
    steps = [compared(demo, spoilt), compared(spoilt, demo)]
    found = {one.row.key: one for one in trends(steps)}
    assert found["hbm", "top1"].values == pytest.approx((356 / 360, 28 / 360, 356 / 360))
    assert found["hbm", "top1"].worst is Change.WORSE


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_versions_are_a_usage_error(count: int, tmp_path: Path) -> None:
    told = call("compare", *[tmp_path] * count)
    assert told.code == 2
    assert "two versions or more" in told.err


def test_a_shard_and_a_missing_version_are_told(demo: Results, tmp_path: Path) -> None:
    whole, shard = write(demo, tmp_path / "v1"), write(replace(demo, judgements=None), tmp_path / "shard")
    told = call("compare", whole, shard)
    assert (told.code, "is a shard" in told.err) == (2, True)
    assert call("compare", whole, tmp_path / "nothing").code == 2


def test_a_bundle_is_a_version(tmp_path: Path) -> None:
    assert call("demo", "--fault", "calibration-range", "--out", tmp_path / "out").code == 1
    told = call("compare", tmp_path / "out", tmp_path / "out" / "bundle.zip")
    assert (told.code, told.err) == (0, "")


# --- a baseline of a check


def test_reports_of_a_check_with_a_baseline_have_the_comparison(demo: Results, tmp_path: Path) -> None:
    baseline, out = write(demo, tmp_path / "main"), tmp_path / "out"
    assert call("demo", "--fault", "calibration-range", "--out", tmp_path / "made").code == 1
    config = tmp_path / "made" / "project" / "driftgate.yaml"
    told = call("check", "-c", config, "--baseline", baseline, "--out", out)
    assert told.code == 1
    said = "worse than main: 9 worse"
    assert said in told.out
    for report in ("summary.md", "comment.md", "index.html"):
        assert said in (out / report).read_text("utf-8"), report
    stored = read_results(out).comparison
    assert stored is not None
    assert stored.change is Change.WORSE
    again = call("report", out, "--baseline", baseline, "--out", tmp_path / "again")
    assert said in again.out


@pytest.mark.parametrize("broken", ["absent", "garbled", "newer"])
def test_a_baseline_that_cannot_be_used_is_said_and_changes_no_verdict(
    broken: str, demo: Results, tmp_path: Path
) -> None:
    baseline = write(demo, tmp_path / "main")
    if broken == "absent":
        baseline = tmp_path / "nothing"
    elif broken == "garbled":
        (baseline / "results.json").write_text("{")
    else:
        document = json.loads((baseline / "results.json").read_bytes())
        (baseline / "results.json").write_text(json.dumps({**document, "version": 2}))
    out = tmp_path / "out"
    told = call("check", "-c", "demo", "--baseline", baseline, "--out", out)
    assert told.code == 0
    assert "no comparison with the baseline" in told.out
    assert "no comparison with the baseline" in (out / "summary.md").read_text("utf-8")
    stored = read_results(out).comparison
    assert stored is not None
    assert (stored.change, stored.exit_code) == (Change.UNKNOWN, 2)


def test_the_comparison_comes_back_as_it_was_written(demo: Results, spoilt: Results, tmp_path: Path) -> None:
    made = replace(spoilt, comparison=compared(demo, spoilt))
    assert read_results(write(made, tmp_path / "out")).comparison == made.comparison
