"""GitHub's own description of its API, and a check of every exchange against it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from openapi_core import OpenAPI  # type: ignore[import-not-found, unused-ignore]
from openapi_core.testing import MockRequest, MockResponse  # type: ignore[import-not-found, unused-ignore]

from support.github import payloads
from support.github.exchange import Reply, Request
from support.npm import npm_file

PACKAGE, VERSION = "@octokit/openapi", "23.0.2"
MEMBER = "package/generated/api.github.com.json"

_REPO = "/repos/{owner}/{repo}"
PATHS = (
    "/user",
    f"{_REPO}/issues/{{issue_number}}/comments",
    f"{_REPO}/issues/comments/{{comment_id}}",
    f"{_REPO}/pulls",
    f"{_REPO}/pulls/{{pull_number}}",
    f"{_REPO}/commits/{{commit_sha}}/pulls",
    f"{_REPO}/actions/runs/{{run_id}}/artifacts",
    f"{_REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}",
    f"{_REPO}/actions/runs/{{run_id}}/jobs",
    f"{_REPO}/actions/runs/{{run_id}}/cancel",
    f"{_REPO}/actions/runs",
    f"{_REPO}/actions/workflows/{{workflow_id}}/runs",
    f"{_REPO}/commits",
    f"{_REPO}/commits/{{ref}}",
    f"{_REPO}/compare/{{basehead}}",
    f"{_REPO}/contents/{{path}}",
)
#: Refusals that any request may meet and that single operations do not list.
REFUSAL = {
    "description": "Refused",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/basic-error"}}},
}
UNCHANGED = {"description": "Not modified"}
ANY_REQUEST = ("401", "403", "404", "429", "500", "502", "503")


def _file() -> Path:
    """The description, downloaded once; it appears in one move. Raises CalledProcessError with npm's words."""
    return npm_file(PACKAGE, VERSION, MEMBER, f"octokit-openapi-{VERSION}/api.github.com.json")


@cache
def description() -> OpenAPI:
    """What GitHub says of the paths that we use."""
    whole = json.loads(_file().read_bytes())
    sliced: dict[str, Any] = {
        "openapi": whole["openapi"],
        "info": whole["info"],
        "servers": [{"url": payloads.API}],
        "paths": {path: whole["paths"][path] for path in PATHS},
        "components": {"schemas": {"basic-error": whole["components"]["schemas"]["basic-error"]}},
    }
    for reference in _references(sliced["paths"], whole, set()):
        _, _, section, name = reference.split("/", 3)
        sliced["components"].setdefault(section, {})[name] = whole["components"][section][name]
    # nullable by the description's own word, which its list of values forgets
    sliced["components"]["schemas"]["job"]["properties"]["conclusion"]["enum"].append(None)
    for operations in sliced["paths"].values():
        for operation in operations.values():
            for status in ANY_REQUEST:
                operation["responses"].setdefault(status, REFUSAL)
            operation["responses"].setdefault("304", UNCHANGED)
    return OpenAPI.from_dict(sliced)


def _references(value: object, whole: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            yield reference
            _, _, section, name = reference.split("/", 3)
            yield from _references(whole["components"][section][name], whole, seen)
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _references(item, whole, seen)


def check(request: Request, reply: Reply) -> None:
    """Raises AssertionError where a request or a reply is not what GitHub describes."""
    path = re.sub(rf"^/repositories/{payloads.REPOSITORY_ID}/", f"/repos/{payloads.REPOSITORY}/", request.path)
    asked = MockRequest(
        payloads.API,
        request.method.lower(),
        path,
        args=dict(request.query),
        data=request.body or None,
        content_type=request.headers.get("content-type", "application/json"),
    )
    headers = {"Content-Type": "application/json; charset=utf-8", **reply.headers}
    answered = MockResponse(reply.body, status_code=reply.status, headers=headers, content_type="application/json")
    checks: tuple[tuple[str, Callable[[], object]], ...] = (
        ("request", lambda: description().validate_request(asked)),
        ("reply", lambda: description().validate_response(asked, answered)),
    )
    for what, validate in checks:
        try:
            validate()
        except Exception as error:
            raise AssertionError(f"{what} {request.method} {path}?{urlencode(request.query)}: {_why(error)}") from error


def _why(error: BaseException) -> str:
    found: BaseException | None = error
    words: list[str] = []
    while found is not None:
        words += [str(getattr(problem, "message", problem))[:300] for problem in getattr(found, "schema_errors", ())]
        words.append(f"{type(found).__name__}: {found}"[:300])
        found = found.__cause__
    return "; ".join(words)
