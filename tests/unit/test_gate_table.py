"""The gate as a table: every outcome of a check × what the policy asks × every state of a waiver, and each line of it
held against an oracle that knows the words of docs/release-gating.md and none of the code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from driftgate.comparing.compare import compare_results
from driftgate.domain.chain import Chain, Check, CheckKind, LinkKind, Stage
from driftgate.domain.comparisons import Comparison, Erosion, PastRun, RowKind
from driftgate.domain.facts import Facts, Problem
from driftgate.domain.gates import Clause, GateLine, outcome_of
from driftgate.domain.judgement import (
    Clauses,
    Judgement,
    Outcome,
    Policy,
    Slide,
    Slides,
    Standing,
    Waiver,
    WaiverKind,
)
from driftgate.domain.measurements import Measurement
from driftgate.domain.plan import Leg, Plan, PlannedArtifact, Where
from driftgate.domain.results import Results, Tool
from driftgate.domain.runs import Environment, Run, RunOutcome
from driftgate.domain.samples import Origin, SampleSet
from driftgate.judgement.gate import Gated, gate, lines_of
from driftgate.judgement.judge import judge
from driftgate.messages.message import message
from driftgate.numerics.comparator import Comparator, OutputMap

PASSED, FAILED, ERROR = Outcome.PASSED, Outcome.FAILED, Outcome.ERROR
COMMIT, OTHER_COMMIT = "a" * 40, "b" * 40
PAST, TODAY, FUTURE = "2026-11-30", "2026-12-01", "2027-01-31"
COUNT = 8
CHAIN = Chain(
    "three",
    (Stage("a", 1), Stage("b", 1, kind=LinkKind.EQUIVALENT), Stage("c", 2, kind=LinkKind.EQUIVALENT)),
    (Check("first", "A ↔ B", CheckKind.LINKS, ("b",)), Check("second", "B ↔ C", CheckKind.LINKS, ("c",))),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One gate: what came of the second check, and what the policy asks of it and of everything else.

    The first check passes, as far as samples prove anything. `second`: what the second check finds; open is a failure
    with an output that could not be compared beside it. `requires`: asked (nothing is said), all, or first (a list that
    the second check is not on). `waiver`: what the second check's waiver is like.
    """

    second: str
    requires: str
    skipped: Standing
    waiver: str
    samples: str
    regressions: str
    commit: str


SECOND = ("passed", "failed", "open", "error", "skipped")
ROWS = tuple(
    Row(*one)
    for one in product(
        SECOND,
        ("asked", "all", "first"),
        Standing,
        ("none", "holds", "too-tight", "expired", "of-another-check", "of-another-target"),
        ("off", "enough", "too-few", "random"),
        ("off", "same", "worse", "unknown", "absent", "damaged"),
        ("off", "same", "other", "silent", "unwanted"),
    )
)

Line = tuple[Clause, str, Outcome]


def oracle(row: Row) -> list[Line]:
    """The lines that must come of it, in the order of the page."""
    return [
        *_checks(row),
        *_skipped(row),
        *_samples(row),
        *_regressions(row),
        *_commit(row),
        *_waiver(row),
    ]


def _checks(row: Row) -> Iterator[Line]:
    """Random input proves no pass. A row that nobody asked for counts only where it is required, and is an error
    there; a row that is not on the list does not count. Only a failure is excused, with nothing open beside it."""
    yield Clause.CHECK, "first", ERROR if row.samples == "random" else PASSED
    if row.requires == "first" or (row.requires == "asked" and row.second == "skipped"):
        return
    if row.second in ("failed", "open"):
        is_excused = row.second == "failed" and row.waiver == "holds"
        yield Clause.CHECK, "second", PASSED if is_excused else FAILED
    else:
        is_proven = row.second == "passed" and row.samples != "random"
        yield Clause.CHECK, "second", PASSED if is_proven else ERROR


def _skipped(row: Row) -> Iterator[Line]:
    """A row that is `-`; a required one is an error already."""
    if row.skipped is Standing.FAIL and row.second == "skipped" and row.requires != "all":
        yield Clause.SKIPPED, "second", FAILED


def _samples(row: Row) -> Iterator[Line]:
    """Real ones, and none that not every stage ran on."""
    if row.samples != "off":
        ran_on_them = row.samples == "enough" and row.second != "error"
        yield Clause.SAMPLES, "", ERROR if row.samples == "random" else PASSED if ran_on_them else FAILED


def _regressions(row: Row) -> Iterator[Line]:
    if row.regressions != "off":
        yield Clause.REGRESSIONS, "", {"same": PASSED, "worse": FAILED}.get(row.regressions, ERROR)


def _commit(row: Row) -> Iterator[Line]:
    if row.commit != "off":
        yield Clause.COMMIT, "", {"same": PASSED, "other": FAILED}.get(row.commit, ERROR)


def _waiver(row: Row) -> Iterator[Line]:
    """Every waiver of this target has a line; only one whose day is over breaks the gate."""
    if row.waiver not in ("none", "of-another-target"):
        name = "first" if row.waiver == "of-another-check" else "second"
        yield Clause.WAIVER, name, FAILED if row.waiver == "expired" else PASSED


def whole(lines: list[Line]) -> Outcome:
    """What lines come to: one that is broken goes before one that is open."""
    found = {outcome for _, _, outcome in lines}
    return next(outcome for outcome in (FAILED, ERROR, PASSED) if outcome in found)


# --- what the gate is given: real numbers, judged by the real judge


@cache
def facts(second: str, origin: Origin = Origin.REAL) -> Facts:
    """Three stages of which the last one does what is said of the second check."""
    stages = ("a", "b") if second == "skipped" else ("a", "b", "c")
    ids = tuple(f"{number:04}" for number in range(COUNT))
    plan = Plan(
        subject="net",
        target="J6M",
        chain=CHAIN,
        artifacts=tuple(PlannedArtifact(stage, "recorded", stage * 2) for stage in stages),
        samples=SampleSet("set", ids, tuple(f"digest-{one}" for one in ids), origin),
        legs=(Leg("host", Where.HOST, stages, (0,)),),
    )
    random = np.random.default_rng(0)
    values, noise = (random.normal(size=(COUNT, 12)).astype(np.float32) for _ in range(2))
    sides = {"a": values, "b": values, "c": values + noise if second in ("failed", "open") else values}
    measurements: list[Measurement] = []
    for link in plan.links:
        if second == "error" and link.candidate == "c":
            continue
        a, b = link.reference, link.candidate
        comparator = Comparator(link.name, stages=(a, b), signatures=(None, None), outputs=OutputMap())
        for sample, one, other in zip(ids, sides[a], sides[b], strict=True):
            comparator.add(0, sample, {"y": one[None]}, {"y": other[None]})
        measurements += comparator.measurements(f"{a}@1", f"{b}@1")
    runs = tuple(ran(stage, away=second == "error" and stage == "c") for stage in stages)
    lacks = Problem("b..c", "z", message("output-shape", output="z"))
    return Facts(plan=plan, runs=runs, measurements=tuple(measurements), problems=(lacks,) if second == "open" else ())


def ran(stage: str, *, away: bool) -> Run:
    """A stage's run; of one whose board is away there is nothing."""
    return Run(
        id=f"{stage}@1",
        leg="host",
        stage=stage,
        backend="recorded",
        artifact=stage * 2,
        environment="",
        samples_done=0 if away else COUNT,
        outcome=RunOutcome.ERROR if away else RunOutcome.PASSED,
        reason=message("leg-missing", leg="board") if away else None,
        seconds=0.0,
    )


@cache
def policy(requires: str, waiver: str) -> Policy:
    """What is asked of checks, with its one waiver."""
    required = {"asked": None, "all": ("first", "second"), "first": ("first",)}[requires]
    one = Waiver("net", WaiverKind.CHECK, "second", "known", "somebody", FUTURE, limits=(("range", 10.0),))
    waivers = {
        "none": (),
        "holds": (one,),
        "too-tight": (replace(one, limits=(("range", 1e-3),)),),
        "expired": (replace(one, expires=PAST),),
        "of-another-check": (replace(one, on="first"),),
        "of-another-target": (replace(one, target="J6P"),),
    }[waiver]
    return Policy(required=required, waivers=waivers, today=TODAY)


def judged_facts(row: Row) -> Facts:
    """The facts of a row."""
    return facts(row.second, Origin.RANDOM if row.samples == "random" else Origin.REAL)


@cache
def judgement(second: str, origin: Origin, requires: str, waiver: str) -> Judgement:
    """The judgement on them."""
    return judge(facts(second, origin), policy(requires, waiver))


@cache
def results(second: str) -> Results:
    """Judged results."""
    found = facts(second)
    return Results(Tool("driftgate", "0.1.0"), (found,), (judge(found, Policy()),))


@cache
def comparison(state: str) -> Comparison | None:
    """The healthy results against themselves, a broken head, other samples, nothing, or what cannot be read."""
    if state in ("off", "absent"):
        return None
    base = head = results("passed")
    if state == "damaged":
        same = compare_results(base, head, labels=("main", "head"))
        return replace(same, problem=message("compare-new-subject"))
    if state == "worse":
        head = results("failed")
    if state == "unknown":
        (old,) = base.facts
        samples = replace(old.plan.samples, digests=tuple(f"other-{one}" for one in old.plan.samples.ids))
        head = replace(base, facts=(replace(old, plan=replace(old.plan, samples=samples)),))
    return compare_results(base, head, labels=("main", "head"))


def asked(row: Row) -> Policy:
    """The row's policy with all its clauses."""
    clauses = Clauses(
        samples={"off": 0, "too-few": COUNT + 1}.get(row.samples, COUNT),
        skipped=row.skipped,
        regressions=Standing.ALLOW if row.regressions == "off" else Standing.FAIL,
        same_commit=row.commit != "off",
    )
    return replace(policy(row.requires, row.waiver), clauses=clauses)


def gated(row: Row) -> Gated:
    """The row's results, as far as they say of which commit they are."""
    found, wanted = {
        "other": (OTHER_COMMIT, COMMIT),
        "silent": ("", COMMIT),
        "unwanted": (COMMIT, ""),
    }.get(row.commit, (COMMIT, COMMIT))
    one = judged_facts(row)
    return Gated(Results(Tool("driftgate", "0.1.0"), (one,)), found, wanted)


def plain(lines: Iterator[GateLine] | tuple[GateLine, ...]) -> list[Line]:
    """What the oracle says of lines."""
    return [(line.clause, line.name, line.outcome) for line in lines]


def test_every_line_of_every_combination_is_what_the_page_says() -> None:
    """Second check 5 × require 3 × skipped 2 × waiver 6 × samples 4 × baseline 6 × commit 5."""
    assert len(ROWS) == 21_600
    wrong = []
    for row in ROWS:
        one = judged_facts(row)
        judged = judgement(row.second, one.plan.samples.origin, row.requires, row.waiver)
        lines = tuple(lines_of(one, judged, asked(row), gated(row), comparison(row.regressions)))
        wanted = oracle(row)
        if plain(lines) != wanted or outcome_of(lines) is not whole(wanted):
            wrong.append((row, plain(lines), wanted))
    assert wrong == []


def test_the_table_comes_to_every_outcome_by_every_clause() -> None:
    """No column is there for nothing: each line can break a gate that holds otherwise, and each can leave it open."""
    ends = {row: whole(oracle(row)) for row in ROWS}
    assert set(ends.values()) == {PASSED, FAILED, ERROR}
    alone = {
        (clause, end)
        for row, end in ends.items()
        if end is not PASSED
        for broken in [[line for line in oracle(row) if line[2] is not PASSED]]
        if len(broken) == 1
        for clause in [broken[0][0]]
    }
    both = {Clause.CHECK, Clause.SAMPLES, Clause.REGRESSIONS, Clause.COMMIT}
    assert alone >= {(clause, FAILED) for clause in (*both, Clause.SKIPPED, Clause.WAIVER)}
    assert alone >= {(clause, ERROR) for clause in both - {Clause.SAMPLES}}  # random samples leave checks open, too


def test_the_gate_judges_anew_to_the_same_lines() -> None:
    """Of the same rows every 23rd, through `gate`, which has only facts."""
    rows = ROWS[::23]
    assert len(rows) > 500
    for row in rows:
        lines = gate(gated(row), {"net": asked(row)}, comparison(row.regressions))
        assert plain(lines) == oracle(row), row


def test_a_gate_that_holds_has_nothing_unproven_in_it() -> None:
    """Whatever passes ran on real samples, has no open or failed check that counts but by a waiver that holds today,
    and is the same as a baseline that could be read where one is asked for."""
    for row in ROWS:
        if whole(oracle(row)) is not PASSED:
            continue
        assert row.samples in ("off", "enough")
        assert row.samples == "off" or row.second != "error"
        assert row.commit in ("off", "same")
        assert row.regressions in ("off", "same")
        assert row.waiver != "expired"
        counts = row.requires == "all" or (row.requires == "asked" and row.second != "skipped")
        assert not counts or row.second == "passed" or (row.second == "failed" and row.waiver == "holds")


# --- the clauses of what ran, where, and when


@dataclass(frozen=True, slots=True)
class Provenance:
    """A gate that asks where its results come from as well."""

    second: str
    waiver: str
    artifacts: str
    versions: str
    board: str
    history: str


PROVENANCES = tuple(
    Provenance(*one)
    for one in product(
        SECOND,
        ("none", "holds", "expired"),
        ("off", "built", "not-built", "nobody-says", "another-ran"),
        ("off", "one", "two", "unknown"),
        ("off", "today", "last-day", "too-old", "one-leg-old", "tomorrow", "no-day", "no-board"),
        ("off", "holds", "slid", "short", "absent"),
    )
)
DAYS = 7
BOARD_DAYS = {
    "today": TODAY,
    "last-day": "2026-11-24",
    "too-old": "2026-11-23",
    "tomorrow": "2026-12-02",
    "no-day": "",
    "no-board": TODAY,
}
CodedLine = tuple[Clause, str, Outcome, tuple[str, ...]]
STALE, SKEW, INCOMPLETE, REGRESSION = (
    ("stale-artifact",),
    ("toolchain-version-mismatch",),
    ("incomplete-evidence",),
    ("regression-vs-baseline",),
)


def provenance_oracle(one: Provenance) -> list[CodedLine]:
    """The lines behind those of the checks."""
    last = "b" if one.second == "skipped" else "c"
    lines: dict[str, list[CodedLine]] = {
        "history holds": [(Clause.HISTORY, "", PASSED, ())],
        "history slid": [(Clause.HISTORY, "c top1", FAILED, REGRESSION)],
        "history short": [(Clause.HISTORY, "", ERROR, ())],
        "history absent": [(Clause.HISTORY, "", ERROR, ())],
        "artifacts built": [(Clause.ARTIFACTS, last, PASSED, ())],
        "artifacts not-built": [(Clause.ARTIFACTS, last, FAILED, STALE)],
        "artifacts nobody-says": [(Clause.ARTIFACTS, "", ERROR, ())],
        "artifacts another-ran": [(Clause.ARTIFACTS, "a", FAILED, STALE)],
        "versions one": [(Clause.VERSIONS, "", PASSED, ())],
        "versions two": [(Clause.VERSIONS, "a", FAILED, SKEW)],
        "versions unknown": [(Clause.VERSIONS, "a", ERROR, ())],
        "board today": [(Clause.BOARD_AGE, "b", PASSED, ())],
        "board last-day": [(Clause.BOARD_AGE, "b", PASSED, ())],
        "board too-old": [(Clause.BOARD_AGE, "b", FAILED, INCOMPLETE)],
        "board one-leg-old": [(Clause.BOARD_AGE, "b", FAILED, INCOMPLETE)],
        "board tomorrow": [(Clause.BOARD_AGE, "b", FAILED, INCOMPLETE)],
        "board no-day": [(Clause.BOARD_AGE, "b", ERROR, INCOMPLETE)],
        "board no-board": [(Clause.BOARD_AGE, "", ERROR, INCOMPLETE)],
    }
    asked_for = ("history", "artifacts", "versions", "board")
    found = [line for name in asked_for for line in lines.get(f"{name} {getattr(one, name)}", [])]
    if one.waiver != "none":
        found.append((Clause.WAIVER, "second", FAILED if one.waiver == "expired" else PASSED, ()))
    return found


@cache
def came_from(second: str, artifacts: str, versions: str, board: str) -> Facts:
    """The facts with where their runs were made: stage b on a board, stage a perhaps in two places."""
    base = facts(second)
    host = Environment("CPUExecutionProvider", versions=(("onnxruntime", "1.20.1"),))
    other = replace(host, versions=(("onnxruntime", "1.19.0"),))
    lab = Environment("hrt_model_exec", versions=(("hbrt", "4.11.11"),), board="lab")
    by = "recorded" if board == "no-board" else "board"
    runs = [
        replace(
            run,
            backend=by if run.stage == "b" else run.backend,
            environment=lab.id if run.stage == "b" else host.id,
            day=BOARD_DAYS.get(board, TODAY) if run.stage == "b" else TODAY,
            artifact="f" * 64 if artifacts == "another-ran" and run.stage == "a" else run.artifact,
        )
        for run in base.runs
    ]
    if board == "one-leg-old":
        (run,) = (run for run in runs if run.stage == "b")
        runs.append(replace(run, leg="elsewhere", day=BOARD_DAYS["too-old"]))
    if versions in ("two", "unknown"):
        (first,) = (run for run in runs if run.stage == "a")
        known = other.id if versions == "two" else "nowhere"
        runs.append(replace(first, id="a@2", leg="elsewhere", environment=known))
    return replace(base, runs=tuple(runs), environments=(host, other, lab))


@cache
def past(state: str) -> Comparison | None:
    """The healthy results against themselves, and what slid over the runs before."""
    found = comparison("same")
    if state in ("off", "absent") or found is None:
        return None
    (one,) = found.subjects
    slid = Erosion(
        kind=RowKind.SCORE,
        key=("c", "top1"),
        criterion="score",
        value=0.9,
        level=0.95,
        level_run=PastRun(COMMIT, "7"),
        drop=0.05,
        limit=0.02,
        first_bad=None,
        runs=5,
    )
    eroded = replace(one, past_runs=1 if state == "short" else 5, eroded=(slid,) if state == "slid" else ())
    return replace(found, subjects=(eroded,))


def test_every_line_about_where_results_come_from() -> None:
    """Second check 5 × waiver 3 × artifacts 5 × versions 4 × board 8 × history 5."""
    assert len(PROVENANCES) == 12_000
    wrong = []
    for one in PROVENANCES:
        came = came_from(one.second, one.artifacts, one.versions, one.board)
        clauses = Clauses(
            history=None if one.history == "off" else Slides(5, ((Slide.SCORE_DROP, 0.02),)),
            same_artifacts=one.artifacts != "off",
            same_versions=one.versions != "off",
            board_days=None if one.board == "off" else DAYS,
        )
        last = came.plan.artifacts[-1].digest
        made = {"nobody-says": None, "not-built": frozenset({"0" * 64})}.get(one.artifacts, frozenset({last}))
        given = Gated(Results(Tool("driftgate", "0.1.0"), (came,)), built=made, today=TODAY)
        judged = judgement(one.second, Origin.REAL, "asked", one.waiver)
        asks = replace(policy("asked", one.waiver), clauses=clauses)
        lines = tuple(lines_of(came, judged, asks, given, past(one.history)))
        checks = list(_checks(Row(one.second, "asked", Standing.ALLOW, one.waiver, "off", "off", "off")))
        found = [(line.clause, line.name, line.outcome, line.codes) for line in lines]
        wanted = provenance_oracle(one)
        whole_wanted = whole([*checks, *((clause, name, outcome) for clause, name, outcome, _ in wanted)])
        if found[len(checks) :] != wanted or plain(lines[: len(checks)]) != checks or outcome_of(lines) != whole_wanted:
            wrong.append((one, found, wanted))
    assert wrong == []
