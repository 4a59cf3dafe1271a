"""The state behind the loopback server, and what GitHub does with each request to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from support.github import payloads
from support.github.clock import FakeClock
from support.github.exchange import Reply, Request
from support.github.past import Past

PULL = 7
SHA = "1" * 40
BODY_CHARACTERS = 65_536
PER_PAGE, MOST_PER_PAGE = 30, 100
HOURLY = 1000
NOT_ACCESSIBLE = "Resource not accessible by integration"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who a token stands for. An Actions token may not ask who it is; that of a fork may not write. `blind`: what it
    may not even see, as the beginning of paths below the repository."""

    login: str = "github-actions[bot]"
    kind: str = "Bot"
    may_ask: bool = False
    may_write: bool = True
    blind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request."""

    number: int = PULL
    head_repository: str = payloads.REPOSITORY
    branch: str = "feat"
    sha: str = SHA
    state: str = "open"

    @property
    def json(self) -> payloads.Json:
        """As lists show it."""
        return payloads.pull(
            self.number,
            head_repository=self.head_repository,
            branch=self.branch,
            sha=self.sha,
            state=self.state,
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """A comment that stands there."""

    id: int
    issue: int
    login: str
    kind: str
    body: str
    created: float
    updated: float

    @property
    def json(self) -> payloads.Json:
        """As GitHub shows it."""
        author = {"login": self.login, "type": self.kind}
        return payloads.comment(self.id, self.issue, author, self.body, created=self.created, updated=self.updated)


@dataclass(frozen=True, slots=True)
class Edit:
    """A PATCH that was done: what it replaced, and by what."""

    request: Request
    before: str
    after: str


class World:
    """One repository, acme/models, its past, pull requests, comments and jobs of runs; tokens and what they may do."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.tokens: dict[str, Actor] = {"ghs_actions": Actor()}
        self.pulls: dict[int, Pull] = {PULL: Pull()}
        self.comments: dict[int, Standing] = {}
        self.artifacts: dict[int, tuple[str, bytes]] = {}
        self.past = Past({payloads.BASE_SHA: (), SHA: (payloads.BASE_SHA,)})
        self.download_url = "http://127.0.0.1:9/nowhere"
        self.are_comments_off = False
        self.edits: list[Edit] = []
        self.jobs: Callable[[int], list[payloads.Json]] = lambda run: []
        self.cancelled: list[int] = []
        self._served = 0
        self._last_id = 1000

    def say(self, body: str, *, login: str = "octocat", kind: str = "User", issue: int = PULL) -> int:
        """Somebody comments; the id."""
        self._last_id += 1
        now = self.clock.now
        self.comments[self._last_id] = Standing(self._last_id, issue, login, kind, body, now, now)
        return self._last_id

    def bodies(self) -> tuple[str, ...]:
        """The texts of all comments, oldest first."""
        return tuple(self.comments[number].body for number in sorted(self.comments))

    def answer(self, request: Request, address: str) -> Reply:
        """What GitHub does; `address` is the server's own, for links."""
        self._served += 1
        actor = self.tokens.get(request.token)
        reply = self._refuse(401, "Bad credentials") if actor is None else self._routed(request, actor, address)
        headers = {**self._rate_headers(), **reply.headers}
        if request.method == "GET" and reply.status == 200:
            headers["ETag"] = f'"{hashlib.sha256(reply.body).hexdigest()}"'
            if request.headers.get("if-none-match") == headers["ETag"]:
                return Reply(304, headers=headers)
        return replace(reply, headers=headers)

    def _rate_headers(self) -> Mapping[str, str]:
        return {
            "X-RateLimit-Limit": str(HOURLY),
            "X-RateLimit-Remaining": str(max(0, HOURLY - self._served % HOURLY)),
            "X-RateLimit-Used": str(self._served % HOURLY),
            "X-RateLimit-Reset": str(int(self.clock.now) + 3600),
            "X-RateLimit-Resource": "core",
        }

    def _routed(self, request: Request, actor: Actor, address: str) -> Reply:
        path = request.path.replace(f"/repositories/{payloads.REPOSITORY_ID}/", f"/repos/{payloads.REPOSITORY}/")
        for method, pattern, route in _ROUTES:
            found = re.fullmatch(pattern, path)
            if found and method == request.method:
                if method != "GET" and not actor.may_write:
                    return self._refuse(403, NOT_ACCESSIBLE)
                if any(path.startswith(f"/repos/{payloads.REPOSITORY}/{one}") for one in actor.blind):
                    is_private = path.startswith((f"{_OURS}/contents", f"{_OURS}/commits", f"{_OURS}/compare"))
                    return self._refuse(404, "Not Found") if is_private else self._refuse(403, NOT_ACCESSIBLE)
                return route(self, request, actor, address, *found.groups())
        return self._refuse(404, "Not Found")

    @staticmethod
    def _refuse(status: int, words: str, *details: payloads.Json) -> Reply:
        return Reply(status, payloads.refusal(status, words, *details))

    def _paged(self, request: Request, address: str, items: list[payloads.Json]) -> Reply:
        """GitHub links by the repository's number, whatever the request did."""
        size = min(int(request.query.get("per_page", PER_PAGE)), MOST_PER_PAGE)
        page = int(request.query.get("page", 1))
        last = max(1, -(-len(items) // size))
        path = request.path.replace(f"/repos/{payloads.REPOSITORY}/", f"/repositories/{payloads.REPOSITORY_ID}/")
        others = "".join(f"&{key}={value}" for key, value in request.query.items() if key not in ("per_page", "page"))

        def link(number: int, relation: str) -> str:
            return f'<{address}{path}?per_page={size}&page={number}{others}>; rel="{relation}"'

        links = [link(page - 1, "prev"), link(1, "first")] if page > 1 else []
        links += [link(page + 1, "next"), link(last, "last")] if page < last else []
        headers = {"Link": ", ".join(links)} if links else {}
        return Reply(200, items[(page - 1) * size : page * size], headers)

    def _user(self, request: Request, actor: Actor, address: str) -> Reply:
        if not actor.may_ask:
            return self._refuse(403, NOT_ACCESSIBLE)
        return Reply(200, payloads.public_user(actor.login, actor.kind, self.clock.now))

    def _list_comments(self, request: Request, actor: Actor, address: str, issue: str) -> Reply:
        if refused := self._thread(issue):
            return refused
        found = [self.comments[number].json for number in sorted(self.comments)]
        return self._paged(request, address, [item for item in found if item["issue_url"].endswith(f"/{issue}")])

    def _create_comment(self, request: Request, actor: Actor, address: str, issue: str) -> Reply:
        if refused := self._thread(issue) or self._body(request):
            return refused
        number = self.say(request.json["body"], login=actor.login, kind=actor.kind, issue=int(issue))
        made = self.comments[number].json
        return Reply(201, made, {"Location": made["url"]})

    def _get_comment(self, request: Request, actor: Actor, address: str, number: str) -> Reply:
        standing = self.comments.get(int(number))
        return Reply(200, standing.json) if standing else self._refuse(404, "Not Found")

    def _edit_comment(self, request: Request, actor: Actor, address: str, number: str) -> Reply:
        if int(number) not in self.comments:
            return self._refuse(404, "Not Found")
        if refused := self._body(request):
            return refused
        before = self.comments[int(number)]
        edited = replace(before, body=request.json["body"], updated=self.clock.now)
        self.edits.append(Edit(request, before.body, edited.body))
        self.comments[int(number)] = edited
        return Reply(200, edited.json)

    def _delete_comment(self, request: Request, actor: Actor, address: str, number: str) -> Reply:
        return Reply(204) if self.comments.pop(int(number), None) else self._refuse(404, "Not Found")

    def _thread(self, issue: str) -> Reply | None:
        if self.are_comments_off:
            return self._refuse(410, "Issues are disabled for this repo")
        return None if int(issue) in self.pulls else self._refuse(404, "Not Found")

    def _body(self, request: Request) -> Reply | None:
        detail = {"resource": "IssueComment", "code": "unprocessable", "field": "data"}
        if not request.json["body"].strip():
            return self._refuse(422, "Validation Failed", {**detail, "message": "Body can't be blank"})
        if len(request.json["body"]) > BODY_CHARACTERS:
            words = f"Body is too long (maximum is {BODY_CHARACTERS} characters)"
            return self._refuse(422, "Validation Failed", {**detail, "message": words})
        return None

    def _list_pulls(self, request: Request, actor: Actor, address: str) -> Reply:
        head = request.query.get("head")
        state = request.query.get("state", "open")
        found = [pull.json for pull in self.pulls.values() if state in ("all", pull.state)]
        return self._paged(request, address, [pull for pull in found if head in (None, pull["head"]["label"])])

    def _get_pull(self, request: Request, actor: Actor, address: str, number: str) -> Reply:
        pull = self.pulls.get(int(number))
        return Reply(200, payloads.whole_pull(pull.json)) if pull else self._refuse(404, "Not Found")

    def _pulls_of_commit(self, request: Request, actor: Actor, address: str, sha: str) -> Reply:
        return self._paged(request, address, [pull.json for pull in self.pulls.values() if pull.sha == sha])

    def _list_artifacts(self, request: Request, actor: Actor, address: str, run: str) -> Reply:
        found = [payloads.artifact(number, name, len(data)) for number, (name, data) in self.artifacts.items()]
        found += [upload.json for upload in self.past.uploads if upload.run.id == int(run)]
        reply = self._paged(request, address, found)
        return replace(reply, value={"total_count": len(found), "artifacts": reply.value})

    def _list_jobs(self, request: Request, actor: Actor, address: str, run: str) -> Reply:
        found = self.jobs(int(run))
        reply = self._paged(request, address, found)
        return replace(reply, value={"total_count": len(found), "jobs": reply.value})

    def _cancel_run(self, request: Request, actor: Actor, address: str, run: str) -> Reply:
        self.cancelled.append(int(run))
        return Reply(202, {})

    def _list_runs(self, request: Request, actor: Actor, address: str, workflow: str = "") -> Reply:
        branch, status = request.query.get("branch"), request.query.get("status")
        runs = [run for run in reversed(self.past.runs) if branch in (None, run.branch)]
        runs = [run for run in runs if status in (None, run.conclusion)]
        if workflow:
            runs = [run for run in runs if run.path.rpartition("/")[2] == workflow]
            if not any(run.path.rpartition("/")[2] == workflow for run in self.past.runs):
                return self._refuse(404, "Not Found")
        reply = self._paged(request, address, [run.json for run in runs])
        return replace(reply, value={"total_count": len(runs), "workflow_runs": reply.value})

    def _list_commits(self, request: Request, actor: Actor, address: str) -> Reply:
        found = list(self.past.ancestors(request.query.get("sha", "")))
        if not found:
            return self._refuse(404, "Not Found")
        return self._paged(request, address, [payloads.commit(sha, self.past.parents.get(sha, ())) for sha in found])

    def _get_commit(self, request: Request, actor: Actor, address: str, sha: str) -> Reply:
        if sha not in self.past.parents:
            return self._refuse(422, f"No commit found for SHA: {sha}")
        return Reply(200, payloads.commit(sha, self.past.parents[sha]))

    def _compare(self, request: Request, actor: Actor, address: str, base: str, head: str) -> Reply:
        found = self.past.comparison(base, head)
        return self._refuse(404, "Not Found") if found is None else Reply(200, found)

    def _content(self, request: Request, actor: Actor, address: str, path: str) -> Reply:
        found = self.past.content(unquote(path), request.query.get("ref", ""))
        return self._refuse(404, "Not Found") if found is None else Reply(200, found)

    def _download(self, request: Request, actor: Actor, address: str, number: str) -> Reply:
        kept = next((one for one in self.past.uploads if one.id == int(number)), None)
        if int(number) not in self.artifacts and (kept is None or kept.expired):
            return self._refuse(410, "Artifact has expired")
        return Reply(302, headers={"Location": f"{self.download_url}/{number}.zip?sig=secret"})


_OURS = f"/repos/{payloads.REPOSITORY}"
_REPOSITORY = re.escape(_OURS)
_ROUTES: tuple[tuple[str, str, Callable[..., Reply]], ...] = (
    ("GET", r"/user", World._user),
    ("GET", rf"{_REPOSITORY}/issues/(\d+)/comments", World._list_comments),
    ("POST", rf"{_REPOSITORY}/issues/(\d+)/comments", World._create_comment),
    ("GET", rf"{_REPOSITORY}/issues/comments/(\d+)", World._get_comment),
    ("PATCH", rf"{_REPOSITORY}/issues/comments/(\d+)", World._edit_comment),
    ("DELETE", rf"{_REPOSITORY}/issues/comments/(\d+)", World._delete_comment),
    ("GET", rf"{_REPOSITORY}/pulls", World._list_pulls),
    ("GET", rf"{_REPOSITORY}/pulls/(\d+)", World._get_pull),
    ("GET", rf"{_REPOSITORY}/commits/([0-9a-f]+)/pulls", World._pulls_of_commit),
    ("GET", rf"{_REPOSITORY}/actions/runs/(\d+)/artifacts", World._list_artifacts),
    ("GET", rf"{_REPOSITORY}/actions/artifacts/(\d+)/zip", World._download),
    ("GET", rf"{_REPOSITORY}/actions/runs/(\d+)/jobs", World._list_jobs),
    ("GET", rf"{_REPOSITORY}/actions/runs", World._list_runs),
    ("GET", rf"{_REPOSITORY}/actions/workflows/([^/]+)/runs", World._list_runs),
    ("GET", rf"{_REPOSITORY}/commits", World._list_commits),
    ("GET", rf"{_REPOSITORY}/commits/([0-9a-f]+)", World._get_commit),
    ("GET", rf"{_REPOSITORY}/compare/([0-9a-f]+)\.\.\.([0-9a-f]+)", World._compare),
    ("GET", rf"{_REPOSITORY}/contents/(.+)", World._content),
    ("POST", rf"{_REPOSITORY}/actions/runs/(\d+)/cancel", World._cancel_run),
)
