"""Waivers: what they excuse, until when, and that everybody sees them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from driftgate.demo.build import build
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import (
    Finding,
    Judgement,
    Limit,
    Outcome,
    Policy,
    Verdict,
    Waiver,
    WaiverKind,
    WaiverState,
)
from driftgate.judgement.judge import judge
from driftgate.judgement.waivers import waived
from driftgate.storage.document import read_results
from support.commandline import call
from support.results import failing_pair

TODAY, PAST, FUTURE = "2026-12-01", "2026-11-30", "2027-01-31"
LINK, CHECK, CODE = "quantized..hbm", "bc-hbm", "device-op-error"
NAMES = {
    WaiverKind.CHECK: (CHECK, "board"),
    WaiverKind.LINK: (LINK, "calibrated..ptq"),
    WaiverKind.FINDING: (CODE, "bn-fold-error"),
}


def waiver(**changes: Any) -> Waiver:
    """One that excuses the failing check of failing_pair()."""
    return replace(Waiver("digits", WaiverKind.CHECK, CHECK, "known", "somebody", FUTURE), **changes)


def excused(*waivers: Waiver, judgement: Judgement | None = None) -> tuple[bool, tuple[WaiverState, ...]]:
    """Whether the failing check is excused, and what became of the waivers."""
    judged = judgement or failing_pair()[1]
    checks = tuple(replace(check, hidden=False) for check in judged.checks if check.slug == CHECK)
    finding = Finding(CODE, LINK, confirmed=True, evidence=())
    policy = Policy(waivers=waivers, today=TODAY)
    ((check,), uses) = waived(checks, (*judged.findings, finding), policy, "digits", "J6M")
    return check.waived, tuple(use.state for use in uses)


@dataclass(frozen=True)
class Case:
    """One row of the truth table."""

    kind: WaiverKind
    is_of_it: bool
    subject: str
    target: str
    expires: str
    limit: str  # none, wide enough, too tight, or of another criterion


CASES = tuple(
    Case(*row)
    for row in product(
        WaiverKind,
        (True, False),
        ("digits", "other"),
        ("", "J6M", "J6P"),
        (PAST, TODAY, FUTURE),
        ("none", "wide", "tight", "other"),
    )
)


def test_every_combination() -> None:
    """432 rows: every condition must hold at once. Both failures of the check are numbers, of two criteria."""
    assert len(CASES) == 432
    wrong = []
    for case in CASES:
        limits = {
            "none": (),
            "wide": (("decimals", 1.0), ("score-drop", 0.5)),
            "tight": (("decimals", 0.5), ("score-drop", 0.5)),
            "other": (("cosine", 0.0),),
        }[case.limit]
        one = waiver(
            kind=case.kind,
            on=NAMES[case.kind][0 if case.is_of_it else 1],
            subject=case.subject,
            target=case.target,
            expires=case.expires,
            limits=limits,
        )
        fits = case.is_of_it and case.limit in ("none", "wide")
        touches = case.is_of_it and case.limit != "other"  # of two failures the tight one is of one
        ours = case.subject == "digits" and case.target in ("", "J6M")
        holds = case.expires >= TODAY
        state = {
            (True, True): WaiverState.USED,
            (True, False): WaiverState.EXPIRED_IN_USE,
            (False, True): WaiverState.UNUSED,
            (False, False): WaiverState.EXPIRED,
        }[touches, holds]
        if excused(one) != (fits and ours and holds, (state,) if ours else ()):
            wrong.append(case)
    assert wrong == []


def test_several_waivers_may_cover_the_failures_of_one_check() -> None:
    decimals = waiver(kind=WaiverKind.LINK, on=LINK, limits=(("decimals", 1.0),))
    drop = waiver(kind=WaiverKind.LINK, on=LINK, limits=(("score-drop", 0.1),))
    assert excused(decimals) == (False, (WaiverState.USED,))
    assert excused(decimals, drop) == (True, (WaiverState.USED, WaiverState.USED))


def test_what_could_not_be_established_is_never_excused() -> None:
    _, judgement = failing_pair()
    checks = tuple(
        replace(check, verdicts=(*check.verdicts, Verdict(LINK, "other", Outcome.ERROR)))
        if check.slug == CHECK
        else check
        for check in judgement.checks
    )
    assert excused(waiver(), judgement=replace(judgement, checks=checks))[0] is False


@pytest.mark.parametrize("code", ["stale-artifact", "incomplete-evidence"])
@pytest.mark.parametrize("kind", WaiverKind)
def test_evidence_of_something_else_is_never_excused(kind: WaiverKind, code: str) -> None:
    """Neither by its check, nor by its link, nor by its own name, however bad it may be."""
    judged = failing_pair()[1]
    stale = Finding(code, LINK, confirmed=True, evidence=())
    names = {WaiverKind.CHECK: CHECK, WaiverKind.LINK: LINK, WaiverKind.FINDING: code}
    found = excused(waiver(kind=kind, on=names[kind]), judgement=replace(judged, findings=(*judged.findings, stale)))
    assert found == (False, (WaiverState.UNUSED,))
    suspected = replace(stale, confirmed=False)
    seen = excused(waiver(), judgement=replace(judged, findings=(*judged.findings, suspected)))
    assert seen == (True, (WaiverState.USED,))


def test_a_suspected_cause_is_no_reason_to_excuse() -> None:
    _, judgement = failing_pair()
    checks = tuple(check for check in judgement.checks if check.slug == CHECK)
    suspected = Finding(CODE, LINK, confirmed=False, evidence=())
    policy = Policy(waivers=(waiver(kind=WaiverKind.FINDING, on=CODE),), today=TODAY)
    ((check,), _) = waived(checks, (suspected,), policy, "digits", "J6M")
    assert not check.waived


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """Of the demo with another calibration: two checks fail, the second is the board's score."""
    out = tmp_path_factory.mktemp("spoilt")
    assert call("demo", "--fault", "calibration-range", "--out", out).code == 1
    (found,) = read_results(out).facts
    return found


def test_the_first_failure_is_the_first_that_nobody_excuses(facts: Facts) -> None:
    policy = Policy(waivers=(waiver(on="float-int8"),), today=TODAY)
    judgement = judge(facts, policy)
    assert (judgement.outcome, judgement.first_failure) == (Outcome.FAILED, "board")
    assert judgement.check("float-int8").outcome is Outcome.FAILED
    assert not judgement.check("bc-hbm").hidden
    both = replace(policy, waivers=(*policy.waivers, waiver(on="board")))
    judgement = judge(facts, both)
    assert (judgement.outcome, judgement.first_failure) == (Outcome.PASSED, None)
    assert {check.slug for check in judgement.checks if check.waived} == {"float-int8", "board"}


def test_a_waiver_passes_nothing_else(facts: Facts) -> None:
    """A stricter limit elsewhere still fails."""
    waivers = (waiver(on="float-int8"), waiver(on="board"))
    strict = (("pytorch-onnx", (Limit("cosine", 1.1),)),)
    judgement = judge(facts, Policy(waivers=waivers, today=TODAY, limits=strict))
    assert (judgement.outcome, judgement.first_failure) == (Outcome.FAILED, "pytorch-onnx")


# --- as people see it


def project(folder: Path, *waivers: dict[str, Any]) -> Path:
    """The demo with another calibration and these waivers."""
    config = build(folder / "project", "calibration-range")
    document = yaml.safe_load(config.read_text("utf-8"))
    document["waivers"] = [{"subject": "digits", "reason": "see #12", "owner": "quant-team", **one} for one in waivers]
    config.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return config


def test_every_report_shows_what_is_waived(tmp_path: Path) -> None:
    config = project(
        tmp_path,
        {"link": "optimized_float..calibrated", "expires": "2999-12-31"},
        {"check": "board", "expires": "2999-12-31", "limit": {"score-drop": "95%"}},
        {"finding": "bn-fold-error", "expires": "2999-12-31"},
        {"check": "bc-hbm", "expires": "2001-01-01"},
    )
    out = tmp_path / "out"
    told = call("check", "-c", config, "--out", out)
    assert (told.code, told.err) == (0, "")
    assert "PASS 4 of 6 (2 waived)" in told.out
    row = next(line for line in told.out.splitlines() if line.startswith("Float ↔ INT8"))
    assert "FAIL" in row
    assert "waived by quant-team until 2999-12-31: see #12" in row
    for said in (
        "waiver: optimized_float..calibrated may fail until 2999-12-31, says quant-team: see #12",
        "warning: the waiver of bn-fold-error excuses nothing; remove it",
        "the waiver of bc-hbm ended on 2001-01-01; remove it",
    ):
        assert said in told.out
    for report in ("summary.md", "comment.md", "index.html"):
        written = (out / report).read_text("utf-8")
        assert "2 waived" in written, report
        assert written.count("may fail until") == 2, report
        assert "excuses nothing" in written, report
    root = ElementTree.parse(out / "junit.xml").getroot()
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    skipped = [case.find("skipped") for case in root.iter("testcase")]
    reasons = [one.get("message", "") for one in skipped if one is not None]
    assert len(reasons) == 2
    assert all(reason.startswith("waived by quant-team") for reason in reasons)
    annotations = json.loads((out / "annotations.json").read_bytes())
    assert not [one for one in annotations if one["level"] == "error"]
    assert [one for one in annotations if "(waived)" in one["message"]]
    (judgement,) = read_results(out).judgements or ()
    assert sorted(use.state.value for use in judgement.waivers) == ["expired", "unused", "used", "used"]


def test_an_expired_waiver_excuses_nothing_and_says_so(tmp_path: Path) -> None:
    config = project(tmp_path, *({"check": check, "expires": "2001-01-01"} for check in ("float-int8", "board")))
    told = call("check", "-c", config, "--out", tmp_path / "out")
    assert told.code == 1
    assert "the waiver of float-int8 ended on 2001-01-01, and it still fails (quant-team: see #12)" in told.out


def test_a_gate_has_a_line_for_every_waiver(tmp_path: Path) -> None:
    """An expired one fails until it is removed, also where nothing fails any more."""
    config = project(
        tmp_path,
        {"check": "float-int8", "expires": "2999-12-31"},
        {"check": "board", "expires": "2999-12-31"},
        {"check": "baseline", "expires": "2999-12-31"},
    )
    document = yaml.safe_load(config.read_text("utf-8"))
    document["policies"] = {"release": {"samples": 10}}
    config.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    out = tmp_path / "out"
    assert call("check", "-c", config, "--out", out).code == 0
    told = call("gate", out, "-c", config, "--policy", "release")
    assert told.code == 0
    lines = told.out.splitlines()
    assert "waived by quant-team" in next(line for line in lines if "check float-int8" in line)
    assert sum("waiver of" in line and line.startswith("PASS") for line in lines) == 3
    assert any("excuses nothing" in line for line in lines)
    document["waivers"][2]["expires"] = "2001-01-01"
    config.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    told = call("gate", out, "-c", config, "--policy", "release")
    assert told.code == 1
    assert "FAIL" in next(line for line in told.out.splitlines() if "waiver of baseline" in line)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"check": "nothing", "expires": "2999-12-31"}, "there is no check nothing; known: baseline"),
        ({"link": "onnx..nowhere", "expires": "2999-12-31"}, "there is no link onnx..nowhere; known"),
        ({"finding": "bad-luck", "expires": "2999-12-31"}, "there is no finding bad-luck; known"),
        ({"finding": "stale-artifact", "expires": "2999-12-31"}, "nobody can waive stale-artifact"),
        ({"check": "board", "subject": "nobody", "expires": "2999-12-31"}, "there is no subject nobody; known: digits"),
        ({"check": "board", "link": "a..b", "expires": "2999-12-31"}, "one check, link or finding"),
        ({"expires": "2999-12-31"}, "one check, link or finding"),
        ({"check": "board"}, "waivers.0 lacks the key expires"),
        ({"check": "board", "expires": "soon"}, "waivers.0.expires"),
        ({"check": "board", "expires": "2999-12-31", "owner": ""}, "waivers.0.owner"),
        ({"check": "board", "expires": "2999-12-31", "reason": ""}, "waivers.0.reason"),
        ({"check": "board", "expires": "2999-12-31", "limit": {"luck": 1}}, "waivers.0.limit"),
    ],
)
def test_a_waiver_that_means_nothing_is_a_configuration_error(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    told = call("check", "-c", project(tmp_path, wrong), "--out", tmp_path / "out")
    assert told.code == 2
    assert said in told.err, told.err
