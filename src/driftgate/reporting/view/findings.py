"""The causes that were found for a link, with the numbers that speak for them."""

from __future__ import annotations

from dataclasses import dataclass

import driftgate.messages.terms as terms
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Finding, Judgement
from driftgate.judgement.codes import CODES, Code, Segment, Verdict, Who
from driftgate.messages.message import Message, message
from driftgate.messages.text import number

NUMBERS = 4
SUBJECTS = 6
LINE = 100


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One cause: what it means for the verdict, how sure it is, and rows of (name, value, unit)."""

    cell: str
    code: str
    sure: Message
    cause: Message
    subjects: tuple[str, ...]
    evidence: tuple[tuple[Message, str, Message | None], ...]
    next: Message
    actor: Message
    untouched: Message | None
    paste: str = ""  # a fragment that is too long for a line


def findings(target: str, judgement: Judgement, facts: Facts | None) -> tuple[tuple[FindingLine, ...], Message | None]:
    """A link's findings, best first; where experiments were made and none explains it, what was ruled out."""
    lines = tuple(_line(finding) for finding in judgement.findings if finding.link == target)
    for found in facts.investigations if facts is not None and not lines else ():
        if found.link == target and found.explained:
            if found.ruled_out:
                return (), message("explain-none-ruled-out", codes=found.ruled_out)
            return (), message("explain-none")
    return lines, None


def _line(finding: Finding) -> FindingLine:
    code = CODES.get(finding.code)
    if code is None:  # of a later version
        code = Code(finding.code, Segment.EVIDENCE, Verdict.FAIL, Who.USER)
    return FindingLine(
        cell=code.verdict.value,
        code=finding.code,
        sure=message("explain-confirmed" if finding.confirmed else "explain-suspected"),
        cause=code.cause,
        subjects=finding.subjects[:SUBJECTS],
        evidence=tuple(
            (terms.name(name), number(value), terms.unit(unit)) for name, value, unit in finding.evidence[:NUMBERS]
        ),
        next=finding.next or code.next,
        actor=code.actor,
        untouched=code.untouched,
        paste=_paste(finding),
    )


def _paste(finding: Finding) -> str:
    """What the next step says to paste, where it would be cut within a line."""
    told = dict(finding.next.params).get("fragment", "") if finding.next is not None else ""
    return str(told) if len(str(told)) > LINE else ""
