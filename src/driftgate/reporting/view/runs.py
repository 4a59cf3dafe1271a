"""What ran where: samples, plan, runs, environments, and every note that was made."""

from __future__ import annotations

from dataclasses import dataclass

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Judgement
from driftgate.messages.message import Message, message

DIGEST = 12  # characters of a digest that people compare
UNCHANGED = "unchanged-since"


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run of one artifact; `kept` is the digest's beginning."""

    stage: str
    backend: str
    artifact: str
    environment: str
    samples: int
    outcome: Message
    seconds: str


@dataclass(frozen=True, slots=True)
class EnvironmentLine:
    """A machine and stack; empty where it does not say."""

    id: str
    provider: str
    level: str
    threads: str
    cpu: str
    board: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something the reader should know, and of what: a stage, a link or a check."""

    about: str
    text: Message


def measured_on(judgement: Judgement, facts: Facts | None) -> Message:
    """One line: on how many samples of which origin, under which policy, by which plan."""
    plan = judgement.plan[:DIGEST]
    if facts is None:
        return message("measured-without-facts", policy=judgement.policy, plan=plan)
    samples = facts.plan.samples
    return message(f"measured-on-{samples.origin.value}", count=len(samples.ids), policy=judgement.policy, plan=plan)


def unchanged(facts: Facts | None) -> Message | None:
    """That the runs are those of an earlier report, where they are."""
    notes = () if facts is None else (note for run in facts.runs for note in run.notes)
    return next((note for note in notes if note.code == UNCHANGED), None)


def run_lines(facts: Facts) -> tuple[RunLine, ...]:
    """All runs in the order of the chain."""
    order = {stage.name: position for position, stage in enumerate(facts.plan.chain.stages)}
    return tuple(
        RunLine(
            stage=run.stage,
            backend=run.backend,
            artifact=run.artifact[:DIGEST],
            environment=run.environment,
            samples=run.samples_done,
            outcome=message(f"run-{run.outcome.value}"),
            seconds=f"{run.seconds:.1f}",
        )
        for run in sorted(facts.runs, key=lambda run: (order.get(run.stage, len(order)), run.leg))
    )


def environment_lines(facts: Facts) -> tuple[EnvironmentLine, ...]:
    """All environments, in the order in which they were noted."""
    return tuple(
        EnvironmentLine(
            id=environment.id,
            provider=environment.provider,
            level=environment.level,
            threads=str(environment.threads) if environment.threads else "",
            cpu=environment.cpu,
            board=environment.board,
            versions=tuple(f"{name} {version}" for name, version in environment.versions),
        )
        for environment in facts.environments
    )


def notes(judgement: Judgement, facts: Facts | None) -> tuple[Note, ...]:
    """Every note and problem once, in the order of the route."""
    found: list[Note] = []
    if facts is not None:
        found += [Note(omission.stage, omission.reason) for omission in facts.plan.omitted]
        found += [Note(run.stage, note) for run in facts.runs for note in run.notes]
        found += [Note(run.stage, run.reason) for run in facts.runs if run.reason is not None]
        found += [Note(problem.where, problem.reason) for problem in facts.problems]
    for check in judgement.checks:
        found += [Note(check.slug, note) for note in check.notes]
        found += [Note(verdict.target, note) for verdict in check.verdicts for note in verdict.notes]
    return tuple(dict.fromkeys(found))
