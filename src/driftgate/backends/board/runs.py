"""The thread that holds a board: it sends inputs ahead, reads what comes, goes on where it stopped when the connection
was lost, measures speed, and gives the board back."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from driftgate.backends.board import scripts
from driftgate.backends.board.boards import Boards
from driftgate.backends.board.cache import model_on_board, send
from driftgate.backends.board.frames import Frame, Garbled, Reader
from driftgate.backends.board.lock import asked, token
from driftgate.backends.board.pool import Pool, Taken
from driftgate.backends.board.shelf import Outputs, Shelf
from driftgate.backends.board.tool import Input, arguments, failed, infer_command, measured
from driftgate.backends.board.transport import Channel, Full, Host, Lost, Transport
from driftgate.domain.toolchain.board import BoardPerf
from driftgate.errors import BackendError, DriftgateError
from driftgate.messages.message import message

#: Samples whose inputs are on their way or on the board, and files that are sent at once.
WINDOW, SENDERS = 6, 3
#: Connections that brought no sample home, after which a board is given up whatever the time.
MOST_TRIES = 8
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
LOOK_SECONDS = 0.2

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Sample:
    """One that is to be run: its inputs as files for the tool, and what its dumps are."""

    name: str
    inputs: Callable[[], Sequence[Input]]
    outputs: Callable[[Mapping[str, bytes]], Outputs]


@dataclass(slots=True)
class _Connection:
    """A board that is ours, with the model on it; the loop, once it runs."""

    taken: Taken
    path: str
    channel: Channel | None = None
    reader: Reader | None = None

    @property
    def transport(self) -> Transport:
        """The way to it."""
        return self.taken.lock.transport


class Runs:
    """Runs of one model on one board of a pool. Errors are BackendError unless the runtime refuses the model."""

    def __init__(
        self, stage: str, file: Path, boards: Boards, *, model: str | None = None, dumps: str = "output"
    ) -> None:
        self._stage, self._file, self._boards, self._model, self._dumps = stage, file, boards, model, dumps
        self._pool = Pool(boards)
        self._state = threading.Condition()
        self._wanted: deque[Sample] = deque()
        self._done = Shelf()
        self._failure: DriftgateError | None = None
        self._is_closing = False
        self._measures = False
        self._perf: tuple[BoardPerf, ...] | None = None
        self._former = ""
        self._host: Host | None = None
        self._is_bound = False  # something came home from that board: the rest of the run is made there, too
        self._tries = 0
        self._thread: threading.Thread | None = None
        self._connection: _Connection | None = None

    # from the caller's thread

    def asked(self, question: Callable[[Transport, str], Made]) -> Made:
        """What a question about the model on the board comes to, asked until it answers; the board stays ours."""

        def work() -> Made:
            connection = self._connected()
            return question(connection.transport, connection.path)

        if self._thread is not None:
            self._thread.join()
        return self._patiently(work)

    def want(self, samples: Sequence[Sample], *, then_measure: bool = False) -> None:
        """Run these as fast as the board can, but for those that are wanted already; then measure speed."""
        with self._state:
            known = {*self._done.samples, *(one.name for one in self._wanted)}
            self._wanted.extend(one for one in samples if one.name not in known)
            self._measures = self._measures or then_measure
        self._start()

    def result(self, sample: str) -> Outputs:
        """The outputs of a sample that is wanted. Raises what went wrong on the board."""
        with self._state:
            while sample not in self._done:
                if self._failure is not None:
                    raise self._failure
                self._start()  # it may have come to its end while the sample was announced
                self._state.wait(LOOK_SECONDS)
            made = self._done.take(sample)
            self._state.notify_all()
            return made

    def performance(self) -> tuple[BoardPerf, ...]:
        """The runs of perf that follow the samples, if they are planned. Raises what went wrong on the board."""
        with self._state:
            while self._measures and self._boards.perf is not None and self._perf is None:
                if self._failure is not None:
                    raise self._failure
                self._start()
                self._state.wait(LOOK_SECONDS)
            return self._perf or ()

    def close(self) -> None:
        """Give the board back, whatever is still wanted."""
        with self._state:
            self._is_closing = True
            self._state.notify_all()
        if self._thread is not None:
            self._thread.join(self._boards.lease_seconds)
        self._let_go()
        self._done.clear()

    def rest(self) -> None:
        """Give the board back until something is wanted of it."""
        self._let_go()

    # the thread

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="driftgate-board", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        try:
            self._patiently(self._run_wanted)
            if self._measures and self._perf is None and not self._is_closing:
                found = self._patiently(self._measure)
                with self._state:
                    self._perf = found
        except DriftgateError as error:
            with self._state:
                self._failure = error
        finally:
            self._let_go()
            with self._state:
                self._state.notify_all()

    def _patiently(self, work: Callable[[], Made]) -> Made:
        """Work that is begun anew when the connection is lost, until the board's patience is over."""
        begun, pause = time.monotonic(), FIRST_PAUSE
        said = {"stage": self._stage, "board": self._boards.name}
        while True:
            tries = self._tries
            try:
                return work()
            except Lost as error:
                self._drop()
                if self._tries == tries:
                    self._tries += 1
                else:
                    begun, pause = time.monotonic(), FIRST_PAUSE  # samples came home since
                late = time.monotonic() - begun > self._boards.patience_seconds
                if late or self._tries >= MOST_TRIES or self._is_closing:
                    told = message("board-lost", step=error.step, reason=error.reason, **said)
                    raise BackendError(told) from error
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            except Full as error:
                told = message("board-full", reason=str(error), folder=self._boards.folder, **said)
                raise BackendError(told) from error
            except Garbled as error:
                raise BackendError(message("board-garbage", said=str(error), **said)) from error

    def _connected(self) -> _Connection:
        """The board with the model on it. Raises Lost, Full and BackendError."""
        if self._connection is None:
            only = self._host if self._former or self._is_bound else None
            taken = self._pool.take(only=only, former=self._former)
            self._host, self._former = taken.host, taken.lock.owner
            self._connection = _Connection(taken, "")
            asked(self._connection.transport, scripts.sweep(self._boards.folder, taken.lock.owner), step="sweep")
            quota = self._boards.cache_bytes
            made = model_on_board(self._connection.transport, self._boards.folder, self._file, quota_bytes=quota)
            self._connection.path = made
        return self._connection

    def _measure(self) -> tuple[BoardPerf, ...]:
        connection = self._connected()
        self._stop_loop(connection)
        return measured(connection.transport, self._boards, connection.path, stage=self._stage)

    # running samples

    def _run_wanted(self) -> None:
        """Everything that is wanted, in order. Raises Lost in the middle, with what came home kept."""
        while True:
            with self._state:
                if self._is_closing or not self._wanted:
                    return
            connection = self._connected()
            if connection.channel is None:
                self._begin_loop(connection)
            with ThreadPoolExecutor(SENDERS, thread_name_prefix="driftgate-send") as senders:
                self._stream(connection, senders)

    def _begin_loop(self, connection: _Connection) -> None:
        owner, mark = connection.taken.lock.owner, token()
        folder = self._boards.folder
        command = infer_command(self._boards, connection.path, f"{scripts.run_folder(folder, owner)}/out", self._model)
        environment = dict(self._boards.environment)
        line = scripts.serve(folder, owner, mark, command, environment=environment, dumps=self._dumps)
        connection.channel = connection.transport.start(line)
        connection.reader = Reader(connection.channel, mark, self._boards.sample_seconds)
        connection.reader.greeting()

    def _stream(self, connection: _Connection, senders: ThreadPoolExecutor) -> None:
        """Keep some samples on their way while results are read."""
        waiting: deque[tuple[int, Sample, Future[str]]] = deque()
        working: deque[tuple[int, Sample]] = deque()
        upcoming = self._upcoming()
        number = 0
        while True:
            while len(waiting) + len(working) < WINDOW and (one := next(upcoming, None)) is not None:
                number += 1
                waiting.append((number, one, senders.submit(self._sent, connection, number, one)))
            while waiting and (waiting[0][2].done() or not working):
                at, one, future = waiting.popleft()
                self._order(connection, f"{at} {future.result()}\n")
                working.append((at, one))
            if not working:
                return
            at, one = working.popleft()
            self._keep(one, self._frame(connection, at))

    def _upcoming(self) -> Iterator[Sample]:
        """What is wanted, without taking it off the list: that is done when it came home."""
        given: set[str] = set()
        while True:
            with self._state:
                one = next((one for one in self._wanted if one.name not in given), None)
                if self._is_closing or one is None:
                    return
            given.add(one.name)
            yield one

    def _sent(self, connection: _Connection, number: int, one: Sample) -> str:
        """The tool's arguments for a sample whose inputs lie on the board."""
        inputs = one.inputs()
        folder = f"{scripts.run_folder(self._boards.folder, connection.taken.lock.owner)}/in-{number}"
        asked(connection.transport, f"mkdir -p {scripts.quoted(folder)}", step="send")
        paths = [f"{folder}/{at}.{given.ending}" for at, given in enumerate(inputs)]
        for path, given in zip(paths, inputs, strict=True):
            send(connection.transport, path, [given.content], size=len(given.content), step="send")
        return arguments(paths, inputs)

    def _order(self, connection: _Connection, line: str) -> None:
        if connection.channel is None or connection.taken.lock.is_lost:
            raise Lost("run", "another user has taken the board over")
        connection.channel.write(line.encode())

    def _frame(self, connection: _Connection, number: int) -> Frame:
        if connection.reader is None:
            raise Lost("run", "the loop on the board is gone")
        try:
            frame = connection.reader.frame()
        except Lost as error:
            self._look_for_hang(connection, error)
            raise
        if frame.number != number:
            raise Garbled(f"sample {frame.number} where {number} was run")
        if frame.code:
            raise failed(frame.log, frame.code, self._boards, stage=self._stage)
        return frame

    def _look_for_hang(self, connection: _Connection, error: Lost) -> None:
        """Where the board still answers and the loop still runs, it is the tool that gives nothing."""
        if "closed" in error.reason or connection.taken.lock.is_lost:
            return
        try:
            asked(connection.transport, f"{scripts.kill(self._boards.folder)} echo ok", step="kill")
        except Lost:
            return
        told = {"stage": self._stage, "board": self._boards.name, "tool": self._boards.tool}
        raise BackendError(message("board-hangs", seconds=self._boards.sample_seconds, **told)) from error

    def _keep(self, one: Sample, frame: Frame) -> None:
        made = one.outputs(frame.files)
        self._is_bound = True
        with self._state:
            self._tries = 0
            self._wanted.remove(one)
            self._done.put(one.name, made)
            self._state.notify_all()

    # letting go

    def _stop_loop(self, connection: _Connection) -> None:
        """Let the loop come to its end, which removes what it needed."""
        channel, connection.channel, connection.reader = connection.channel, None, None
        if channel is not None:
            with suppress(Lost):
                channel.end_input()
                channel.wait(seconds=self._boards.lease_seconds)
            channel.close()

    def _let_go(self) -> None:
        """Give the board back."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(Lost):
            self._stop_loop(connection)
            connection.taken.lock.release()
            self._former = ""
        with suppress(Lost):
            connection.transport.__exit__(None, None, None)

    def _drop(self) -> None:
        """Forget a connection that is lost; the lock is ours to take again."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        connection.taken.lock.forget()
        with suppress(Lost):
            if connection.channel is not None:
                connection.channel.close()
            connection.transport.__exit__(None, None, None)
