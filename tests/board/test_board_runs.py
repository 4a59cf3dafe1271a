"""Whole checks whose .hbm runs on a test board that is cut, full, rebooted, shared, noisy or broken.

The result is right or absent, and nothing is left on the board but the cache."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from driftgate.backends.board.runs import Runs
from driftgate.messages.text import text
from support.board.lab import TestBoard
from support.boards import BoardProject, described, left_behind, verdicts
from support.commandline import PROGRAM

HEALTHY = {"float-int8": "passed", "bc-hbm": "passed"}


def project(tmp_path: Path, *boards: TestBoard, samples: int = 6, **pool: object) -> BoardProject:
    return BoardProject(tmp_path / "project", samples=samples).made(described(*boards, **pool))


def whole(made: BoardProject, out: str = "out") -> None:
    """Every sample was measured and passed."""
    results = made.results(out)
    found = verdicts(results)
    assert {slug: found[slug] for slug in HEALTHY} == HEALTHY
    (facts,) = results.facts
    (run,) = facts.runs_of("hbm")
    assert run.samples_done == made.samples
    (heat, *_) = [m for m in facts.measurements if m.link.endswith("..hbm")]
    assert len(heat.samples) == len(set(heat.samples)) == made.samples


@contextmanager
def meanwhile(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Something that goes on beside a check."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_model_is_sent_once_and_nothing_else_stays(board: TestBoard, tmp_path: Path) -> None:
    made = project(tmp_path, board, perf={"runs": 2, "frames": 20})
    for out in ("first", "second"):
        answer = made.check(out=out)
        assert answer.code == 0, answer.out + answer.err
        whole(made, out)
    (speed,) = made.results("second").facts[0].performance
    assert speed.latency_ms is not None
    assert len(speed.latencies_ms) == 2
    assert (speed.frames, speed.threads, speed.core) == (20, 1, "any")
    assert left_behind(board) == []
    cached = sorted(path.suffix for path in (board.root / "driftgate" / "cache").iterdir())
    assert cached == [".hbm", ".ok"]
    assert board.processes() == []


def test_twenty_cuts_of_one_run_lose_no_sample(board: TestBoard, tmp_path: Path) -> None:
    made = project(tmp_path, board, samples=50)
    board.slow(0.15)
    rng = random.Random(7)
    cuts: list[str] = []

    def cut(over: threading.Event) -> None:
        while len(cuts) < 20 and not over.wait(rng.uniform(0.4, 1.6)):
            kind = rng.choice(["drop", "drop", "drop", "vanish"])
            cuts.append(kind)
            if kind == "drop":
                board.drop_connections()
            else:
                board.cut()
                over.wait(rng.uniform(0.3, 2.0))
                board.heal()

    with meanwhile(cut):
        answer = made.check()
    board.heal()
    assert answer.code == 0, answer.out + answer.err
    assert len(cuts) == 20
    whole(made)
    board.slow(0)
    assert made.check(out="again").code == 0
    assert left_behind(board) == []


def test_a_board_that_reboots_in_a_run_is_gone_on_with(board: TestBoard, tmp_path: Path) -> None:
    made = project(tmp_path, board, samples=12)
    board.slow(0.2)

    def reboot(over: threading.Event) -> None:
        over.wait(3.0)
        board.reboot(2.0)

    with meanwhile(reboot):
        answer = made.check()
    assert answer.code == 0, answer.out + answer.err
    whole(made)
    assert left_behind(board) == []


def test_a_board_that_stays_away_is_an_error_that_names_board_and_step(board: TestBoard, tmp_path: Path) -> None:
    made = project(tmp_path, board, samples=12, patience=3)
    board.slow(0.2)

    def away(over: threading.Event) -> None:
        over.wait(3.0)
        board.cut()

    with meanwhile(away):
        answer = made.check()
    board.heal()
    assert answer.code == 2, answer.out + answer.err
    found = verdicts(made.results())
    assert (found["float-int8"], found["bc-hbm"]) == ("passed", "error")
    assert "board lab was lost at the step" in " ".join(answer.out.split())
    assert board.address not in answer.out + answer.err


def test_a_full_disk_is_an_error_and_leaves_nothing(board: TestBoard, tmp_path: Path) -> None:
    made = project(tmp_path, board)
    board.full()
    answer = made.check()
    assert answer.code == 2
    assert "has no room" in " ".join(answer.out.split()), answer.out
    board.room()
    assert made.check(out="again").code == 0
    assert left_behind(board) == []


def test_two_runs_at_once_wait_for_one_another(board: TestBoard, tmp_path: Path) -> None:
    made = project(tmp_path, board, samples=8)
    board.slow(0.1)
    most: list[int] = []

    def watch(over: threading.Event) -> None:
        while not over.wait(0.05):
            most.append(sum("infer" in line for line in board.processes()))

    with meanwhile(watch), ThreadPoolExecutor(2) as both:
        answers = list(both.map(lambda out: made.process(out=out), ["one", "two"]))
    assert [answer.code for answer in answers] == [0, 0], answers
    for out in ("one", "two"):
        whole(made, out)
    assert max(most) <= infers_of_one(board)
    assert left_behind(board) == []


def infers_of_one(board: TestBoard) -> int:
    """How many processes one call of the tool is: itself and the shell that waits for it."""
    return 2


def test_a_stale_lock_is_taken_over_and_a_live_one_is_not(board: TestBoard, tmp_path: Path) -> None:
    lock = board.root / "driftgate" / "lock"
    lock.mkdir(parents=True)
    for name, said in (("owner", "somebody"), ("who", "laptop 7"), ("beat", "somebody 1")):
        (lock / name).write_text(said + "\n")
    (board.root / "driftgate" / "run-somebody").mkdir()
    made = project(tmp_path, board)
    assert made.check().code == 0
    whole(made)
    assert left_behind(board) == []
    lock.mkdir()
    (lock / "owner").write_text("somebody\n")
    (lock / "who").write_text("laptop 7\n")
    made.change(wait=6)

    def beats(over: threading.Event) -> None:
        count = 0
        while not over.wait(0.5):
            count += 1
            (lock / "beat").write_text(f"somebody {count}\n")

    with meanwhile(beats):
        answer = made.check(out="busy")
    assert answer.code == 2
    assert "held by laptop 7" in " ".join(answer.out.split())
    assert (lock / "owner").read_text() == "somebody\n"


def test_a_run_that_is_killed_is_cleaned_up_after(board: TestBoard, tmp_path: Path) -> None:
    made = project(tmp_path, board, samples=30)
    board.slow(0.3)
    command = [*PROGRAM, "check", "-c", str(made.config), "--out", str(tmp_path / "killed")]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while not any("infer" in line for line in board.processes()) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    board.slow(0)
    answer = made.check()
    assert answer.code == 0, answer.out + answer.err
    whole(made)
    assert left_behind(board) == []
    assert board.processes() == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda board: board.password("other"), "lab"),
        (lambda board: board.new_host_key(), "host key"),
    ],
    ids=["password", "host-key"],
)
def test_a_board_that_must_not_be_used_is_refused(
    change: Callable[[TestBoard], None], said: str, board: TestBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(board)
    monkeypatch.setenv("BOARD_PASSWORD", "wrong-word")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    made = project(tmp_path, board, password="${BOARD_PASSWORD}")
    if said == "lab":
        made.change(key=None)
    answer = made.check()
    assert answer.code == 2
    told = " ".join(answer.out.split())
    assert said in told
    assert board.address not in told
    assert "wrong-word" not in answer.out + answer.err
    assert not any(board.root.iterdir())


def test_noise_of_the_shell_and_a_clock_that_is_off_change_nothing(board: TestBoard, tmp_path: Path) -> None:
    board.banner("Welcome to J6!\nold: $PATH \x1b[31m")
    board.clock(3600)
    made = project(tmp_path, board)
    assert made.check().code == 0
    whole(made)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("die", "failed with exit code"),
        ("garbage", "answers what is not the tool's"),
        ("memory", "bytes of memory"),
        ("silent", "answers what is not the tool's"),
    ],
)
def test_a_tool_that_misbehaves_is_an_error_that_says_so(
    fault: str, said: str, board: TestBoard, tmp_path: Path
) -> None:
    made = project(tmp_path, board)
    board.fault(fault)
    answer = made.check()
    assert answer.code == 2, answer.out
    assert verdicts(made.results())["bc-hbm"] == "error"
    assert said in " ".join(answer.out.split()), answer.out
    assert left_behind(board) == []


def test_a_tool_that_hangs_on_a_sample_is_ended(board: TestBoard, tmp_path: Path) -> None:
    made = project(tmp_path, board, samples=8, **{"sample-timeout": 3})

    def hang(over: threading.Event) -> None:
        while not any("infer" in line for line in board.processes()) and not over.wait(0.02):
            pass
        board.fault("hang")

    board.slow(0.3)
    with meanwhile(hang):
        answer = made.check()
    assert answer.code == 2
    (run,) = made.results().facts[0].runs_of("hbm")
    assert run.reason is not None
    assert run.reason.code == "board-hangs", text(run.reason)
    board.fault("")
    board.slow(0)
    assert made.check(out="again").code == 0
    assert left_behind(board) == []
    assert board.processes() == []


def owner_of(board: TestBoard) -> str:
    """Who has the board; empty: nobody."""
    with suppress(OSError):
        return (board.root / "driftgate" / "lock" / "owner").read_text().strip()
    return ""


def test_no_board_idles_while_a_job_waits(board_tools: None, tmp_path: Path) -> None:
    """Three jobs go over the quick board while the slow one is held at its only job."""
    with TestBoard(tmp_path / "a") as slow, TestBoard(tmp_path / "b") as quick:
        slow.slow(1000)
        (quick.path("/etc/ssh/authorized_keys")).write_text(slow.path("/etc/ssh/authorized_keys").read_text())
        made = project(tmp_path, slow, quick, wait=240, **{"sample-timeout": 240})
        owners: dict[str, set[str]] = {"slow": set(), "quick": set()}

        def watch(over: threading.Event) -> None:
            while not over.wait(0.05):
                for name, each in (("slow", slow), ("quick", quick)):
                    runs = [re.search(r"infer .*/run-(\w+)/out", line) for line in each.processes()]
                    owners[name].update(run[1] for run in runs if run)
                if len(owners["quick"]) == 3:
                    slow.slow(0)

        with meanwhile(watch), ThreadPoolExecutor(4) as jobs:
            answers = list(jobs.map(lambda out: made.process(out=out), ["j1", "j2", "j3", "j4"]))
        assert [answer.code for answer in answers] == [0] * 4, [answer.out for answer in answers if answer.code]
        assert {name: len(found) for name, found in owners.items()} == {"slow": 1, "quick": 3}


def test_a_run_does_not_wait_for_the_board_that_was_only_looked_at(
    board_tools: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another job takes that board before the samples are run; the other one is free."""
    with TestBoard(tmp_path / "a") as one, TestBoard(tmp_path / "b") as two:
        (two.path("/etc/ssh/authorized_keys")).write_text(one.path("/etc/ssh/authorized_keys").read_text())
        made = project(tmp_path, one, two)
        rest, looked_at = Runs.rest, list[TestBoard]()

        def rest_and_lose(self: Runs) -> None:
            rest(self)
            (seen,) = [board for board in (one, two) if (board.root / "driftgate" / "cache").exists()]
            looked_at.append(seen)
            lock = seen.root / "driftgate" / "lock"
            lock.mkdir()
            for name, said in {"owner": "another", "who": "another job", "beat": "0"}.items():
                (lock / name).write_text(said + "\n")

        monkeypatch.setattr(Runs, "rest", rest_and_lose)
        told = made.check()
        assert told.code == 0, told.out + told.err
        whole(made)
        assert len(looked_at) == 1
        assert owner_of(looked_at[0]) == "another"
        assert all((board.root / "driftgate" / "cache").exists() for board in (one, two))


def test_two_boards_and_four_jobs(board_tools: None, tmp_path: Path) -> None:
    with TestBoard(tmp_path / "a") as one, TestBoard(tmp_path / "b") as two:
        for each in (one, two):
            each.slow(0.15)
        (two.path("/etc/ssh/authorized_keys")).write_text(one.path("/etc/ssh/authorized_keys").read_text())
        made = project(tmp_path, one, two, samples=10)
        used: dict[str, list[int]] = {"one": [], "two": []}

        def watch(over: threading.Event) -> None:
            while not over.wait(0.05):
                for name, each in (("one", one), ("two", two)):
                    used[name].append(sum("infer" in line for line in each.processes()))

        with meanwhile(watch), ThreadPoolExecutor(4) as jobs:
            answers = list(jobs.map(lambda out: made.process(out=out), ["j1", "j2", "j3", "j4"]))
        assert [answer.code for answer in answers] == [0] * 4, answers
        for out in ("j1", "j2", "j3", "j4"):
            whole(made, out)
        assert all(max(counts) <= infers_of_one(one) for counts in used.values())
        assert all(any(counts) for counts in used.values())
        assert left_behind(one) == left_behind(two) == []
