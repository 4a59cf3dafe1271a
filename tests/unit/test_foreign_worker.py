"""Workers that fail: each failure is an error of the stage that says what was seen, and nothing is left behind."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driftgate.backends.foreign import WorkerCall, open_foreign
from driftgate.backends.process import TAIL_LINES, Child, ChildDied
from driftgate.errors import BackendError, SampleError
from support.contract import assert_same, assert_speaks
from support.fakebackend import FAKE_WORKER
from support.models import BIAS, WEIGHT, answer

X = np.array([[1.0, -2.0, 0.5]], np.float32)
STAGE = "pytorch"


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that temporary files go into, so that a test can see what is left."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def call(tmp_path: Path, scratch: Path) -> WorkerCall:
    """A call of the fake worker that works."""
    np.savez(tmp_path / "weights.npz", weight=WEIGHT, bias=BIAS)
    request = {"path": str(tmp_path / "weights.npz")}
    return WorkerCall(STAGE, (sys.executable,), FAKE_WORKER, request, seconds=60)


def faulty(call: WorkerCall, fault: str, *, seconds: float = 60) -> WorkerCall:
    return replace(call, request={**call.request, "fault": fault}, seconds=seconds)


def scripted(call: WorkerCall, folder: Path, source: str, *, seconds: float = 60) -> WorkerCall:
    script = folder / "script.py"
    script.write_text(source)
    return replace(call, script=script, seconds=seconds)


def failure_of_opening(call: WorkerCall) -> BackendError:
    with pytest.raises(BackendError) as caught:
        open_foreign(call)
    assert_speaks(caught.value, STAGE)
    return caught.value


def failure_of_a_sample(call: WorkerCall) -> BackendError:
    with open_foreign(call) as session:
        with pytest.raises(BackendError) as caught:
            session.infer({"x": X}, sample="0007")
        assert_speaks(caught.value, STAGE)
    return caught.value


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_prints_of_the_users_code_are_harmless(call: WorkerCall) -> None:
    with open_foreign(call) as session:
        for _ in range(3):
            assert_same(session.infer({"x": X}, sample="0000"), {"y": answer(X)})


def test_code_that_reads_stdin_gets_nothing_and_takes_no_command_away(call: WorkerCall) -> None:
    with open_foreign(faulty(call, "read stdin")) as session:
        assert_same(session.infer({"x": X}, sample="0000"), {"y": answer(X)})
        assert_same(session.infer({"x": X}, sample="0001"), {"y": answer(X)})


def test_an_interpreter_that_does_not_exist(call: WorkerCall, scratch: Path) -> None:
    error = failure_of_opening(replace(call, interpreter=("/no/such/python", "-X", "dev")))
    assert_speaks(error, "/no/such/python", "No such file")
    assert not [*scratch.iterdir()]


def test_a_worker_that_dies_at_start_shows_its_last_words_and_exit_code(
    call: WorkerCall, tmp_path: Path, scratch: Path
) -> None:
    error = failure_of_opening(scripted(call, tmp_path, "import sys\nsys.exit('libcudart.so.12 is not here')\n"))
    assert error.problems[0].code == "worker-died"
    assert error.problems[0].get("exit_code") == 1
    assert error.problems[0].get("tail") == "libcudart.so.12 is not here"
    assert not [*scratch.iterdir()]


def test_last_words_are_bounded_in_number_and_length(call: WorkerCall, tmp_path: Path) -> None:
    source = "import sys\nfor n in range(1000): print(n, 'x' * 5000, file=sys.stderr)\nsys.exit(1)\n"
    tail = failure_of_opening(scripted(call, tmp_path, source)).problems[0].get("tail")
    lines = str(tail).splitlines()
    assert [line.split()[0] for line in lines] == [str(n) for n in range(1000 - TAIL_LINES, 1000)]
    assert max(len(line) for line in lines) <= 300


def test_a_worker_that_dies_in_a_sample_names_it(call: WorkerCall, scratch: Path) -> None:
    error = failure_of_a_sample(faulty(call, "die"))
    assert error.problems[0].code == "worker-died"
    assert error.problems[0].get("exit_code") == 3
    assert_speaks(error, "0007", "about to fall over")
    assert not [*scratch.iterdir()]


def test_a_worker_that_died_is_not_asked_again(call: WorkerCall) -> None:
    with open_foreign(faulty(call, "die")) as session:
        for code in ("worker-died", "worker-over"):
            with pytest.raises(BackendError) as caught:
                session.infer({"x": X}, sample="0007")
            assert caught.value.problems[0].code == code
            assert_speaks(caught.value, STAGE)


def test_a_worker_that_hangs_is_given_up_on(call: WorkerCall, scratch: Path) -> None:
    error = failure_of_a_sample(faulty(call, "hang", seconds=2))
    assert error.problems[0].code == "worker-silent"
    assert_speaks(error, "0007", "thinking")
    assert not [*scratch.iterdir()]


def test_a_worker_that_hangs_before_its_greeting(call: WorkerCall, tmp_path: Path) -> None:
    error = failure_of_opening(scripted(call, tmp_path, "import time\ntime.sleep(600)\n", seconds=0.3))
    assert error.problems[0].code == "worker-silent"


@pytest.mark.parametrize("greeting", ["Welcome to the container", "[1, 2]", "{}", '{"protocol": "one"}'])
def test_garbage_on_stdout_is_quoted(call: WorkerCall, tmp_path: Path, greeting: str) -> None:
    error = failure_of_opening(scripted(call, tmp_path, f"print({greeting!r})\nimport time\ntime.sleep(600)\n"))
    assert error.problems[0].code == "worker-nonsense"
    assert_speaks(error, greeting)


@pytest.mark.parametrize(
    "answer_line",
    [
        '{"number": 7, "ok": {}}',
        '{"number": 1}',
        '{"number": 1, "ok": {"inputs": "x"}}',
        '{"number": 1, "ok": {"inputs": [{"shape": [1]}]}}',
        '{"number": 1, "error": {"kind": "new", "code": "x", "params": {}}}',
    ],
)
def test_an_answer_that_is_not_the_protocol_is_quoted(call: WorkerCall, tmp_path: Path, answer_line: str) -> None:
    greeting = '{"protocol": 1, "versions": {}}'
    source = f"print({greeting!r}, flush=True)\ninput()\nprint({answer_line!r})\n"
    assert failure_of_opening(scripted(call, tmp_path, source)).problems[0].code == "worker-nonsense"


def test_another_protocol_version_names_both(call: WorkerCall, tmp_path: Path) -> None:
    error = failure_of_opening(scripted(call, tmp_path, """print('{"protocol": 2, "versions": {}}')\n"""))
    assert error.problems[0].code == "worker-protocol"
    assert (error.problems[0].get("found"), error.problems[0].get("wanted")) == (2, 1)


def test_a_missing_package_is_named(call: WorkerCall, tmp_path: Path) -> None:
    source = "from worker_protocol import serve\nserve(['no_such_stack'], None)\n"
    error = failure_of_opening(scripted(call, tmp_path, source))
    assert error.problems[0].code == "worker-package"
    assert_speaks(error, "no_such_stack", sys.executable)


@pytest.mark.parametrize(("fault", "word"), [("raise", "mat1 and mat2"), ("exit", "the user's code leaves")])
def test_what_the_users_code_raises_is_told_and_the_worker_lives_on(call: WorkerCall, fault: str, word: str) -> None:
    with open_foreign(faulty(call, fault)) as session:
        for _ in range(2):
            with pytest.raises(BackendError) as caught:
                session.infer({"x": X}, sample="0007")
            assert caught.value.problems[0].code == "worker-raised"
            assert_speaks(caught.value, STAGE, word, "fake_worker.py")


def test_an_output_that_is_no_file_of_the_workers_folder_is_not_read(call: WorkerCall, tmp_path: Path) -> None:
    np.save(tmp_path / "secret.npy", X)
    source = (
        "import json\n"
        "print(json.dumps({'protocol': 1, 'versions': {}}), flush=True)\ninput()\n"
        "print(json.dumps({'number': 1, 'ok': {'inputs': []}}), flush=True)\ninput()\n"
        f"print(json.dumps({{'number': 2, 'ok': {{'outputs': {{'y': {str(tmp_path / 'secret.npy')!r}}}}}}}))\n"
    )
    with open_foreign(scripted(call, tmp_path, source)) as session, pytest.raises(BackendError) as caught:
        session.infer({}, sample="0000")
    assert caught.value.problems[0].code == "worker-nonsense"


def test_an_optional_input_may_be_fed_and_another_may_not(call: WorkerCall) -> None:
    with open_foreign(call) as session:
        assert session.optional_inputs == ("extra",)
        assert_same(session.infer({"x": X, "extra": X}, sample="0000"), {"y": answer(X)})
        with pytest.raises(SampleError) as caught:
            session.infer({"x": X.astype(np.float64), "other": X}, sample="0000")
    assert [problem.code for problem in caught.value.problems] == ["feed-dtype", "feed-unknown"]


def test_nothing_is_left_when_a_session_closes(call: WorkerCall, scratch: Path) -> None:
    with open_foreign(call) as session:
        session.infer({"x": X}, sample="0000")
        (folder,) = scratch.iterdir()
        assert not [*folder.glob("*.npy")]
        assert folder.stat().st_mode & 0o077 == 0
    assert not [*scratch.iterdir()]


def test_what_the_worker_started_ends_with_it(call: WorkerCall, scratch: Path) -> None:
    with open_foreign(faulty(call, "leave a grandchild")) as session:
        session.infer({"x": X}, sample="0000")
        (folder,) = scratch.iterdir()
        group = next(
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and str(folder) in _command_line(entry)
        )
        members = [pid for pid in _pids() if _group(pid) == group]
        assert len(members) == 2
    deadline = time.monotonic() + 10
    while any(is_alive(pid) for pid in members) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(is_alive(pid) for pid in members)


def test_a_child_that_leaves_its_pipe_to_another_process_counts_as_dead() -> None:
    source = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    with Child([sys.executable, "-c", source]) as child, pytest.raises(ChildDied):
        child.receive(60)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _command_line(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_text()
    except OSError:
        return ""


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None
