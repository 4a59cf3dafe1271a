"""Which pull request a run is of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from driftgate.github.environment import RunContext, read_context
from driftgate.github.pulls import find_pull_request, is_head
from driftgate.messages.message import Message
from support.github.clock import FakeClock
from support.github.exchange import Reply
from support.github.faults import answered, refused
from support.github.payloads import REPOSITORY
from support.github.runs import client, context, environment, workflow_run_event
from support.github.server import GitHub
from support.github.world import SHA, Pull, World

FORK = "bob/models"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def github(clock: FakeClock) -> Iterator[GitHub]:
    with GitHub(World(clock)) as server:
        yield server
    assert server.problems == []


def finished(sha: str = SHA, head: str = FORK) -> RunContext:
    """A run that has finished elsewhere, seen by the workflow that may write."""
    return read_context(environment(event="workflow_run", run=900), workflow_run_event(sha, head=head))


def found(github: GitHub, of: RunContext) -> int | Message:
    with client(github.url, github.world.clock) as api:
        return find_pull_request(api, of)


def code(answer: int | Message) -> str:
    assert isinstance(answer, Message)
    return answer.code


def test_the_payload_of_a_pull_request_needs_no_request(github: GitHub) -> None:
    assert found(github, context()) == 7
    assert github.log == []


def test_the_pull_request_of_a_fork_is_found_by_its_branch(github: GitHub) -> None:
    github.world.pulls = {8: Pull(8), 9: Pull(9, FORK)}
    assert found(github, finished()) == 9
    assert github.log[0].request.query["head"] == "bob:feat"


def test_a_server_that_lists_all_pull_requests_is_not_believed(github: GitHub) -> None:
    """Gitea ignores `head`."""
    others = [Pull(8, sha=SHA).json, Pull(9, FORK).json, Pull(10, FORK, branch="other").json]
    github.plan("GET", "/pulls", answered(Reply(200, others)))
    assert found(github, finished()) == 9


def test_where_the_branch_tells_nothing_the_commit_does(github: GitHub) -> None:
    github.world.pulls = {9: Pull(9, "bob/renamed-fork")}
    github.plan("GET", "/pulls", answered(Reply(200, [])))
    assert found(github, finished()) == 9
    assert github.lines[-1] == f"GET /repos/{REPOSITORY}/commits/{SHA}/pulls 200"


def test_a_head_that_moved_on_makes_the_results_stale(github: GitHub) -> None:
    github.world.pulls = {9: Pull(9, FORK, sha="2" * 40)}
    assert code(found(github, finished())) == "pull-stale"


@pytest.mark.parametrize("pull", [Pull(9, FORK, state="closed"), Pull(9, "eve/models", branch="other", sha="2" * 40)])
def test_no_open_pull_request_is_said(github: GitHub, pull: Pull) -> None:
    github.world.pulls = {9: pull}
    assert code(found(github, finished())) == "pull-none"


def test_an_unknown_commit_is_no_error(github: GitHub) -> None:
    github.world.pulls = {}
    github.plan("GET", "/commits/", refused(404, "Not Found"))
    assert code(found(github, finished())) == "pull-none"


def test_two_pull_requests_with_one_head_are_not_guessed_between(github: GitHub) -> None:
    github.world.pulls = {9: Pull(9, FORK), 10: Pull(10, FORK)}
    assert code(found(github, finished())) == "pull-several"


@pytest.mark.parametrize("event", ["push", "schedule", "workflow_dispatch"])
def test_other_events_have_no_pull_request(github: GitHub, event: str) -> None:
    assert code(found(github, read_context(environment(event=event), {"number": 7}))) == "pull-event"
    assert github.log == []


def test_the_head_of_now_is_asked_for(github: GitHub) -> None:
    with client(github.url, github.world.clock) as api:
        assert is_head(api, context(), 7)
        assert not is_head(api, context(sha="3" * 40), 7)
