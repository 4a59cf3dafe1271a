"""The test board does what tests make it do."""

from __future__ import annotations

import datetime
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from support.board.lab import FOUND, TESTS, LabError, TestBoard, missing_tools, ssh_command, wait_until
from support.models import answer, tiny
from support.vendor.toolchain import build

NO_ROOM = "No space left on device"
X = np.array([[1, -0.5, 0.25]], np.float32)


def asked(board: TestBoard, command: str, *options: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """What ssh makes of a command."""
    line = (*ssh_command(board, *options), command)
    return subprocess.run(line, input=stdin, capture_output=True, text=True, timeout=30, check=False)


def said(board: TestBoard, command: str, *options: str) -> str:
    """What a command that succeeds writes."""
    done = asked(board, command, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def started(board: TestBoard, command: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A session that stays."""
    line = (*ssh_command(board, *options), command)
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def with_password(word: str, folder: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Options and environment with which ssh gives a password instead of a key."""
    answer = folder / "answer"
    answer.write_text("#!/bin/sh\nprintf '%s\\n' \"$WORD\"\n")
    answer.chmod(0o755)
    options = ("-o", "BatchMode=no", "-o", "PubkeyAuthentication=no", "-o", "NumberOfPasswordPrompts=1")
    return options, {**os.environ, "SSH_ASKPASS": str(answer), "SSH_ASKPASS_REQUIRE": "force", "WORD": word}


def is_let_in(board: TestBoard, word: str, folder: Path) -> bool:
    """With a password and no key."""
    options, environment = with_password(word, folder)
    line = (*ssh_command(board, *options), "echo in")
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=30, check=False)
    assert done.stdout == "in\n" or "Permission denied" in done.stderr, done.stderr
    return done.returncode == 0


def test_a_key_lets_in_and_the_shell_finds_four_programs(board: TestBoard) -> None:
    assert said(board, "echo $PATH; echo /usr/bin/*").split() == [
        "/usr/bin:/bin",
        *(f"/usr/bin/{name}" for name in sorted(FOUND)),
    ]
    assert asked(board, "ls").returncode == 127
    assert asked(board, "exit 7").returncode == 7


def test_a_work_folder_is_seen_from_outside(board: TestBoard) -> None:
    asked(board, f"mkdir {board.work}/job && cat > {board.work}/job/frame", stdin="bytes")
    assert (board.root / "job" / "frame").read_text() == "bytes"
    (board.root / "left").write_text("here")
    assert said(board, f"cat {board.work}/left; rm -r {board.work}/job") == "here"
    assert [path.name for path in board.root.iterdir()] == ["left"]


def test_accounts_with_a_password_with_an_empty_one_and_with_a_key_only(board: TestBoard, tmp_path: Path) -> None:
    assert not is_let_in(board, "secret", tmp_path)
    board.password("secret")
    assert is_let_in(board, "secret", tmp_path)
    assert not is_let_in(board, "other", tmp_path)
    assert said(board, "echo key") == "key\n"
    board.no_password()
    assert is_let_in(board, "", tmp_path)
    board.keys_only()
    assert not is_let_in(board, "", tmp_path)


def test_a_new_host_key_is_not_the_known_one(board: TestBoard) -> None:
    board.new_host_key()
    assert "HOST IDENTIFICATION HAS CHANGED" in asked(board, "echo in").stderr


def test_a_port_of_its_own(board_tools: None, tmp_path: Path) -> None:
    with TestBoard(tmp_path, port=2222) as board:
        assert f"[{board.address}]:2222 ssh-ed25519" in board.known_hosts.read_text()
        assert said(board, "echo in") == "in\n"


def test_a_cut_link_swallows_packets_and_a_healed_one_goes_on(board: TestBoard) -> None:
    with started(board, "cat") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"before\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"before\n"
        board.cut()
        with pytest.raises(TimeoutError), socket.create_connection((board.address, board.port), 0.5):
            pass
        process.stdin.write(b"after\n")
        process.stdin.flush()
        time.sleep(0.5)
        assert process.poll() is None
        assert board.sessions() > 0
        board.heal()
        assert process.stdout.readline() == b"after\n"


def test_dropped_connections_end_and_what_they_started_stays(board: TestBoard) -> None:
    with started(board, "echo up; (while :; do :; done) & cat; cat") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        board.drop_connections()
        assert process.wait(10) == 255
    assert wait_until(lambda: board.sessions() == 0)
    assert board.processes()
    assert said(board, "echo again") == "again\n"


def test_a_reboot_ends_everything_and_empties_tmp(board: TestBoard) -> None:
    boot = board.boot
    (board.root / "kept").write_text("")
    with started(board, "mkdir /tmp/job; echo up; cat") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert board.processes() == ["cat"] or "sh -c mkdir /tmp/job; echo up; cat" in board.processes()
        board.reboot(seconds=0.5)
        assert process.wait(10) == 255
    assert board.processes() == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((board.address, board.port), 5)
    assert wait_until(lambda: asked(board, "echo up").stdout == "up\n")
    assert said(board, f"echo /tmp/* {board.work}/*; cat /proc/sys/kernel/random/boot_id") == (
        f"/tmp/* {board.work}/kept\n{board.boot}\n"
    )
    assert board.boot != boot


def test_a_full_disk_has_room_again(board: TestBoard) -> None:
    board.full()
    done = asked(board, f"cat > {board.work}/frame", stdin="bytes")
    assert NO_ROOM in done.stderr
    assert done.returncode == 1
    assert asked(board, "cat > /tmp/frame", stdin="bytes").returncode == 0
    board.room()
    assert asked(board, f"cat > {board.work}/frame", stdin="bytes").returncode == 0
    assert (board.root / "frame").read_text() == "bytes"


def test_a_banner_comes_before_every_command_until_it_is_taken_away(board: TestBoard) -> None:
    board.banner("Welcome to the board!\n")
    assert said(board, "echo 'a  b'; exit 0") == "Welcome to the board!\na  b\n"
    board.banner(None)
    assert said(board, "echo quiet") == "quiet\n"


def test_a_clock_that_is_ahead(board: TestBoard) -> None:
    board.clock(86400)
    assert 86300 < int(said(board, f"{board.date} +%s")) - time.time() < 86500


def test_a_slow_rate_holds_in_both_directions(board: TestBoard) -> None:
    (board.root / "frame").write_bytes(bytes(500_000))
    transfers: tuple[Callable[[], object], ...] = (
        lambda: asked(board, f"cat > {board.work}/up", stdin="\0" * 500_000),
        lambda: asked(board, f"cat {board.work}/frame"),
    )
    board.rate(8_000_000)
    for transfer in transfers:
        start = time.monotonic()
        transfer()
        assert 0.35 < time.monotonic() - start < 10
    board.rate(0)
    assert "tbf" not in board._near("tc", "qdisc", "show", "dev", board.device)


def round_trip(board: TestBoard) -> float:
    """Seconds until sshd greets: two ways for the connection, one for its greeting."""
    start = time.monotonic()
    with socket.create_connection((board.address, board.port), 10) as connection:
        connected = time.monotonic() - start
        assert connection.recv(4) == b"SSH-"
    return connected


def test_latency_and_back(board: TestBoard) -> None:
    with started(board, "cat") as process:
        assert process.stdin is not None and process.stdout is not None
        board.latency(100)
        assert 0.09 < round_trip(board) < 2
        process.stdin.write(b"stays\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"stays\n"
        board.latency(0)
        assert wait_until(lambda: round_trip(board) < 0.09)
        process.stdin.write(b"still\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"still\n"


def test_lost_packets_come_through_in_the_end(board: TestBoard) -> None:
    board.loss(5)
    content = os.urandom(300_000).hex()
    done = asked(board, f"cat > {board.work}/frame", stdin=content)
    assert done.returncode == 0
    assert (board.root / "frame").read_text() == content
    assert re.search(r"numgen random mod 10000 < 500 drop", board._inside("nft", "list", "ruleset"))
    board.loss(0)
    assert board._inside("nft", "list", "ruleset") == ""


def test_a_board_behind_another_is_reached_through_it(board: TestBoard, tmp_path: Path) -> None:
    with TestBoard(tmp_path / "behind", behind=board) as hidden:
        assert asked(hidden, "echo there", "-o", "ConnectTimeout=1").returncode == 255
        proxy = " ".join((*ssh_command(board)[:-1], "-W", "%h:%p", ssh_command(board)[-1]))
        assert said(hidden, "echo there", "-o", f"ProxyCommand={proxy}") == "there\n"


def test_two_boards_are_two(board: TestBoard, tmp_path: Path) -> None:
    with TestBoard(tmp_path / "second", march="nash-e") as second:
        assert second.address != board.address
        assert said(second, "echo two > /tmp/mark; cat /tmp/mark") == "two\n"
        assert asked(board, "cat /tmp/mark").returncode == 1


@pytest.fixture(scope="module")
def hbm(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A network compiled for nash-m."""
    samples = np.array([[1, -1, 0.5], [0.25, 1, -1]], np.float32)
    folder = build(tmp_path_factory.mktemp("build"), tiny(), march="nash-m", calibration={"x": samples})
    return (folder / "net.hbm").read_bytes()


def test_the_tool_infers_and_is_slow_when_told(board: TestBoard, hbm: bytes) -> None:
    (board.root / "net.hbm").write_bytes(hbm)
    (board.root / "x.bin").write_bytes(X.tobytes())
    files = f"--model_file={board.work}/net.hbm --input_file={board.work}/x.bin"
    dumps = "--enable_dump=true --dequantize_process=true --remove_padding_process=true"
    board.slow(1.0)
    board.clock(40 * 86400)
    start = time.monotonic()
    told = said(board, f"{board.tool} infer {files} {dumps} --dump_path={board.work}/out")
    assert time.monotonic() - start > 1.0
    made = np.fromfile(board.root / "out" / "model_infer_output_0_y.bin", np.float32)
    np.testing.assert_allclose(made, answer(X)[0], atol=0.1)
    month = datetime.datetime.now() + datetime.timedelta(days=40)
    assert f"][{month:%m-}" in told


def test_the_tool_misbehaves_when_told(board: TestBoard, hbm: bytes) -> None:
    (board.root / "net.hbm").write_bytes(hbm)
    line = f"{board.tool} model_info --model_file={board.work}/net.hbm"
    assert "[model name]: net" in said(board, line)
    board.fault("memory")
    assert "Cannot malloc bpu memory" in asked(board, line).stdout
    board.fault("die")
    assert asked(board, line).returncode == 3
    board.fault("hang")
    with started(board, line):
        assert wait_until(lambda: any("hrt_model_exec" in process for process in board.processes()))
    board.fault("")
    board.environment(STAND_IN_MARCH="nash-e")
    assert "march incompatible" in asked(board, line).stdout


def links(board: TestBoard) -> set[int]:
    """The numbers that this machine has for the near ends of its ways; it gives none twice."""
    names = (board.device, board.device.replace("drift", "slow"))
    return {number for number, name in socket.if_nameindex() if name in names}


def are_gone(numbers: set[int]) -> bool:
    """Whether this machine has none of the links."""
    return numbers.isdisjoint(number for number, _ in socket.if_nameindex())


def left_of(folder: Path) -> list[str]:
    """The mounts below a folder that any process sees."""
    lines: set[str] = set()
    for table in Path("/proc").glob("[0-9]*/mounts"):
        with suppress(OSError):
            lines.update(line for line in table.read_text().splitlines() if str(folder) in line)
    return sorted(lines)


def test_nothing_is_left_when_it_is_closed(board_tools: None, tmp_path: Path) -> None:
    with TestBoard(tmp_path) as board:
        board.latency(1)
        first, made = board.path("/"), links(board)
        asked(board, "(while :; do :; done) > /dev/null 2> /dev/null &")
        assert board.processes()
        assert left_of(tmp_path)
        assert len(made) == 2
    assert not first.exists()
    assert wait_until(lambda: are_gone(made))
    assert wait_until(lambda: not left_of(tmp_path))


RUN = """
import signal, socket, sys
from pathlib import Path
from support.board.lab import TestBoard

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in a shell's background begin with it ignored
with TestBoard(Path(sys.argv[1])) as board:
    board.latency(1)
    print(socket.if_nametoindex(board.device), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_run_that_is_killed(number: signal.Signals, board_tools: None, tmp_path: Path) -> None:
    line = (sys.executable, "-c", RUN, str(tmp_path))
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment) as run:
        assert run.stdout is not None
        made = {int(run.stdout.readline())}
        assert not are_gone(made)
        run.send_signal(number)
        run.wait(60)
    assert wait_until(lambda: not left_of(tmp_path))
    assert wait_until(lambda: are_gone(made))


def test_a_failed_start_leaves_nothing_and_says_why(board_tools: None, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="sshd does not start"), TestBoard(tmp_path, port=99999):
        pass
    assert wait_until(lambda: not left_of(tmp_path))


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.board.lab.LOOK_IN", "/nowhere")
    missing = missing_tools()
    assert {"sshd (openssh-server)", "nft (nftables)", "ip (iproute2)"} <= set(missing)
