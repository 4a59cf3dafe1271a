"""Gates: every clause against an oracle of its own, and the verb."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from driftgate.comparing.compare import compare_results
from driftgate.domain.comparisons import Change, Comparison, Row, RowKind, Version
from driftgate.domain.facts import Facts
from driftgate.domain.gates import Clause, GateLine, outcome_of
from driftgate.domain.judgement import Clauses, Judgement, Outcome, Policy, Standing
from driftgate.domain.results import Results
from driftgate.domain.samples import Origin
from driftgate.judgement.gate import Gated, lines_of
from driftgate.storage.document import encode_results, read_results
from driftgate.storage.folder import write_all
from driftgate.storage.gate import gate_schema
from driftgate.storage.planfile import Provenance, write_origin
from support.commandline import call
from support.results import healthy_pair, results

COMMIT, OTHER = "a" * 40, "b" * 40
FOUND = 360


@dataclass(frozen=True)
class Situation:
    """One row of the truth table: a check's outcome, and what each clause asks and finds."""

    outcome: Outcome
    required: bool
    skipped: Standing
    samples: int  # wanted; 0: not asked for
    origin: Origin
    regressions: str  # not asked for, or what the comparison comes to
    commit: str  # not asked for, or what the results say


SITUATIONS = tuple(
    Situation(*row)
    for row in product(
        Outcome,
        (True, False),
        Standing,
        (0, FOUND, FOUND + 1),
        (Origin.REAL, Origin.RANDOM),
        ("off", "absent", "broken", "new", "same", "better", "worse", "unknown"),
        ("off", "same", "other", "silent"),
    )
)


def oracle(one: Situation) -> Outcome:
    """What must come of it, worked out from the words of the policy and not by the gate's code."""
    bad: set[Outcome] = set()
    if one.required:
        bad.add({Outcome.PASSED: Outcome.PASSED, Outcome.FAILED: Outcome.FAILED}.get(one.outcome, Outcome.ERROR))
    if one.skipped is Standing.FAIL and one.outcome is Outcome.SKIPPED:
        bad.add(Outcome.FAILED)
    if one.samples:
        enough = Outcome.PASSED if one.samples <= FOUND else Outcome.FAILED
        bad.add(Outcome.ERROR if one.origin is Origin.RANDOM else enough)
    if one.regressions in ("absent", "broken", "new", "unknown"):
        bad.add(Outcome.ERROR)
    if one.regressions == "worse":
        bad.add(Outcome.FAILED)
    if one.commit in ("other", "silent"):
        bad.add(Outcome.FAILED if one.commit == "other" else Outcome.ERROR)
    return Outcome.FAILED if Outcome.FAILED in bad else Outcome.ERROR if Outcome.ERROR in bad else Outcome.PASSED


@cache
def healthy() -> Results:
    """The healthy subject."""
    return results(healthy_pair())


def judged(facts: Facts, judgement: Judgement, one: Situation) -> tuple[Facts, Judgement]:
    """The healthy subject with that outcome of one check."""
    checks = tuple(
        replace(check, outcome=one.outcome, required=one.required) if check.slug == "bc-hbm" else check
        for check in judgement.checks
    )
    samples = replace(facts.plan.samples, origin=one.origin)
    return replace(facts, plan=replace(facts.plan, samples=samples)), replace(judgement, checks=checks)


@cache
def comparison(of: str) -> Comparison | None:
    """A comparison that comes to that."""
    if of in ("off", "absent"):
        return None
    base = healthy()
    same = compare_results(base, base, labels=("main", "head"))
    if of == "broken":
        return Comparison(Version("main", ""), Version("head", ""), (), problem=None)
    if of == "new":
        return replace(same, subjects=(), new=tuple((one.subject, one.target) for one in same.subjects))
    change = {"same": Change.SAME, "better": Change.BETTER, "worse": Change.WORSE, "unknown": Change.UNKNOWN}[of]
    row = Row(RowKind.CHECK, ("bc-hbm",), change)
    return replace(same, subjects=tuple(replace(one, rows=(row,)) for one in same.subjects))


def gated(one: Situation) -> Iterator[GateLine]:
    """The lines of that situation."""
    base = healthy()
    facts, judgement = judged(base.facts[0], (base.judgements or ())[0], one)
    clauses = Clauses(
        samples=one.samples,
        skipped=one.skipped,
        regressions=Standing.ALLOW if one.regressions == "off" else Standing.FAIL,
        same_commit=one.commit != "off",
    )
    commit = {"same": COMMIT, "other": OTHER}.get(one.commit, "")
    return lines_of(facts, judgement, Policy(clauses=clauses), Gated(base, commit, COMMIT), comparison(one.regressions))


def test_every_combination_comes_to_what_the_policy_says() -> None:
    assert len(SITUATIONS) == 3072
    wrong = [one for one in SITUATIONS if outcome_of(gated(one)) is not oracle(one)]
    assert wrong == []
    assert {oracle(one) for one in SITUATIONS} == {Outcome.PASSED, Outcome.FAILED, Outcome.ERROR}


def test_no_line_is_an_error() -> None:
    assert outcome_of(()) is Outcome.ERROR


def test_where_no_check_counts_the_gate_is_an_error() -> None:
    facts, judgement = healthy_pair()
    free = replace(judgement, checks=tuple(replace(check, required=False) for check in judgement.checks))
    lines = tuple(lines_of(facts, free, Policy(), Gated(results((facts, free))), None))
    assert [(line.clause, line.outcome) for line in lines] == [(Clause.CHECK, Outcome.ERROR)]


def test_samples_with_one_content_count_once() -> None:
    facts, judgement = healthy_pair()
    digests = tuple("0" * 64 for _ in facts.plan.samples.digests)
    twice = replace(facts, plan=replace(facts.plan, samples=replace(facts.plan.samples, digests=digests)))
    policy = Policy(clauses=Clauses(samples=2))
    (line,) = [
        one
        for one in lines_of(twice, judgement, policy, Gated(results((twice, judgement))), None)
        if one.clause is Clause.SAMPLES
    ]
    assert (line.outcome, line.value, line.limit) == (Outcome.FAILED, "1", "≥ 2")


# --- the verb

CONFIG = """
version: 1
subjects:
  digits:
    artifacts: {onnx: gone/net.onnx, optimized_float: gone/other.onnx}
    samples: {raw: gone/eval.npz}
policies:
  pull-request: {samples: 100}
  release: {extends: pull-request, require: all, samples: 300, skipped: fail, regressions: fail, same-commit: true}
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "main"
    assert call("demo", "--out", out).code == 0
    return out


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "driftgate.yaml"
    path.write_text(CONFIG)
    return path


def test_a_gate_prints_a_line_a_clause_with_its_numbers(demo: Path, config: Path, tmp_path: Path) -> None:
    """The artifacts need not be on this machine."""
    out = tmp_path / "head"
    write_all(out, encode_results(read_results(demo)))
    write_origin(out, Provenance(sha=COMMIT))
    told = call("gate", out, "-c", config, "--policy", "release", "--baseline", demo, "--commit", COMMIT)
    assert (told.code, told.err) == (0, "")
    lines = told.out.splitlines()
    assert len(lines) == 6 + 3 + 1
    assert all(line.startswith("PASS") for line in lines)
    assert "check float-int8" in lines[3]
    assert "max error 1 LSB ≤ 3 LSB" in lines[3]
    assert "360 ≥ 300" in lines[6]
    assert lines[-1] == "PASS: 9 clauses of the policy release hold"
    assert call("gate", out, "-c", config, "--policy", "release", "--baseline", demo, "--commit", OTHER).code == 1


def test_what_cannot_be_established_is_an_error_and_says_what_to_do(demo: Path, config: Path) -> None:
    told = call("gate", demo, "-c", config, "--policy", "release")
    assert told.code == 2
    assert "give --baseline" in told.out
    assert "do not say of which commit they are" in told.out
    assert "ERROR: 2 of 9 clauses of the policy release could not be established" in told.out
    assert call("gate", demo, "-c", config, "--policy", "pull-request").code == 0


def test_a_gate_judges_by_its_own_policy_and_not_as_the_results_were_judged(demo: Path, config: Path) -> None:
    config.write_text(CONFIG.replace("{samples: 100}", "{float-int8: {lsb: 0.5}}"))
    told = call("gate", demo, "-c", config, "--policy", "pull-request", "--json")
    assert told.code == 1
    document = json.loads(told.out)
    Draft202012Validator(dict(gate_schema())).validate(document)
    outcomes = {line["name"]: line["outcome"] for line in document["lines"]}
    assert {name for name, outcome in outcomes.items() if outcome == "failed"} == {"float-int8"}


def test_subjects_that_the_configuration_lacks_are_told(demo: Path, config: Path) -> None:
    config.write_text(CONFIG.replace("  digits:", "  other:"))
    told = call("gate", demo, "-c", config, "--policy", "release")
    assert (told.code, "has no digits" in told.err) == (2, True)


@pytest.mark.parametrize(
    ("key", "wrong"), [("samples", "0"), ("skipped", "never"), ("regressions", "3"), ("same-commit", "[]")]
)
def test_a_clause_of_another_form_is_told_with_its_line(key: str, wrong: str, demo: Path, config: Path) -> None:
    config.write_text(CONFIG.replace("{samples: 100}", f"{{{key}: {wrong}}}"))
    told = call("gate", demo, "-c", config, "--policy", "release")
    assert told.code == 2
    assert f"driftgate.yaml:8: policies.pull-request.{key} is" in told.err
    assert "gone/" not in told.err


def test_a_bundle_of_a_ci_is_gated_by_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that a gate asks of a report folder is in its bundle, too."""
    monkeypatch.setenv("GITHUB_SHA", COMMIT)
    assert call("check", "-c", "demo", "--out", tmp_path / "out", "--bundle", "always").code == 0
    config = tmp_path / "out" / "project" / "driftgate.yaml"
    policies = "policies: {release: {same-commit: true}}"
    config.write_text(f"{config.read_text('utf-8')}\n{policies}\n", "utf-8")
    bundle = tmp_path / "out" / "bundle.zip"
    for commit, code in ((COMMIT, 0), (OTHER, 1)):
        asked = ("-c", config, "--policy", "release", "--commit", commit)
        assert call("gate", bundle, *asked).code == call("gate", tmp_path / "out", *asked).code == code
