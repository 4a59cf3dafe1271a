"""Random schedules of runs that comment at once, on a server whose every exchange is checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random

import pytest

from driftgate.github.comment import Done, Settled, settle
from driftgate.github.marker import read_marker
from support.github import openapi
from support.github.clock import FakeClock
from support.github.exchange import Logged
from support.github.faults import Fault, gateway, halved, lost, reset
from support.github.runs import THREAD, client, wish
from support.github.schedule import Turnstile, run_all
from support.github.server import GitHub
from support.github.world import Actor, Edit, World

SCHEDULES = 200
RUNS = (2, 3, 4)
#: How a schedule begins: nothing there, a comment of an older run, or two of them.
BEGINNINGS = ((), (1,), (1, 2))


@dataclass(frozen=True, slots=True)
class Ending:
    """What stands there in the end, as run numbers, and how each run ended."""

    seed: int
    newest: int
    standing: tuple[int, ...]
    ended: dict[int, object]
    log: tuple[Logged, ...]
    edits: tuple[Edit, ...]


def play(seed: int, *, serialised: bool) -> Ending:
    """One schedule: runs, their order, the beginning and, for odd seeds, the faults are drawn from the seed."""
    draw = Random(seed)
    runs = draw.sample(range(3, 20), draw.choice(RUNS))
    tokens = {run: f"ghs_run{run}" for run in runs}
    turnstile = Turnstile([tokens[run] for run in runs], draw)
    world = World(FakeClock())
    world.tokens = {token: Actor() for token in tokens.values()}
    world.say("looks good to me")
    for run in draw.choice(BEGINNINGS):
        world.say(wish(run).body, login=Actor().login, kind="Bot")
    world.say(wish(99).body, login="mallory")
    with GitHub(world, gate=None if serialised else turnstile) as server:
        server.checks.append(openapi.check)
        for _ in range(draw.randrange(1, 4) if seed % 2 else 0):
            method, fault = draw.choice(("GET", "POST", "PATCH", "DELETE")), draw.choice((reset, lost, halved, gateway))
            server.faults.append(Fault(method, "comments", fault))

        def comment(run: int) -> Settled:
            with client(server.url, FakeClock(), token=tokens[run]) as api:
                return settle(api, THREAD, wish(run))

        if serialised:
            ended: dict[int, object] = {run: comment(run) for run in runs}
        else:
            found = run_all({tokens[run]: partial(comment, run) for run in runs}, turnstile)
            ended = {run: found[tokens[run]] for run in runs}
    assert server.problems == []
    ours = (read_marker(one.body) for one in world.comments.values() if one.login == Actor().login)
    standing = tuple(marker.run_number for marker in ours if marker is not None)
    assert world.bodies()[0] == "looks good to me"
    assert wish(99).body in world.bodies()
    return Ending(seed, max(runs), standing, ended, tuple(server.log), tuple(world.edits))


def windows(ending: Ending) -> int:
    """How often a run put older content over newer: each time the comment had changed between its read and its PATCH.

    Anything else fails.
    """
    requests = [logged.request for logged in ending.log]
    count = 0
    for edit in ending.edits:
        before, after = read_marker(edit.before), read_marker(edit.after)
        assert before is not None and after is not None
        if after.order >= before.order:
            continue
        count += 1
        at = next(index for index, request in enumerate(requests) if request is edit.request)
        seen = [
            logged.reply.value["body"]
            for logged in ending.log[:at]
            if logged.reply is not None and logged.reply.status == 200 and logged.reply.whole
            if (logged.request.method, logged.request.path) == ("GET", edit.request.path)
            if logged.request.token == edit.request.token
        ]
        assert seen[-1] != edit.before, f"seed {ending.seed}: older content outside of the window"
    return count


def test_one_after_the_other_the_newest_always_stands_alone() -> None:
    """As with a `concurrency` group, whatever the order in which runs end."""
    for seed in range(SCHEDULES):
        ending = play(seed, serialised=True)
        assert ending.standing == (ending.newest,), f"seed {seed}"
        last = ending.ended[ending.newest]
        assert isinstance(last, Settled)
        assert (last.done in (Done.CREATED, Done.UPDATED), last.overtaken) == (True, False), f"seed {seed}"
        assert windows(ending) == 0, f"seed {seed}"


def test_at_once_there_are_never_two_and_older_content_survives_by_the_window_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    survived, overwritten, told = 0, 0, 0
    for seed in range(SCHEDULES):
        ending = play(seed, serialised=False)
        ends = [end for end in ending.ended.values() if isinstance(end, Settled)]
        assert len(ends) == len(ending.ended), f"seed {seed}: {ending.ended}"
        assert len(ending.standing) == 1, f"seed {seed}"
        came = windows(ending)
        overwritten += came
        told += sum(end.overtaken for end in ends)
        if ending.standing != (ending.newest,):
            survived += 1
            assert came, f"seed {seed}: run {ending.standing} stands without having come over a newer one"
    with capsys.disabled():
        print(
            f"\n{SCHEDULES} schedules without a concurrency group: older content survived in {survived}, "
            f"came over newer content {overwritten} times; {told} runs saw that they were overtaken"
        )
    assert told, "a schedule in which nobody meets anybody proves nothing"


def test_a_schedule_can_be_repeated() -> None:
    one, again = (play(11, serialised=False) for _ in range(2))
    assert [logged.line for logged in one.log] == [logged.line for logged in again.log]
    assert [logged.request.token for logged in one.log] == [logged.request.token for logged in again.log]
