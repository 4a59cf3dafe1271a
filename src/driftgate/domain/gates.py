"""Gates: what came of each clause of a policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from driftgate.domain.judgement import Outcome, Verdict
from driftgate.messages.message import Message


class Clause(str, Enum):
    """What a line of a gate is about; the order is that of the output."""

    CHECK = "check"
    SKIPPED = "skipped"
    SAMPLES = "samples"
    REGRESSIONS = "regressions"
    HISTORY = "history"
    COMMIT = "commit"
    ARTIFACTS = "artifacts"
    VERSIONS = "versions"
    BOARD_AGE = "board-age"
    WAIVER = "waiver"


@dataclass(frozen=True, slots=True)
class GateLine:
    """One clause of one subject and target: what was found, what was wanted, and why it is not passed. `name` is the
    slug of a check, the stage, or what a waiver is of, `verdicts` are those that make it what it is; `codes` those of
    findings that say why."""

    subject: str
    target: str
    clause: Clause
    outcome: Outcome
    name: str = ""
    value: str = ""
    limit: str = ""
    reason: Message | None = None
    verdicts: tuple[Verdict, ...] = ()
    codes: tuple[str, ...] = ()


def outcome_of(lines: Iterable[GateLine]) -> Outcome:
    """Failed where any line failed, else error where any could not be established or there is none, else passed."""
    found = {line.outcome for line in lines}
    if Outcome.FAILED in found:
        return Outcome.FAILED
    return Outcome.PASSED if found == {Outcome.PASSED} else Outcome.ERROR
