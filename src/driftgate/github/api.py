"""A polite client of GitHub's REST API: it waits when asked to, tries again where that is safe, and keeps its token.

Reads are repeated until they succeed or the patience is over. A write is tried once: if it was refused for now,
or if nobody knows whether it was done, the client waits and then raises Postponed or ReplyLost, for what was known
before is old by then and the caller must look again. The token goes to the host of the API and to no other.
Proxies and certificate authorities come from the environment, as `requests` reads it. A client that polls remembers
what it read, and asks only whether that is another by now: such an answer costs nothing of the rate limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import urlencode, urljoin, urlsplit

import requests
from requests.auth import AuthBase
from requests.structures import CaseInsensitiveDict
from requests.utils import parse_header_links

from driftgate import __version__
from driftgate.errors import GitHubError, Gone, NotAllowed, Postponed, ReplyLost
from driftgate.escaping.characters import one_line, shortened
from driftgate.github.limits import wait_seconds
from driftgate.github.patience import Patience, Timing
from driftgate.github.payload import at, items_at, text_at
from driftgate.messages.message import message

API_VERSION = "2022-11-28"
PER_PAGE = 100
PAGES = 100
REDIRECTS = 5
REASON_LIMIT = 300
PATIENCE = Patience()

_HEADERS = {
    "Accept": "application/vnd.github+json",
    "User-Agent": f"driftgate/{__version__}",
    "X-GitHub-Api-Version": API_VERSION,
}
_READ = "GET"
_UNCHANGED = 304
_TOKEN = re.compile(r"[!-~]+")
_MOVED = (301, 302, 303, 307, 308)
_MOVED_WITH_METHOD = (307, 308)
_PORTS = {"http": 80, "https": 443}

#: Status → (error, code); every other status from 300 on is a GitHubError "github-refused".
_REFUSALS: Mapping[int, tuple[type[GitHubError], str]] = {
    401: (GitHubError, "github-token-refused"),
    403: (NotAllowed, "github-not-allowed"),
    404: (Gone, "github-not-found"),
    410: (Gone, "github-gone"),
    422: (GitHubError, "github-invalid"),
}


@dataclass(frozen=True, slots=True)
class _Answer:
    """Status, headers and the whole body of one reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def said(self) -> str:
        """GitHub's own words on a refusal; empty where the body has none."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return ""
        details = [text_at(item, "message") or str(item) for item in items_at(value, "errors")]
        words = "; ".join(part for part in (text_at(value, "message"), *details) if part)
        return shortened(one_line(words), REASON_LIMIT)


class _Lost(Exception):
    """The connection broke, or never came to be."""


class _Bearer(AuthBase):
    """The token, for requests to the API; given as `auth`, so that no `.netrc` takes its place."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class _Nobody(AuthBase):
    """No credentials at all, for other hosts."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.pop("Authorization", None)
        return request


class Client:
    """One API and one token. `api_url` has the base path where there is one, such as `https://ghe/api/v3`.

    Every method raises GitHubError, or one of its kinds, with what GitHub said.
    """

    def __init__(
        self, api_url: str, token: str, *, timing: Timing, patience: Patience = PATIENCE, polls: bool = False
    ) -> None:
        if not _TOKEN.fullmatch(token):
            raise GitHubError(message("github-token-garbled"))
        self._base = api_url.rstrip("/")
        self._origin = _origin(self._base)
        self._bearer = _Bearer(token)
        self._timing = timing
        self._patience = patience
        self._session = requests.Session()
        self._session.headers.update(_HEADERS)
        self._deadline = timing.monotonic() + patience.total_seconds
        self._polls = polls
        self._read_before: dict[str, _Answer] = {}
        self._written: float | None = None
        self._unsettled = 0
        self._request_count = 0

    @property
    def request_count(self) -> int:
        """How many requests were sent so far."""
        return self._request_count

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.close()

    def get(self, path: str, **query: str | int) -> object:
        """The JSON at a path below the API's base."""
        return _json(self._read(self._url(path, query)), path)

    def pages(self, path: str, *, under: str = "", **query: str | int) -> tuple[object, ...]:
        """The items of a list, over all its pages; `under` is the key it stands under, where it is not the answer."""
        found: list[object] = []
        url: str | None = self._url(path, {**query, "per_page": PER_PAGE})
        seen: set[str] = set()
        while url is not None:
            if url in seen or len(seen) == PAGES:
                raise GitHubError(message("github-pages", path=path, limit=PAGES))
            seen.add(url)
            answer = self._read(url)
            page = _json(answer, path)
            page = at(page, under) if under else page
            if not isinstance(page, list):
                raise GitHubError(message("github-no-list", path=path))
            found += page
            url = self._next(answer, url)
        return tuple(found)

    def post(self, path: str, value: Mapping[str, object]) -> object:
        """Create something; the reply's JSON."""
        return self._write("POST", path, value)

    def patch(self, path: str, value: Mapping[str, object]) -> object:
        """Change something; the reply's JSON."""
        return self._write("PATCH", path, value)

    def delete(self, path: str) -> None:
        """Remove something."""
        self._write("DELETE", path, None)

    def download(self, path: str, *, limit_bytes: int) -> bytes:
        """A file, which GitHub keeps on another host; the token stays behind."""
        return self._read(self._url(path, {}), other_hosts=True, limit_bytes=limit_bytes).body

    def _url(self, path: str, query: Mapping[str, str | int]) -> str:
        return f"{self._base}{path}?{urlencode(query)}" if query else f"{self._base}{path}"

    def _next(self, answer: _Answer, url: str) -> str | None:
        links = parse_header_links(answer.headers.get("Link", ""))
        following = next((link["url"] for link in links if link.get("rel") == "next"), None)
        if following is None:
            return None
        target = _joined(url, following)
        if _origin(target) != self._origin:
            raise self._stranger(target)
        return target

    def _read(self, url: str, *, other_hosts: bool = False, limit_bytes: int | None = None) -> _Answer:
        """Tried until it succeeds, is refused for good, or patience is over."""
        attempt = 0
        before = self._read_before.get(url)
        while True:
            attempt += 1
            try:
                answer = self._follow(_READ, url, None, other_hosts=other_hosts, limit_bytes=limit_bytes, before=before)
            except _Lost as lost:
                wait, reason = self._backoff(attempt), str(lost)
            else:
                if before is not None and answer.status == _UNCHANGED:
                    return before
                asked = self._asked(answer, attempt)
                if asked is None and answer.status < 500:
                    answer = _accepted(answer, _READ, url)
                    if self._polls and "ETag" in answer.headers:
                        self._read_before[url] = answer
                    return answer
                wait = self._backoff(attempt) if asked is None else asked
                reason = f"{answer.status} {answer.said}".strip()
            self._wait(wait, attempt, reason)

    def _write(self, method: str, path: str, value: Mapping[str, object] | None) -> object:
        """Tried once; what is unsettled is waited for and raised."""
        if self._written is not None:
            pause = self._written + self._patience.gap_seconds - self._timing.monotonic()
            if pause > 0:
                self._wait(pause, 0, "")
        url = self._url(path, {})
        attempt = self._unsettled + 1
        content = None if value is None else json.dumps(value).encode()
        try:
            answer = self._follow(method, url, content, other_hosts=False, limit_bytes=None)
        except _Lost as lost:
            self._unsettled = attempt
            self._wait(self._backoff(attempt), attempt, str(lost))
            raise ReplyLost(message("github-reply-lost", method=method, path=path, reason=str(lost))) from lost
        finally:
            self._written = self._timing.monotonic()
        asked = self._asked(answer, attempt)
        if asked is not None:
            self._unsettled = attempt
            self._wait(asked, attempt, answer.said)
            raise Postponed(message("github-postponed", method=method, path=path, reason=answer.said))
        if answer.status >= 500:
            self._unsettled = attempt
            self._wait(self._backoff(attempt), attempt, f"{answer.status} {answer.said}".strip())
            raise ReplyLost(message("github-reply-lost", method=method, path=path, reason=str(answer.status)))
        self._unsettled = 0
        answer = _accepted(answer, method, url)
        return _json(answer, path) if answer.body else None

    def _asked(self, answer: _Answer, attempt: int) -> float | None:
        asked = wait_seconds(
            answer.status, answer.headers, answer.said, epoch_seconds=self._timing.epoch(), attempt=attempt
        )
        return None if asked is None else asked + self._timing.chance()

    def _backoff(self, attempt: int) -> float:
        return self._patience.backoff_seconds(attempt, self._timing.chance())

    def _wait(self, seconds: float, attempt: int, reason: str) -> None:
        """Sleep; GitHubError where the attempts are used up or the wait would outlast the budget."""
        if attempt >= self._patience.attempts:
            raise GitHubError(
                message("github-attempts", host=self._origin[1], attempts=attempt, reason=reason or "no reply")
            )
        if self._timing.monotonic() + seconds > self._deadline:
            raise GitHubError(
                message(
                    "github-patience",
                    host=self._origin[1],
                    seconds=round(seconds),
                    budget=round(self._patience.total_seconds),
                    reason=reason,
                )
            )
        self._timing.sleep(seconds)

    def _follow(
        self,
        method: str,
        url: str,
        content: bytes | None,
        *,
        other_hosts: bool,
        limit_bytes: int | None,
        before: _Answer | None = None,
    ) -> _Answer:
        """One request along its redirects; those of a write must keep its method."""
        limit = self._patience.answer_bytes if limit_bytes is None else limit_bytes
        with_token = True
        headers = {} if content is None else {"Content-Type": "application/json"}
        headers |= {} if before is None else {"If-None-Match": before.headers["ETag"]}
        for _ in range(REDIRECTS + 1):
            answer = self._send(method, url, content, headers, with_token=with_token, limit_bytes=limit)
            followed = _MOVED if method == _READ else _MOVED_WITH_METHOD
            if answer.status not in followed or "Location" not in answer.headers:
                return answer
            target = _joined(url, answer.headers["Location"])
            if _origin(target) != self._origin:
                if not other_hosts or (_scheme(url) == "https" and _scheme(target) != "https"):
                    raise self._stranger(target)
                with_token = False
            url = target
        raise GitHubError(message("github-redirects", host=self._origin[1], limit=REDIRECTS))

    def _send(
        self,
        method: str,
        url: str,
        content: bytes | None,
        headers: Mapping[str, str],
        *,
        with_token: bool,
        limit_bytes: int,
    ) -> _Answer:
        left = max(1.0, self._deadline - self._timing.monotonic())
        self._request_count += 1
        try:
            with self._session.request(
                method,
                url,
                data=content,
                headers=dict(headers),
                auth=self._bearer if with_token else _Nobody(),
                timeout=(min(self._patience.connect_seconds, left), min(self._patience.read_seconds, left)),
                allow_redirects=False,
                stream=True,
            ) as response:
                body = self._body(response, limit_bytes)
                return _Answer(response.status_code, CaseInsensitiveDict(response.headers), body)
        except requests.exceptions.SSLError as error:
            if "CERTIFICATE_VERIFY_FAILED" not in str(error):
                raise _Lost(_reason(error)) from error
            raise GitHubError(message("github-certificate", host=_origin(url)[1])) from error
        except (
            requests.exceptions.ConnectionError,
            requests.exceptions.Timeout,
            requests.exceptions.ChunkedEncodingError,
            requests.exceptions.ContentDecodingError,
        ) as error:
            raise _Lost(_reason(error)) from error
        except requests.exceptions.RequestException as error:
            raise GitHubError(message("github-request", host=_origin(url)[1], reason=type(error).__name__)) from error
        except OSError as error:  # requests raises it bare where the file of REQUESTS_CA_BUNDLE is not there
            raise GitHubError(message("github-certificate", host=_origin(url)[1])) from error

    def _body(self, response: requests.Response, limit_bytes: int) -> bytes:
        body = bytearray()
        for chunk in response.iter_content(64 * 1024):
            body += chunk
            if len(body) > limit_bytes:
                raise GitHubError(message("github-too-long", host=self._origin[1], limit_bytes=limit_bytes))
            if self._timing.monotonic() > self._deadline:
                raise _Lost("slow reply")
        return bytes(body)

    def _stranger(self, url: str) -> GitHubError:
        return GitHubError(message("github-other-host", found=_origin(url)[1], wanted=self._origin[1]))


def _origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port: what the token belongs to. An address without a host, or of another kind, has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ("", "", 0)
    return (parts.scheme, (parts.hostname or "").lower(), port or _PORTS.get(parts.scheme, 0))


def _scheme(url: str) -> str:
    return _origin(url)[0]


def _joined(url: str, target: str) -> str:
    try:
        return urljoin(url, target)
    except ValueError:
        return ""


def _accepted(answer: _Answer, method: str, url: str) -> _Answer:
    """The reply, if it is a success; raises what its status stands for."""
    if 200 <= answer.status < 300:
        return answer
    kind, code = _REFUSALS.get(answer.status, (GitHubError, "github-refused"))
    path = urlsplit(url).path
    raise kind(message(code, method=method, path=path, status=answer.status, reason=answer.said or "no reason given"))


def _json(answer: _Answer, path: str) -> object:
    try:
        value: object = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise GitHubError(message("github-no-json", path=path)) from error
    return value


def _reason(error: BaseException) -> str:
    """What broke, in words without addresses: those can hold signatures and passwords."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) and found.strerror and not isinstance(found, requests.RequestException):
            return found.strerror
        found = found.__cause__ or found.__context__
    return type(error).__name__
