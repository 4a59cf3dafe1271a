"""The workflow's watchdog: cancels its run when a board's leg finds no runner, so that the run ends and says so.

GitHub lets a job wait for a runner for a day. The run is cancelled only once nothing of it is at work any more: what
other legs measure is not thrown away. It ends by itself when every board's leg has found its runner.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TextIO

from driftgate.errors import DriftgateError, GitHubError, Postponed, ReplyLost, UsageError
from driftgate.escaping.markdown import prose
from driftgate.github.api import Client
from driftgate.github.patience import Patience, Timing, machine_timing
from driftgate.github.payload import items_at, number_at, text_at
from driftgate.messages.message import Message, message
from driftgate.runner import annotate, fail

#: As the reusable workflow names the jobs of its legs; a caller's own name stands before it, with a slash between.
HOST, BOARD = "Host ", "J6 board "
#: Less than a job on a runner of GitHub's may last.
WATCH_SECONDS = 350 * 60.0
#: Between two looks: the first, the longest, and how they grow.
FIRST_SECONDS, LONGEST_SECONDS, GROWTH = 20.0, 60.0, 1.5
CANCELS = 5
PATIENCE = Patience(attempts=20, total_seconds=WATCH_SECONDS + 600)
_NUMBER = re.compile(r"[1-9]\d{0,18}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


class Standing(Enum):
    """What a leg's job is doing; GitHub knows more words, all of which are one of these here."""

    QUEUED = "queued"
    AT_WORK = "in_progress"
    ENDED = "completed"
    HELD = "pending"  # by a concurrency group, an environment, or not yet begun


@dataclass(frozen=True, slots=True)
class LegJob:
    """The job of one leg."""

    id: int
    name: str
    standing: Standing
    labels: frozenset[str]
    is_board: bool


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A run with so many legs on boards, and how long one of them may wait for a runner."""

    repository: str
    id: int
    boards: int
    limit_seconds: float

    @property
    def path(self) -> str:
        """Its address below the API's base."""
        return f"/repos/{self.repository}/actions/runs/{self.id}"


class Queue:
    """Since when each leg waits for a runner; the time while a leg of the same labels is at work does not count."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}

    def overdue(self, jobs: Iterable[LegJob], *, now: float, limit_seconds: float) -> tuple[LegJob, ...]:
        """The legs that have waited for longer than the limit."""
        known = tuple(jobs)
        busy = {job.labels for job in known if job.standing is Standing.AT_WORK}
        waiting = [job for job in known if job.standing is Standing.QUEUED and job.labels not in busy]
        self._since = {job.id: self._since.get(job.id, now) for job in waiting}
        return tuple(job for job in waiting if now - self._since[job.id] > limit_seconds)


def watch(client: Client, run: WatchedRun, timing: Timing) -> tuple[LegJob, ...]:
    """Wait until every board's leg has its runner, or until nothing moves any more: the boards' legs without one.

    Raises GitHubError, and UsageError where the time is over.
    """
    queue = Queue()
    pause, end = FIRST_SECONDS, timing.monotonic() + WATCH_SECONDS
    while timing.monotonic() < end:
        jobs = legs(client.pages(f"{run.path}/jobs", under="jobs", filter="latest"))
        boards = [job for job in jobs if job.is_board]
        if len(boards) >= run.boards and all(job.standing in (Standing.AT_WORK, Standing.ENDED) for job in boards):
            return ()
        overdue = queue.overdue(jobs, now=timing.monotonic(), limit_seconds=run.limit_seconds)
        stuck = tuple(job for job in overdue if job.is_board)
        if stuck and not any(_moves(job) and job not in overdue for job in jobs):
            return stuck
        timing.sleep(pause)
        pause = min(pause * GROWTH, LONGEST_SECONDS)
    raise UsageError(message("watch-over", minutes=round(WATCH_SECONDS / 60)))


def legs(listed: Iterable[object]) -> tuple[LegJob, ...]:
    """The legs among the jobs of a run, as GitHub lists them."""
    found = []
    for entry in listed:
        name = text_at(entry, "name")
        is_board = _begins(name, BOARD)
        if not is_board and not _begins(name, HOST):
            continue
        status = text_at(entry, "status")
        standing = next((one for one in Standing if one.value == status), Standing.HELD)
        labels = frozenset(label for label in items_at(entry, "labels") if isinstance(label, str))
        found.append(LegJob(number_at(entry, "id") or 0, name, standing, labels, is_board))
    return tuple(found)


def cancel(client: Client, run: WatchedRun) -> None:
    """Cancel it. Raises GitHubError."""
    for _ in range(CANCELS):
        try:
            client.post(f"{run.path}/cancel", {})
        except (Postponed, ReplyLost):
            continue
        return
    raise GitHubError(message("watch-not-cancelled", attempts=CANCELS))


def run(environment: Mapping[str, str], log: TextIO, timing: Timing) -> int:
    """The step; 1 where the run had to be cancelled. Why is said before it is done: nobody speaks afterwards."""
    watched = read_run(environment)
    token, api_url = environment.get("GITHUB_TOKEN", ""), environment.get("GITHUB_API_URL", "")
    with Client(api_url, token, timing=timing, patience=PATIENCE, polls=True) as client:
        stuck = watch(client, watched, timing)
        if not stuck:
            return 0
        minutes = round(watched.limit_seconds / 60)
        told = [
            message("watch-stuck", job=job.name, labels=tuple(sorted(job.labels)), minutes=minutes) for job in stuck
        ]
        for one in told:
            annotate("error", one, log)
        _write_page(Path(environment["GITHUB_STEP_SUMMARY"]), [*told, message("watch-cancelled")])
        cancel(client, watched)
    return 1


def read_run(environment: Mapping[str, str]) -> WatchedRun:
    """The run that the variables name. Raises UsageError with everything that is wrong."""
    wanted = {
        "GITHUB_REPOSITORY": (_REPOSITORY, "owner/name"),
        "GITHUB_RUN_ID": (_NUMBER, "1658821493"),
        "DRIFTGATE_BOARD_LEGS": (_NUMBER, "4"),
        "DRIFTGATE_QUEUE_LIMIT": (_NUMBER, "15"),
    }
    values = {name: environment.get(name, "").strip() for name in wanted}
    problems = [
        message("variable-garbled", name=name, found=values[name], wanted=example)
        for name, (form, example) in wanted.items()
        if not form.fullmatch(values[name])
    ]
    if problems:
        raise UsageError(*problems)
    repository, number, boards, minutes = values.values()
    return WatchedRun(repository, int(number), int(boards), int(minutes) * 60.0)


def main() -> None:
    """The step of the job `watch`."""
    timing = machine_timing()
    try:
        code = run(os.environ, sys.stdout, timing)
    except DriftgateError as error:
        fail(error)
    sys.exit(code)


def _begins(name: str, prefix: str) -> bool:
    """A caller's name stands before the job's own, and a caller may be called itself."""
    return name.startswith(prefix) or f" / {prefix}" in name


def _moves(job: LegJob) -> bool:
    return job.standing in (Standing.AT_WORK, Standing.QUEUED)


def _told(job: LegJob, run: WatchedRun) -> Message:
    minutes = round(run.limit_seconds / 60)
    return message("watch-stuck", job=job.name, labels=tuple(sorted(job.labels)), minutes=minutes)


def _write_page(summary: Path, told: Iterable[Message]) -> None:
    with summary.open("a", encoding="utf-8") as handle:
        handle.writelines(f"* {prose(one)}\n" for one in told)


if __name__ == "__main__":
    main()
