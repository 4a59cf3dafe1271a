"""The context of a run: what `GITHUB_*` and the payload of the event say, checked and frozen.

GitHub, GitHub Enterprise Server and Gitea set the same variables; only the addresses differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from driftgate.errors import GitHubError
from driftgate.github.payload import at, number_at, text_at
from driftgate.messages.message import Message, message

_URL = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?(?:/[\w.~-]+)*/?")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_NUMBER = re.compile(r"[1-9]\d{0,18}")
_SHA = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_SOMETHING = re.compile(r"\S.*")
_WORKFLOW_REF = re.compile(r"[^/]+/[^/]+/(?P<path>[^@]+)@.*")

#: Variable → (its form, an example of it); each must be there.
_WANTED = {
    "GITHUB_SERVER_URL": (_URL, "https://github.com"),
    "GITHUB_API_URL": (_URL, "https://api.github.com"),
    "GITHUB_REPOSITORY": (_REPOSITORY, "owner/name"),
    "GITHUB_EVENT_NAME": (_SOMETHING, "pull_request"),
    "GITHUB_WORKFLOW": (_SOMETHING, "CI"),
    "GITHUB_RUN_ID": (_NUMBER, "1658821493"),
    "GITHUB_RUN_NUMBER": (_NUMBER, "3"),
    "GITHUB_SHA": (_SHA, "40 hexadecimal digits"),
}
_PULL_REQUEST_EVENTS = (
    "pull_request",
    "pull_request_target",
    "pull_request_review",
    "pull_request_review_comment",
)


@dataclass(frozen=True, slots=True)
class RunContext:
    """The run that results belong to.

    In an event `workflow_run` that is the run which has finished, not the one that speaks about it: results,
    order and workflow are its own. `head_sha` is the commit that people see: of a pull request its head, not the
    merge that was tested. `pull_request` comes from the payload of the event and from nowhere else.
    `head_repository` is empty where the fork is deleted; `workflow_path` where the server does not tell it.
    """

    server_url: str
    api_url: str
    repository: str
    event: str
    workflow: str
    workflow_path: str
    run_id: int
    run_number: int
    run_attempt: int
    head_sha: str
    head_repository: str
    head_branch: str
    pull_request: int | None

    @property
    def is_fork(self) -> bool:
        """Whether the commit comes from another repository, or from one that is deleted."""
        return self.head_repository.casefold() != self.repository.casefold()

    @property
    def head_owner(self) -> str:
        """Who owns the repository of the head; empty where it is deleted."""
        return self.head_repository.partition("/")[0]

    @property
    def run_url(self) -> str:
        """The page of the run."""
        page = f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"
        return page if self.run_attempt == 1 else f"{page}/attempts/{self.run_attempt}"


@dataclass(frozen=True, slots=True)
class _Run:
    workflow: str
    path: str
    id: int
    number: int
    attempt: int


@dataclass(frozen=True, slots=True)
class _Head:
    sha: str
    repository: str
    branch: str


def read_event(path: Path) -> Mapping[str, object]:
    """The payload of the event. Raises GitHubError if the file is not there or holds no JSON object."""
    try:
        event = json.loads(path.read_bytes())
    except OSError as error:
        raise GitHubError(message("event-absent", path=str(path), reason=error.strerror or "")) from error
    except (ValueError, RecursionError) as error:
        raise GitHubError(message("event-garbled", path=str(path))) from error
    if not isinstance(event, dict):
        raise GitHubError(message("event-garbled", path=str(path)))
    return event


def read_context(environment: Mapping[str, str], event: Mapping[str, object]) -> RunContext:
    """The context, from the variables and the payload. Raises GitHubError with everything that is wrong."""
    values = {name: environment.get(name, "").strip() for name in _WANTED}
    attempt = environment.get("GITHUB_RUN_ATTEMPT", "").strip() or "1"  # older servers do not set it
    problems = [
        message("variable-garbled", name=name, found=values[name], wanted=example)
        if values[name]
        else message("variable-absent", name=name, wanted=example)
        for name, (form, example) in _WANTED.items()
        if not form.fullmatch(values[name])
    ]
    if not _NUMBER.fullmatch(attempt):
        problems.append(message("variable-garbled", name="GITHUB_RUN_ATTEMPT", found=attempt, wanted="1"))
    if problems:
        raise GitHubError(*problems)

    name, repository = values["GITHUB_EVENT_NAME"], values["GITHUB_REPOSITORY"]
    path = _WORKFLOW_REF.fullmatch(environment.get("GITHUB_WORKFLOW_REF", "").strip())
    run = _Run(
        workflow=values["GITHUB_WORKFLOW"],
        path=path["path"] if path else "",
        id=int(values["GITHUB_RUN_ID"]),
        number=int(values["GITHUB_RUN_NUMBER"]),
        attempt=int(attempt),
    )
    head = _Head(values["GITHUB_SHA"], repository, environment.get("GITHUB_REF_NAME", "").strip())
    number: int | None = None
    if name in _PULL_REQUEST_EVENTS:
        head, number = _pull_request(name, event)
    elif name == "workflow_run":
        run, head = _finished_run(event)
    elif name == "merge_group":
        head = _Head(text_at(event, "merge_group", "head_sha"), repository, text_at(event, "merge_group", "head_ref"))
        _refuse(name, ("merge_group.head_sha",) if not _SHA.fullmatch(head.sha) else ())

    return RunContext(
        server_url=values["GITHUB_SERVER_URL"].rstrip("/"),
        api_url=values["GITHUB_API_URL"].rstrip("/"),
        repository=repository,
        event=name,
        workflow=run.workflow,
        workflow_path=run.path,
        run_id=run.id,
        run_number=run.number,
        run_attempt=run.attempt,
        head_sha=head.sha,
        head_repository=head.repository,
        head_branch=head.branch,
        pull_request=number,
    )


def _pull_request(name: str, event: Mapping[str, object]) -> tuple[_Head, int]:
    pull = at(event, "pull_request")
    number = number_at(pull, "number")
    head = _Head(text_at(pull, "head", "sha"), text_at(pull, "head", "repo", "full_name"), text_at(pull, "head", "ref"))
    wrong = [] if _SHA.fullmatch(head.sha) else ["pull_request.head.sha"]
    if number is None or number < 1:
        wrong.append("pull_request.number")
    _refuse(name, wrong)
    return head, number or 0


def _finished_run(event: Mapping[str, object]) -> tuple[_Run, _Head]:
    finished = at(event, "workflow_run")
    numbers = {key: number_at(finished, key) or 0 for key in ("id", "run_number", "run_attempt")}
    head = _Head(
        sha=text_at(finished, "head_sha"),
        repository=text_at(finished, "head_repository", "full_name"),
        branch=text_at(finished, "head_branch"),
    )
    wrong = [f"workflow_run.{key}" for key, value in numbers.items() if value < 1]
    if not _SHA.fullmatch(head.sha):
        wrong.append("workflow_run.head_sha")
    if not text_at(finished, "name"):
        wrong.append("workflow_run.name")
    _refuse("workflow_run", wrong)
    run = _Run(
        workflow=text_at(finished, "name"),
        path=text_at(finished, "path").partition("@")[0],
        id=numbers["id"],
        number=numbers["run_number"],
        attempt=numbers["run_attempt"],
    )
    return run, head


def _refuse(event: str, fields: list[str] | tuple[str, ...]) -> None:
    problems: list[Message] = [message("event-field", event=event, field=field) for field in fields]
    if problems:
        raise GitHubError(*problems)
