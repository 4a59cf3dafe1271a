"""JUnit XML: a suite a check, a case a link and output; what is not proven is never a passing case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from xml.etree import ElementTree

from junit_xml import TestCase, TestSuite  # type: ignore[import-untyped]

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import CELLS, CheckResult, Judgement, Outcome, Verdict
from driftgate.domain.results import Results
from driftgate.escaping import xml
from driftgate.judgement.codes import CODES
from driftgate.judgement.criteria import PERFORMANCE
from driftgate.messages.message import Message, message
from driftgate.messages.text import text
from driftgate.reporting.view.page import facts_of
from driftgate.reporting.view.performance import performance_lines
from driftgate.reporting.view.readings import explanation, long_texts
from driftgate.reporting.view.table import first_failure

_WORST_FIRST = (Outcome.FAILED, Outcome.ERROR, Outcome.PASSED, Outcome.SKIPPED)


@dataclass(frozen=True, slots=True)
class Case:
    """One test case before it is XML; `reason` stands in the message of whatever is not passed."""

    name: str
    outcome: Outcome
    kind: str
    reason: str
    details: tuple[str, ...]
    long_texts: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def body(self) -> str:
        """The text of a failure or error: readers show little else."""
        return "\n".join((self.reason, *self.long_texts, *self.details))


def junit(results: Results) -> bytes:
    """The document in UTF-8, valid by Jenkins' junit-10.xsd."""
    suites = [
        suite
        for judgement in results.judgements or ()
        for suite in _suites(judgement, facts_of(results, judgement), results)
    ]
    root = ElementTree.Element("testsuites", {"name": "driftgate"})
    root.extend(_corrected(suite.build_xml_doc()) for suite in suites)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in root):.3f}")
    ElementTree.indent(root)
    body: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


def _corrected(suite: ElementTree.Element) -> ElementTree.Element:
    """What junit-xml writes, without the attribute that the schema forbids and with every time as it wants it."""
    suite.attrib.pop("disabled", None)
    cases = suite.findall("testcase")
    for case in cases:
        case.set("time", f"{float(case.get('time', '0')):.3f}")
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
    return suite


def _suites(judgement: Judgement, facts: Facts | None, results: Results) -> Iterator[TestSuite]:
    subject = xml.line(f"{judgement.subject}.{judgement.target}")
    seconds = _seconds(facts)
    for check in judgement.checks:
        name = f"{subject}.{xml.line(check.slug)}"
        cases = [
            replace(case, name=unique)
            for case, unique in _named(
                _cases(check, judgement, facts, seconds), fallback=xml.line(check.slug) or "check"
            )
        ]
        yield TestSuite(
            name,
            [_case(case, name) for case in cases],
            properties=_properties(judgement, facts, results),
        )


def _named(cases: Iterable[Case], fallback: str) -> Iterator[tuple[Case, str]]:
    """Each case with a name that no other one of its suite has; readers drop the second of two equal names."""
    taken: set[str] = set()
    for case in cases:
        name, number = case.name.strip() or fallback, 1
        unique = name
        while unique in taken:
            number += 1
            unique = f"{name} ({number})"
        taken.add(unique)
        yield case, unique


def _case(case: Case, classname: str) -> TestCase:
    told = case.outcome in (Outcome.FAILED, Outcome.ERROR)
    output = None if told else "\n".join(case.details) or None
    made = TestCase(case.name, classname=classname, elapsed_sec=case.seconds, stdout=output)
    if case.outcome is Outcome.SKIPPED:
        made.add_skipped_info(case.reason)
    elif case.outcome is Outcome.FAILED:
        made.add_failure_info(case.reason, case.body, case.kind)
    elif case.outcome is Outcome.ERROR:
        made.add_error_info(case.reason, case.body, case.kind)
    return made


def _cases(check: CheckResult, judgement: Judgement, facts: Facts | None, seconds: dict[str, float]) -> Iterator[Case]:
    """One case a link and output; the check itself where no verdict accounts for its outcome."""
    groups: dict[tuple[str, str | None, str | None], list[Verdict]] = {}
    for verdict in check.verdicts:
        groups.setdefault((verdict.target, verdict.output, _part(verdict)), []).append(verdict)
    behind = _behind(check, judgement)
    if check.outcome not in {verdict.outcome for verdict in check.verdicts}:
        yield Case(
            name=xml.line(check.slug),
            outcome=Outcome.SKIPPED if behind else check.outcome,
            kind="check",
            reason=behind or _say(check.notes[0] if check.notes else _FALLBACK[check.outcome]),
            details=tuple(f"note={_say(note)}" for note in check.notes),
        )
    for (target, output, part), verdicts in groups.items():
        worst = min(verdicts, key=lambda verdict: _WORST_FIRST.index(verdict.outcome))
        parts = (target, part, output)
        waived = _say(check.notes[0]) if check.waived and worst.outcome is Outcome.FAILED else ""
        yield Case(
            name=xml.line(" ".join(part for part in parts if part)),
            outcome=Outcome.SKIPPED if behind or waived else worst.outcome,
            kind=xml.line(worst.criterion or (worst.reason.code if worst.reason is not None else "verdict")),
            reason=behind or waived or _reason(worst),
            details=(
                *_link(target, facts),
                *_details(verdicts),
                *(_causes(judgement, target) if worst.outcome is not Outcome.PASSED else ()),
                *_metrics(judgement, target, output),
            ),
            long_texts=tuple(xml.clean(value) for value in long_texts(worst.reason)),
            seconds=sum(seconds.pop(stage, 0.0) for stage in target.split("..")),
        )


def _part(verdict: Verdict) -> str | None:
    """What sets a case apart from those of the tensors: a score, or one number of the board's speed and memory."""
    criterion = verdict.criterion or ""
    return "score" if criterion.startswith("score-") else criterion if criterion in PERFORMANCE else None


_FALLBACK = {
    Outcome.FAILED: message("case-failed"),
    Outcome.ERROR: message("case-error"),
    Outcome.SKIPPED: message("case-skipped"),
    Outcome.PASSED: message("case-error"),
}


def _say(said: Message) -> str:
    return xml.line(text(said))


def _behind(check: CheckResult, judgement: Judgement) -> str:
    if not check.hidden:
        return ""
    first = first_failure(judgement)
    return _say(message("case-behind", check=first.title if first is not None else "", result=CELLS[check.outcome]))


def _reason(verdict: Verdict) -> str:
    return _say(explanation(verdict) or _FALLBACK[verdict.outcome])


def _link(target: str, facts: Facts | None) -> tuple[str, ...]:
    kinds = {link.name: link.kind.value for link in facts.plan.links} if facts is not None else {}
    return (f"kind={kinds[target]}",) if target in kinds else ()


def _details(verdicts: Iterable[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        yield f"outcome={verdict.outcome.value}"
        for name in ("criterion", "value", "limit", "origin", "sample", "channel"):
            value = getattr(verdict, name)
            if value is not None:
                yield xml.line(f"{name}={getattr(value, 'value', value)}")
        for note in verdict.notes:
            yield f"note={_say(note)}"


def _causes(judgement: Judgement, target: str) -> Iterator[str]:
    for finding in judgement.findings:
        if finding.link == target:
            sure = "confirmed" if finding.confirmed else "suspected"
            code = CODES.get(finding.code)
            yield xml.line(f"cause={finding.code} ({sure})" + (f": {text(code.cause)}" if code is not None else ""))


def _metrics(judgement: Judgement, target: str, output: str | None) -> Iterator[str]:
    for summary in judgement.summaries:
        if (summary.link, summary.output) == (target, output):
            yield f"compared={summary.count}"
            yield from (xml.line(f"metric.{name}={value!r}") for name, value in summary.metrics)
            if summary.dead_channels:
                yield xml.line(f"dead-channels={', '.join(map(str, summary.dead_channels))}")


#: What of a performance becomes a property, in its unit.
_PERFORMANCE = ("stage", "environment", "threads", "core", "latency", "fps", "memory", "estimate", "source")


def _properties(judgement: Judgement, facts: Facts | None, results: Results) -> Mapping[str, str]:
    said = {
        "tool": f"{results.tool.name} {results.tool.version}",
        "subject": judgement.subject,
        "target": judgement.target,
        "policy": judgement.policy,
        "plan": judgement.plan,
    }
    if facts is not None:
        said |= {"chain": facts.plan.chain.name, "samples": str(len(facts.plan.samples.ids))}
        for count, line in enumerate(performance_lines(facts), start=1):
            told = {name: getattr(line, name) for name in _PERFORMANCE}
            said |= {f"performance.{count}.{name}": value for name, value in told.items() if value}
    return {name: xml.line(value) for name, value in said.items()}


def _seconds(facts: Facts | None) -> dict[str, float]:
    """Seconds a stage ran for; each stage's go to the first case that needs it."""
    seconds: dict[str, float] = {}
    for run in facts.runs if facts is not None else ():
        seconds[run.stage] = seconds.get(run.stage, 0.0) + run.seconds
    return seconds
