"""One comment of a workflow that always shows its newest run: the decision, and the work against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from driftgate.errors import GitHubError
from driftgate.github.comment import (
    ACTIONS,
    Comment,
    Create,
    Delete,
    Done,
    Presence,
    Rest,
    Settled,
    Step,
    Update,
    Wish,
    author_of,
    decide,
    settle,
)
from driftgate.github.environment import read_context
from driftgate.github.marker import marker_of, read_marker
from support.github.clock import FakeClock
from support.github.faults import SECONDARY, Treatment, after, gateway, halved, lost, refused, reset
from support.github.runs import THREAD, client, context, environment, pull_request_event, wish, workflow_run_event
from support.github.server import GitHub
from support.github.world import NOT_ACCESSIBLE, Actor, World

COMMENT = r"/issues/comments/\d+"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def github(clock: FakeClock) -> Iterator[GitHub]:
    with GitHub(World(clock)) as server:
        yield server
    assert server.problems == []


def settled(github: GitHub, wanted: Wish, token: str = "ghs_actions") -> Settled:
    with client(github.url, github.world.clock, token=token) as api:
        return settle(api, THREAD, wanted)


def standing(github: GitHub, of: Wish, *, login: str = ACTIONS) -> int:
    """A comment that a run left there; its id."""
    return github.world.say(of.body, login=login, kind="Bot")


def seen(number: int, of: Wish, *, author: str = ACTIONS) -> Comment:
    return Comment(number, author, of.body, "")


OLD, MINE, NEW = wish(4), wish(5), wish(6)


class TestMarker:
    def test_it_comes_back_from_a_comment(self) -> None:
        assert read_marker(MINE.body) == MINE.marker
        assert read_marker(MINE.body.replace("\n", "\r\n")) == MINE.marker

    @pytest.mark.parametrize(
        "body",
        [
            f"Look:\n{MINE.body}",
            f" {MINE.body}",
            f"> {MINE.body}",
            f"{MINE.marker.line} and more\n",
            MINE.body.replace("v1", "v2"),
            MINE.body.replace("run=5", "run=05"),
            MINE.body.replace("run=5", "run=٥"),
            "",
        ],
    )
    def test_anything_else_is_none(self, body: str) -> None:
        assert read_marker(body) is None

    def test_workflows_repositories_and_keys_are_told_apart(self) -> None:
        base = context()
        others = [
            replace(base, workflow_path=".github/workflows/nightly.yml"),
            replace(base, workflow_path="", workflow="Nightly"),
            replace(base, repository="acme/other"),
        ]
        keys = [marker_of(other).key for other in (base, *others)] + [marker_of(base, "yolov8n").key]
        assert len(set(keys)) == 5

    def test_runs_branches_and_the_workflows_title_are_not(self) -> None:
        base = context()
        same = replace(base, run_number=9, run_attempt=2, workflow="Renamed", head_branch="other")
        assert marker_of(same).key == marker_of(base).key

    def test_it_is_short_beside_what_a_comment_may_hold(self) -> None:
        longest = replace(
            MINE.marker, run_number=10**19 - 1, run_attempt=10**19 - 1, head_sha="f" * 64, run_id=10**19 - 1
        )
        assert len(longest.line) < 250
        assert read_marker(longest.line) == longest


class TestDecision:
    @pytest.mark.parametrize(
        ("there", "step"),
        [
            ([], Create()),
            ([seen(1, OLD)], Update(seen(1, OLD), MINE.body)),
            ([seen(1, MINE)], Rest(seen(1, MINE), False)),
            ([seen(1, NEW)], Rest(seen(1, NEW), True)),
            ([seen(3, OLD), seen(1, OLD)], Update(seen(1, OLD), MINE.body)),
            ([seen(1, OLD), seen(2, MINE)], Update(seen(1, OLD), MINE.body)),
            ([seen(1, MINE), seen(2, OLD), seen(3, OLD)], Delete(seen(3, OLD))),
            ([seen(1, OLD), seen(2, NEW)], Update(seen(1, OLD), NEW.body)),
            ([seen(1, NEW), seen(2, OLD)], Delete(seen(2, OLD))),
            ([seen(1, OLD, author="octocat")], Create()),
        ],
    )
    def test_of_what_is_there(self, there: list[Comment], step: Step) -> None:
        assert decide(there, MINE) == step
        assert decide(there[::-1], MINE) == step, "the order of the list does not matter"

    @pytest.mark.parametrize(
        ("there", "step"),
        [
            ([], Rest(None, False)),
            ([seen(1, OLD)], Delete(seen(1, OLD))),
            ([seen(1, OLD), seen(2, MINE)], Delete(seen(2, MINE))),
            ([seen(1, NEW)], Rest(seen(1, NEW), True)),
            ([seen(1, OLD), seen(2, NEW)], Update(seen(1, OLD), NEW.body)),
        ],
    )
    def test_where_no_comment_is_wanted(self, there: list[Comment], step: Step) -> None:
        assert decide(there, replace(MINE, presence=Presence.UNWANTED)) == step

    def test_where_only_a_comment_that_is_there_is_renewed(self) -> None:
        renewing = replace(MINE, presence=Presence.RENEWED)
        assert decide([], renewing) == Rest(None, False)
        assert decide([seen(1, OLD)], renewing) == Update(seen(1, OLD), MINE.body)

    def test_two_jobs_with_one_key_do_not_overwrite_each_other_for_ever(self) -> None:
        sibling = wish(5, "the other job")
        assert decide([seen(1, sibling)], MINE) == Update(seen(1, sibling), MINE.body)
        assert decide([seen(1, sibling)], replace(MINE, written=True)) == Rest(seen(1, sibling), True)

    def test_what_was_overwritten_by_an_older_run_is_written_again(self) -> None:
        assert decide([seen(1, OLD)], replace(MINE, written=True)) == Update(seen(1, OLD), MINE.body)

    def test_what_somebody_removed_after_we_wrote_it_stays_removed(self) -> None:
        assert decide([], replace(MINE, written=True)) == Rest(None, False)

    def test_a_second_attempt_is_newer_than_the_first(self) -> None:
        first, second = MINE, replace(MINE, marker=replace(MINE.marker, run_attempt=2))
        assert decide([seen(1, second)], first) == Rest(seen(1, second), True)
        assert decide([seen(1, first)], second) == Update(seen(1, first), second.body)

    def test_numbers_are_compared_as_numbers(self) -> None:
        nine, ten = wish(9), wish(10)
        assert decide([seen(1, nine)], ten) == Update(seen(1, nine), ten.body)

    def test_what_a_server_makes_of_line_ends_is_no_change(self) -> None:
        returned = replace(seen(1, MINE), body=MINE.body.replace("\n", "\r\n") + "\n")
        assert decide([returned], MINE) == Rest(returned, False)


class TestUndisturbed:
    def test_the_first_run_comments(self, github: GitHub) -> None:
        done = settled(github, MINE)
        assert (done.done, done.requests, done.overtaken) == (Done.CREATED, 3, False)
        assert github.world.bodies() == (MINE.body,)
        assert done.url.endswith("#issuecomment-1001")

    def test_the_next_one_renews_it(self, github: GitHub) -> None:
        standing(github, OLD)
        done = settled(github, MINE)
        assert (done.done, done.requests, done.overtaken) == (Done.UPDATED, 4, False)
        assert github.world.bodies() == (MINE.body,)

    def test_the_same_again_writes_nothing(self, github: GitHub) -> None:
        settled(github, MINE)
        before = len(github.log)
        done = settled(github, MINE)
        assert (done.done, done.requests) == (Done.UNCHANGED, 1)
        assert [logged.request.method for logged in github.log[before:]] == ["GET"]

    def test_a_newer_one_is_left_alone(self, github: GitHub) -> None:
        standing(github, NEW)
        done = settled(github, MINE)
        assert (done.done, done.requests) == (Done.SUPERSEDED, 1)
        assert github.world.bodies() == (NEW.body,)

    def test_it_is_found_behind_150_others(self, github: GitHub) -> None:
        for number in range(150):
            github.world.say(f"comment {number}")
        ours = standing(github, OLD)
        for number in range(60):
            github.world.say(f"comment {number}")
        assert settled(github, MINE).done is Done.UPDATED
        assert github.world.comments[ours].body == MINE.body
        assert len(github.world.comments) == 211

    def test_markers_of_others_and_on_other_lines_are_not_ours(self, github: GitHub) -> None:
        github.world.say(NEW.body, login="mallory")
        github.world.say(f"Nice!\n{NEW.body}", login=ACTIONS, kind="Bot")
        standing(github, replace(NEW, marker=replace(NEW.marker, key="0" * 16)))
        before = github.world.bodies()
        assert settled(github, MINE).done is Done.CREATED
        assert github.world.bodies() == (*before, MINE.body)

    def test_several_of_ours_become_one(self, github: GitHub) -> None:
        lowest = standing(github, OLD)
        github.world.say("thanks")
        standing(github, wish(3))
        standing(github, OLD)
        assert settled(github, MINE).done is Done.UPDATED
        assert github.world.bodies() == (MINE.body, "thanks")
        assert github.world.comments[lowest].body == MINE.body

    def test_of_several_the_newest_content_survives_an_older_run(self, github: GitHub) -> None:
        lowest = standing(github, OLD)
        standing(github, NEW)
        assert settled(github, MINE).done is Done.SUPERSEDED
        assert github.world.bodies() == (NEW.body,)
        assert lowest in github.world.comments

    def test_it_is_removed_on_request(self, github: GitHub) -> None:
        github.world.say("thanks")
        standing(github, OLD)
        standing(github, OLD)
        gone = replace(MINE, presence=Presence.UNWANTED)
        assert settled(github, gone).done is Done.DELETED
        assert settled(github, gone).done is Done.ABSENT
        assert github.world.bodies() == ("thanks",)

    def test_an_older_run_does_not_remove_a_newer_ones(self, github: GitHub) -> None:
        standing(github, NEW)
        assert settled(github, replace(MINE, presence=Presence.UNWANTED)).done is Done.SUPERSEDED
        assert github.world.bodies() == (NEW.body,)


class TestRights:
    def test_a_fork_may_not_comment_and_that_is_an_answer(self, github: GitHub) -> None:
        github.world.tokens["ghs_fork"] = Actor(may_write=False)
        done = settled(github, MINE, "ghs_fork")
        assert (done.done, done.requests) == (Done.NOT_ALLOWED, 2)
        assert [note.get("reason") for note in done.notes] == [NOT_ACCESSIBLE]

    def test_so_are_a_hidden_pull_request_and_comments_that_are_off(self, github: GitHub) -> None:
        github.world.pulls.clear()
        assert settled(github, MINE).notes[0].code == "github-not-found"
        github.world.are_comments_off = True
        assert settled(github, MINE).notes[0].code == "github-gone"

    def test_a_wrong_token_is_an_error(self, github: GitHub) -> None:
        with pytest.raises(GitHubError, match="Bad credentials"):
            settled(github, MINE, "ghs_wrong")

    def test_so_is_a_comment_that_is_too_long(self, github: GitHub) -> None:
        with pytest.raises(GitHubError, match="maximum is 65536 characters"):
            settled(github, wish(5, "x" * 65_536))

    def test_a_token_that_may_ask_who_it_is_is_believed(self, github: GitHub, clock: FakeClock) -> None:
        github.world.tokens["pat"] = Actor("robot", "User", may_ask=True)
        with client(github.url, clock, token="pat") as api:
            assert author_of(api) == "robot"
        with client(github.url, clock) as api:
            assert author_of(api) == ACTIONS

    def test_a_token_of_an_unexpected_author_still_keeps_one_comment(self, github: GitHub) -> None:
        """An app's token may not ask who it is; its first comment tells."""
        github.world.tokens["app"] = Actor("our-app[bot]")
        for run in (4, 5):
            done = settled(github, wish(run), "app")
            assert [note.code for note in done.notes] == ["comment-author"]
        assert github.world.bodies() == (MINE.body,)
        assert settled(github, replace(NEW, author="our-app[bot]"), "app") == replace(
            done, done=Done.UPDATED, requests=4, overtaken=False, notes=()
        )


BROKEN: dict[str, Treatment] = {
    "reset": reset,
    "lost": lost,
    "halved": halved,
    "gateway": gateway,
    "secondary": refused(403, SECONDARY),
    "429": refused(429, "slow down", {"Retry-After": "2"}),
}


class TestDisturbed:
    @pytest.mark.parametrize("times", [1, 3])
    @pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
    def test_creating_never_makes_two(self, github: GitHub, fault: Treatment, times: int) -> None:
        github.plan("POST", "comments", *[fault] * times)
        done = settled(github, MINE)
        assert (done.done, done.overtaken) == (Done.CREATED, False)
        assert github.world.bodies() == (MINE.body,)

    @pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
    def test_renewing_arrives(self, github: GitHub, fault: Treatment) -> None:
        standing(github, OLD)
        github.plan("PATCH", COMMENT, fault)
        assert settled(github, MINE).done is Done.UPDATED
        assert github.world.bodies() == (MINE.body,)

    @pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
    def test_removing_arrives(self, github: GitHub, fault: Treatment) -> None:
        standing(github, OLD)
        github.plan("DELETE", COMMENT, fault)
        assert settled(github, replace(MINE, presence=Presence.UNWANTED)).done is Done.DELETED
        assert github.world.bodies() == ()

    def test_a_write_that_was_put_off_does_not_overwrite_what_came_meanwhile(self, github: GitHub) -> None:
        ours = standing(github, OLD)
        newer = replace(github.world.comments[ours], body=NEW.body)
        github.plan("PATCH", COMMENT, refused(403, SECONDARY))
        github.plan("GET", "/issues/7/comments", after(lambda: None))
        github.plan("GET", "/issues/7/comments", after(lambda: github.world.comments.update({ours: newer})))
        assert settled(github, MINE).done is Done.SUPERSEDED
        assert github.world.bodies() == (NEW.body,)

    @pytest.mark.parametrize("method", ["GET", "PATCH"])
    def test_a_comment_that_vanishes_in_between_is_made_again(self, github: GitHub, method: str) -> None:
        standing(github, OLD)
        github.plan(method, COMMENT, after(github.world.comments.clear))
        assert settled(github, MINE).done is Done.CREATED
        assert github.world.bodies() == (MINE.body,)

    def test_a_newer_run_that_wrote_after_the_list_is_seen(self, github: GitHub) -> None:
        ours = standing(github, OLD)
        newer = replace(github.world.comments[ours], body=NEW.body)
        github.plan("GET", COMMENT, after(lambda: github.world.comments.update({ours: newer})))
        assert settled(github, MINE).done is Done.SUPERSEDED
        assert github.world.bodies() == (NEW.body,)

    def test_a_newer_run_in_the_window_of_one_request_is_overwritten(self, github: GitHub) -> None:
        """What GitHub offers no means against; the newer run has ended and nobody sees it."""
        ours = standing(github, OLD)
        newer = replace(github.world.comments[ours], body=NEW.body)
        github.plan("PATCH", COMMENT, after(lambda: github.world.comments.update({ours: newer})))
        assert settled(github, MINE).done is Done.UPDATED
        assert github.world.bodies() == (MINE.body,)

    def test_an_older_run_in_the_window_is_seen_by_the_look_afterwards(self, github: GitHub) -> None:
        settled(github, OLD)
        older = next(iter(github.world.comments.values()))
        github.plan(
            "GET",
            "/issues/7/comments",
            after(lambda: None),
            after(lambda: github.world.comments.update({older.id: older})),
        )
        done = settled(github, MINE)
        assert (done.done, done.overtaken) == (Done.UPDATED, True)
        assert github.world.bodies() == (MINE.body,)

    @pytest.mark.parametrize(("other", "done"), [(OLD, Done.CREATED), (NEW, Done.SUPERSEDED)])
    def test_another_first_comment_between_look_and_write_is_merged(
        self, github: GitHub, other: Wish, done: Done
    ) -> None:
        github.plan("POST", "comments", after(lambda: standing(github, other)))
        found = settled(github, MINE)
        assert (found.done, found.overtaken) == (done, True)
        assert github.world.bodies() == (max(other, MINE, key=lambda one: one.marker.order).body,)

    def test_somebody_who_copies_our_marker_meanwhile_changes_nothing(self, github: GitHub) -> None:
        github.plan("POST", "comments", after(lambda: github.world.say(NEW.body, login="mallory")))
        assert settled(github, MINE).done is Done.CREATED
        assert github.world.bodies() == (NEW.body, MINE.body)

    def test_a_thread_that_never_rests_is_an_error(self, github: GitHub) -> None:
        ours = standing(github, OLD)
        restless = github.world.comments[ours]

        def again() -> None:
            body = f"{OLD.body}{len(github.log)}"
            github.world.comments[ours] = replace(restless, body=body)

        github.plan("GET", COMMENT, *[after(again)] * 30)
        with pytest.raises(GitHubError, match="concurrency group"):
            settled(github, MINE)


def test_the_comment_stays_the_same_on_other_servers(clock: FakeClock) -> None:
    for base in ("/api/v3", "/api/v1"):
        with GitHub(World(clock), base_path=base) as server:
            for run in (4, 5):
                settled(server, wish(run))
            assert server.world.bodies() == (MINE.body,)
        assert server.problems == []


def test_the_keys_of_a_run_and_of_the_workflow_run_after_it_are_one() -> None:
    there = read_context(environment(), pull_request_event())
    here = read_context(environment(event="workflow_run", run=900), workflow_run_event())
    assert marker_of(here) == marker_of(there)
