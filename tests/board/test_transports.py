"""The ways to a board: the same contract over SSH and on this machine, and what only a real sshd can refuse."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from driftgate.backends.board.knownhosts import KnownKey, entry_name, keys_of, parse
from driftgate.backends.board.local import open_local
from driftgate.backends.board.ssh import open_ssh
from driftgate.backends.board.streams import TAIL_BYTES
from driftgate.backends.board.transport import Channel, Host, Lost, Transport
from driftgate.errors import BackendError
from driftgate.masking.aliases import Aliases
from support.board.lab import TestBoard, wait_until

SECONDS = 60.0
LARGE = 100 << 20
#: Neither ends nor does anything.
STOPPED = "kill -STOP $$"
PIPE = """
import os, socket, sys, threading
host, port = sys.argv[1:]
there = socket.create_connection((host, int(port)))
def onward():
    while data := os.read(0, 65536):
        there.sendall(data)
    there.shutdown(socket.SHUT_WR)
threading.Thread(target=onward, daemon=True).start()
while data := there.recv(65536):
    os.write(1, data)
"""


def host_of(board: TestBoard, name: str = "bench-7") -> Host:
    return Host(
        name,
        board.address,
        port=board.port,
        user=board.user,
        key=board.key,
        uses_agent=False,
        known_hosts=board.known_hosts,
        connect_seconds=30,
    )


@pytest.fixture(scope="module")
def shared(board_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBoard]:
    """A board that is only spoken to."""
    with TestBoard(tmp_path_factory.mktemp("shared")) as board:
        yield board


@pytest.fixture(params=["local", "ssh"])
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    ways = {
        "local": lambda: open_local("bench-7"),
        "ssh": lambda: open_ssh(host_of(request.getfixturevalue("shared"))),
    }
    with ways[request.param]() as opened:
        yield opened


def all_of(channel: Channel, size: int = 1 << 20) -> bytes:
    pieces = []
    while piece := channel.read(size, seconds=SECONDS):
        pieces.append(piece)
    return b"".join(pieces)


def refusal(host: Host) -> BackendError:
    with pytest.raises(BackendError) as caught, open_ssh(host):
        pass
    assert_hidden(caught.value, host)
    return caught.value


def code_of(host: Host) -> str:
    return refusal(host).problems[-1].code


def assert_hidden(error: BaseException, host: Host) -> None:
    """Neither the sentence nor a traceback has the address, a password or the path of a key."""
    said = "".join((str(error), repr(error), repr(error.args), *traceback.format_exception(error)))
    hidden = [host.address, host.password or "", str(host.key or "")]
    assert [word for word in hidden if len(word) > 3 and word in said] == []
    assert host.name in str(error)


# The contract


def test_a_command_gives_its_output_its_errors_and_its_code(transport: Transport) -> None:
    done = transport.run("echo out; echo err >&2; exit 3", seconds=SECONDS)
    assert (done.stdout, done.stderr, done.code) == (b"out\n", b"err\n", 3)
    assert transport.name == "bench-7"


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("exit 255", 255), ("sh -c 'kill -9 $$'", 137)])
def test_codes_are_as_a_shell_counts_them(transport: Transport, command: str, code: int) -> None:
    assert transport.run(command, seconds=SECONDS).code == code


def test_every_byte_passes_as_it_is(transport: Transport) -> None:
    data = bytes(range(256)) * 3 + b"\r\n\x03\x04\x1a~."
    assert transport.run("cat", stdin=data, seconds=SECONDS).stdout == data


def test_much_passes_both_ways_at_once(transport: Transport) -> None:
    data = os.urandom(1 << 20) * (LARGE >> 20)
    assert transport.run("cat", stdin=data, seconds=SECONDS).stdout == data


def test_a_whole_feed_can_be_written_before_anything_is_read(transport: Transport) -> None:
    data = os.urandom(1 << 20) * (LARGE >> 20)
    channel = transport.start("cat")
    channel.write(data)
    channel.end_input()
    assert all_of(channel) == data
    assert channel.wait(seconds=SECONDS) == 0
    channel.close()


def test_one_thread_writes_while_another_reads(transport: Transport) -> None:
    data = os.urandom(1 << 20) * 150
    channel = transport.start("cat")

    def write() -> None:
        channel.write(data)
        channel.end_input()

    writer = Thread(target=write)
    writer.start()
    assert all_of(channel, 4096 * 33) == data
    writer.join(SECONDS)
    channel.close()


def test_a_question_is_answered_before_the_next(transport: Transport) -> None:
    channel = transport.start('while read line; do echo "got $line"; done; echo over')
    for number in range(20):
        channel.write(f"{number}\n".encode())
        wanted = f"got {number}\n".encode()
        answer = b""
        while len(answer) < len(wanted):
            answer += channel.read(3, seconds=SECONDS)
        assert answer == wanted
    channel.end_input()
    assert all_of(channel) == b"over\n"
    channel.close()


def test_much_on_stderr_stops_nothing_and_its_end_is_kept(transport: Transport) -> None:
    lines = 20_000
    command = f'i=0; while [ $i -lt {lines} ]; do echo "noise $i {"x" * 200}" >&2; i=$((i+1)); done; echo over'
    channel = transport.start(command)
    assert all_of(channel) == b"over\n"
    assert channel.wait(seconds=SECONDS) == 0
    words = channel.last_words()
    assert words.splitlines()[-1].startswith(f"noise {lines - 1} x")
    assert len(words) < 10_000
    channel.close()
    assert len(transport.run(command, seconds=SECONDS).stderr) == TAIL_BYTES


def test_channels_do_not_disturb_each_other(transport: Transport) -> None:
    def echoed(number: int) -> bool:
        data = bytes([number]) * (2 << 20)
        return transport.run("cat", stdin=data, seconds=SECONDS).stdout == data

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(echoed, range(16)))


def test_silence_is_lost_after_the_seconds_given(transport: Transport) -> None:
    channel = transport.start("cat")
    with pytest.raises(Lost):
        channel.read(1, seconds=0.3)
    with pytest.raises(Lost):
        channel.wait(seconds=0.3)
    channel.write(b"still there")
    assert channel.read(100, seconds=SECONDS) == b"still there"
    channel.close()
    with pytest.raises(Lost):
        transport.run(STOPPED, seconds=0.3)


def test_input_that_nobody_reads_does_not_matter_to_a_command_that_ends(transport: Transport) -> None:
    done = transport.run("echo enough; exit 4", stdin=bytes(20 << 20), seconds=SECONDS)
    assert (done.stdout, done.code) == (b"enough\n", 4)


def test_writing_to_a_command_that_ended_is_lost(transport: Transport) -> None:
    channel = transport.start("exit 5")
    assert channel.wait(seconds=SECONDS) == 5
    with pytest.raises(Lost):
        channel.write(bytes(100 << 20))
    channel.close()


def test_closing_frees_a_writer_that_is_stuck(transport: Transport) -> None:
    channel = transport.start(STOPPED)
    failures: list[Lost] = []

    def write() -> None:
        try:
            channel.write(bytes(100 << 20))
        except Lost as error:
            failures.append(error)

    writer = Thread(target=write)
    writer.start()
    time.sleep(0.5)
    channel.close()
    writer.join(SECONDS)
    assert len(failures) == 1
    channel.close()


def test_nothing_is_started_over_what_was_closed(transport: Transport) -> None:
    with transport:
        pass
    with pytest.raises(Lost):
        transport.start("true")


def test_nothing_is_left_of_a_local_command(tmp_path: Path) -> None:
    with open_local("here") as transport:
        channel = transport.start(f"sh -c 'while :; do sleep 1; done' & echo $! > {tmp_path}/child; wait")
        assert wait_until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text() != "")
        child = int((tmp_path / "child").read_text())
        os.kill(child, 0)
        channel.close()
        assert wait_until(lambda: is_gone(child))


def is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


# What lets in


def test_a_password_lets_in_and_a_wrong_one_is_refused(board: TestBoard) -> None:
    board.password("first word")
    host = replace(host_of(board), key=None, password="first word")
    with open_ssh(host) as transport:
        assert transport.run("echo in", seconds=SECONDS).stdout == b"in\n"
    wrong = refusal(replace(host, password="other word"))
    assert [problem.code for problem in wrong.problems] == ["board-sign-in"]
    assert wrong.problems[0].get("tried") == ("none", "password")
    assert "publickey" in str(wrong)


def test_an_account_without_a_password_is_let_in(board: TestBoard) -> None:
    board.no_password()
    with open_ssh(replace(host_of(board), key=None, password="")) as transport:
        assert transport.run("echo in", seconds=SECONDS).stdout == b"in\n"


def test_nothing_to_offer_is_refused(shared: TestBoard) -> None:
    assert code_of(replace(host_of(shared), key=None)) == "board-sign-in"


def test_another_key_is_refused(shared: TestBoard, tmp_path: Path) -> None:
    assert code_of(replace(host_of(shared), key=new_key(tmp_path))) == "board-sign-in"


@pytest.mark.parametrize("form", ["OpenSSH", "PEM"])
def test_a_key_with_a_passphrase_is_named(shared: TestBoard, tmp_path: Path, form: str) -> None:
    key = new_key(tmp_path, passphrase="a long secret", kind="ecdsa", form=form)
    problems = refusal(replace(host_of(shared), key=key)).problems
    assert [problem.code for problem in problems] == ["board-key-passphrase", "board-sign-in"]


def test_a_file_that_is_no_key_is_named(shared: TestBoard, tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(os.urandom(400))
    (tmp_path / "empty").touch()
    for path in (tmp_path / "odd", tmp_path / "empty", shared.key.with_suffix(".pub")):
        assert code_of(replace(host_of(shared), key=path)) == "board-key-form"
    for path in (tmp_path / "absent", tmp_path):
        assert code_of(replace(host_of(shared), key=path)) == "board-key-unreadable"


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_keys_of_every_kind_let_in(board: TestBoard, tmp_path: Path, kind: str) -> None:
    key = new_key(tmp_path, kind=kind)
    board.path("/etc/ssh/authorized_keys").write_text(key.with_suffix(".pub").read_text())
    with open_ssh(replace(host_of(board), key=key)) as transport:
        assert transport.run("echo in", seconds=SECONDS).stdout == b"in\n"


def test_a_board_that_wants_a_key_and_a_password_gets_both(board: TestBoard) -> None:
    board.password("first word")
    configure(board, "AuthenticationMethods publickey,password")
    both = replace(host_of(board), password="first word")
    with open_ssh(both) as transport:
        assert transport.run("echo in", seconds=SECONDS).stdout == b"in\n"
    for host in (replace(both, password=None), replace(both, key=None)):
        assert code_of(host) == "board-sign-in"


def test_a_board_that_ends_the_connection_after_refusals_is_not_tried_again(board: TestBoard, tmp_path: Path) -> None:
    board.password("first word")
    configure(board, "MaxAuthTries 1")
    assert code_of(replace(host_of(board), key=new_key(tmp_path), password="other word")) == "board-sign-in"


def test_an_ssh_server_that_speaks_otherwise_is_named(board: TestBoard) -> None:
    configure(board, "Ciphers chacha20-poly1305@openssh.com")
    assert code_of(host_of(board)) == "board-algorithms"


def test_more_sessions_than_a_board_has_are_lost(board: TestBoard) -> None:
    configure(board, "MaxSessions 1")
    with open_ssh(host_of(board)) as transport:
        channel = transport.start("cat")
        with pytest.raises(Lost, match="no further session"):
            transport.start("true")
        channel.end_input()
        assert channel.wait(seconds=SECONDS) == 0


def test_the_agent_lets_in(shared: TestBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", address], stdout=subprocess.DEVNULL)
    try:
        assert wait_until(address.exists)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(address))
        subprocess.run(["ssh-add", "-q", shared.key], check=True)
        host = replace(host_of(shared), key=None, uses_agent=True)
        with open_ssh(host) as transport:
            assert transport.run("echo in", seconds=SECONDS).stdout == b"in\n"
        locked = new_key(tmp_path, passphrase="a long secret")
        with open_ssh(replace(host, key=locked)) as transport:
            assert transport.run("echo in", seconds=SECONDS).stdout == b"in\n"
        assert code_of(replace(host, uses_agent=False)) == "board-sign-in"
    finally:
        agent.terminate()
        agent.wait()


def new_key(folder: Path, *, kind: str = "ed25519", passphrase: str = "", form: str = "OpenSSH") -> Path:
    path = folder / f"key-{kind}-{form}"
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(path)]
    subprocess.run([*command, *(["-m", form] if form == "PEM" else [])], check=True)
    return path


# Who is spoken to


def test_an_unknown_host_key_is_refused_with_its_fingerprint(shared: TestBoard, tmp_path: Path) -> None:
    host = host_of(shared)
    shown = subprocess.run(
        ["ssh-keygen", "-lf", shared.folder / "host_key.pub"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    (tmp_path / "other").write_text("elsewhere ssh-ed25519 AAAA\n")
    for path in (tmp_path / "absent", tmp_path / "other"):
        said = refusal(replace(host, known_hosts=path))
        assert said.problems[0].code == "board-key-unknown"
        assert shown in str(said) and "ssh-keyscan" in str(said)


def test_a_changed_host_key_is_refused_before_anything_is_sent(board: TestBoard) -> None:
    board.password("first word")
    host = replace(host_of(board), key=None, password="first word")
    board.new_host_key()
    assert code_of(host) == "board-key-changed"
    assert "Accepted" not in board.log()


def test_a_revoked_host_key_is_refused(shared: TestBoard, tmp_path: Path) -> None:
    (tmp_path / "known").write_text(shared.known_hosts.read_text() + "@revoked " + shared.known_hosts.read_text())
    assert code_of(replace(host_of(shared), known_hosts=tmp_path / "known")) == "board-key-revoked"


def test_known_hosts_that_cannot_be_read_are_named(shared: TestBoard, tmp_path: Path) -> None:
    assert code_of(replace(host_of(shared), known_hosts=tmp_path)) == "board-known-hosts"


def test_a_host_of_another_port_has_its_own_line(board_tools: None, tmp_path: Path) -> None:
    with TestBoard(tmp_path, port=2222) as board:
        assert f"[{board.address}]:2222 " in board.known_hosts.read_text()
        with open_ssh(host_of(board)) as transport:
            assert transport.run("echo in", seconds=SECONDS).stdout == b"in\n"
        hashed = tmp_path / "hashed"
        hashed.write_text(board.known_hosts.read_text())
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", hashed], capture_output=True, check=True)
        assert board.address not in hashed.read_text()
        with open_ssh(replace(host_of(board), known_hosts=hashed)) as transport:
            assert transport.run("echo in", seconds=SECONDS).stdout == b"in\n"


def test_the_user_s_own_known_hosts_are_the_rule(
    shared: TestBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    host = replace(host_of(shared), known_hosts=None)
    assert code_of(host) == "board-key-unknown"
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts").write_text(shared.known_hosts.read_text())
    with open_ssh(host) as transport:
        assert transport.run("echo in", seconds=SECONDS).stdout == b"in\n"


def test_lines_of_known_hosts_are_read_as_openssh_reads_them() -> None:
    known = parse(
        "# comment\n\nboard,10.0.0.* ssh-rsa AAAA words behind\n*.lab,!bad.lab ssh-ed25519 BBBB\n"
        "[board]:2222 ssh-rsa CCCC\n@cert-authority * ssh-rsa DDDD\nshort line\nboard ssh-rsa no*base64\n"
        "|1|odd ssh-rsa EEEE\n"
    )
    assert [key.hosts for key in known] == ["board,10.0.0.*", "*.lab,!bad.lab", "[board]:2222", "|1|odd"]

    def kinds(address: str, port: int = 22) -> list[str]:
        return [key.hosts for key in keys_of(known, address, port)]

    assert kinds("Board") == kinds("10.0.0.7") == ["board,10.0.0.*"]
    assert (kinds("good.lab"), kinds("bad.lab")) == (["*.lab,!bad.lab"], [])
    assert (kinds("board", 2222), kinds("board", 2223)) == (["[board]:2222"], [])
    assert entry_name("::1", 2222) == "[::1]:2222"
    assert isinstance(known[0], KnownKey) and not known[0].is_revoked


# The way there


def test_a_jump_host_and_the_board_behind_it_are_both_checked(shared: TestBoard, tmp_path: Path) -> None:
    with TestBoard(tmp_path, behind=shared) as inner:
        jump = host_of(shared, "door")
        host = replace(host_of(inner), jump=jump)
        data = os.urandom(1 << 20) * 30
        with open_ssh(host) as transport:
            assert transport.run("cat", stdin=data, seconds=SECONDS).stdout == data
        nothing = tmp_path / "nothing"
        unknown = refusal(replace(host, known_hosts=nothing))
        assert (unknown.problems[0].code, unknown.problems[0].get("board")) == ("board-key-unknown", "bench-7")
        with pytest.raises(BackendError) as caught:
            open_ssh(replace(host, jump=replace(jump, known_hosts=nothing)))
        assert caught.value.problems[0].get("board") == "door"
        assert_hidden(caught.value, jump)
        wrong = refusal(replace(host, key=new_key(tmp_path)))
        assert wrong.problems[0].code == "board-sign-in"
        with pytest.raises(Lost) as lost:
            open_ssh(replace(host, port=4))
        assert_hidden(lost.value, host)
        assert_hidden(lost.value, replace(jump, name="bench-7"))
        with open_ssh(replace(host, keepalive_seconds=0.4)) as transport:
            channel = transport.start("cat")
            inner.cut()
            with pytest.raises(Lost):
                channel.read(1, seconds=SECONDS)
            inner.heal()
        assert wait_until(lambda: inner.processes() == [])


def test_a_jump_host_that_forwards_nothing_is_named(shared: TestBoard, board: TestBoard) -> None:
    configure(board, "AllowTcpForwarding no")
    assert code_of(replace(host_of(shared), jump=host_of(board, "door"))) == "board-jump-forbidden"


def configure(board: TestBoard, *lines: str) -> None:
    """Its sshd has other settings; of each the first line holds."""
    config = board.path("/etc/ssh/sshd_config")
    config.write_text("\n".join((*lines, config.read_text())))
    board.reboot(0)
    assert wait_until(lambda: can_connect(board))


def can_connect(board: TestBoard) -> bool:
    try:
        socket.create_connection((board.address, board.port), 1).close()
    except OSError:
        return False
    return True


def test_a_proxy_command_is_the_connection(shared: TestBoard, tmp_path: Path) -> None:
    (tmp_path / "pipe.py").write_text(PIPE)
    proxy = (sys.executable, str(tmp_path / "pipe.py"), "%h", "%p")
    data = os.urandom(1 << 20) * 30
    with open_ssh(replace(host_of(shared), proxy=proxy)) as transport:
        assert transport.run("cat", stdin=data, seconds=SECONDS).stdout == data
    assert code_of(replace(host_of(shared), proxy=("/no/such/program", "%h"))) == "board-proxy"
    with pytest.raises(Lost) as lost:
        open_ssh(replace(host_of(shared), proxy=(sys.executable, "-c", "pass")))
    assert_hidden(lost.value, host_of(shared))


# What may pass by itself


def test_a_cut_link_is_noticed_while_waiting_and_while_writing(board: TestBoard) -> None:
    host = replace(host_of(board), keepalive_seconds=0.5)

    def waits(channel: Channel) -> None:
        channel.read(1, seconds=SECONDS)

    def writes(channel: Channel) -> None:
        while True:
            channel.write(bytes(1 << 20))

    def ends(channel: Channel) -> None:
        channel.wait(seconds=SECONDS)

    for command, doing in (("cat", waits), ("cat > /dev/null", writes), ("cat", ends)):
        with open_ssh(host) as transport:
            channel = transport.start(command)
            lost_within(lambda doing=doing, channel=channel: doing(channel), board.cut, 10.0)  # type: ignore[misc]
            with pytest.raises(Lost):
                transport.run("true", seconds=SECONDS)
        board.heal()


def lost_within(act: Callable[[], object], harm: Callable[[], object], seconds: float) -> Lost:
    """The Lost that an act ends with, soon after the harm was done to it."""
    failures: list[BaseException] = []

    def do() -> None:
        try:
            act()
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=do, daemon=True)
    thread.start()
    time.sleep(0.3)
    assert failures == []
    harm()
    thread.join(seconds)
    assert [type(failure) for failure in failures] == [Lost]
    assert isinstance(failures[0], Lost)
    return failures[0]


def test_a_link_without_a_word_lasts(shared: TestBoard) -> None:
    with open_ssh(replace(host_of(shared), keepalive_seconds=0.3)) as transport:
        channel = transport.start("cat")
        time.sleep(2.5)
        channel.write(b"still there")
        assert channel.read(100, seconds=SECONDS) == b"still there"


def test_a_slow_link_is_no_cut_link(board: TestBoard) -> None:
    """The keep-alives wait behind what is sent, for longer than they may go unanswered."""
    board.rate(4_000_000)
    with open_ssh(replace(host_of(board), keepalive_seconds=0.4)) as transport:
        channel = transport.start("cat > /dev/null; echo all")
        channel.write(bytes(3 << 20))
        channel.end_input()
        assert channel.read(100, seconds=SECONDS) == b"all\n"


def test_a_dropped_connection_is_noticed_at_once(board: TestBoard) -> None:
    with open_ssh(replace(host_of(board), keepalive_seconds=30)) as transport:
        channel = transport.start("cat")
        lost = lost_within(lambda: channel.read(1, seconds=SECONDS), board.drop_connections, 10.0)
        assert "bench-7" in str(lost)
        with pytest.raises(Lost):
            transport.start("true")
    with open_ssh(replace(host_of(board), keepalive_seconds=30)) as transport:
        ending = transport.start("cat")
        lost_within(lambda: ending.wait(seconds=SECONDS), board.drop_connections, 10.0)


def test_what_was_written_before_the_connection_was_lost_is_read(board: TestBoard) -> None:
    with open_ssh(host_of(board)) as transport:
        channel = transport.start("echo half; cat")
        assert wait_until(lambda: board.processes() != [])
        time.sleep(0.3)
        board.drop_connections()
        assert channel.read(100, seconds=SECONDS) == b"half\n"
        with pytest.raises(Lost):
            channel.read(100, seconds=SECONDS)


def test_a_board_that_starts_again_is_reached_again(board: TestBoard) -> None:
    with open_ssh(host_of(board)) as transport:
        board.reboot(0)
        with pytest.raises(Lost):
            transport.run("true", seconds=SECONDS)
    assert wait_until(lambda: can_connect(board))
    with open_ssh(host_of(board)) as transport:
        assert transport.run("echo again", seconds=SECONDS).stdout == b"again\n"


def test_nobody_there_is_lost(shared: TestBoard) -> None:
    for host in (replace(host_of(shared), port=4), replace(host_of(shared), address="no-such-board.invalid")):
        with pytest.raises(Lost) as lost:
            open_ssh(host)
        assert_hidden(lost.value, host)


def test_a_host_that_never_answers_is_lost_in_time(shared: TestBoard) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = replace(
            host_of(shared), address="127.0.0.1", port=silent.getsockname()[1], connect_seconds=1, name="mute"
        )
        start = time.monotonic()
        with pytest.raises(Lost) as lost:
            open_ssh(host)
        assert time.monotonic() - start < 20
        assert_hidden(lost.value, host)


def test_something_else_than_ssh_is_lost_and_nothing_is_logged(
    shared: TestBoard, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = replace(host_of(shared), address="127.0.0.1", port=server.getsockname()[1])

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 you are 127.0.0.1, not welcome\r\n" * 200)

        Thread(target=answer, daemon=True).start()
        with pytest.raises(Lost) as lost:
            open_ssh(host)
        assert_hidden(lost.value, host)
    assert caplog.records == []


# What is said


def test_a_noisy_login_shell_is_passed_on_as_it_is(board: TestBoard) -> None:
    board.banner("Welcome to the board!\n")
    with open_ssh(host_of(board)) as transport:
        done = transport.run("cat", stdin=b"\0\xff", seconds=SECONDS)
    assert done.stdout == b"Welcome to the board!\n\0\xff"


def test_the_board_s_words_do_not_show_its_address(shared: TestBoard) -> None:
    with open_ssh(host_of(shared)) as transport:
        channel = transport.start(f"echo 'cannot bind {shared.address}:9000, nor {shared.address}1' >&2")
        assert channel.wait(seconds=SECONDS) == 0
        assert channel.last_words() == f"cannot bind bench-7:9000, nor {shared.address}1"
        done = transport.run(f"echo 'no {shared.address}' >&2; echo '{shared.address}'", seconds=SECONDS)
        assert (done.stderr, done.stdout) == (b"no bench-7\n", f"{shared.address}\n".encode())


def test_the_address_is_not_shown_by_a_host() -> None:
    assert "10.0.0.7" not in repr(Host("bench-7", "10.0.0.7", password="first word"))
    assert "first word" not in repr(Host("bench-7", "10.0.0.7", password="first word"))


def test_hidden_words_are_replaced_as_whole_words_only() -> None:
    aliases = Aliases()
    aliases.add("10.0.0.1", "bench")
    aliases.add("j6.lab", "bench")
    aliases.add("fe80::1", "bench")
    aliases.add_secret("abc")
    aliases.add_secret("a secret")
    said = "10.0.0.1: J6.lab. (10.0.0.12, j6.labs, xj6.lab) [fe80::1]:22 abc 'a secret'"
    assert aliases.applied(said) == "bench: bench. (10.0.0.12, j6.labs, xj6.lab) [bench]:22 abc '***'"
