"""The client against a GitHub on the loopback interface: what it repeats, waits for, and whom it tells its token."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from driftgate import __version__
from driftgate.errors import GitHubError, Gone, NotAllowed, Postponed, ReplyLost
from support.github.clock import EPOCH, FakeClock
from support.github.exchange import Reply
from support.github.faults import PRIMARY, SECONDARY, Treatment, answered, gateway, halved, lost, refused, reset
from support.github.payloads import REPOSITORY
from support.github.runs import THREAD, TOKEN, client
from support.github.server import GitHub, Loopback
from support.github.world import NOT_ACCESSIBLE, Actor, World

COMMENTS = f"/repos/{REPOSITORY}/issues/7/comments"
BODY = {"body": "hello"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def github(clock: FakeClock) -> Iterator[GitHub]:
    with GitHub(World(clock)) as server:
        yield server
    assert server.problems == []


@pytest.fixture
def stranger() -> Iterator[Loopback]:
    """Another host: another port."""
    with Loopback() as server:
        yield server


def test_a_request_says_who_asks_and_which_version_of_the_api_it_means(github: GitHub, clock: FakeClock) -> None:
    with client(github.url, clock) as api:
        api.get(COMMENTS)

    (logged,) = github.log
    assert logged.request.token == TOKEN
    assert logged.request.headers["user-agent"] == f"driftgate/{__version__}"
    assert logged.request.headers["accept"] == "application/vnd.github+json"
    assert logged.request.headers["x-github-api-version"] == "2022-11-28"


def test_lists_are_read_to_their_end(github: GitHub, clock: FakeClock) -> None:
    for number in range(250):
        github.world.say(f"comment {number}")
    with client(github.url, clock) as api:
        found = api.pages(COMMENTS)

    assert [item["body"] for item in found if isinstance(item, dict)] == [f"comment {n}" for n in range(250)]
    assert api.request_count == 3
    assert "/repositories/1296269/" in github.log[1].request.path, "links are followed, not made up"


@pytest.mark.parametrize("base", ["/api/v3", "/api/v1"])
def test_servers_with_a_base_path_are_asked_below_it(base: str, clock: FakeClock) -> None:
    with GitHub(World(clock), base_path=base) as server, client(server.url, clock) as api:
        for number in range(120):
            server.world.say(f"comment {number}")
        assert len(api.pages(COMMENTS)) == 120
        api.post(COMMENTS, BODY)
    assert server.problems == []
    assert server.world.bodies()[-1] == "hello"


def test_an_empty_body_is_sent_as_json_and_deleting_has_none(github: GitHub, clock: FakeClock) -> None:
    number = github.world.say("x")
    with client(github.url, clock) as api:
        api.patch(f"/repos/{REPOSITORY}/issues/comments/{number}", {"body": "ünï 🙂"})
        api.delete(f"/repos/{REPOSITORY}/issues/comments/{number}")
    assert github.log[0].request.json == {"body": "ünï 🙂"}
    assert github.log[0].request.headers["content-type"] == "application/json"
    assert github.log[1].request.body == b""


TRANSIENT = {
    "reset": reset,
    "lost": lost,
    "halved": halved,
    "500": refused(500, "Server Error"),
    "502": gateway,
    "503": answered(Reply(503, raw=b"<html>unicorn</html>")),
    "429": refused(429, "slow down", {"Retry-After": "3"}),
    "primary": refused(403, PRIMARY, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(EPOCH) + 9)}),
    "secondary": refused(403, SECONDARY, {"Retry-After": "3"}),
    "secondary without a hint": refused(403, SECONDARY),
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
def test_a_read_is_repeated_until_it_succeeds(github: GitHub, clock: FakeClock, fault: Treatment) -> None:
    github.plan("GET", "comments", fault, fault)
    with client(github.url, clock) as api:
        assert api.get(COMMENTS) == []
    assert api.request_count == 3
    assert len(clock.waits) == 2


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (TRANSIENT["429"], [3, 3]),
        (TRANSIENT["secondary"], [3, 3]),
        (TRANSIENT["primary"], [10, 1]),
        (TRANSIENT["secondary without a hint"], [60, 120]),
        (TRANSIENT["500"], [0.5, 1]),
        (TRANSIENT["reset"], [0.5, 1]),
    ],
)
def test_the_wait_is_the_one_asked_for(github: GitHub, clock: FakeClock, fault: Treatment, waits: list[float]) -> None:
    github.plan("GET", "comments", fault, fault)
    with client(github.url, clock) as api:
        api.get(COMMENTS)
    assert clock.waits == waits


def test_chance_spreads_the_waits(github: GitHub, clock: FakeClock) -> None:
    github.plan("GET", "comments", TRANSIENT["500"], TRANSIENT["429"])
    with client(github.url, clock, chance=0.5) as api:
        api.get(COMMENTS)
    assert clock.waits == [0.75, 3.5]


def test_attempts_are_counted(github: GitHub, clock: FakeClock) -> None:
    github.plan("GET", "comments", *[TRANSIENT["500"]] * 9)
    with (
        client(github.url, clock, attempts=4) as api,
        pytest.raises(GitHubError, match="in 4 attempts: 500 Server Error"),
    ):
        api.get(COMMENTS)
    assert len(github.log) == 4


def test_a_wait_beyond_the_budget_is_not_begun(github: GitHub, clock: FakeClock) -> None:
    github.plan("GET", "comments", refused(429, "slow down", {"Retry-After": "700"}))
    with client(github.url, clock) as api, pytest.raises(GitHubError, match=r"wait 700 s more .* 600 s"):
        api.get(COMMENTS)
    assert clock.waits == []


def test_the_budget_counts_all_requests_together(github: GitHub, clock: FakeClock) -> None:
    github.plan("GET", "comments", *[refused(429, "", {"Retry-After": "50"})] * 3)
    with client(github.url, clock, total_seconds=120) as api, pytest.raises(GitHubError, match="beyond the 120 s"):
        api.get(COMMENTS)
    assert clock.waits == [50, 50]


@pytest.mark.parametrize("fault", [reset, lost, halved, gateway, refused(500, "Server Error")])
def test_a_write_without_a_reply_is_not_repeated(github: GitHub, clock: FakeClock, fault: Treatment) -> None:
    github.plan("POST", "comments", fault)
    with client(github.url, clock) as api, pytest.raises(ReplyLost):
        api.post(COMMENTS, BODY)
    assert len(github.log) == 1
    assert clock.waits == [0.5], "GitHub gets a moment to become consistent"


@pytest.mark.parametrize("name", ["429", "primary", "secondary", "secondary without a hint"])
def test_a_write_that_is_put_off_is_waited_for_and_left_to_the_caller(
    github: GitHub, clock: FakeClock, name: str
) -> None:
    github.plan("POST", "comments", TRANSIENT[name])
    with client(github.url, clock) as api:
        with pytest.raises(Postponed):
            api.post(COMMENTS, BODY)
        assert clock.waits and not github.world.comments
        api.post(COMMENTS, BODY)
    assert github.world.bodies() == ("hello",)


def test_unsettled_writes_count_as_attempts_until_one_settles(github: GitHub, clock: FakeClock) -> None:
    github.plan("POST", "comments", reset, reset)
    with client(github.url, clock, attempts=3) as api:
        for _ in range(2):
            with pytest.raises(ReplyLost):
                api.post(COMMENTS, BODY)
        api.post(COMMENTS, BODY)
        github.plan("POST", "comments", reset, reset, reset)
        for _ in range(2):
            with pytest.raises(ReplyLost):
                api.post(COMMENTS, BODY)
        with pytest.raises(GitHubError, match="3 attempts"):
            api.post(COMMENTS, BODY)


def test_writes_keep_a_distance_and_reads_do_not(github: GitHub, clock: FakeClock) -> None:
    with client(github.url, clock, gap_seconds=2) as api:
        api.post(COMMENTS, BODY)
        api.get(COMMENTS)
        clock.now += 0.5
        api.post(COMMENTS, BODY)
        clock.now += 5
        api.post(COMMENTS, BODY)
    assert clock.waits == [1.5]


@pytest.mark.parametrize(
    ("status", "words", "kind", "code"),
    [
        (401, "Bad credentials", GitHubError, "github-token-refused"),
        (403, NOT_ACCESSIBLE, NotAllowed, "github-not-allowed"),
        (403, "Unable to create comment because issue is locked.", NotAllowed, "github-not-allowed"),
        (404, "Not Found", Gone, "github-not-found"),
        (410, "Issues are disabled for this repo", Gone, "github-gone"),
        (422, "Validation Failed", GitHubError, "github-invalid"),
        (451, "Repository access blocked", GitHubError, "github-refused"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_refusal_for_good_is_told_at_once(
    github: GitHub, clock: FakeClock, method: str, status: int, words: str, kind: type[GitHubError], code: str
) -> None:
    github.plan(method, "comments", refused(status, words))
    with client(github.url, clock) as api, pytest.raises(kind, match=words) as raised:
        api.get(COMMENTS) if method == "GET" else api.post(COMMENTS, BODY)
    assert type(raised.value) is kind
    assert [problem.code for problem in raised.value.problems] == [code]
    assert (len(github.log), clock.waits) == (1, [])


def test_a_comment_that_is_too_long_is_told_in_githubs_words(github: GitHub, clock: FakeClock) -> None:
    with client(github.url, clock) as api, pytest.raises(GitHubError, match="maximum is 65536 characters"):
        api.post(COMMENTS, {"body": "x" * 65_537})


@pytest.mark.parametrize("raw", [b"<html>log in</html>", b"", b"\xff", b"[" * 100_000])
def test_a_reply_that_is_no_json_is_refused(github: GitHub, clock: FakeClock, raw: bytes) -> None:
    github.plan("GET", "comments", answered(Reply(200, raw=raw)))
    with client(github.url, clock) as api, pytest.raises(GitHubError, match="no JSON"):
        api.get(COMMENTS)


def test_a_page_that_is_no_list_is_refused(github: GitHub, clock: FakeClock) -> None:
    github.plan("GET", "comments", answered(Reply(200, {"total": 0})))
    with client(github.url, clock) as api, pytest.raises(GitHubError, match="no list"):
        api.pages(COMMENTS)


def test_a_reply_that_never_ends_is_cut_off(github: GitHub, clock: FakeClock) -> None:
    github.plan("GET", "comments", answered(Reply(200, raw=b"[" + b" " * 300_000 + b"]")))
    with client(github.url, clock, answer_bytes=200_000) as api, pytest.raises(GitHubError, match="200000 bytes"):
        api.get(COMMENTS)


def test_pages_that_lead_in_a_circle_are_left(github: GitHub, clock: FakeClock) -> None:
    circle = Reply(200, [], {"Link": f'<{github.url}{COMMENTS}?per_page=100>; rel="next"'})
    github.plan("GET", "comments", answered(circle))
    with client(github.url, clock) as api, pytest.raises(GitHubError, match="repeat"):
        api.pages(COMMENTS)
    assert len(github.log) == 1


@pytest.mark.parametrize("link", ["{stranger}/x", "//{host}/x", "http://[/x", "https://127.0.0.1/x"])
def test_a_next_page_elsewhere_is_not_read(github: GitHub, stranger: Loopback, clock: FakeClock, link: str) -> None:
    target = link.format(stranger=stranger.address, host=stranger.address.removeprefix("http://"))
    github.plan("GET", "comments", answered(Reply(200, [], {"Link": f'<{target}>; rel="next"'})))
    with client(github.url, clock) as api, pytest.raises(GitHubError, match="which is not asked"):
        api.pages(COMMENTS)
    assert stranger.log == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_read_follows_a_renamed_repository(github: GitHub, clock: FakeClock, status: int) -> None:
    github.plan("GET", "/repos/acme/old", answered(Reply(status, headers={"Location": COMMENTS})))
    with client(github.url, clock) as api:
        assert api.get("/repos/acme/old/issues/7/comments") == []
    assert [logged.request.token for logged in github.log] == [TOKEN, TOKEN]


def test_a_write_follows_where_its_method_is_kept(github: GitHub, clock: FakeClock) -> None:
    github.plan("POST", "/repos/acme/old", answered(Reply(307, headers={"Location": COMMENTS})))
    github.plan("POST", "/repos/acme/older", answered(Reply(302, headers={"Location": COMMENTS})))
    with client(github.url, clock) as api:
        api.post("/repos/acme/old/issues/7/comments", BODY)
        with pytest.raises(GitHubError, match="302"):
            api.post("/repos/acme/older/issues/7/comments", BODY)
    assert github.world.bodies() == ("hello",)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_neither_reads_nor_writes_are_sent_on_to_another_host(
    github: GitHub, stranger: Loopback, clock: FakeClock, method: str
) -> None:
    github.plan(method, "comments", answered(Reply(307, headers={"Location": f"{stranger.address}/x"})))
    with client(github.url, clock) as api, pytest.raises(GitHubError, match="which is not asked"):
        api.get(COMMENTS) if method == "GET" else api.post(COMMENTS, BODY)
    assert stranger.log == []


def test_redirects_end(github: GitHub, clock: FakeClock) -> None:
    github.plan("GET", "comments", *[answered(Reply(302, headers={"Location": COMMENTS}))] * 9)
    with client(github.url, clock) as api, pytest.raises(GitHubError, match="more than 5 times"):
        api.get(COMMENTS)


def test_an_artifact_comes_from_another_host_without_the_token(
    github: GitHub, stranger: Loopback, clock: FakeClock
) -> None:
    github.world.artifacts[3] = ("report", b"PK")
    github.world.download_url = stranger.address
    with client(github.url, clock) as api:
        assert api.download(f"/repos/{REPOSITORY}/actions/artifacts/3/zip", limit_bytes=100) == b"{}"

    (foreign,) = stranger.log
    assert "authorization" not in foreign.request.headers
    assert foreign.request.query == {"sig": "secret"}
    assert github.log[0].request.token == TOKEN


def test_no_netrc_takes_the_tokens_place(
    github: GitHub,
    stranger: Loopback,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1\nlogin bob\npassword hunter2\n")
    monkeypatch.setenv("NETRC", str(netrc))
    github.world.artifacts[3] = ("report", b"PK")
    github.world.download_url = stranger.address
    with client(github.url, clock) as api:
        api.download(f"/repos/{REPOSITORY}/actions/artifacts/3/zip", limit_bytes=100)
    assert github.log[0].request.token == TOKEN
    assert "authorization" not in stranger.log[0].request.headers


def test_a_proxy_of_the_environment_is_used(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy is a server that answers for a name which nobody could resolve."""
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with GitHub(World(clock), base_path="/api/v3") as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        with client("http://ghe.invalid/api/v3", clock) as api:
            assert api.get(COMMENTS) == []
        assert proxy.log[0].request.headers["host"] == "ghe.invalid"


def test_trusted_certificates_that_are_not_there_are_named(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    with client("https://127.0.0.1:9", clock) as api, pytest.raises(GitHubError, match="REQUESTS_CA_BUNDLE"):
        api.get(COMMENTS)


def test_nobody_listening_is_told_by_its_reason(clock: FakeClock) -> None:
    with Loopback() as left:
        address = left.url
    with client(address, clock, attempts=2) as api, pytest.raises(GitHubError, match="Connection refused"):
        api.get(COMMENTS)


@pytest.mark.parametrize("token", ["", "two words", "line\nend", "ünicode"])
def test_a_token_that_is_none_is_refused_without_being_shown(github: GitHub, clock: FakeClock, token: str) -> None:
    with pytest.raises(GitHubError) as raised:
        client(github.url, clock, token=token)
    assert not token or token not in str(raised.value)


def test_the_token_is_in_no_message_and_no_log(
    github: GitHub, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    github.world.tokens["ghs_Secret0"] = Actor(may_write=False)
    github.plan("GET", "comments", reset, refused(500, "x"))
    with caplog.at_level(logging.DEBUG), client(github.url, clock, token="ghs_Secret0") as api:
        api.get(COMMENTS)
        with pytest.raises(NotAllowed) as raised:
            api.post(THREAD.path, BODY)
    assert caplog.text, "urllib3 logs its requests"
    assert "Secret0" not in caplog.text + str(raised.value) + repr(api)
