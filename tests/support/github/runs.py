"""Runs of a workflow: their variables, their events, and what they wish to say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from driftgate.github.api import PATIENCE, Client
from driftgate.github.comment import ACTIONS, Presence, Thread, Wish
from driftgate.github.environment import RunContext, read_context
from driftgate.github.marker import marker_of
from driftgate.github.patience import Patience
from support.github.clock import FakeClock
from support.github.payloads import REPOSITORY
from support.github.world import PULL, SHA

TOKEN = "ghs_actions"
THREAD = Thread(REPOSITORY, PULL)


def environment(
    api_url: str = "https://api.github.com", *, event: str = "pull_request", run: int = 5
) -> dict[str, str]:
    """The variables of run number `run`."""
    return {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_API_URL": api_url,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_EVENT_NAME": event,
        "GITHUB_WORKFLOW": "CI",
        "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/.github/workflows/ci.yml@refs/pull/{PULL}/merge",
        "GITHUB_RUN_ID": str(9000 + run),
        "GITHUB_RUN_NUMBER": str(run),
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_SHA": "f" * 40,
        "GITHUB_REF_NAME": f"{PULL}/merge",
    }


def pull_request_event(sha: str = SHA, *, head: str | None = REPOSITORY) -> dict[str, Any]:
    """The payload of `pull_request`; `head` None: the fork is deleted."""
    repository = None if head is None else {"full_name": head, "owner": {"login": head.split("/")[0]}}
    return {"number": PULL, "pull_request": {"number": PULL, "head": {"sha": sha, "ref": "feat", "repo": repository}}}


def workflow_run_event(sha: str = SHA, *, head: str = REPOSITORY, run: int = 5) -> dict[str, Any]:
    """The payload of `workflow_run` after run number `run`."""
    return {
        "workflow_run": {
            "id": 9000 + run,
            "name": "CI",
            "path": ".github/workflows/ci.yml",
            "run_number": run,
            "run_attempt": 1,
            "head_sha": sha,
            "head_branch": "feat",
            "head_repository": {"full_name": head, "owner": {"login": head.split("/")[0]}},
            "pull_requests": [],
        }
    }


def context(api_url: str = "https://api.github.com", *, run: int = 5, sha: str = SHA) -> RunContext:
    """The context of a run for the pull request."""
    return read_context(environment(api_url, run=run), pull_request_event(sha))


def wish(run: int = 5, content: str = "", *, presence: Presence = Presence.WANTED, author: str = ACTIONS) -> Wish:
    """What run number `run` wants to stand there."""
    return Wish(marker_of(context(run=run)), content or f"results of run {run}", presence, author)


def client(api_url: str, clock: FakeClock, *, token: str = TOKEN, chance: float = 0.0, **patience: Any) -> Client:
    """A client whose time is the clock's; `patience` replaces single limits."""
    limits: Patience = replace(PATIENCE, **patience)
    return Client(api_url, token, timing=clock.timing(chance), patience=limits)
