"""A gate as reports show it: a row for each clause, and what it all comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftgate.domain.gates import Clause, GateLine, outcome_of
from driftgate.domain.judgement import CELLS, Outcome, Verdict
from driftgate.messages.message import Message, message
from driftgate.reporting.view.readings import Reading, reading, severity
from driftgate.reporting.view.table import Place, place

#: Clauses that are of one thing where they name it, else of everything.
OF_SOMETHING = (Clause.HISTORY, Clause.ARTIFACTS, Clause.VERSIONS, Clause.BOARD_AGE)


@dataclass(frozen=True, slots=True)
class GateRow:
    """A clause of one subject: what was found and wanted, or the worst number of its verdicts with its link and place;
    the reason, and the codes of findings that say why."""

    cell: str
    subject: str
    target: str
    what: Message
    found: str
    wanted: str
    number: Reading | None
    link: str
    place: Place
    reason: Message | None
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateBlock:
    """All clauses of a policy. `broken` are the rows that do not hold."""

    cell: str
    headline: Message
    rows: tuple[GateRow, ...]

    @property
    def broken(self) -> tuple[GateRow, ...]:
        """What keeps the gate shut."""
        return tuple(row for row in self.rows if row.cell != CELLS[Outcome.PASSED])


def gate_block(lines: Sequence[GateLine], policy: str) -> GateBlock:
    """The clauses in words."""
    outcome = outcome_of(lines)
    broken = sum(line.outcome is not Outcome.PASSED for line in lines)
    told = message(f"gate-{outcome.value}", policy=policy, count=len(lines), broken=broken)
    return GateBlock(CELLS[outcome], told, tuple(map(_row, lines)))


def _row(line: GateLine) -> GateRow:
    worst = _worst(line.verdicts)
    of = "-of" if line.name and line.clause in OF_SOMETHING else ""
    return GateRow(
        cell=CELLS[line.outcome],
        subject=line.subject,
        target=line.target,
        what=message(f"clause-{line.clause.value}{of}", name=line.name),
        found=line.value,
        wanted=line.limit,
        number=None if worst is None or line.value or line.limit else reading(worst),
        link="" if worst is None else worst.target,
        place=Place(None) if worst is None else place(worst),
        reason=line.reason,
        codes=line.codes,
    )


def _worst(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The worst verdict that has a number."""
    ranked = sorted(verdicts, key=severity, reverse=True)
    return next((one for one in ranked if reading(one) is not None), None)
