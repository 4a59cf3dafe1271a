"""Clauses of a gate on the evidence itself: what ran is what was built, one software everywhere, and how old it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from driftgate.domain.facts import Facts, ToolFacts
from driftgate.domain.gates import Clause, GateLine
from driftgate.domain.judgement import Clauses, Outcome, Policy
from driftgate.domain.runs import Environment, Run
from driftgate.errors import StorageError
from driftgate.judgement.gate import Gated, lines_of
from driftgate.storage.built import built_files
from driftgate.storage.document import encode_results
from driftgate.storage.folder import write_all
from support.commandline import call
from support.results import healthy_pair, results

TODAY = "2026-12-01"
HBM = "e" * 64


def line(facts: Facts, clauses: Clauses, **gated: object) -> list[GateLine]:
    """The lines of those clauses, without the checks."""
    _, judgement = healthy_pair()
    subject = Gated(results((facts, judgement)), today=TODAY, **gated)  # type: ignore[arg-type] # by name
    found = lines_of(facts, judgement, Policy(clauses=clauses), subject, None)
    return [one for one in found if one.clause is not Clause.CHECK]


def edited(change: Callable[[Run], Run]) -> Facts:
    facts, _ = healthy_pair()
    return replace(facts, runs=tuple(map(change, facts.runs)))


# --- what ran is what was built


def told(digest: str | None) -> Facts:
    """The healthy subject; its .hbm says which file it is."""
    facts, _ = healthy_pair()
    if digest is None:
        return facts
    return replace(facts, tool_facts=(*facts.tool_facts, ToolFacts("hbm", "artifact", (("sha256", digest),))))


def planned() -> str:
    """The digest of the .hbm in the plan."""
    return healthy_pair()[0].plan.artifacts[-1].digest


@pytest.mark.parametrize(
    ("digest", "built", "outcome"),
    [
        (HBM, {HBM, "0" * 64}, Outcome.PASSED),
        (HBM, {"0" * 64}, Outcome.FAILED),
        (HBM, set(), Outcome.FAILED),
        (None, {planned()}, Outcome.PASSED),  # where the artifact says nothing of itself, the plan does
        (None, {HBM}, Outcome.FAILED),
    ],
)
def test_the_last_stage_ran_a_file_that_was_built(digest: str | None, built: set[str], outcome: Outcome) -> None:
    (one,) = line(told(digest), Clauses(same_artifacts=True), built=frozenset(built))
    assert (one.clause, one.name, one.outcome) == (Clause.ARTIFACTS, "hbm", outcome)
    assert one.codes == (() if outcome is Outcome.PASSED else ("stale-artifact",))


def test_nobody_knows_what_was_built() -> None:
    (one,) = line(told(HBM), Clauses(same_artifacts=True))
    assert (one.outcome, one.reason and one.reason.code) == (Outcome.ERROR, "gate-no-built")


@pytest.mark.parametrize("stage", ["pytorch", "onnx", "quantized", "hbm"])
def test_a_run_of_another_artifact_than_planned_is_stale(stage: str) -> None:
    """Wherever in the route, and even if that file was built, too."""
    facts = edited(lambda run: replace(run, artifact="0" * 64) if run.stage == stage else run)
    (one,) = line(facts, Clauses(same_artifacts=True), built=frozenset({planned(), "0" * 64}))
    assert (one.outcome, one.name, one.codes) == (Outcome.FAILED, stage, ("stale-artifact",))


def test_what_was_built_is_a_folder_a_file_or_a_provenance(tmp_path: Path) -> None:
    (tmp_path / "built" / "deep").mkdir(parents=True)
    for name in ("a.hbm", "deep/b.bc"):
        (tmp_path / "built" / name).write_bytes(name.encode())
    digests = frozenset(sha256(name.encode()).hexdigest() for name in ("a.hbm", "deep/b.bc"))
    provenance = tmp_path / "provenance.json"
    provenance.write_text(json.dumps({"outputs": dict(enumerate(sorted(digests)))}), "utf-8")
    assert built_files(tmp_path / "built") == built_files(provenance) == digests
    assert built_files(tmp_path / "built" / "a.hbm") == {sha256(b"a.hbm").hexdigest()}


@pytest.mark.parametrize("content", ["{", "[]", '{"outputs": [1]}', '{"outputs": {"a": 1}}', "{}", None])
def test_a_provenance_that_says_nothing_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "provenance.json"
    if content is not None:
        path.write_text(content, "utf-8")
    with pytest.raises(StorageError, match="says nothing of files that were built"):
        built_files(path)


# --- one software everywhere


def elsewhere(version: str | None) -> Facts:
    """The .hbm ran in a second leg, on a board with another runtime, or nobody knows where."""
    facts, _ = healthy_pair()
    first, second = (Environment("hrt_model_exec", versions=(("hbrt", v),), board="j6") for v in ("4.1", version or ""))
    runs = [replace(r, environment=first.id) if r.stage == "hbm" else r for r in facts.runs]
    other = next(run for run in runs if run.stage == "hbm")
    runs.append(replace(other, leg="board-2", environment=second.id if version is not None else ""))
    return replace(facts, runs=tuple(runs), environments=(*facts.environments, first, second))


def test_boards_with_different_runtimes_are_told_apart() -> None:
    (one,) = line(elsewhere("4.2"), Clauses(same_versions=True))
    assert (one.outcome, one.name, one.codes) == (Outcome.FAILED, "hbm", ("toolchain-version-mismatch",))
    assert one.reason is not None
    assert dict(one.reason.params) == {"name": "hbrt", "versions": ("4.1", "4.2")}


def test_boards_alike_pass_and_an_unknown_one_is_an_error() -> None:
    assert [one.outcome for one in line(elsewhere("4.1"), Clauses(same_versions=True))] == [Outcome.PASSED]
    (one,) = line(elsewhere(None), Clauses(same_versions=True))
    assert (one.outcome, one.name) == (Outcome.ERROR, "hbm")


# --- how old


def on_board(day: str, backend: str = "board") -> Facts:
    return edited(lambda run: replace(run, backend=backend, day=day) if run.stage == "hbm" else replace(run, day=TODAY))


@pytest.mark.parametrize(
    ("day", "days", "outcome"),
    [
        ("2026-12-01", 0, Outcome.PASSED),
        ("2026-11-30", 0, Outcome.FAILED),
        ("2026-11-01", 30, Outcome.PASSED),
        ("2026-10-31", 30, Outcome.FAILED),
        ("2026-12-02", 30, Outcome.FAILED),  # from the future: a clock that is wrong proves nothing
        ("", 30, Outcome.ERROR),
        ("yesterday", 30, Outcome.ERROR),
    ],
)
@pytest.mark.parametrize("backend", ["board", "hbm_infer", "hbm_runtime"])
def test_a_boards_result_has_an_age(backend: str, day: str, days: int, outcome: Outcome) -> None:
    (one,) = line(on_board(day, backend), Clauses(board_days=days))
    assert (one.clause, one.name, one.outcome) == (Clause.BOARD_AGE, "hbm", outcome)
    assert bool(one.codes) is (outcome is not Outcome.PASSED)


@pytest.mark.parametrize("backend", ["recorded", "hbruntime"])
def test_recordings_and_simulations_are_no_result_of_a_board(backend: str) -> None:
    (one,) = line(on_board(TODAY, backend), Clauses(board_days=30))
    assert (one.outcome, one.codes) == (Outcome.ERROR, ("incomplete-evidence",))


def test_of_several_legs_the_oldest_counts() -> None:
    facts = on_board(TODAY)
    old = replace(next(run for run in facts.runs if run.stage == "hbm"), leg="other", day="2026-01-01")
    (one,) = line(replace(facts, runs=(*facts.runs, old)), Clauses(board_days=30))
    assert (one.outcome, one.value) == (Outcome.FAILED, "334")


# --- by the verb

POLICY = """version: 1
subjects: {digits: {artifacts: {onnx: n.onnx}, samples: {raw: s}}}
policies: {release: {same-artifacts: true, same-versions: true, board-days: 30}}
"""


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_gate_says_them(tmp_path: Path, lang: str) -> None:
    facts, judgement = healthy_pair()
    write_all(tmp_path / "out", encode_results(results((facts, judgement))))
    (tmp_path / "driftgate.yaml").write_text(POLICY, "utf-8")
    gate = ("gate", tmp_path / "out", "-c", tmp_path / "driftgate.yaml", "--policy", "release")
    plain = call("--lang", lang, *gate)
    assert plain.code == 2
    for said in {
        "en": ("give --built", "one software wherever a stage ran", "no board ran anything"),
        "zh": ("请给出 --built", "同一阶段各处的软件版本一致", "没有任何阶段在板端运行"),
    }[lang]:
        assert said in plain.out
    (tmp_path / "out" / "provenance.json").write_text(json.dumps({"outputs": {"a.hbm": planned()}}), "utf-8")
    answer = call(*gate, "--json", "--out", tmp_path / "gated")
    lines = {entry["clause"]: entry["outcome"] for entry in answer.json["lines"]}
    assert lines["artifacts"] == "passed"
    assert json.loads((tmp_path / "gated" / "gate.json").read_bytes()) == answer.json
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.hbm").write_bytes(b"another build")
    refused = call(*gate, "--json", "--built", other)
    assert refused.code == 1
    assert {e["clause"]: e["codes"] for e in refused.json["lines"]}["artifacts"] == ["stale-artifact"]
