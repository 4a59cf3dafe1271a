"""The engine of a diagnosis: rules in turns, cheapest first, then the explanations in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driftgate.diagnosis.bench import FLOAT_FLOOR, SECONDS, Answer, Bench, OpenParts
from driftgate.diagnosis.possible import impossible
from driftgate.diagnosis.rules import RULES
from driftgate.diagnosis.trials import Rule
from driftgate.domain.evidence import Evidence
from driftgate.domain.investigations import Explanation
from driftgate.domain.judgement import Finding
from driftgate.errors import DriftgateError
from driftgate.judgement.codes import CODES, Verdict
from driftgate.judgement.findings import ranked
from driftgate.judgement.precision import advised
from driftgate.messages.message import Message, message

LINK = "reference..candidate"
TURNS = (0, 1, 2, 3)
SURE = 0.95  # share of the residual from which on a confirmed cause ends the search for kinds of causes


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict on a link, what was found and the findings made of it, best first, the codes that were tested and
    do not explain it, and what could not be used or finished."""

    verdict: Verdict
    explanations: tuple[Explanation, ...]
    findings: tuple[Finding, ...]
    ruled_out: tuple[str, ...]
    notes: tuple[Message, ...]
    residual: float
    runs: int
    compared: bool


def diagnose(
    evidence: Evidence,
    open_parts: OpenParts | None,
    *,
    seconds: float = SECONDS,
    clock: Callable[[], float] | None = None,
    rules: Sequence[Rule] = RULES,
    answers: tuple[Answer | None, Answer | None] = (None, None),
) -> Diagnosis:
    """Why the candidate of an evidence folder differs; `open_parts` opens its ONNX models, None runs nothing.

    `answers` run reference and candidate where they are no models that can be opened.
    """
    timing = {"clock": clock} if clock is not None else {}
    with Bench(evidence, open_parts, seconds=seconds, answers=answers, **timing) as bench:
        return _Search(bench, rules).diagnosis()


class _Search:
    """One run of all rules."""

    def __init__(self, bench: Bench, rules: Sequence[Rule]) -> None:
        self._bench = bench
        self._rules = rules
        self._impossible = impossible(bench.evidence.link)
        self._found: list[Explanation] = []
        self._asked: dict[str, None] = {}
        self._notes: list[Message] = [*bench.evidence.problems]

    def diagnosis(self) -> Diagnosis:
        """Ask the rules turn by turn and put together what they say."""
        late = False
        for turn in TURNS:
            if turn == TURNS[-1] and any(_is_enough(found) for found in self._found):
                break
            for rule in (rule for rule in self._rules if rule.turn == turn):
                late = late or not self._bench.has_time
                if not late:
                    self._ask(rule)
        if late:
            self._notes.append(message("explain-out-of-time"))
        self._notes.extend((*self._bench.costs.problems, *self._bench.a.refused, *self._bench.b.refused))
        findings = advised(ranked(LINK, self._found), self._found, self._bench.evidence.link.platform)
        told = {finding.code for finding in findings}
        residual = self._residual()
        return Diagnosis(
            verdict=_verdict(findings, residual, self._bench),
            explanations=tuple(self._found),
            findings=findings,
            ruled_out=tuple(code for code in self._asked if code not in told),
            notes=tuple(dict.fromkeys(self._notes)),
            residual=residual,
            runs=self._bench.costs.runs,
            compared=bool(self._bench.pairs),
        )

    def _ask(self, rule: Rule) -> None:
        try:
            codes = [code for code in rule.codes if code not in self._impossible]
            if codes and rule.needs(self._bench):
                self._asked.update(dict.fromkeys(codes))
                self._found.extend(one for one in rule.find(self._bench) if one.code not in self._impossible)
        except DriftgateError as error:
            self._notes.extend(error.problems)
        except (ValueError, LookupError, TypeError, ArithmeticError, MemoryError) as error:
            # An odd tensor must not hide what other rules find; that this one did not finish is said.
            self._notes.append(
                message("explain-rule-failed", codes=rule.codes, kind=type(error).__name__, reason=str(error))
            )

    def _residual(self) -> float:
        try:
            return self._bench.before
        except DriftgateError:
            return math.inf


def _is_enough(found: Explanation) -> bool:
    return found.confirmed and found.share >= SURE


def _verdict(findings: Sequence[Finding], residual: float, bench: Bench) -> Verdict:
    """That of the first finding; without one, PASS for equal outputs, FAIL for others, ERROR for none."""
    if findings:
        return CODES[findings[0].code].verdict
    if bench.evidence.load_error or bench.b.refused:
        return Verdict.FAIL
    if not bench.pairs:
        return Verdict.ERROR
    return Verdict.PASS if residual <= FLOAT_FLOOR else Verdict.FAIL
