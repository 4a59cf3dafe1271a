"""The parts of a board's run that need no board: frames, the cache's order, the pool's choice, words for the tool."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftgate.backends.board.boards import Boards
from driftgate.backends.board.cache import Cached, superfluous
from driftgate.backends.board.frames import Garbled, Reader
from driftgate.backends.board.pool import Pool
from driftgate.backends.board.tool import arguments, failed, input_of
from driftgate.backends.board.transport import Channel, Done, Host, Lost, Transport
from driftgate.domain.toolchain.board import BoardTensor
from driftgate.errors import BackendError, LoadRefused
from driftgate.messages.message import message
from driftgate.messages.text import text

TOKEN = "0123456789abcdef01234567"


@dataclass(slots=True)
class Said:
    """A channel that gives these bytes in pieces of a size."""

    content: bytes
    piece: int
    at: int = 0

    def read(self, size: int, *, seconds: float) -> bytes:
        found = self.content[self.at : self.at + min(size, self.piece)]
        self.at += len(found)
        return found

    def last_words(self) -> str:
        return ""

    def write(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...

    def wait(self, *, seconds: float) -> int:
        return 0

    def close(self) -> None: ...


def reader(content: bytes, piece: int) -> Reader:
    channel: Channel = Said(content, piece)
    return Reader(channel, TOKEN, 1.0)


def frame(number: int, code: int, log: bytes, files: dict[str, bytes]) -> bytes:
    said = f"{TOKEN} begin {number}\n".encode() + log
    for name, content in files.items():
        said += f"\n{TOKEN} file {name}\n".encode() + content
    return said + f"\n{TOKEN} end {number} {code}\n".encode()


@given(
    st.binary(max_size=300),
    st.lists(st.tuples(st.integers(0, 999), st.integers(0, 255), st.binary(max_size=60), st.binary(max_size=200))),
    st.integers(1, 64),
)
def test_frames_come_out_as_they_went_in(
    noise: bytes, samples: list[tuple[int, int, bytes, bytes]], piece: int
) -> None:
    told = noise + f"\n{TOKEN}\n".encode()
    for number, code, log, dump in samples:
        told += frame(number, code, log, {"model_infer_output_0_y.bin": dump, "model_infer_output_1_z.bin": b""})
    read = reader(told, piece)
    read.greeting()
    for number, code, log, dump in samples:
        found = read.frame()
        assert (found.number, found.code) == (number, code)
        assert found.log == log.decode("utf-8", "replace")
        assert list(found.files.values()) == [dump, b""]
    with pytest.raises(Lost):
        read.frame()


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_a_stream_that_is_cut_is_never_a_frame(seed: int, piece: int) -> None:
    whole = f"\n{TOKEN}\n".encode() + frame(7, 0, b"log", {"model_infer_output_0_y.bin": bytes(50)})
    read = reader(whole[: seed % len(whole)], piece)
    with pytest.raises((Lost, Garbled)):
        read.greeting()
        read.frame()


@pytest.mark.parametrize(
    "odd",
    [
        f"{TOKEN} begun 3\n".encode(),
        f"{TOKEN} begin x\n".encode(),
        f"{TOKEN} begin 3\n\n{TOKEN} end 4 0\n".encode(),
        f"{TOKEN} begin 3\n\n{TOKEN} fine y\n".encode(),
    ],
)
def test_a_loop_that_says_something_else_is_garbled(odd: bytes) -> None:
    with pytest.raises(Garbled):
        reader(odd, 100).frame()


def test_a_shell_that_only_makes_noise_is_not_listened_to_for_ever() -> None:
    with pytest.raises(Garbled, match="bytes without"):
        reader(b"Welcome! " * 300_000, 1 << 16).greeting()


def test_models_go_in_the_order_of_their_last_use_and_no_more_than_must() -> None:
    there = tuple(Cached(name, 100, used) for name, used in (("a", 3), ("b", 1), ("c", 2)))
    assert list(superfluous(there, 100, 400)) == []
    assert list(superfluous(there, 100, 399)) == ["b"]
    assert list(superfluous(there, 100, 200)) == ["b", "c"]
    assert list(superfluous(there, 500, 100)) == ["b", "c", "a"]


@dataclass(slots=True)
class FakeBoard:
    """A board whose lock says what is put into it."""

    name: str
    answers: Callable[[str], str]
    commands: list[str] = field(default_factory=list)

    def start(self, command: str) -> Channel:
        raise NotImplementedError

    def run(self, command: str, *, stdin: bytes = b"", seconds: float) -> Done:
        _, _, rest = command.partition("echo; echo ")
        token, _, rest = rest.partition("; ")
        self.commands.append(rest)
        return Done(f"Welcome\n\n{token}\n{self.answers(rest)}\n".encode(), b"", 0)

    def __enter__(self) -> FakeBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(slots=True)
class Time:
    now: float = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def pool(answers: dict[str, Callable[[str], str] | Exception]) -> tuple[Pool, Time]:
    time = Time()

    def opened(boards: Boards, host: Host | None) -> Transport:
        answer = answers[host.name if host else ""]
        if isinstance(answer, Exception):
            raise answer
        return FakeBoard(host.name if host else "", answer)

    hosts = tuple(Host(name, "secret.example") for name in answers)
    boards = Boards("lab", hosts, lease_seconds=30.0, wait_seconds=100.0, patience_seconds=20.0)
    return Pool(boards, time.clock, time.sleep, opened), time


def held(command: str) -> str:
    return "held\nowner\nhost 1\nowner 1"


def free(command: str) -> str:
    return "taken" if "mkdir" in command else "ok"


def test_the_first_board_that_is_free_is_used() -> None:
    boards, _ = pool({"one": held, "two": free})
    taken = boards.take()
    assert taken.host is not None
    assert taken.host.name == "two"
    taken.lock.forget()


def test_a_lock_that_does_not_change_for_a_lease_is_taken_over_and_one_that_does_is_not() -> None:
    boards, time = pool({"one": lambda command: "taken" if "over-" in command.split(";")[0] else held(command)})
    boards.take().lock.forget()
    assert 30 <= time.now < 35
    count = iter(range(10_000))
    boards, time = pool({"one": lambda command: f"held\nowner\nhost 1\nowner {next(count)}"})
    with pytest.raises(BackendError, match=r"held by host 1"):
        boards.take()
    assert time.now >= 100


def test_boards_that_are_away_are_waited_for_and_then_named_without_their_address() -> None:
    boards, time = pool({"one": Lost("connect", "timed out"), "two": Lost("connect", "refused")})
    with pytest.raises(BackendError, match="board lab cannot be reached") as caught:
        boards.take()
    assert "secret" not in str(caught.value)
    assert 20 <= time.now < 30


def test_a_board_that_refuses_does_not_keep_one_from_another() -> None:
    refusal = BackendError(message("board-unreachable", board="one", reason="host key"))
    boards, _ = pool({"one": refusal, "two": free})
    boards.take().lock.forget()
    boards, time = pool({"one": refusal})
    with pytest.raises(BackendError, match="host key"):
        boards.take()
    assert time.now == 0


def test_an_absent_board_is_power_cycled_once(tmp_path: Path) -> None:
    mark = tmp_path / "cycled"
    boards, _ = pool({"one": Lost("connect", "timed out")})
    boards.boards = Boards(
        "lab",
        boards.boards.hosts,
        patience_seconds=20.0,
        power_cycle=("sh", "-c", f"echo x >> {mark}"),
        boot_seconds=3.0,
    )
    with pytest.raises(BackendError):
        boards.take()
    assert mark.read_text() == "x\n"


def tensor(name: str, shape: tuple[int | None, ...], dtype: str) -> BoardTensor:
    return BoardTensor(name, "input", 0, shape, None, None, dtype, "NONE")


def test_inputs_of_a_fixed_form_are_dense_and_dynamic_ones_have_the_platforms_strides() -> None:
    plane = np.arange(2 * 40, dtype=np.uint8).reshape(1, 2, 40, 1)
    fixed = input_of(tensor("y", (1, 2, 40, 1), "U8"), plane, w_stride=64)
    assert (fixed.content, fixed.shape) == (plane.tobytes(), "")
    free_form = input_of(tensor("y", (1, None, None, 1), "U8"), plane, w_stride=64)
    assert len(free_form.content) == 128
    assert (free_form.shape, free_form.stride) == ("1,2,40,1", "128,64,1,1")
    roi = input_of(tensor("image_roi", (1, 4), "S32"), np.array([[0, 0, 39, 1]], np.int32), w_stride=64)
    assert (roi.content, roi.ending) == (b"0 0 39 1\n", "txt")
    assert arguments(["a", "b"], [fixed, roi]) == "--input_file=a,b"
    assert '--input_stride="128,64,1,1;"' in arguments(["a", "b"], [free_form, roi])


@pytest.mark.parametrize(
    ("said", "code", "kind", "words"),
    [
        ("Model march incompatible! model march: nash-e, platform march: nash-p", 1, LoadRefused, "nash-e.*nash-p"),
        ("Cannot malloc bpu memory with length 4096 bytes", 1, BackendError, "no 4096 bytes of memory"),
        ("iova addr not equal for different core", 1, BackendError, "not the model's fault"),
        ("sh: hrt_model_exec: not found", 127, BackendError, "has no hrt_model_exec"),
        ("status -600002, model invalid", 1, LoadRefused, "does not load"),
        (
            "Cannot load hbm of version 4.12.0, the runtime's version is 4.9.7",
            1,
            LoadRefused,
            "hbdk 4.12.0.*HBRT 4.9.7",
        ),
        ("-600002: model 4.9.7 has no checksum, HBRT 4.12.0", 1, LoadRefused, "does not load"),
        ("[UCP]: UCP version = 3.7.4\nstatus -500001, cannot open file", 1, BackendError, "-500001"),
        ("[UCP]: UCP version = 3.7.4\nthe model's version is not supported", 1, LoadRefused, "does not load"),
        ("something new", 9, BackendError, "exit code 9.*something new"),
    ],
)
def test_what_a_failed_call_means(said: str, code: int, kind: type[Exception], words: str) -> None:
    error = failed(said, code, Boards("lab"), stage="hbm", loading=True)
    assert isinstance(error, kind)
    assert re.search(words, text(error.problems[0]))


def test_what_tells_the_error_is_kept_although_other_lines_end_the_output() -> None:
    said = (
        "Cannot load hbm of version 4.12.0, the runtime's version is 4.9.7\n{ filename: x }\n-> STATUS\n[E] -600002\n"
    )
    kept = text(failed(said + " \n", 1, Boards("lab"), stage="hbm", loading=True).problems[0])
    assert "version 4.12.0, the runtime's version is 4.9.7 / { filename: x } / -> STATUS / [E] -600002" in kept
    long = said.replace("filename: x", "x" * 1000)
    kept = text(failed(long, 1, Boards("lab"), stage="hbm", loading=True).problems[0])
    assert "version 4.12.0" in kept
    assert kept.endswith("[E] -600002")
