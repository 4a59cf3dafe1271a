"""The loopback GitHub and our client speak as GitHub's own description of its API demands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from driftgate.errors import DriftgateError
from driftgate.fetching import fetched
from driftgate.github.api import PATIENCE, Client
from driftgate.github.comment import Done, Presence, author_of, settle
from driftgate.github.environment import read_context
from driftgate.github.former import base_of, file_at
from driftgate.github.pulls import find_pull_request, is_head
from driftgate.watchdog import WatchedRun, cancel, watch
from support.github import archives, openapi, payloads
from support.github.clock import FakeClock
from support.github.exchange import Reply, Request
from support.github.faults import PRIMARY, SECONDARY, gateway, lost, refused, reset
from support.github.past import Ran, Uploaded
from support.github.payloads import REPOSITORY
from support.github.runs import THREAD, TOKEN, client, context, environment, wish, workflow_run_event
from support.github.server import GitHub, Loopback, Storage
from support.github.world import SHA, Actor, Pull, World


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub(World(FakeClock())) as server:
        server.checks.append(openapi.check)
        yield server
    assert server.problems == []


def test_the_life_of_a_comment(github: GitHub) -> None:
    for number in range(150):
        github.world.say(f"comment {number}")
    with client(github.url, github.world.clock) as api:
        for run, presence, done in (
            (5, Presence.WANTED, Done.CREATED),
            (6, Presence.WANTED, Done.UPDATED),
            (6, Presence.WANTED, Done.UNCHANGED),
            (5, Presence.WANTED, Done.SUPERSEDED),
            (7, Presence.UNWANTED, Done.DELETED),
            (8, Presence.RENEWED, Done.ABSENT),
        ):
            assert settle(api, THREAD, wish(run, presence=presence, author=author_of(api))).done is done
    methods = {logged.request.method for logged in github.log}
    assert methods == {"GET", "POST", "PATCH", "DELETE"}


def test_everything_that_goes_wrong(github: GitHub) -> None:
    hint = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(github.world.clock.now) + 5)}
    github.plan("GET", "comments", reset, refused(500, "x"), refused(403, PRIMARY, hint), refused(429, "x"))
    github.plan("POST", "comments", lost)
    github.plan("PATCH", "comments", gateway, refused(403, SECONDARY, {"Retry-After": "1"}))
    with client(github.url, github.world.clock, attempts=9) as api:
        assert settle(api, THREAD, wish(5)).done is Done.CREATED
        assert settle(api, THREAD, wish(6)).done is Done.UPDATED


@pytest.mark.parametrize("token", ["ghs_fork", "ghs_wrong"])
def test_what_is_refused(github: GitHub, token: str) -> None:
    github.world.tokens["ghs_fork"] = Actor(may_write=False)
    with client(github.url, github.world.clock, token=token) as api:
        try:
            settled = settle(api, THREAD, wish(5, "x" * 70_000))
        except DriftgateError:
            assert token == "ghs_wrong"
        else:
            assert settled.done is Done.NOT_ALLOWED


def test_bodies_and_threads_that_are_refused(github: GitHub) -> None:
    with client(github.url, github.world.clock) as api:
        for body in (" ", "x" * 65_537):
            with pytest.raises(DriftgateError, match="Validation Failed"):
                api.post(THREAD.path, {"body": body})
        assert settle(api, replace(THREAD, number=99), wish(5)).done is Done.NOT_ALLOWED
        github.world.are_comments_off = True
        assert settle(api, THREAD, wish(5)).done is Done.NOT_ALLOWED


def test_users_pull_requests_and_artifacts(github: GitHub) -> None:
    github.world.tokens["pat"] = Actor("robot", "User", may_ask=True)
    github.world.pulls[9] = Pull(9, "bob/models")
    github.world.artifacts[3] = ("report", b"PK")
    finished = read_context(environment(event="workflow_run"), workflow_run_event(head="bob/models"))
    with Loopback() as elsewhere, client(github.url, github.world.clock, token="pat") as api:
        github.world.download_url = elsewhere.address
        assert author_of(api) == "robot"
        assert find_pull_request(api, finished) == 9
        assert is_head(api, context(), 7)
        assert len(api.pages(f"/repos/{REPOSITORY}/commits/{SHA}/pulls")) == 2
        api.get(f"/repos/{REPOSITORY}/actions/runs/9005/artifacts")
        api.download(f"/repos/{REPOSITORY}/actions/artifacts/3/zip", limit_bytes=100)


def test_a_former_run_is_found_and_its_archive_fetched(github: GitHub, tmp_path: Path) -> None:
    past = github.world.past
    for sha, *parents in (("a" * 40,), ("b" * 40, "a" * 40), (SHA, "a" * 40)):
        past.commit(sha, *parents)
    ran = Ran(101, "a" * 40)
    past.runs += [ran, Ran(102, "b" * 40, 2)]
    past.uploads += [Uploaded(4, ran, "report", archives.report(ran)), Uploaded(5, ran, "other", b"", expired=True)]
    past.files["b" * 40, "driftgate.yaml"] = b"version: 1\n"
    event = {"pull_request": {"base": {"ref": "main", "sha": "b" * 40}}}
    own = context()
    base = base_of(own, event)
    names = (re.compile("report"),)
    with Storage(github.world) as storage, client(github.url, github.world.clock) as api:
        github.world.download_url = storage.address
        for workflow in (own.workflow_path, own.workflow):
            found = fetched(api, own, base, workflow, names, tmp_path / "baseline")
            assert (found.problem, found.sha, found.parted_at) == (None, "a" * 40, "a" * 40)
        assert file_at(api, own, "driftgate.yaml", "b" * 40) == b"version: 1\n"
        assert file_at(api, own, "absent.yaml", "b" * 40) is None
        past.commit("0" * 40)
        assert fetched(api, own, replace(base, sha="0" * 40), "x", names, tmp_path).problem is not None
    assert storage.problems == []


def test_an_unchanged_answer_is_told_by_its_tag(github: GitHub) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    first = requests.get(f"{github.url}/repos/{REPOSITORY}/pulls/7", headers=headers, timeout=10)
    second = requests.get(
        f"{github.url}/repos/{REPOSITORY}/pulls/7",
        headers={**headers, "If-None-Match": first.headers["ETag"]},
        timeout=10,
    )
    assert (first.status_code, second.status_code, second.content) == (200, 304, b"")


@pytest.mark.parametrize(
    ("method", "path", "body", "reply"),
    [
        ("POST", THREAD.path, b'{"boody": "hello"}', Reply(404, {})),
        ("POST", THREAD.path, b'{"body": 5}', Reply(404, {})),
        ("GET", THREAD.path, b"", Reply(200, [{"id": 1}])),
        ("GET", THREAD.path, b"", Reply(299, [])),
        ("GET", "/repos/acme/models/issues/seven/comments", b"", Reply(200, [])),
        ("GET", "/repos/acme/models/no-such-thing", b"", Reply(404, {})),
    ],
)
def test_the_check_sees_what_is_wrong(method: str, path: str, body: bytes, reply: Reply) -> None:
    with pytest.raises(AssertionError, match=method):
        openapi.check(Request(method, path, {}, {"content-type": "application/json"}, body), reply)


def test_the_jobs_of_a_run_are_read_and_the_run_is_cancelled(github: GitHub) -> None:
    names = [f"chain / J6 board net/J6M/board/{n}-{n}" for n in range(150)]
    github.world.jobs = lambda run: [payloads.job(n, run, name, "queued") for n, name in enumerate(names, 1)]
    watched = WatchedRun(REPOSITORY, 42, len(names), 60.0)
    timing = github.world.clock.timing()
    with Client(github.url, TOKEN, timing=timing, patience=replace(PATIENCE, total_seconds=3600.0), polls=True) as api:
        assert [job.name for job in watch(api, watched, timing)] == names
        cancel(api, watched)
    assert github.world.cancelled == [42]
    assert {logged.reply.status for logged in github.log if logged.reply} == {200, 304, 202}
