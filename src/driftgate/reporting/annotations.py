"""Annotations of a run: the few worst things, each on the line of the configuration that it is about."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import groupby

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import CELLS, CheckResult, Judgement, Outcome, Verdict
from driftgate.domain.results import Results
from driftgate.escaping.characters import shortened
from driftgate.messages.message import Message, message
from driftgate.messages.text import text
from driftgate.reporting.view.page import facts_of
from driftgate.reporting.view.readings import SENTENCE, explanation, severity
from driftgate.reporting.view.runs import notes

#: GitHub shows ten of each level in a step and drops the rest silently; one is for what the step itself says.
MOST = 9

Line = Callable[[Sequence[str]], int]


class Level(str, Enum):
    """The levels that GitHub has."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True)
class Annotation:
    """One thing to see beside the changed files; `file` and `line` are None where nothing in a file is concerned."""

    level: Level
    title: str
    message: str
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class _Concern:
    """What an annotation will be of; `rank` is its place among those of its subject, the worst being 0."""

    level: Level
    outcome: Outcome
    rank: int
    severity: float
    title: str
    said: str
    place: tuple[str, ...]


_OUTCOMES = (Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED, Outcome.PASSED)

#: Notes that change what a verdict is worth.
_NOTABLE = frozenset({"runtime-from-raw", "outputs-extra", "output-by-signature", "feeds-unused", "step-unknown"})

#: The section of a subject that a reason is about, by the beginning of its code; else it is the artifact.
_SECTIONS = {"output": "outputs", "outputs": "outputs", "feed": "inputs", "feeds": "inputs", "input": "inputs"}
_SECTIONS |= {"sample": "samples", "random": "samples", "runtime": "samples", "score": "score", "labels": "score"}


def annotate(results: Results, *, file: str | None = None, line: Line | None = None) -> tuple[Annotation, ...]:
    """At most `MOST` of each level, the worst first, errors before warnings; of each subject the worst comes before
    any other's second.

    `file` is the configuration, and `line` gives the line of a place in it, such as
    `("subjects", "digits", "artifacts", "hbm")`, or of the nearest one that it has.
    """
    concerns: list[_Concern] = [
        concern
        for judgement in results.judgements or ()
        for concern in _concerns(judgement, facts_of(results, judgement))
    ]
    if not results.judgements:
        said = text(message("overall-nothing"))
        concerns.append(_Concern(Level.ERROR, Outcome.ERROR, 0, 0.0, results.tool.name, said, ()))
    levels = list(Level)
    concerns.sort(key=lambda c: (levels.index(c.level), _OUTCOMES.index(c.outcome), c.rank, -c.severity))
    made = dict.fromkeys(
        Annotation(
            concern.level,
            concern.title,
            concern.said,
            file if concern.place else None,
            line(concern.place) if concern.place and file is not None and line is not None else None,
        )
        for concern in concerns
    )
    return tuple(
        annotation
        for level, alike in groupby(made, key=lambda annotation: annotation.level)
        for annotation in _few(level, tuple(alike))
    )


def encoded(found: Iterable[Annotation]) -> bytes:
    """annotations.json: a list of objects with level, title, message, file and line."""
    return (json.dumps([asdict(one) for one in found], ensure_ascii=True, indent=1) + "\n").encode("ascii")


def _few(level: Level, alike: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
    if len(alike) <= MOST:
        return alike
    more = text(message("annotation-more", count=len(alike) - MOST + 1))
    return (*alike[: MOST - 1], Annotation(level, alike[0].title.partition(":")[0], more))


def _concerns(judgement: Judgement, facts: Facts | None) -> Iterator[_Concern]:
    """What is wrong with one subject, the worst first, then what is worth knowing."""
    found = [
        (check, verdict)
        for check in judgement.checks
        if not check.hidden and check.outcome in (Outcome.FAILED, Outcome.ERROR)
        for verdict in check.verdicts or (_itself(check),)
        if verdict.outcome in (Outcome.FAILED, Outcome.ERROR)
    ]
    found.sort(key=lambda pair: (not pair[0].required, _OUTCOMES.index(pair[1].outcome), -severity(pair[1])))
    if not found and judgement.outcome not in (Outcome.PASSED, Outcome.FAILED):
        said = text(message("headline-nothing"))
        whole = ("subjects", judgement.subject)
        yield _Concern(Level.ERROR, Outcome.ERROR, 0, 0.0, _short(judgement.subject), said, whole)
    once: dict[Message | Verdict, tuple[CheckResult, Verdict]] = {}
    for check, verdict in found:
        once.setdefault(verdict.reason or verdict, (check, verdict))
    for rank, (check, verdict) in enumerate(once.values()):
        yield _concern(check, verdict, judgement, rank=rank)
    for rank, note in enumerate(note for note in notes(judgement, facts) if note.text.code in _NOTABLE):
        stage = note.about.rpartition("..")[2]
        title, said = f"{_short(judgement.subject)}: {_short(note.about)}", text(note.text, _short)
        place = _place(judgement.subject, stage, note.text)
        yield _Concern(Level.WARNING, Outcome.PASSED, rank, 0.0, title, said, place)


def _itself(check: CheckResult) -> Verdict:
    """A check that no verdict accounts for."""
    return Verdict(check.slug, None, check.outcome, reason=check.notes[0] if check.notes else None)


def _concern(check: CheckResult, verdict: Verdict, judgement: Judgement, *, rank: int) -> _Concern:
    reason = explanation(verdict) or message(f"case-{verdict.outcome.value}")
    result = CELLS[verdict.outcome]
    title = message("annotation-title", subject=judgement.subject, check=check.title, result=result)
    said = f"{_where(verdict)}: {text(reason, _short)}"
    if check.waived:
        said = text(message("annotation-waived", said=said))
    elif not check.required:
        said = text(message("annotation-optional", said=said))
    return _Concern(
        level=Level.ERROR if check.required and not check.waived else Level.WARNING,
        outcome=verdict.outcome,
        rank=rank,
        severity=severity(verdict),
        title=text(title, _short),
        said=said,
        place=_place(judgement.subject, verdict.target.rpartition("..")[2], verdict.reason),
    )


def _where(verdict: Verdict) -> str:
    """Link or check, output, sample and channel, as far as there are such."""
    parts = [" → ".join(verdict.target.split(".."))]
    parts += [] if verdict.output is None else [_short(verdict.output)]
    parts += [] if verdict.sample is None else [f"{text(message('where-sample'))} {_short(verdict.sample)}"]
    parts += [] if verdict.channel is None else [f"{text(message('where-channel'))} {verdict.channel}"]
    return ", ".join(parts)


def _place(subject: str, stage: str, reason: Message | None) -> tuple[str, ...]:
    """The nearest place in the configuration; `stage` may be a check's slug, of which the configuration has none."""
    section = "" if reason is None else _SECTIONS.get(reason.code.partition("-")[0], "")
    if section:
        return ("subjects", subject, section)
    named = None if reason is None else reason.get("stage")
    if stage == "baseline":
        return ("subjects", subject, "score", "baseline")
    return ("subjects", subject, "artifacts", named if isinstance(named, str) else stage)


def _short(value: str) -> str:
    return shortened(value, SENTENCE)
