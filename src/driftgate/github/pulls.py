"""Which pull request a run belongs to, by the event's payload or by GitHub's own lists, never by an artifact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from driftgate.errors import Gone
from driftgate.github.api import Client
from driftgate.github.environment import RunContext
from driftgate.github.payload import number_at, text_at
from driftgate.messages.message import Message, message


@dataclass(frozen=True, slots=True)
class _Pull:
    number: int
    state: str
    owner: str
    branch: str
    sha: str


def find_pull_request(client: Client, context: RunContext) -> int | Message:
    """The number, or why there is none.

    After `workflow_run` it is the one open pull request whose head is the run's commit: of a fork the payload does
    not name it, and what a fork uploads cannot be believed. A head that has moved on makes the run a stale one.
    Raises GitHubError.
    """
    if context.pull_request is not None:
        return context.pull_request
    if context.event != "workflow_run":
        return message("pull-event", event=context.event)
    of_branch = tuple(_of_branch(client, context))
    found = of_branch or tuple(_of_commit(client, context))
    current = sorted({pull.number for pull in found if pull.sha == context.head_sha})
    if len(current) == 1:
        return current[0]
    if current:
        return message("pull-several", sha=context.head_sha[:12], numbers=tuple(f"#{number}" for number in current))
    if of_branch:
        return message("pull-stale", number=of_branch[0].number, sha=context.head_sha[:12], head=of_branch[0].sha[:12])
    return message("pull-none", sha=context.head_sha[:12])


def is_head(client: Client, context: RunContext, number: int) -> bool:
    """Whether the run's commit is the head of the pull request now. Raises GitHubError."""
    return text_at(client.get(f"/repos/{context.repository}/pulls/{number}"), "head", "sha") == context.head_sha


def _of_branch(client: Client, context: RunContext) -> Iterator[_Pull]:
    """Open ones from the run's branch; filtered here too, since Gitea ignores `head`."""
    owner, branch = context.head_owner, context.head_branch
    if not (owner and branch):
        return
    listed = client.pages(f"/repos/{context.repository}/pulls", state="open", head=f"{owner}:{branch}")
    yield from (pull for pull in _open(listed) if (pull.owner.casefold(), pull.branch) == (owner.casefold(), branch))


def _of_commit(client: Client, context: RunContext) -> Iterator[_Pull]:
    """Open ones that hold the run's commit; none where the server does not know the commit, or the question."""
    try:
        listed = client.pages(f"/repos/{context.repository}/commits/{context.head_sha}/pulls")
    except Gone:
        return
    yield from _open(listed)


def _open(listed: Iterable[object]) -> Iterator[_Pull]:
    for value in listed:
        pull = _Pull(
            number=number_at(value, "number") or 0,
            state=text_at(value, "state"),
            owner=text_at(value, "head", "repo", "owner", "login"),
            branch=text_at(value, "head", "ref"),
            sha=text_at(value, "head", "sha"),
        )
        if pull.number > 0 and pull.state == "open":
            yield pull
