"""Whose policies judge a change: those of the base branch; and limits of one subject, which only ever tighten."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from driftgate.domain.chain import PTQ
from driftgate.domain.comparisons import Thing
from driftgate.domain.judgement import Limit, LimitOrigin, Policy
from driftgate.domain.results import Results
from driftgate.judgement.limits import Nature, is_stricter, output_limits, performance_limits, score_limit
from driftgate.settings.load import load
from driftgate.settings.ruling import differences, ruled
from driftgate.storage.document import encode_results, read_results
from driftgate.storage.folder import write_all
from support.commandline import Answer, call
from support.edits import edited, undeclared, wrong_on

INTEGER = ("calibrated", "ptq", "quantized", "hbm")
INT8_LINK = "optimized_float..calibrated"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The healthy demo, with its project."""
    out = tmp_path_factory.mktemp("demo")
    assert call("demo", "--out", out).code == 0
    return out


@pytest.fixture(scope="module")
def lossy(demo: Path) -> Results:
    """INT8 loses five samples of 360: 1.4 %."""
    return edited(read_results(demo), undeclared, wrong_on(5, *INTEGER))


@dataclass
class Change:
    """A change of the configuration, and results to judge."""

    folder: Path
    results: Results

    def configured(self, name: str, **changes: Any) -> Path:
        """The demo's configuration with other keys."""
        document = yaml.safe_load((self.folder / "driftgate.yaml").read_text("utf-8")) | changes
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
        return path

    def judged(self, own: Mapping[str, Any], base: Mapping[str, Any] | None, *options: str) -> Answer:
        """Judge the change by its own and the base's configuration."""
        write_all(self.folder / "facts", encode_results(replace(self.results, judgements=None)))
        held = () if base is None else ("--base-config", str(self.configured("base", **base)))
        return call(
            *("report", self.folder / "facts", "-c", self.configured("own", **own), "--out", self.folder / "out"),
            *held,
            *options,
        )

    @property
    def written(self) -> Results:
        return read_results(self.folder / "out")


@pytest.fixture
def change(demo: Path, lossy: Results, tmp_path: Path) -> Change:
    shutil.copytree(demo / "project", tmp_path / "project")
    return Change(tmp_path / "project", lossy)


def policy(drop: str, **more: Any) -> dict[str, Any]:
    return {"policies": {"pr": {"float-int8": {"score-drop": drop}, "board": {"score-drop": drop}, **more}}}


def waiver(check: str) -> dict[str, Any]:
    told = {"subject": "digits", "reason": "known", "owner": "somebody", "expires": "2999-12-31"}
    return {**told, "check": check}


# --- the base branch's policies


def test_a_change_cannot_loosen_its_own_gate(change: Change) -> None:
    own, base = policy("5%"), policy("1%")
    assert change.judged(own, None, "--policy", "pr").code == 0
    told = change.judged(own, base, "--policy", "pr")
    assert told.code == 1
    said = "once it is merged, this change alters: float-int8 score-drop 0.01 → 0.05, board score-drop 0.01 → 0.05"
    assert said in told.out
    for name in ("summary.md", "comment.md", "index.html"):
        assert "float-int8 score-drop" in (change.folder / "out" / name).read_text("utf-8").replace("&#45;", "-")
    assert [(one.what, one.name, one.base, one.head) for one in change.written.pending] == [
        (Thing.POLICY, "digits float-int8 score-drop", "0.01", "0.05"),
        (Thing.POLICY, "digits board score-drop", "0.01", "0.05"),
    ]


def test_what_it_tightens_takes_effect_once_it_is_merged(change: Change) -> None:
    assert change.judged(policy("1%"), policy("5%"), "--policy", "pr").code == 0
    assert [one.head for one in change.written.pending] == ["0.01", "0.01"]


def test_the_same_policies_are_not_told(change: Change) -> None:
    told = change.judged(policy("5%"), policy("5%"), "--policy", "pr")
    assert (told.code, change.written.pending) == (0, ())
    assert "base branch" not in told.out


def test_it_cannot_bring_its_own_waiver(change: Change) -> None:
    waivers = {"waivers": [waiver("float-int8"), waiver("board")]}
    assert change.judged(waivers, None).code == 0
    told = change.judged(waivers, {})
    assert told.code == 1
    assert [(one.name, one.base) for one in change.written.pending] == [
        ("digits waiver float-int8", ""),
        ("digits waiver board", ""),
    ]
    assert change.judged({}, waivers).code == 0  # and that of the branch it cannot take away


def test_it_cannot_name_a_policy_that_only_it_has(change: Change) -> None:
    told = change.judged(policy("50%"), {}, "--policy", "pr")
    assert told.code == 2
    assert "the base branch has no policy pr" in told.err
    assert not (change.folder / "out" / "results.json").exists()


def test_a_policy_that_it_takes_away_holds(change: Change) -> None:
    told = change.judged({}, policy("1%"), "--policy", "pr")
    assert told.code == 1
    assert "this change alters: policy pr → –" in told.out


def test_a_branch_whose_configuration_is_not_valid_has_no_policies(change: Change) -> None:
    told = change.judged(policy("5%"), {"subjects": 3}, "--policy", "pr")
    assert told.code == 0
    assert "not valid" in (change.folder / "out" / "driftgate.log").read_text("utf-8")


def test_its_own_declared_speed_and_limits_do_not_hold_either(change: Change) -> None:
    document = yaml.safe_load((change.folder / "driftgate.yaml").read_text("utf-8"))
    subject = document["subjects"]["digits"]
    fast = {"subjects": {"digits": {**subject, "speed": {"latency-ms": 4.0}, "limits": {INT8_LINK: {"sqnr": 3}}}}}
    slow = {"subjects": {"digits": {**subject, "speed": {"latency-ms": 9.0}}}}
    change.judged(slow, fast)
    assert [(one.name, one.base, one.head) for one in change.written.pending] == [
        ("digits limits optimized_float..calibrated sqnr", "3", ""),
        ("digits speed latency_ms", "4", "9"),
    ]


def test_a_subject_that_only_the_change_has_is_judged_by_the_branchs_policy(change: Change) -> None:
    """With its own checks, and without waivers."""
    base = yaml.safe_load((change.folder / "driftgate.yaml").read_text("utf-8"))
    other = {"subjects": {"other": base["subjects"]["digits"]}, **policy("1%", require="all")}
    own, theirs = change.configured("own", **policy("5%")), change.configured("base", **other)
    ruling = ruled(load(own), load(theirs, for_policy=True), "pr", ["digits"])
    held = ruling.policies["digits"]
    assert held.required == tuple(check.slug for check in PTQ.checks)
    assert dict(held.limits)["float-int8"][0].value == 0.01
    assert ("digits require", "") in [(one.name, one.head) for one in ruling.pending]


def test_check_takes_the_branchs_policies_too(change: Change) -> None:
    base = change.configured("base", **policy("5%", samples=9, **{INT8_LINK: {"sqnr": 1000}}))
    own = change.configured("own", **policy("5%"))
    told = call("check", "-c", own, "--policy", "pr", "--base-config", base, "--out", change.folder / "out")
    assert told.code == 1  # nothing is that exact
    assert "samples 9 → –" in told.out
    assert [one.name for one in change.written.pending] == [f"digits {INT8_LINK} sqnr", "digits samples"]


def test_in_chinese(change: Change) -> None:
    told = call("--lang", "zh", "report", "--help")
    assert told.code == 0
    write_all(change.folder / "facts", encode_results(change.results))
    own, base = change.configured("own", **policy("5%")), change.configured("base", **policy("1%"))
    told = call(
        *("--lang", "zh", "report", change.folder / "facts", "-c", own, "--base-config", base, "--policy", "pr"),
        *("--out", change.folder / "out"),
    )
    changes = "float-int8 score-drop 0.01 → 0.05、board score-drop 0.01 → 0.05"
    assert f"按基准分支的策略判定；合并之后，本次改动会改变：{changes}" in told.out


SAYS: Mapping[str, Mapping[str, Any]] = {
    "limit": {"bc-hbm": {"max-abs": 1}},
    "require": {"require": ["board"]},
    "uncertainty": {"uncertainty": "fail"},
    "accepts": {"accepts": ["rounding-lsb"]},
    "samples": {"samples": 9},
    "skipped": {"skipped": "fail"},
    "regressions": {"regressions": "fail"},
    "history": {"history": {"score-drop": 0.1}},
    "same-commit": {"same-commit": True},
    "same-artifacts": {"same-artifacts": True},
    "same-versions": {"same-versions": True},
    "board-days": {"board-days": 3},
}


@pytest.mark.parametrize("said", SAYS)
def test_every_word_of_a_policy_is_told_where_it_changes(change: Change, said: str) -> None:
    without, own = change.configured("base", policies={"p": {}}), change.configured("own", policies={"p": SAYS[said]})
    bare, full = (load(path).policy("p", "digits") for path in (without, own))
    assert bare != full
    assert list(differences(bare, full, "digits")) != []
    assert list(differences(full, full, "digits")) == []


# --- limits of one subject

NATURES = (
    Nature(integer=False, stepped=True, scored=False),
    Nature(integer=False, stepped=False, scored=False),
    Nature(integer=True, stepped=False, scored=False),
    Nature(integer=False, stepped=False, scored=True),
)


@pytest.mark.parametrize(("link", "nature"), tuple(itertools.product(PTQ.links(), NATURES)))
def test_a_subject_tightens_and_never_loosens(link: Any, nature: Nature) -> None:
    """Whatever the criterion: of a limit and the subject's the one that allows less holds."""
    plain = {limit.criterion: limit.value for limit in output_limits(link, nature, chain=PTQ, policy=Policy())}
    for criterion, value in plain.items():
        for theirs in (value * 0.5, value, value * 2 + 1e-3):
            told = ((link.name, (Limit(criterion, theirs, LimitOrigin.CONFIG),)),)
            found = output_limits(link, nature, chain=PTQ, policy=Policy(tightened=told))
            (chosen,) = [limit.value for limit in found if limit.criterion == criterion]
            assert chosen == (theirs if is_stricter(criterion, theirs, value) else value)
            assert not is_stricter(criterion, value, chosen)


def test_which_side_of_a_criterion_is_stricter() -> None:
    stricter = [("cosine", 0.999, 0.99), ("sqnr", 30, 20), ("decimals", 6, 5), ("fps", 200, 100)]
    stricter += [("score-drop", 0.1, 0.2), ("ulp", 1, 4), ("norm-ratio", 1.1, 1.2), ("latency-ms", 3, 4)]
    assert [one for one in stricter if not is_stricter(*one)] == []
    assert [one for one in stricter if is_stricter(one[0], one[2], one[1])] == []


def test_limits_that_no_policy_has_are_added() -> None:
    link = PTQ.links()[-1]
    told = ((link.name, (Limit("max-abs", 0.5), Limit("score-drop", 0.001))), ("board", (Limit("latency-ms", 4.0),)))
    held = Policy(tightened=told)
    nature = Nature(integer=True, stepped=False, scored=False)
    assert "max-abs" in {one.criterion for one in output_limits(link, nature, chain=PTQ, policy=held)}
    assert score_limit(link, chain=PTQ, policy=held).value == 0.001
    assert [one.value for one in performance_limits("board", held)] == [4.0]


def with_limits(change: Change, limits: Mapping[str, Any], **policies: Any) -> Path:
    document = yaml.safe_load((change.folder / "driftgate.yaml").read_text("utf-8"))
    document["subjects"]["digits"]["limits"] = limits
    return change.configured("own", **document, **policies)


def test_the_subjects_limit_fails_what_the_policy_lets_pass(change: Change) -> None:
    document = yaml.safe_load((change.folder / "driftgate.yaml").read_text("utf-8"))
    subject = {**document["subjects"]["digits"], "limits": {"float-int8": {"score-drop": "0.5%"}}}
    assert change.judged(policy("5%"), None, "--policy", "pr").code == 0
    told = change.judged({**policy("5%"), "subjects": {"digits": subject}}, None, "--policy", "pr")
    assert told.code == 1
    document = json.loads((change.folder / "out" / "results.json").read_bytes())
    checks = {check["slug"]: check for check in document["judgement"]["subjects"][0]["checks"]}
    assert {one["origin"] for one in checks["float-int8"]["verdicts"] if one["criterion"] == "score-drop"} == {"config"}


def test_a_limit_that_could_only_loosen_is_refused(change: Change) -> None:
    path = with_limits(change, {"float-int8": {"score-drop": "5%"}}, **policy("1%"))
    told = call("check", "-c", path, "--out", change.folder / "out")
    assert told.code == 2
    assert "subjects.digits.limits.float-int8.score-drop is 0.05" in told.err
    assert "a subject can only be stricter" in told.err


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"float-int9": {"score-drop": "1%"}}, "float-int9"),
        ({"board": {"latency-ms": "4%"}}, "milliseconds"),
        ({"float-int8": {"latency-ms": 4}}, "nowhere else"),
        ({"float-int8": {"scoredrop": 4}}, "score-drop"),
    ],
)
def test_wrong_limits_are_told(change: Change, limits: Mapping[str, Any], said: str) -> None:
    told = call("check", "-c", with_limits(change, limits), "--out", change.folder / "out")
    assert told.code == 2
    assert said in told.err
