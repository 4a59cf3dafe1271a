"""The past of the repository: commits with parents and files, runs of workflows, and what they uploaded."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.github import payloads

WORKFLOW = ".github/workflows/ci.yml"


@dataclass(frozen=True, slots=True)
class Ran:
    """A run of a workflow."""

    id: int
    sha: str
    number: int = 1
    attempt: int = 1
    branch: str = "main"
    event: str = "push"
    conclusion: str = "success"
    head_repository: str = payloads.REPOSITORY
    path: str = WORKFLOW
    name: str = "CI"

    @property
    def json(self) -> payloads.Json:
        """As GitHub lists it."""
        return payloads.workflow_run(
            self.id,
            sha=self.sha,
            number=self.number,
            attempt=self.attempt,
            branch=self.branch,
            event=self.event,
            conclusion=self.conclusion,
            head_repository=self.head_repository,
            path=self.path,
            name=self.name,
        )


@dataclass(frozen=True, slots=True)
class Uploaded:
    """An artifact; `claims` is the run that GitHub says it is of, where that is not the one it is listed under.
    `digest` replaces the true one; older servers tell neither."""

    id: int
    run: Ran
    name: str
    content: bytes
    expired: bool = False
    claims: Ran | None = None
    digest: str | None = None
    is_old_server: bool = False

    @property
    def json(self) -> payloads.Json:
        """As GitHub lists it."""
        made = payloads.artifact(self.id, self.name, len(self.content))
        made["expired"] = self.expired
        if self.is_old_server:
            return made
        owner = self.claims or self.run
        found = f"sha256:{hashlib.sha256(self.content).hexdigest()}"
        made["digest"] = found if self.digest is None else self.digest
        made["workflow_run"] = {
            "id": owner.id,
            "repository_id": payloads.REPOSITORY_ID,
            "head_repository_id": payloads.repository_id(owner.head_repository),
            "head_branch": owner.branch,
            "head_sha": owner.sha,
        }
        return made


@dataclass(slots=True)
class Past:
    """What happened so far. A commit that nobody told of comes after `tip`, where there is one."""

    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    files: dict[tuple[str, str], bytes] = field(default_factory=dict)
    runs: list[Ran] = field(default_factory=list)
    uploads: list[Uploaded] = field(default_factory=list)
    tip: str = ""

    def commit(self, sha: str, *parents: str) -> str:
        """A commit; its name."""
        self.parents[sha] = parents
        return sha

    def ancestors(self, sha: str) -> Iterator[str]:
        """A commit and those before it, the nearest first."""
        seen, waiting = {sha}, [sha] if sha in self.parents or self.tip else []
        while waiting:
            one = waiting.pop(0)
            yield one
            for parent in self.parents.get(one, (self.tip,)):
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)

    def parted_at(self, one: str, other: str) -> str | None:
        """The nearest commit that both come from."""
        theirs = set(self.ancestors(other))
        return next((sha for sha in self.ancestors(one) if sha in theirs), None)

    def comparison(self, base: str, head: str) -> payloads.Json | None:
        """Two commits held against each other; None where one is unknown, or they have nothing in common."""
        common = self.parted_at(base, head)
        return None if common is None else payloads.comparison(base, head, common)

    def content(self, path: str, sha: str) -> payloads.Json | None:
        """A file at a commit."""
        content = self.files.get((sha, path))
        return None if content is None else payloads.content(path, base64.encodebytes(content).decode(), len(content))
