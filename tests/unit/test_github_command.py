"""`driftgate comment` as a workflow calls it, against a GitHub on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driftgate.domain.results import Results
from driftgate.storage.document import encode_results
from support import results
from support.commandline import Answer, call
from support.github.clock import FakeClock
from support.github.runs import TOKEN, environment, pull_request_event, wish, workflow_run_event
from support.github.server import GitHub
from support.github.world import SHA, Actor, Pull, World

FORK_TOKEN = "ghs_fork"


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub(World(FakeClock())) as server:
        server.world.tokens[FORK_TOKEN] = Actor(may_write=False)
        yield server
    assert server.problems == []


class Job:
    """A job of a workflow, with a finished report in its folder."""

    def __init__(self, github: GitHub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._url = github.url
        self._folder = folder
        self._monkeypatch = monkeypatch

    def comment(
        self,
        found: Results,
        *options: str,
        run: int = 5,
        event: str = "pull_request",
        payload: dict[str, Any] | None = None,
        token: str = TOKEN,
    ) -> Answer:
        """One call of the verb."""
        for name, content in encode_results(found).items():
            (self._folder / name).write_bytes(content)
        path = self._folder / "event.json"
        path.write_text(json.dumps(pull_request_event() if payload is None else payload))
        for name, value in environment(self._url, event=event, run=run).items():
            self._monkeypatch.setenv(name, value)
        self._monkeypatch.setenv("GITHUB_EVENT_PATH", str(path))
        self._monkeypatch.delenv("DRIFTGATE_TOKEN", raising=False)
        self._monkeypatch.setenv("GITHUB_TOKEN", token)
        return call("comment", self._folder, *options)


@pytest.fixture
def job(github: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    return Job(github, tmp_path, monkeypatch)


def test_the_comment_starts_with_its_marker_and_shows_the_results(job: Job, github: GitHub) -> None:
    done = job.comment(results.failing(), "--archive-url=https://github.com/acme/models/actions/runs/1/artifacts/2")

    assert (done.code, done.err) == (0, "")
    (body,) = github.world.bodies()
    assert body.startswith(f"{wish(5).marker.line}\n")
    assert "BC ↔ HBM" in body
    assert "/artifacts/2" in body
    assert "/actions/runs/9005" in body
    assert done.out == "commented on #7: https://github.com/acme/models/pull/7#issuecomment-1001 (4 requests)\n"


def test_the_next_run_renews_it_and_an_older_one_does_not(job: Job, github: GitHub) -> None:
    job.comment(results.failing())
    assert job.comment(results.healthy(), run=6).out.startswith("renewed the comment on #7: ")
    (body,) = github.world.bodies()
    assert job.comment(results.failing(), run=4).out.startswith("the comment on #7 is of a newer run than 4")
    assert github.world.bodies() == (body,)


def test_keys_make_several(job: Job, github: GitHub) -> None:
    for key in ("digits", "yolov8n"):
        job.comment(results.healthy(), f"--key={key}")
    assert len(github.world.comments) == 2


def test_a_page_that_would_be_too_long_is_shortened_so_that_the_marker_fits(job: Job, github: GitHub) -> None:
    assert job.comment(results.hostile("x | " * 30_000)).code == 0
    (body,) = github.world.bodies()
    assert body.startswith(wish(5).marker.line)
    assert len(body) <= 65_000


@pytest.mark.parametrize("mode", ["auto", "on-failure"])
@pytest.mark.parametrize("token", ["", FORK_TOKEN])
def test_without_rights_that_is_said_and_no_error(job: Job, github: GitHub, mode: str, token: str) -> None:
    done = job.comment(results.failing(), f"--mode={mode}", token=token)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("no comment:\n")
    assert ("pull-requests: write" in done.out) == (token == FORK_TOKEN)
    assert github.world.bodies() == ()


@pytest.mark.parametrize("token", ["", FORK_TOKEN])
def test_without_rights_that_is_an_error_where_a_comment_must_be(job: Job, token: str) -> None:
    done = job.comment(results.failing(), "--mode=always", token=token)
    assert (done.code, done.out) == (2, "")
    assert "pull-requests: write" in done.err or "no token" in done.err


def test_without_a_pull_request_it_is_the_same(job: Job, github: GitHub) -> None:
    auto = job.comment(results.failing(), event="push", payload={"after": SHA})
    assert (auto.code, auto.out) == (0, "no comment:\nthe event push belongs to no pull request\n")
    assert job.comment(results.failing(), "--mode=always", event="push", payload={"after": SHA}).code == 2
    assert github.log == []


def test_on_failure_a_healthy_run_makes_none_and_renews_the_one_there_is(job: Job, github: GitHub) -> None:
    assert job.comment(results.healthy(), "--mode=on-failure").out.startswith("no comment on #7 and none needed")
    assert github.world.bodies() == ()
    job.comment(results.failing(), "--mode=on-failure", run=6)
    (failing,) = github.world.bodies()
    assert job.comment(results.healthy(), "--mode=on-failure", run=7).out.startswith("renewed")
    (healthy,) = github.world.bodies()
    assert "FAIL" in failing and "FAIL" not in healthy


def test_a_healthy_run_removes_it_on_request(job: Job, github: GitHub) -> None:
    job.comment(results.failing(), "--delete-when-green")
    assert len(github.world.comments) == 1
    assert (
        job.comment(results.healthy(), "--delete-when-green", run=6).out == "removed the comment on #7 (5 requests)\n"
    )
    assert github.world.bodies() == ()


def test_a_late_run_of_an_older_head_does_not_bring_a_removed_comment_back(job: Job, github: GitHub) -> None:
    github.world.pulls[7] = Pull(sha="2" * 40)
    done = job.comment(results.failing(), "--delete-when-green")
    assert (done.code, github.world.bodies()) == (0, ())
    assert done.out.startswith("no comment on #7")


def test_never_asks_nobody(job: Job, github: GitHub) -> None:
    assert job.comment(results.failing(), "--mode=never", token="").out == "no comment: the mode is never\n"
    assert github.log == []


def test_after_a_run_of_a_fork_the_pull_request_is_found_and_nothing_in_the_report_is_believed(
    job: Job, github: GitHub, tmp_path: Path
) -> None:
    github.world.pulls[9] = Pull(9, "bob/models", branch="feat", sha="3" * 40)
    (tmp_path / "pr-number").write_text("7")
    payload = workflow_run_event("3" * 40, head="bob/models", run=5)
    job.comment(results.failing(), event="workflow_run", run=900, payload=payload)
    (standing,) = github.world.comments.values()
    assert standing.issue == 9
    assert standing.body.startswith("<!-- driftgate v1 ") and " run=5 " in standing.body


def test_a_stale_run_of_a_fork_is_said(job: Job, github: GitHub) -> None:
    github.world.pulls[9] = Pull(9, "bob/models", sha="4" * 40)
    payload = workflow_run_event("3" * 40, head="bob/models")
    done = job.comment(results.failing(), event="workflow_run", payload=payload)
    assert (done.code, github.world.bodies()) == (0, ())
    assert "#9 has moved on" in done.out


def test_the_author_can_be_named(job: Job, github: GitHub) -> None:
    github.world.tokens["app"] = Actor("our-app[bot]")
    job.comment(results.failing(), token="app")
    done = job.comment(results.healthy(), "--login=our-app[bot]", token="app", run=6)
    assert done.out.startswith("renewed")
    assert not any(line.startswith("GET /user") for line in github.lines[4:])


def test_a_token_of_its_own_comes_first(
    job: Job, github: GitHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    github.world.tokens["pat"] = Actor("robot", "User", may_ask=True)
    job.comment(results.failing(), "--mode=never")
    monkeypatch.setenv("DRIFTGATE_TOKEN", "pat")
    assert call("comment", tmp_path).code == 0
    assert [one.login for one in github.world.comments.values()] == ["robot"]


def test_the_token_is_never_shown(job: Job) -> None:
    for token in (TOKEN, FORK_TOKEN, "ghs_wrong"):
        done = job.comment(results.failing(), "--verbose", "--mode=always", token=token)
        assert token not in done.out + done.err


def test_a_wrong_token_is_an_error(job: Job) -> None:
    done = job.comment(results.failing(), token="ghs_wrong")
    assert done.code == 2
    assert "GitHub refuses the token (Bad credentials)" in done.err


def test_a_report_that_is_not_there_is_an_error(github: GitHub, tmp_path: Path) -> None:
    done = call("comment", tmp_path / "nowhere")
    assert done.code == 2
    assert "nowhere cannot be read" in done.err


def test_outside_of_a_workflow_it_says_what_is_missing(
    job: Job, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job.comment(results.failing(), "--mode=never")
    monkeypatch.delenv("GITHUB_EVENT_PATH")
    assert "GITHUB_EVENT_PATH is not set" in call("comment", tmp_path).err
    monkeypatch.delenv("GITHUB_REPOSITORY")
    assert "GITHUB_REPOSITORY is not set" in call("comment", tmp_path, f"--event-path={tmp_path / 'event.json'}").err


def test_other_servers_work_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for base in ("/api/v3", "/api/v1"):
        with GitHub(World(FakeClock()), base_path=base) as server:
            job = Job(server, tmp_path, monkeypatch)
            assert [job.comment(results.failing(), run=run).code for run in (5, 6)] == [0, 0]
            assert len(server.world.comments) == 1
        assert server.problems == []
