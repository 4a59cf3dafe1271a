"""Which former run of the base branch a run is held against: the last good one before the two parted.

What a run or an archive says of itself decides nothing here: only runs of a push to the base branch in this repository
count, a fork's never do, whatever its branch is called.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from driftgate.errors import GitHubError, Gone
from driftgate.github.api import Client
from driftgate.github.environment import RunContext
from driftgate.github.payload import at, items_at, number_at, text_at
from driftgate.messages.message import message

#: Events whose runs somebody with the right to write to the branch has started.
AUTHORISED = ("push", "schedule", "workflow_dispatch")
#: How far back is looked: pages of a hundred commits, and of a hundred runs.
PAGES, PER_PAGE = 3, 100
#: Good runs whose archives are looked at, where one is absent or cannot be used.
MOST_CANDIDATES = 5
_SHA = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_BRANCH = "refs/heads/"


@dataclass(frozen=True, slots=True)
class Base:
    """What a run is held against: a branch, and the commit at its tip where the event names one. `head_sha` is the
    commit of the run that people see."""

    branch: str
    sha: str
    head_sha: str


@dataclass(frozen=True, slots=True)
class FormerRun:
    """A run of the base branch that ended well."""

    id: int
    number: int
    attempt: int
    sha: str


@dataclass(frozen=True, slots=True)
class Upload:
    """An artifact of a run, and the digest of its archive where the server tells it."""

    id: int
    name: str
    sha256: str
    size_bytes: int


def base_of(context: RunContext, event: Mapping[str, object]) -> Base:
    """The branch that a run is held against. Of a pull request it is its base, of a merge queue the branch behind it;
    every other run is held against its own branch, and that of a tag against the default branch.

    Raises GitHubError where the event does not say.
    """
    if at(event, "pull_request") is not None:
        branch, sha = text_at(event, "pull_request", "base", "ref"), text_at(event, "pull_request", "base", "sha")
        return _known(context, Base(branch, sha, context.head_sha), "pull_request.base")
    if context.event == "merge_group":
        branch, sha = text_at(event, "merge_group", "base_ref"), text_at(event, "merge_group", "base_sha")
        return _known(context, Base(branch.removeprefix(_BRANCH), sha, context.head_sha), "merge_group.base_sha")
    ref = text_at(event, "ref")
    is_branch = ref.startswith(_BRANCH) or (not ref and context.event != "release")
    branch = ref.removeprefix(_BRANCH) if ref.startswith(_BRANCH) else context.head_branch if is_branch else ""
    branch = branch or text_at(event, "repository", "default_branch")
    if not branch:
        raise GitHubError(message("event-field", event=context.event, field="repository.default_branch"))
    return Base(branch, "", context.head_sha)


def _known(context: RunContext, base: Base, field: str) -> Base:
    if not base.branch or not _SHA.fullmatch(base.sha):
        raise GitHubError(message("event-field", event=context.event, field=field))
    return base


def parted_at(client: Client, context: RunContext, base: Base) -> str | None:
    """The commit at which head and base parted, without a base's commit the head itself; None where they have none in
    common. Raises GitHubError."""
    if not base.sha:
        return base.head_sha
    path = f"/repos/{context.repository}/compare/{base.sha}...{base.head_sha}"
    try:
        answer = client.get(path, per_page=1)
    except Gone:
        _seen(client, context, base.sha)
        return None
    sha = text_at(answer, "merge_base_commit", "sha")
    if not _SHA.fullmatch(sha):
        raise GitHubError(message("github-answer", path=path, field="merge_base_commit.sha"))
    return sha


def _seen(client: Client, context: RunContext, sha: str) -> None:
    """GitHub answers alike for what is not there and for what a token may not see: Gone where not even the commit can
    be seen."""
    client.get(f"/repos/{context.repository}/commits/{sha}", per_page=1)


def good_runs(client: Client, context: RunContext, base: Base, workflow: str, start: str) -> Iterator[FormerRun]:
    """The good runs of a workflow (the file's path, else its name) on the base branch, at the commit `start` or before
    it, those of the nearest commits first; none of this run itself, nor of its commit, which it would only repeat.
    Raises GitHubError."""
    found: dict[str, FormerRun] = {}
    for value in _listed(client, _runs_path(context, workflow), branch=base.branch, status="success"):
        run = _run(value, context, base, workflow)
        if run is not None and run.id != context.run_id and run.sha != context.head_sha:
            known = found.get(run.sha)
            if known is None or run.number > known.number:
                found[run.sha] = run
    if found:
        yield from (found[sha] for sha in _ancestors(client, context, start) if sha in found)


def uploads(client: Client, context: RunContext, run: FormerRun) -> tuple[Upload, ...]:
    """The artifacts of a run that are still there and that GitHub says are this run's own. Raises GitHubError."""
    path = f"/repos/{context.repository}/actions/runs/{run.id}/artifacts"
    return tuple(_uploads(client.pages(path, under="artifacts"), run))


def file_at(client: Client, context: RunContext, path: str, sha: str) -> bytes | None:
    """A file of the repository at a commit; None where that commit has none. Raises GitHubError."""
    try:
        value = client.get(f"/repos/{context.repository}/contents/{quote(path)}", ref=sha)
    except Gone:
        _seen(client, context, sha)
        return None
    content = text_at(value, "content")
    if text_at(value, "type") != "file" or text_at(value, "encoding") != "base64" or not content:
        raise GitHubError(message("github-no-file", path=path, sha=sha[:12]))
    try:
        return base64.b64decode(content, validate=False)
    except ValueError as error:
        raise GitHubError(message("github-no-file", path=path, sha=sha[:12])) from error


def _runs_path(context: RunContext, workflow: str) -> str:
    """Of one workflow by its file's name; of all where only its name is known."""
    whole = f"/repos/{context.repository}/actions"
    return f"{whole}/workflows/{quote(workflow.rpartition('/')[2])}/runs" if _is_file(workflow) else f"{whole}/runs"


def _is_file(workflow: str) -> bool:
    return workflow.endswith((".yml", ".yaml"))


def _run(value: object, context: RunContext, base: Base, workflow: str) -> FormerRun | None:
    """A run that counts, whatever a server makes of the filters."""
    number, count, attempt = (number_at(value, key) or 0 for key in ("id", "run_number", "run_attempt"))
    path, name = text_at(value, "path").partition("@")[0], text_at(value, "name")
    counts = (
        text_at(value, "event") in AUTHORISED
        and text_at(value, "conclusion") == "success"
        and text_at(value, "head_branch") == base.branch
        and text_at(value, "head_repository", "full_name").casefold() == context.repository.casefold()
        and (path.rpartition("/")[2] == workflow.rpartition("/")[2] if _is_file(workflow) else name == workflow)
        and _SHA.fullmatch(text_at(value, "head_sha"))
        and min(number, count, attempt) > 0
    )
    return FormerRun(number, count, attempt, text_at(value, "head_sha")) if counts else None


def _ancestors(client: Client, context: RunContext, sha: str) -> Iterator[str]:
    """A commit and those before it, the newest first."""
    for value in _listed(client, f"/repos/{context.repository}/commits", sha=sha):
        yield text_at(value, "sha")


def _listed(client: Client, path: str, **query: str) -> Iterator[object]:
    """The items of a long list, page by page and no further than anybody needs."""
    for page in range(1, PAGES + 1):
        answer = client.get(path, **query, per_page=PER_PAGE, page=page)
        items: Sequence[object] = answer if isinstance(answer, list) else items_at(answer, "workflow_runs")
        yield from items
        if len(items) < PER_PAGE:
            return


def _uploads(listed: Sequence[object], run: FormerRun) -> Iterator[Upload]:
    for value in listed:
        owner = at(value, "workflow_run")
        is_own = owner is None or (
            number_at(owner, "id") == run.id
            and text_at(owner, "head_sha") == run.sha
            and number_at(owner, "repository_id") == number_at(owner, "head_repository_id")
        )
        number = number_at(value, "id")
        if number is None or at(value, "expired") is True or not is_own:
            continue
        sha256 = text_at(value, "digest").removeprefix("sha256:")
        yield Upload(number, text_at(value, "name"), sha256, number_at(value, "size_in_bytes") or 0)
