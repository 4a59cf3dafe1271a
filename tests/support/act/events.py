"""Why workflows run: GitHub's events with their payloads, of pull request 7 of acme/models where there is one."""

from __future__ import annotations

from support.act.rig import Trigger
from support.github import payloads
from support.github.server import GitHub
from support.github.world import Actor, Pull

FORK = "bob/models"
TOKEN, FORK_TOKEN = "ghs_actions", "ghs_fork"
WORKFLOW = "driftgate"


def without_pull_request() -> tuple[Trigger, ...]:
    """The events of a repository's own life."""
    sha = "c" * 40
    repository = payloads.repository(payloads.REPOSITORY, fork=False)
    contents: dict[str, payloads.Json] = {
        "push": {"ref": "refs/heads/main", "before": "b" * 40, "after": sha},
        "merge_group": {
            "action": "checks_requested",
            "merge_group": {
                "head_sha": sha,
                "head_ref": "refs/heads/gh-readonly-queue/main/pr-7-abc",
                "base_sha": "b" * 40,
                "base_ref": "refs/heads/main",
            },
        },
        "schedule": {"schedule": "30 2 * * *"},
        "release": {"action": "published", "release": {"tag_name": "v1.2.3", "target_commitish": "main"}},
        "workflow_dispatch": {"ref": "refs/heads/main", "inputs": {}},
    }
    return tuple(Trigger(event, {**content, "repository": repository}) for event, content in contents.items())


def pull_request(github: GitHub, *, number: int = 1) -> Trigger:
    """A push to the pull request, whatever it comes from; the token of a fork may only read."""
    pull = github.world.pulls[7]
    is_fork = pull.head_repository != payloads.REPOSITORY
    github.world.tokens[FORK_TOKEN] = Actor(may_write=False)
    payload = {
        "action": "synchronize",
        "number": pull.number,
        "pull_request": payloads.whole_pull(pull.json),
        "repository": payloads.repository(payloads.REPOSITORY, fork=False),
    }
    return Trigger("pull_request", payload, github.url, FORK_TOKEN if is_fork else TOKEN, number)


def finished(github: GitHub, pull: Pull, *, number: int = 1) -> Trigger:
    """The end of a run for a pull request of a fork; `number` is that of the run. GitHub names no pull request."""
    payload = {
        "action": "completed",
        "workflow_run": {
            "id": 42,
            "name": WORKFLOW,
            "path": ".github/workflows/driftgate.yml",
            "event": "pull_request",
            "run_number": number,
            "run_attempt": 1,
            "status": "completed",
            "conclusion": "failure",
            "head_sha": pull.sha,
            "head_branch": pull.branch,
            "head_repository": payloads.repository(pull.head_repository, fork=True),
            "pull_requests": [],
        },
        "repository": payloads.repository(payloads.REPOSITORY, fork=False),
    }
    return Trigger("workflow_run", payload, github.url, TOKEN)
