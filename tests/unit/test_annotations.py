"""Annotations: few, the worst first, on the line of the configuration that is concerned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from driftgate.domain.judgement import Outcome
from driftgate.domain.results import Results, Tool
from driftgate.messages.message import Message, message
from driftgate.reporting.annotations import MOST, Annotation, Level, annotate, encoded
from support.commandline import call, process
from support.results import (
    error,
    error_pair,
    failing,
    failing_pair,
    healthy,
    healthy_pair,
    results,
    segment_two,
    several,
    verdict,
)

FILE = "models/driftgate.yaml"
PLACES = {
    ("subjects", "digits", "artifacts", "hbm"): 12,
    ("subjects", "digits", "samples"): 20,
    ("subjects", "digits", "outputs"): 24,
    ("subjects", "digits", "score"): 30,
    ("subjects", "digits"): 4,
}


def line(place: Sequence[str]) -> int:
    """As `Lines.of`: the nearest place around it that there is."""
    return next((PLACES[key] for n in range(len(place), 0, -1) if (key := tuple(place[:n])) in PLACES), 1)


def made(of: Results) -> tuple[Annotation, ...]:
    return annotate(of, file=FILE, line=line)


def test_a_broken_limit_is_an_error_at_the_candidates_artifact() -> None:
    first, second = made(failing())
    assert first == Annotation(
        Level.ERROR,
        "digits: BC ↔ HBM FAIL",
        "quantized → hbm, logits, sample 0137, channel 3: max abs error is 0.5625, wanted ≤ 1e-05",
        FILE,
        12,
    )
    assert second.message == "quantized → hbm, top1: score drop is 1.124 %, wanted ≤ 1 %"


def test_what_stands_behind_the_first_failure_is_not_blamed() -> None:
    assert not [one for one in made(failing()) if "J6 Regression" in one.title]


@pytest.mark.parametrize("of", [healthy(), segment_two()])
def test_where_all_is_well_there_is_nothing_to_say(of: Results) -> None:
    assert made(of) == ()


def test_what_could_not_be_established_is_an_error_said_once() -> None:
    (only,) = made(error())
    assert only == Annotation(
        Level.ERROR, "digits: BC ↔ HBM ERROR", "quantized → hbm: no leg has reported the stage hbm", FILE, 12
    )


@pytest.mark.parametrize("of", [Results(Tool("driftgate", "0.1.0"), (), None), results()])
def test_nothing_judged_is_an_error(of: Results) -> None:
    assert made(of) == (Annotation(Level.ERROR, "driftgate", "ERROR: nothing was judged"),)


def test_an_error_without_a_row_is_still_an_error() -> None:
    facts, judged = healthy_pair()
    (only,) = made(results((facts, replace(judged, outcome=Outcome.ERROR))))
    assert (only.level, only.line) == (Level.ERROR, 4)


def test_a_check_that_no_verdict_accounts_for_says_its_note() -> None:
    facts, judged = healthy_pair()
    checks = list(judged.checks)
    note = message("not-asked", stages=("hbm",))
    checks[4] = replace(checks[4], outcome=Outcome.ERROR, verdicts=(), notes=(note,))
    (only,) = made(results((facts, replace(judged, outcome=Outcome.ERROR, checks=tuple(checks)))))
    assert only.message == "bc-hbm: not asked for: no hbm"


def test_what_the_policy_does_not_require_is_a_warning() -> None:
    facts, judged = failing_pair()
    checks = tuple(replace(check, required=check.slug not in ("bc-hbm", "board")) for check in judged.checks)
    found = made(results((facts, replace(judged, outcome=Outcome.PASSED, checks=checks))))
    assert {one.level for one in found} == {Level.WARNING}
    assert all(one.message.endswith("; not required by the policy") for one in found)


@pytest.mark.parametrize(
    ("note", "at"),
    [
        (message("runtime-from-raw", stage="hbm"), 20),
        (message("outputs-extra", stage="hbm", outputs=("x",)), 24),
        (message("step-unknown"), 12),
    ],
)
def test_notes_that_weaken_a_verdict_are_warnings(note: Message, at: int) -> None:
    facts, judged = healthy_pair()
    runs = (*facts.runs[:-1], replace(facts.runs[-1], notes=(note,)))
    (only,) = made(results((replace(facts, runs=runs), judged)))
    assert (only.level, only.title, only.line) == (Level.WARNING, "digits: hbm", at)


def test_ordinary_notes_are_not_worth_it() -> None:
    facts, judged = healthy_pair()
    assert made(results((replace(facts, runs=(replace(facts.runs[0], notes=(message("bit-equal"),)),)), judged))) == ()


@pytest.mark.parametrize(
    ("reason", "at"),
    [
        (message("output-unpaired", output="a", stage="hbm", others=("b",)), 24),
        (message("samples-partial", done=1, planned=2), 12),
        (message("random-samples"), 20),
        (message("score-incomplete", score="top1", stage="hbm"), 30),
        (message("worker-died", stage="hbm"), 12),
        (message("nothing-compared"), 12),
        (message("run-missing", stage="elsewhere"), 4),
    ],
)
def test_a_reason_stands_where_it_can_be_changed(reason: Message, at: int) -> None:
    facts, judged = error_pair()
    checks = tuple(
        replace(check, verdicts=tuple(replace(one, reason=reason) for one in check.verdicts))
        if check.outcome is Outcome.ERROR
        else check
        for check in judged.checks
    )
    (only,) = made(results((facts, replace(judged, checks=checks))))
    assert (only.file, only.line) == (FILE, at)


def test_the_worst_of_every_subject_comes_before_anyones_second() -> None:
    found = made(results(failing_pair("a"), error_pair("b"), failing_pair("c")))
    assert [one.title.split(" ")[0] for one in found] == ["a:", "c:", "a:", "c:", "b:"]
    assert "0.5625" in found[0].message and "0.5625" in found[1].message


def test_no_more_of_a_level_than_are_shown_and_the_rest_is_counted() -> None:
    facts, judged = failing_pair()
    checks = list(judged.checks)
    broken = tuple(
        replace(verdict("quantized..hbm", "decimals", float(n + 1), 1e-5, failed=True), output=f"out{n}")
        for n in range(25)
    )
    checks[4] = replace(checks[4], verdicts=broken)
    found = made(results((facts, replace(judged, checks=tuple(checks)))))
    assert len(found) == MOST
    assert "out24" in found[0].message and "max abs error is 25" in found[0].message
    assert found[-1].message == "17 more like these; the job summary has them all"


def test_without_a_configuration_there_is_no_place() -> None:
    assert {(one.file, one.line) for one in annotate(several())} == {(None, None)}
    assert {(one.file, one.line) for one in annotate(several(), file=FILE)} == {(FILE, None)}


def test_the_file_is_a_list_of_plain_objects() -> None:
    (first, *_) = json.loads(encoded(made(failing())))
    assert first == {
        "level": "error",
        "title": "digits: BC ↔ HBM FAIL",
        "message": "quantized → hbm, logits, sample 0137, channel 3: max abs error is 0.5625, wanted ≤ 1e-05",
        "file": FILE,
        "line": 12,
    }
    assert json.loads(encoded(())) == []


RUN = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_API_URL": "https://api.github.com",
    "GITHUB_REPOSITORY": "acme/models",
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_EVENT_PATH": "",
    "GITHUB_WORKFLOW": "CI",
    "GITHUB_RUN_ID": "9",
    "GITHUB_RUN_NUMBER": "42",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_SHA": "a" * 40,
}


def test_a_check_leaves_comment_and_annotations_in_its_folder(tmp_path: Path) -> None:
    answer = process("check", "-c", "demo:board-padding", "--out", "report", folder=tmp_path, environment=RUN)
    assert answer.code == 1
    found = json.loads((tmp_path / "report" / "annotations.json").read_text("utf-8"))
    config = (tmp_path / found[0]["file"]).read_text("utf-8").splitlines()
    assert found[0]["title"] == "digits: BC ↔ HBM FAIL"
    assert config[found[0]["line"] - 1].strip().startswith("hbm:")
    comment = (tmp_path / "report" / "comment.md").read_text("utf-8")
    assert comment.startswith("### ❌ `digits` · J6M · FAIL at BC ↔ HBM\n\nCommit `aaaaaaa` · run 42, attempt 1\n")
    assert "[Job summary](<https://github.com/acme/models/actions/runs/9>)" in comment
    assert "max abs error of logits, sample by sample (360" in comment


def test_wrong_variables_of_a_run_are_no_reason_to_have_no_report(tmp_path: Path) -> None:
    environment = RUN | {"GITHUB_SHA": "x", "GITHUB_RUN_ID": "-1"}
    answer = process("check", "-c", "demo", "--out", "report", folder=tmp_path, environment=environment)
    assert answer.code == 0
    assert "Commit" not in (tmp_path / "report" / "comment.md").read_text("utf-8")
    assert "GITHUB_SHA" in (tmp_path / "report" / "driftgate.log").read_text("utf-8")


def test_elsewhere_the_comment_has_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert call("check", "-c", "demo", "--out", tmp_path / "report").code == 0
    comment = (tmp_path / "report" / "comment.md").read_text("utf-8")
    assert comment.startswith("### ✅ `digits` · J6M · PASS 6 of 6\n\n| Check |")
    assert "](<" not in comment
    assert json.loads((tmp_path / "report" / "annotations.json").read_text("utf-8")) == []


def test_a_healthy_subject_among_others_is_not_mentioned() -> None:
    assert not [one for one in made(several()) if one.title.startswith("digits")]
