"""What the reader wants to know first: which check failed first, where, why, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from driftgate.messages.message import Message, message
from driftgate.reporting.view.findings import FindingLine
from driftgate.reporting.view.links import FirstFailure, VerdictLine
from driftgate.reporting.view.nodes import Nodes
from driftgate.reporting.view.page import Subject

#: It says why there is no cause, among the next steps.
NO_CAUSE = "not-investigated"


@dataclass(frozen=True, slots=True)
class Answer:
    """The first check without PASS. `nodes` is None where no node is named; `finding` is what `why` is taken from,
    if it is from one; `next` is empty where `why` says what to do as well."""

    title: Message
    check: str
    line: VerdictLine | None
    nodes: Nodes | None
    finding: FindingLine | None
    why_title: Message
    why: Message
    next: tuple[Message, ...]


def answer(subject: Subject) -> Answer | None:
    """The answer of a subject's page; None where nothing is wrong."""
    if subject.failure is not None:
        return _of_failure(subject.failure)
    if not subject.errors:
        return None
    check, lines = subject.errors[0]
    return Answer(
        title=message("page-answer-error"),
        check=check,
        line=lines[0],
        nodes=None,
        finding=None,
        why_title=message("page-answer-why-next"),
        why=lines[0].reason or message("page-answer-read"),
        next=(),
    )


def _counted(unexplained: Message | None) -> Message | None:
    """How many causes were ruled out instead of which: those stand below."""
    codes = dict(unexplained.params).get("codes") if unexplained is not None else None
    return message("page-unexplained", count=len(codes)) if isinstance(codes, tuple) else unexplained


def _of_failure(failure: FirstFailure) -> Answer:
    finding = failure.findings[0] if failure.findings else None
    line = failure.lines[0] if failure.lines else None
    steps = tuple(step for step in failure.next if step.code != NO_CAUSE)
    told = (
        finding.cause if finding is not None else None,
        _counted(failure.unexplained),
        line.reason if line is not None else None,
        *(step for step in failure.next if step.code == NO_CAUSE),
    )
    return Answer(
        title=message("page-answer-check"),
        check=failure.title,
        line=line,
        nodes=failure.nodes if failure.nodes is not None and failure.nodes.node else None,
        finding=finding,
        why_title=message("page-answer-why"),
        why=next((said for said in told if said is not None), message("page-answer-unknown")),
        next=(finding.next, finding.actor) if finding is not None else steps[:1] or (message("page-answer-read"),),
    )
