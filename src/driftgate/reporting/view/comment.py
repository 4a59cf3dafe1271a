"""What a comment shows of a run: what one glance needs, the rest folded, and step by step less where it is too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from driftgate.messages.message import Message, message
from driftgate.reporting.view.links import VerdictLine
from driftgate.reporting.view.page import Page, Subject, shortened

WORST_FIRST = ("FAIL", "ERROR", "-", "PASS")
UNSOUND = WORST_FIRST[:-1]
ANY = 1_000_000

#: What of one subject is shown unfolded; the folded tables have the rest.
METRICS, NOTES, STEPS, SCORES = 2, 2, 2, 3
ERRORS, ERROR_LINES = 2, 2


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is shown: lines of each folded table, whole logs, and subjects by their cell: those with a page of
    their own (which is `bare` where it is the table alone), and those in the overview."""

    lines: int
    logs: bool = False
    pages: tuple[str, ...] = WORST_FIRST
    bare: bool = False
    rows: tuple[str, ...] = WORST_FIRST
    most_pages: int = ANY
    most_rows: int = ANY


#: Each step shows less than the one before it.
LADDER = (
    Detail(20, logs=True),
    Detail(10),
    Detail(0),
    Detail(0, pages=UNSOUND),
    Detail(0, pages=("FAIL",), bare=True),
    Detail(0, pages=("FAIL",), bare=True, rows=UNSOUND),
    Detail(0, pages=("FAIL",), bare=True, rows=UNSOUND, most_pages=20, most_rows=200),
    Detail(0, pages=(), rows=UNSOUND, most_rows=200),
    Detail(0, pages=(), rows=UNSOUND, most_rows=20),
    Detail(0, pages=(), rows=()),
)


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment. `only` is the subject where there is just one: it needs no overview, and its page no fold.

    `pages` have `logs` (texts of several lines) only where they are to be shown, and `bare` says that of each
    page the table alone is shown. `counts` is None with one subject.
    """

    tool: str
    cell: str
    headline: Message
    counts: Message | None
    only: Subject | None
    overview: tuple[Subject, ...]
    pages: tuple[Subject, ...]
    bare: bool
    left_out: tuple[Message, ...]


def comment(whole: Page, detail: Detail) -> Comment:
    """The comment on a page at one step of the ladder; the worst subjects come first."""
    everyone = tuple(sorted(whole.subjects, key=lambda one: WORST_FIRST.index(one.cell)))
    several = len(everyone) != 1
    rows = [one for one in everyone if several and one.cell in detail.rows][: detail.most_rows]
    chosen = [one for one in everyone if one.cell in detail.pages][: detail.most_pages]
    pages = shortened(replace(whole, subjects=tuple(map(_glance, chosen))), detail.lines).subjects
    pages = tuple(_with_tables_shortened(one, detail.lines) for one in pages)
    logs = 0
    if not detail.logs:
        logs = sum(_logs(one) for one in pages)
        pages = tuple(map(_without_logs, pages))
    lines = logs + sum(one.left_out for one in pages)
    passing, unsound = (_passing(everyone) - _passing(rows), len(everyone) - len(rows)) if several else (0, 0)
    lost = {
        "left-out-lines": 0 if detail.bare else lines,
        "left-out-beside": len(pages) if detail.bare else 0,
        "left-out-pages": len(everyone) - len(pages),
        "left-out-rows": passing,
        "left-out-unsound": unsound - passing,
    }
    return Comment(
        tool=f"{whole.tool.name} {whole.tool.version}",
        cell=whole.cell,
        headline=whole.headline,
        counts=_counts(everyone) if several and everyone else None,
        only=None if several else everyone[0],
        overview=tuple(rows),
        pages=pages,
        bare=detail.bare,
        left_out=tuple(message(code, count=count) for code, count in lost.items() if count),
    )


def _passing(subjects: Sequence[Subject]) -> int:
    return sum(one.cell == "PASS" for one in subjects)


def _counts(subjects: tuple[Subject, ...]) -> Message:
    cells = [one.cell for one in subjects]
    failed, passed = cells.count("FAIL"), _passing(subjects)
    return message("comment-counts", failed=failed, errors=len(cells) - failed - passed, passed=passed)


def _glance(one: Subject) -> Subject:
    """A subject with what one glance takes in; the job summary has runs, environments, notes and other links' nodes."""
    failure = one.failure
    if failure is not None:
        failure = replace(
            failure,
            metrics=replace(failure.metrics, lines=failure.metrics.lines[:METRICS]),
            notes=failure.notes[:NOTES],
            next=failure.next[:STEPS],
            nodes=None if failure.nodes is None else replace(failure.nodes, notes=failure.nodes.notes[:NOTES]),
        )
    errors = () if failure is not None else one.errors
    return replace(
        one,
        failure=failure,
        errors=tuple((title, lines[:ERROR_LINES]) for title, lines in errors[:ERRORS]),
        scores=one.scores[:SCORES],
        runs=(),
        environments=(),
        notes=(),
        investigated=(),
        left_out=0,
    )


def _with_tables_shortened(one: Subject, lines: int) -> Subject:
    """The tables of scores and of nodes are short as a rule, but nobody bounds how long they are."""
    table, failure = one.score_table, one.failure
    lost = max(0, len(table.lines) - lines)
    if failure is not None and failure.nodes is not None:
        nodes = failure.nodes.lines
        lost += max(0, len(nodes) - lines)
        failure = replace(failure, nodes=replace(failure.nodes, lines=nodes[:lines]))
    shorter = replace(table, lines=table.lines[:lines])
    return replace(one, score_table=shorter, failure=failure, left_out=one.left_out + lost)


def _logs(one: Subject) -> int:
    return sum(len(line.long_texts) for line in _told(one))


def _told(one: Subject) -> list[VerdictLine]:
    lines = [] if one.failure is None else list(one.failure.lines)
    return [*lines, *(line for _, told in one.errors for line in told)]


def _without_logs(one: Subject) -> Subject:
    failure = one.failure
    if failure is not None:
        failure = replace(failure, lines=tuple(replace(line, long_texts=()) for line in failure.lines))
    errors = tuple((title, tuple(replace(line, long_texts=()) for line in lines)) for title, lines in one.errors)
    return replace(one, failure=failure, errors=errors)
