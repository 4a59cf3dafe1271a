"""What a run knows of itself, by its variables and the payload of its event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driftgate.errors import GitHubError
from driftgate.github.environment import read_context, read_event
from support.github.payloads import REPOSITORY
from support.github.runs import environment, pull_request_event, workflow_run_event
from support.github.world import PULL, SHA


def test_a_pull_request_is_told_by_its_head_and_not_by_the_merge_that_was_tested() -> None:
    found = read_context(environment(), pull_request_event())

    assert (found.pull_request, found.head_sha) == (PULL, SHA)
    assert (found.head_owner, found.head_branch, found.is_fork) == ("acme", "feat", False)
    assert (found.workflow, found.workflow_path) == ("CI", ".github/workflows/ci.yml")
    assert found.run_url == f"https://github.com/{REPOSITORY}/actions/runs/9005"


def test_a_second_attempt_has_a_page_of_its_own() -> None:
    found = read_context({**environment(), "GITHUB_RUN_ATTEMPT": "2"}, pull_request_event())
    assert (found.run_attempt, found.run_url.rpartition("/runs/")[2]) == (2, "9005/attempts/2")


@pytest.mark.parametrize("head", ["bob/models", None])
def test_another_head_repository_is_a_fork_and_so_is_a_deleted_one(head: str | None) -> None:
    assert read_context(environment(), pull_request_event(head=head)).is_fork


def test_a_push_has_its_commit_and_no_pull_request() -> None:
    found = read_context(environment(event="push"), {"after": "a" * 40, "number": 99})
    assert (found.head_sha, found.pull_request, found.is_fork) == ("f" * 40, None, False)


def test_a_merge_group_has_the_head_of_the_group() -> None:
    event = {"merge_group": {"head_sha": "c" * 40, "head_ref": "refs/heads/gh-readonly-queue/main/pr-7-abc"}}
    found = read_context(environment(event="merge_group"), event)
    assert (found.head_sha, found.pull_request) == ("c" * 40, None)


def test_after_a_run_its_own_order_counts_and_not_that_of_the_run_that_speaks() -> None:
    speaking = environment(event="workflow_run", run=900)
    found = read_context(speaking, workflow_run_event(head="bob/models", run=5))

    assert (found.run_number, found.run_id, found.workflow_path) == (5, 9005, ".github/workflows/ci.yml")
    assert (found.head_sha, found.head_owner, found.is_fork) == (SHA, "bob", True)
    assert found.pull_request is None, "of a fork the payload does not know it"


@pytest.mark.parametrize(
    ("server", "api"),
    [
        ("https://ghe.example.com", "https://ghe.example.com/api/v3"),
        ("http://git.lan:3000/", "http://git.lan:3000/api/v1/"),
    ],
)
def test_other_servers_have_other_addresses(server: str, api: str) -> None:
    found = read_context({**environment(api), "GITHUB_SERVER_URL": server}, pull_request_event())
    assert found.api_url == api.rstrip("/")
    assert found.run_url == f"{server.rstrip('/')}/{REPOSITORY}/actions/runs/9005"


def test_servers_that_tell_less_are_understood() -> None:
    less = {
        name: value
        for name, value in environment().items()
        if name not in ("GITHUB_WORKFLOW_REF", "GITHUB_RUN_ATTEMPT")
    }
    found = read_context(less, pull_request_event())
    assert (found.workflow_path, found.run_attempt) == ("", 1)


def test_everything_missing_and_garbled_is_said_at_once() -> None:
    wrong = {
        **environment(),
        "GITHUB_API_URL": "https://user:password@host",
        "GITHUB_RUN_NUMBER": "-1",
        "GITHUB_RUN_ATTEMPT": "two",
        "GITHUB_REPOSITORY": "",
    }
    with pytest.raises(GitHubError) as raised:
        read_context(wrong, pull_request_event())

    said = [(problem.code, problem.get("name")) for problem in raised.value.problems]
    assert sorted(said) == [
        ("variable-absent", "GITHUB_REPOSITORY"),
        ("variable-garbled", "GITHUB_API_URL"),
        ("variable-garbled", "GITHUB_RUN_ATTEMPT"),
        ("variable-garbled", "GITHUB_RUN_NUMBER"),
    ]


@pytest.mark.parametrize(
    ("name", "event", "fields"),
    [
        ("pull_request", {}, ["pull_request.head.sha", "pull_request.number"]),
        (
            "pull_request",
            {"pull_request": {"number": True, "head": {"sha": 5}}},
            ["pull_request.head.sha", "pull_request.number"],
        ),
        ("merge_group", {"merge_group": "x"}, ["merge_group.head_sha"]),
        (
            "workflow_run",
            {"workflow_run": {"head_sha": SHA, "name": "CI", "id": 1}},
            ["workflow_run.run_attempt", "workflow_run.run_number"],
        ),
    ],
)
def test_a_payload_of_another_form_is_refused(name: str, event: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(GitHubError) as raised:
        read_context(environment(event=name), event)
    assert sorted(str(problem.get("field")) for problem in raised.value.problems) == fields


def test_the_payload_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(pull_request_event()))
    assert read_event(path) == pull_request_event()


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_payload_that_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "event.json"
    path.write_bytes(content)
    with pytest.raises(GitHubError, match="no JSON object"):
        read_event(path)


def test_a_payload_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GitHubError, match="cannot be read"):
        read_event(tmp_path / "event.json")
