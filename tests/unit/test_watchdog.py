"""The workflow's watchdog against a GitHub on the loopback interface: which run it cancels, when, and what it says."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from driftgate.errors import GitHubError, UsageError
from driftgate.watchdog import CANCELS, WATCH_SECONDS, legs, read_run, run
from support.github import payloads
from support.github.clock import EPOCH, FakeClock
from support.github.exchange import Reply
from support.github.faults import SECONDARY, answered, lost, refused, reset
from support.github.runs import TOKEN
from support.github.server import GitHub
from support.github.world import World
from support.runnerreads import commands_in

RUN, LIMIT_MINUTES = 42, 15
HOST = "chain / Host net/J6M/host/0-2"
#: Seconds since the start → name → status; the newest that has begun holds.
Script = Mapping[float, Mapping[str, str]]


def leg(number: int) -> str:
    return f"chain / J6 board net/J6M/board/{number}-{number}"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["", "/api/v3"], ids=["github.com", "enterprise"])
def github(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[GitHub]:
    with GitHub(World(clock), base_path=request.param) as server:
        yield server
    assert server.problems == []


def scripted(
    clock: FakeClock, script: Script, board: Callable[[str], str] = lambda name: "j6"
) -> Callable[[int], list[payloads.Json]]:
    def jobs(run: int) -> list[payloads.Json]:
        found = [states for begin, states in script.items() if begin <= clock.now - EPOCH][-1]
        return [payloads.job(n, run, name, status, labels(name)) for n, (name, status) in enumerate(found.items(), 1)]

    def labels(name: str) -> Sequence[str]:
        return ("ubuntu-24.04",) if name == HOST else ("self-hosted", board(name))

    return jobs


class Watched:
    """One run of the step: its exit code, what it printed and its page."""

    def __init__(self, github: GitHub, clock: FakeClock, folder: Path, boards: int = 1) -> None:
        environment = {
            "GITHUB_API_URL": github.url,
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_REPOSITORY": payloads.REPOSITORY,
            "GITHUB_RUN_ID": str(RUN),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "DRIFTGATE_BOARD_LEGS": str(boards),
            "DRIFTGATE_QUEUE_LIMIT": str(LIMIT_MINUTES),
        }
        log = io.StringIO()
        self.code = run(environment, log, clock.timing())
        self.errors = [command.data for command in commands_in(log.getvalue()) if command.name == "error"]
        self.page = (folder / "summary").read_text("utf-8") if (folder / "summary").exists() else ""
        self.minutes = (clock.now - EPOCH) / 60


def test_it_ends_when_every_board_has_its_runner(github: GitHub, clock: FakeClock, tmp_path: Path) -> None:
    github.world.jobs = scripted(
        clock,
        {
            0: {HOST: "in_progress"},
            50: {HOST: "in_progress", leg(0): "queued", leg(1): "pending"},
            300: {HOST: "completed", leg(0): "completed", leg(1): "queued"},
            700: {HOST: "completed", leg(0): "completed", leg(1): "in_progress"},
        },
    )
    done = Watched(github, clock, tmp_path, boards=2)
    assert (done.code, done.errors, done.page) == (0, [], "")
    assert github.world.cancelled == []
    assert 700 / 60 <= done.minutes < 14


def test_a_board_without_a_runner_cancels_the_run_and_is_named(
    github: GitHub, clock: FakeClock, tmp_path: Path
) -> None:
    github.world.jobs = scripted(clock, {0: {HOST: "completed", leg(0): "completed", leg(1): "queued"}})
    done = Watched(github, clock, tmp_path, boards=2)
    assert done.code == 1
    assert github.world.cancelled == [RUN]
    assert LIMIT_MINUTES < done.minutes < LIMIT_MINUTES + 2
    (error,) = done.errors
    assert error.startswith(f"{leg(1)} has found no runner with the labels j6, self-hosted for 15 min")
    assert f"`{leg(1)}`" in done.page
    assert "cancelled" in done.page


def test_what_is_still_measured_elsewhere_is_not_thrown_away(github: GitHub, clock: FakeClock, tmp_path: Path) -> None:
    github.world.jobs = scripted(
        clock,
        {0: {HOST: "in_progress", leg(0): "queued"}, 3000: {HOST: "completed", leg(0): "queued"}},
    )
    done = Watched(github, clock, tmp_path)
    assert done.code == 1
    assert 3000 / 60 <= done.minutes < 3000 / 60 + 2


def test_a_leg_behind_another_at_work_on_the_same_board_waits_for_no_runner(
    github: GitHub, clock: FakeClock, tmp_path: Path
) -> None:
    github.world.jobs = scripted(
        clock,
        {
            0: {leg(0): "in_progress", leg(1): "queued"},
            3600: {leg(0): "completed", leg(1): "queued"},
            4000: {leg(0): "completed", leg(1): "in_progress"},
        },
    )
    assert Watched(github, clock, tmp_path, boards=2).code == 0


def test_a_leg_behind_one_on_a_board_of_other_labels_does(github: GitHub, clock: FakeClock, tmp_path: Path) -> None:
    github.world.jobs = scripted(
        clock,
        {0: {leg(0): "in_progress", leg(1): "queued"}, 3600: {leg(0): "completed", leg(1): "queued"}},
        board=lambda name: "j6p" if name == leg(1) else "j6m",
    )
    done = Watched(github, clock, tmp_path, boards=2)
    assert done.code == 1
    assert 60 <= done.minutes < 62
    assert "j6p" in done.errors[0]


def test_legs_that_a_group_holds_behind_a_dead_board_hold_nothing_up(
    github: GitHub, clock: FakeClock, tmp_path: Path
) -> None:
    github.world.jobs = scripted(clock, {0: {leg(0): "queued", leg(1): "pending", leg(2): "waiting"}})
    done = Watched(github, clock, tmp_path, boards=3)
    assert done.code == 1
    assert [error.split(" has")[0] for error in done.errors] == [leg(0)]


def test_all_pages_of_jobs_are_read_and_only_asked_for_again_when_they_have_changed(
    github: GitHub, clock: FakeClock, tmp_path: Path
) -> None:
    many = {leg(number): "completed" for number in range(249)}
    github.world.jobs = scripted(clock, {0: {**many, leg(249): "queued"}, 600: {**many, leg(249): "in_progress"}})
    assert Watched(github, clock, tmp_path, boards=250).code == 0
    statuses = [int(line.rsplit(" ", 1)[1]) for line in github.lines]
    assert statuses[:3] == [200, 200, 200]
    assert statuses.count(200) == 4, "the first look, and the page that changed"
    assert set(statuses) == {200, 304}


def test_it_asks_seldom(github: GitHub, clock: FakeClock, tmp_path: Path) -> None:
    github.world.jobs = scripted(clock, {0: {leg(0): "pending"}, 7200: {leg(0): "in_progress"}})
    assert Watched(github, clock, tmp_path).code == 0
    assert min(clock.waits) >= 20
    assert len(github.log) <= 7200 / 60 + 5


def test_a_leg_that_waits_behind_other_runs_is_left_to_github_in_the_end(
    github: GitHub, clock: FakeClock, tmp_path: Path
) -> None:
    github.world.jobs = scripted(clock, {0: {leg(0): "pending"}})
    with pytest.raises(UsageError, match="350 min"):
        Watched(github, clock, tmp_path)
    assert github.world.cancelled == []
    assert clock.now - EPOCH < WATCH_SECONDS + 120


def test_a_limit_and_a_lost_connection_are_waited_for(github: GitHub, clock: FakeClock, tmp_path: Path) -> None:
    github.world.jobs = scripted(clock, {0: {leg(0): "queued"}})
    github.plan("GET", "jobs", reset, refused(502, "x"), refused(403, SECONDARY, {"Retry-After": "90"}))
    github.plan("POST", "cancel", lost, refused(429, "x", {"Retry-After": "30"}))
    done = Watched(github, clock, tmp_path)
    assert done.code == 1
    assert 90.0 in clock.waits
    assert github.world.cancelled == [RUN, RUN], "whether it was done was not known"


def test_what_github_refuses_is_an_error(github: GitHub, clock: FakeClock, tmp_path: Path) -> None:
    github.world.jobs = scripted(clock, {0: {leg(0): "queued"}})
    github.plan("POST", "cancel", refused(403, "Resource not accessible by integration"))
    with pytest.raises(GitHubError, match="not accessible"):
        Watched(github, clock, tmp_path)
    github.plan("POST", "cancel", *[lost] * CANCELS)
    with pytest.raises(GitHubError, match="could not be cancelled"):
        Watched(github, clock, tmp_path)


def test_a_list_of_jobs_that_is_none_is_an_error(github: GitHub, clock: FakeClock, tmp_path: Path) -> None:
    github.plan("GET", "jobs", answered(Reply(200, {"total_count": 0})))
    with pytest.raises(GitHubError, match="no list"):
        Watched(github, clock, tmp_path)


@pytest.mark.parametrize(
    ("name", "is_leg", "is_board"),
    [
        ("J6 board a/J6M/board/0-1", True, True),
        ("nightly / chain / J6 board a/J6M/board/0-1", True, True),
        ("chain / Host a/J6M/host/0-1", True, False),
        ("chain / Watch", False, False),
        ("lint / the J6 board code", False, False),
        ("", False, False),
    ],
)
def test_legs_are_known_by_their_names(name: str, is_leg: bool, is_board: bool) -> None:
    found = legs([payloads.job(1, RUN, name, "queued"), None, {"name": 5}])
    assert [one.is_board for one in found] == ([is_board] if is_leg else [])


def test_every_variable_that_is_wrong_is_told() -> None:
    with pytest.raises(UsageError) as raised:
        read_run({"GITHUB_REPOSITORY": "acme", "GITHUB_RUN_ID": "../7", "DRIFTGATE_QUEUE_LIMIT": "0"})
    assert len(raised.value.problems) == 4
