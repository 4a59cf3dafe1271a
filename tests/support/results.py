"""Results made by hand for the reports: a healthy chain, one that breaks on the board, an error, hostile names."""

from __future__ import annotations

from dataclasses import replace

from driftgate.domain.chain import PTQ
from driftgate.domain.digest import digest
from driftgate.domain.facts import Facts, Problem
from driftgate.domain.judgement import (
    CheckResult,
    Judgement,
    LimitOrigin,
    Outcome,
    Score,
    Summary,
    Verdict,
)
from driftgate.domain.plan import Leg, Plan, PlannedArtifact, ScoreSpec, Where
from driftgate.domain.results import Results, Tool
from driftgate.domain.runs import Environment, Run, RunOutcome, run_id
from driftgate.domain.samples import SampleSet
from driftgate.messages.message import message

SAMPLES = tuple(f"{number:04}" for number in range(360))
HOST = Environment(
    provider="CPUExecutionProvider",
    level="disabled",
    threads=1,
    cpu="x86_64",
    versions=(("onnxruntime", "1.20.1"), ("numpy", "1.26.4")),
)
BOARD = Environment(provider="recording", board="J6M")
STAGES = ("pytorch", "onnx", "original_float", "optimized_float", "calibrated", "quantized", "hbm")

#: What comes after it tries to leave its place in every format at once.
HOSTILE = (
    "`|` <img src=x onerror=alert(1)> </details> @octocat #1 ~~~ ``` \x1b[31mred\x1b[0m \x00\u202egnp.exe "
    "[[ATTACHMENT|/etc/passwd]] ]]> &amp; [bold]x[/bold]\r\n::error::pwned\n| a | b |\ud800"
)


def plan(subject: str = "digits", stages: tuple[str, ...] = STAGES) -> Plan:
    """A plan of the PTQ chain."""
    return Plan(
        subject=subject,
        target="J6M",
        chain=PTQ,
        artifacts=tuple(
            PlannedArtifact(stage, "recorded" if stage in ("pytorch", "hbm") else "onnxruntime", digest(stage))
            for stage in stages
        ),
        samples=SampleSet("eval", SAMPLES, tuple(digest(sample) for sample in SAMPLES)),
        scores=(ScoreSpec("top1", "classification", "higher", "logits", digest("labels"), "356/360"),),
        legs=(Leg("host", Where.HOST, stages, (0,)),),
    )


def facts(of: Plan) -> Facts:
    """Complete runs of all stages, without measurements: reports read those from the judgement."""
    runs = []
    for number, artifact in enumerate(of.artifacts):
        environment = BOARD if artifact.stage == "hbm" else HOST
        runs.append(
            Run(
                id=run_id(artifact.stage, artifact.digest, environment.id),
                leg="host",
                stage=artifact.stage,
                backend=artifact.backend,
                artifact=artifact.digest,
                environment=environment.id,
                samples_done=len(SAMPLES),
                outcome=RunOutcome.PASSED,
                reason=None,
                seconds=0.25 * (number + 1),
            )
        )
    return Facts(plan=of, runs=tuple(runs), environments=(HOST, BOARD))


def verdict(target: str, criterion: str, value: float, limit: float, *, failed: bool = False) -> Verdict:
    """A verdict on the output `logits` with its worst sample."""
    return Verdict(
        target=target,
        output="logits",
        outcome=Outcome.FAILED if failed else Outcome.PASSED,
        criterion=criterion,
        value=value,
        limit=limit,
        origin=LimitOrigin.DEFAULT,
        sample="0137",
        channel=3 if criterion in ("range", "decimals", "ulp") else None,
    )


def score_verdict(target: str, candidate: str = "356/360", drop: float = 0.0, limit: float = 0.01) -> Verdict:
    """A verdict on the score of a link or of the board."""
    return Verdict(
        target=target,
        output="top1",
        outcome=Outcome.PASSED if drop <= limit else Outcome.FAILED,
        criterion="score-drop",
        value=drop,
        limit=limit,
        origin=LimitOrigin.POLICY,
        notes=(message("score-change", reference="356/360", candidate=candidate),),
    )


def declared(value: float = 356 / 360) -> Verdict:
    """The verdict on the baseline."""
    return Verdict(
        target="baseline",
        output="top1",
        outcome=Outcome.PASSED if value >= 356 / 360 else Outcome.FAILED,
        criterion="score-declared",
        value=value,
        limit=356 / 360,
        origin=LimitOrigin.CONFIG,
    )


def summary(link: str, *, error: float, cosine: float = 1.0, sample: str = "0137") -> Summary:
    """The metrics of the output `logits`."""
    return Summary(
        link=link,
        output="logits",
        count=3600,
        metrics=(
            ("cosine", cosine),
            ("centred-cosine", cosine),
            ("bulk-cosine", cosine),
            ("norm-ratio", 1.0 + error / 40),
            ("max-abs", error),
            ("mean-abs", error / 7),
            ("range-error", error / 31),
            ("sqnr", float("inf") if error == 0 else 41.25),
        ),
        worst_sample=sample,
        worst_value=error,
    )


def scores(hbm: str = "356/360") -> tuple[Score, ...]:
    """The score of every stage; that of the board is given."""
    texts = dict.fromkeys(STAGES, "356/360") | {"hbm": hbm}
    return tuple(Score(stage, "top1", int(text.partition("/")[0]) / 360, 360, text) for stage, text in texts.items())


def _checks() -> dict[str, CheckResult]:
    verdicts = {
        "baseline": (declared(),),
        "pytorch-onnx": (
            verdict("pytorch..onnx", "range", 1.2e-06, 1e-04),
            score_verdict("pytorch..onnx", limit=0.0),
        ),
        "onnx-optimized": (
            replace(verdict("onnx..original_float", "ulp", 0.0, 4.0), sample=None, notes=(message("bit-equal"),)),
            verdict("original_float..optimized_float", "range", 2.43e-06, 1e-04),
        ),
        "float-int8": (
            verdict("optimized_float..calibrated", "cosine", 0.99931, 0.99),
            score_verdict("optimized_float..calibrated"),
            verdict("calibrated..quantized", "lsb", 1.0, 3.01),
        ),
        "bc-hbm": (
            verdict("quantized..hbm", "decimals", 4.1e-06, 1e-05),
            score_verdict("quantized..hbm"),
        ),
        "board": (score_verdict("board"),),
    }
    return {
        check.slug: CheckResult(check.slug, check.title, Outcome.PASSED, verdicts[check.slug]) for check in PTQ.checks
    }


SUMMARIES = (
    summary("pytorch..onnx", error=3.7e-05),
    summary("onnx..original_float", error=0.0),
    summary("original_float..optimized_float", error=7.5e-05),
    summary("optimized_float..calibrated", error=0.81, cosine=0.99931),
    summary("calibrated..quantized", error=0.12, cosine=0.99994),
    summary("quantized..hbm", error=4.1e-06),
)


def judgement(checks: dict[str, CheckResult], of: Plan, outcome: Outcome, first: str | None = None) -> Judgement:
    """A judgement from rows."""
    return Judgement(
        subject=of.subject,
        target=of.target,
        policy="pull-request",
        plan=of.digest,
        outcome=outcome,
        first_failure=first,
        checks=tuple(checks.values()),
        summaries=SUMMARIES,
        scores=scores(),
    )


def results(*pairs: tuple[Facts, Judgement]) -> Results:
    """Results of one run."""
    return Results(
        Tool("driftgate", "0.1.0"), tuple(facts for facts, _ in pairs), tuple(judgement for _, judgement in pairs)
    )


def healthy_pair(subject: str = "digits") -> tuple[Facts, Judgement]:
    """All six rows pass."""
    of = plan(subject)
    return facts(of), judgement(_checks(), of, Outcome.PASSED)


def failing_pair(subject: str = "digits") -> tuple[Facts, Judgement]:
    """BC ↔ HBM breaks; the board's score behind it is judged and hidden."""
    of = plan(subject)
    checks = _checks()
    broken = verdict("quantized..hbm", "decimals", 0.5625, 1e-05, failed=True)
    checks["bc-hbm"] = replace(
        checks["bc-hbm"],
        outcome=Outcome.FAILED,
        verdicts=(broken, score_verdict("quantized..hbm", "352/360", 0.011236)),
    )
    checks["board"] = replace(
        checks["board"],
        outcome=Outcome.FAILED,
        verdicts=(score_verdict("board", "352/360", 0.011236),),
        hidden=True,
    )
    judged = judgement(checks, of, Outcome.FAILED, "bc-hbm")
    summaries = (*SUMMARIES[:-1], summary("quantized..hbm", error=0.5625, cosine=0.98213))
    return facts(of), replace(judged, summaries=summaries, scores=scores("352/360"))


def error_pair(subject: str = "digits") -> tuple[Facts, Judgement]:
    """The recording of the board is missing."""
    of = plan(subject)
    checks = _checks()
    reason = message("run-missing", stage="hbm")
    for slug, target in (("bc-hbm", "quantized..hbm"), ("board", "board")):
        checks[slug] = replace(
            checks[slug],
            outcome=Outcome.ERROR,
            verdicts=(Verdict(target, None, Outcome.ERROR, reason=reason),),
        )
    complete = facts(of)
    partial = replace(complete, runs=complete.runs[:-1], problems=(Problem("quantized..hbm", None, reason),))
    return partial, replace(judgement(checks, of, Outcome.ERROR), summaries=SUMMARIES[:-1], scores=scores()[:-1])


def segment_two_pair(subject: str = "digits") -> tuple[Facts, Judgement]:
    """Only the float stages are asked for."""
    of = plan(subject, STAGES[:4])
    checks = _checks()
    for slug, stages in (("float-int8", ("calibrated", "quantized")), ("bc-hbm", ("hbm",)), ("board", ("hbm",))):
        checks[slug] = replace(
            checks[slug],
            outcome=Outcome.SKIPPED,
            verdicts=(),
            notes=(message("not-asked", stages=stages),),
            required=False,
        )
    judged = judgement(checks, of, Outcome.PASSED)
    return facts(of), replace(judged, summaries=SUMMARIES[:3], scores=scores()[:4])


def hostile_pair(text: str = HOSTILE) -> tuple[Facts, Judgement]:
    """Every name, note and reason that a stranger chooses is `text`; it fails at BC ↔ HBM."""
    base, failing = failing_pair()
    of = replace(base.plan, subject=text, target=text)
    said = message("from-a-newer-version", reason=text, names=(text, text))
    checks = tuple(
        replace(
            check,
            title=text if check.slug == "board" else check.title,
            verdicts=tuple(
                replace(
                    verdict,
                    output=text,
                    sample=text,
                    reason=said if verdict.outcome is Outcome.FAILED else None,
                    notes=(said,),
                )
                for verdict in check.verdicts
            ),
            notes=(said,),
        )
        for check in failing.checks
    )
    environment = replace(HOST, cpu=text, provider=text, level=text, board=text, versions=((text, text),))
    judged = replace(
        failing,
        subject=text,
        target=text,
        policy=text,
        plan=text,
        checks=checks,
        summaries=tuple(replace(summary, output=text, worst_sample=text) for summary in failing.summaries),
        scores=tuple(replace(score, name=text, stage=text, text=text) for score in failing.scores),
    )
    hostile_runs = tuple(
        replace(run, stage=text, backend=text, artifact=text, environment=text, notes=(said,)) for run in base.runs
    )
    problems = (Problem(text, text, said),)
    return replace(base, plan=of, runs=hostile_runs, environments=(environment,), problems=problems), judged


def healthy() -> Results:
    """One healthy subject."""
    return results(healthy_pair())


def failing() -> Results:
    """One subject that fails at BC ↔ HBM."""
    return results(failing_pair())


def error() -> Results:
    """One subject whose board leg is missing."""
    return results(error_pair())


def segment_two() -> Results:
    """One subject of which only the float half is asked for."""
    return results(segment_two_pair())


def hostile(text: str = HOSTILE) -> Results:
    """One subject full of `text`."""
    return results(hostile_pair(text))


def crashed() -> Results:
    """A worker died and left a traceback of several lines."""
    facts, judged = error_pair()
    tail = 'Traceback (most recent call last):\n  File "net.py", line 3\n```\nRuntimeError: out of memory'
    reason = message("from-a-newer-version", stage="hbm", tail=tail)
    checks = tuple(
        replace(check, verdicts=tuple(replace(verdict, reason=reason) for verdict in check.verdicts))
        if check.outcome is Outcome.ERROR
        else check
        for check in judged.checks
    )
    return results((facts, replace(judged, checks=checks)))


def several() -> Results:
    """Three subjects: healthy, failing, error."""
    return results(healthy_pair("digits"), failing_pair("yolov8n"), error_pair("lanes"))
