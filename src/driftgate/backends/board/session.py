"""A model on a board as a session: a thread holds the board, sends inputs ahead, reads what comes, and goes on where it
stopped when the connection is lost."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from driftgate.backends.board import scripts
from driftgate.backends.board.boards import Boards
from driftgate.backends.board.cache import Full, model_on_board, send
from driftgate.backends.board.frames import Frame, Garbled, Reader
from driftgate.backends.board.lock import asked, token
from driftgate.backends.board.pool import Pool, Taken
from driftgate.backends.board.tool import Input, arguments, asked_model, failed, infer_command, input_of, measured
from driftgate.backends.board.transport import Channel, Host, Lost
from driftgate.backends.boardtensors import TYPES, layout_of, quantization_of, tensors_of
from driftgate.backends.feeds import check_feeds
from driftgate.backends.quantfile import OutputQuantization
from driftgate.domain.runs import Environment
from driftgate.domain.tensors import Signature, TensorSpec
from driftgate.domain.toolchain.board import BoardModel, BoardModels, BoardPerf, BoardTensor
from driftgate.errors import ArtifactError, BackendError, DriftgateError
from driftgate.messages.message import Message, message
from driftgate.numerics.alignment import quantised
from driftgate.sessions import Tensor, Tensors
from driftgate.transforms.strided import Layout, StrideError, tensor_of

#: Samples whose inputs are on their way or on the board, and files that are sent at once.
WINDOW, SENDERS = 6, 3
#: Outputs that nobody has asked for yet may hold so much; then the board waits.
HELD_BYTES = 256 << 20
#: Connections that brought no sample home, after which a board is given up whatever the time.
MOST_TRIES = 8
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
OUTPUT = "model_infer_output_"

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Opened:
    """A model as the board's runtime loaded it."""

    model: BoardModel
    inputs: tuple[BoardTensor, ...]
    outputs: tuple[BoardTensor, ...]
    layouts: Mapping[str, Layout]
    said: BoardModels


@dataclass(slots=True)
class _Connection:
    """A board that is ours, with the model on it; the loop, once it runs."""

    taken: Taken
    path: str
    channel: Channel | None = None
    reader: Reader | None = None
    sent: deque[int] = field(default_factory=deque)


@dataclass(slots=True)
class _Wanted:
    """A sample that is to be run."""

    sample: str
    feeds: Callable[[], Tensors]


class BoardSession:
    """One model on one board of a pool. Between samples nothing waits for anybody but where the board is faster than
    the other stages by more than what may be held."""

    def __init__(
        self, stage: str, file: Path, boards: Boards, scales: Mapping[str, OutputQuantization], *, model: str | None
    ) -> None:
        self._stage, self._file, self._boards, self._model = stage, file, boards, model
        self._pool = Pool(boards)
        self._scales = scales
        self._state = threading.Condition()
        self._wanted: deque[_Wanted] = deque()
        self._done: dict[str, dict[str, Tensor]] = {}
        self._failure: DriftgateError | None = None
        self._is_closing = False
        self._plans_ahead = False
        self._perf: tuple[BoardPerf, ...] = ()
        self._former = ""
        self._host_taken: Host | None = None
        self._tries = 0
        self._thread: threading.Thread | None = None
        self._connection: _Connection | None = None
        self._opened = self._patiently(self._prepare)
        self._signature = self._described()

    # what is known of it

    @property
    def signature(self) -> Signature:
        """As the board's runtime tells it; scales of signature.json go before its own, which have six digits."""
        return self._signature

    @property
    def environment(self) -> Environment:
        """The runtime's versions and the pool's name; boards of one pool count as one."""
        said = self._opened.said.versions
        versions = {"ucp": said.ucp, "hbrt": said.hbrt}
        return Environment(
            provider="hrt_model_exec",
            level=f"core {'any' if self._boards.core is None else self._boards.core}",
            threads=1,
            versions=tuple((name, value) for name, value in versions.items() if value),
            board=self._boards.name,
        )

    @property
    def told(self) -> Mapping[str, str]:
        """March and version that the builder wrote into the model."""
        told = {"march": self._opened.model.march, "version": self._opened.model.versions.hbdk, "phase": "fixed-point"}
        return {name: value for name, value in told.items() if value}

    @property
    def notes(self) -> tuple[Message, ...]:
        """Which inputs are quantised here, as the node that did it was removed."""
        names = tuple(spec.name for spec in self._signature.inputs if spec.quantization is not None)
        return (message("inputs-requantised", stage=self._stage, inputs=names),) if names else ()

    @property
    def performance(self) -> tuple[BoardPerf, ...]:
        """The runs of perf, which follow the samples. Raises BackendError where they failed."""
        with self._state:
            while self._thread is not None and self._plans_ahead and not (self._perf or self._failure):
                if self._boards.perf is None or not self._thread.is_alive():
                    break
                self._state.wait(0.2)
            if self._failure is not None:
                raise self._failure
            return self._perf

    # samples

    def ahead(self, samples: Sequence[str], feeds: Callable[[str], Tensors]) -> None:
        """Run these samples as fast as the board can; `infer` then hands out what is there."""
        with self._state:
            self._plans_ahead = True
            self._wanted.extend(_Wanted(sample, lambda sample=sample: feeds(sample)) for sample in samples)  # type: ignore[misc]
        self._start()

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """The outputs of a sample, which is run now if it was not announced. Raises what went wrong on the board."""
        with self._state:
            if sample not in self._done and not any(one.sample == sample for one in self._wanted):
                self._wanted.append(_Wanted(sample, lambda: feeds))
        with self._state:
            while sample not in self._done:
                if self._failure is not None:
                    raise self._failure
                self._start()  # it may have come to its end while the sample was announced
                self._state.wait(0.2)
            made = self._done.pop(sample)
            self._state.notify_all()
            return made

    def __enter__(self) -> BoardSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._state:
            self._is_closing = True
            self._state.notify_all()
        if self._thread is not None:
            self._thread.join(self._boards.lease_seconds)
        self._let_go()

    # the thread

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="driftgate-board", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        """Run what is wanted, measure speed, give the board back."""
        try:
            self._patiently(self._run_wanted)
            if self._plans_ahead and not self._perf and not self._is_closing and self._boards.perf is not None:
                found = self._patiently(self._measure)
                with self._state:
                    self._perf = found
                    self._state.notify_all()
        except DriftgateError as error:
            with self._state:
                self._failure = error
                self._state.notify_all()
        finally:
            self._let_go()

    def _patiently(self, work: Callable[[], _Made]) -> _Made:
        """Work that is begun anew when the connection is lost, until the board's patience is over."""
        begun, pause = time.monotonic(), FIRST_PAUSE
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
                out = time.monotonic() - begun > self._boards.patience_seconds
                if out or self._tries >= MOST_TRIES or self._is_closing:
                    told = {
                        "stage": self._stage,
                        "board": self._boards.name,
                        "step": error.step,
                        "reason": error.reason,
                    }
                    raise BackendError(message("board-lost", **told)) from error
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            except Full as error:
                told = {"stage": self._stage, "board": self._boards.name, "folder": self._boards.folder}
                raise BackendError(message("board-full", reason=str(error), **told)) from error
            except Garbled as error:
                told = {"stage": self._stage, "board": self._boards.name, "said": str(error)}
                raise BackendError(message("board-garbage", **told)) from error

    def _connected(self) -> _Connection:
        """The board with the model on it. Raises Lost, Full and BackendError."""
        if self._connection is None:
            taken = self._pool.take(only=self._host_taken, former=self._former)
            self._host_taken, self._former = taken.host, taken.lock.owner
            transport, folder = taken.lock.transport, self._boards.folder
            self._connection = _Connection(taken, "")
            asked(transport, scripts.sweep(folder, taken.lock.owner), step="sweep")
            self._connection.path, _ = model_on_board(
                transport, folder, self._file, quota_bytes=self._boards.cache_bytes
            )
        return self._connection

    def _prepare(self) -> Opened:
        connection = self._connected()
        said, _ = asked_model(connection.taken.lock.transport, self._boards, connection.path, stage=self._stage)
        names = tuple(one.name or "-" for one in said.models)
        chosen = [one for one in said.models if self._model in (None, one.name)]
        if len(chosen) != 1:
            path, wanted = self._file.name, self._model or "-"
            raise ArtifactError(message("board-model", path=path, names=names, model=wanted))
        source = Path(f"{self._boards.tool} model_info")
        inputs, outputs = (tensors_of(chosen[0], side, path=source) for side in ("input", "output"))
        try:
            layouts = {str(tensor.name): layout_of(tensor) for tensor in outputs}
        except ValueError as error:
            raise ArtifactError(message("board-dynamic", path=str(source), tensor=str(error))) from error
        return Opened(chosen[0], inputs, outputs, layouts, said)

    def _described(self) -> Signature:
        inputs = tuple(
            TensorSpec(str(t.name), TYPES[t.dtype or ""], t.shape, quantization_of(t)) for t in self._opened.inputs
        )
        outputs = []
        for tensor in self._opened.outputs:
            spec = TensorSpec(str(tensor.name), TYPES[tensor.dtype or ""], tensor.shape, quantization_of(tensor))
            told = self._scales.get(spec.name)
            outputs.append(spec if told is None else replace(spec, quantization=told.quantization, step=told.step))
        return Signature(inputs, tuple(outputs))

    def _measure(self) -> tuple[BoardPerf, ...]:
        connection = self._connected()
        self._stop_loop(connection)
        return measured(connection.taken.lock.transport, self._boards, connection.path, stage=self._stage)

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
        lock, mark = connection.taken.lock, token()
        run = scripts.run_folder(self._boards.folder, lock.owner)
        command = infer_command(self._boards, connection.path, f"{run}/out", self._model)
        line = scripts.serve(self._boards.folder, lock.owner, mark, command, environment=dict(self._boards.environment))
        connection.channel = lock.transport.start(line)
        connection.reader = Reader(connection.channel, mark, self._boards.sample_seconds)
        connection.reader.greeting()

    def _stream(self, connection: _Connection, senders: ThreadPoolExecutor) -> None:
        """Keep some samples on their way while results are read."""
        waiting: deque[tuple[int, _Wanted, Future[str]]] = deque()
        working: deque[tuple[int, _Wanted]] = deque()
        upcoming = self._upcoming()
        number = 0
        while True:
            while len(waiting) + len(working) < WINDOW and (one := next(upcoming, None)) is not None:
                number += 1
                waiting.append((number, one, senders.submit(self._sent, connection, number, one)))
            while waiting and (waiting[0][2].done() or not working):
                at, one, future = waiting.popleft()
                self._line(connection, f"{at} {future.result()}\n")
                working.append((at, one))
            if not working:
                return
            at, one = working.popleft()
            self._keep(one, self._frame(connection, at))

    def _upcoming(self) -> Iterator[_Wanted]:
        """What is wanted, without taking it off the list: that is done when it came home."""
        at = 0
        while True:
            with self._state:
                while not self._is_closing and sum(map(_bytes, self._done.values())) > HELD_BYTES:
                    self._state.wait(0.2)
                if self._is_closing or at >= len(self._wanted):
                    return
                one = self._wanted[at]
            yield one
            with self._state:
                at = next((n + 1 for n, other in enumerate(self._wanted) if other is one), 0)

    def _sent(self, connection: _Connection, number: int, one: _Wanted) -> str:
        """The tool's arguments for a sample whose inputs lie on the board."""
        inputs = self._inputs(one)
        lock = connection.taken.lock
        folder = f"{scripts.run_folder(self._boards.folder, lock.owner)}/in-{number}"
        asked(lock.transport, f"mkdir -p {scripts.quoted(folder)}", step="send")
        paths = [f"{folder}/{at}.{given.ending}" for at, given in enumerate(inputs)]
        for path, given in zip(paths, inputs, strict=True):
            send(lock.transport, path, lambda given=given: iter((given.content,)), size=len(given.content), step="send")  # type: ignore[misc]
        return arguments(paths, inputs)

    def _inputs(self, one: _Wanted) -> list[Input]:
        given = {}
        specs = {spec.name: spec for spec in self._signature.inputs}
        for name, value in one.feeds().items():
            spec = specs.get(name)
            scaled = spec is not None and spec.quantization is not None and value.dtype.kind == "f"
            given[name] = (
                quantised(value, spec.quantization, spec.dtype) if scaled and spec and spec.quantization else value
            )
        check_feeds(given, self._signature.inputs, stage=self._stage, sample=one.sample)
        tensors = {str(tensor.name): tensor for tensor in self._opened.inputs}
        return [input_of(tensors[name], given[name], w_stride=self._boards.w_stride) for name in tensors]

    def _line(self, connection: _Connection, line: str) -> None:
        if connection.channel is None:
            raise Lost("run", "the loop on the board is gone")
        if connection.taken.lock.is_lost:
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
        """Where the board still answers, it is the tool that does not."""
        lock = connection.taken.lock
        try:
            asked(lock.transport, scripts.kill(self._boards.folder) + " echo ok", step="kill")
        except Lost:
            return
        if "closed" in error.reason or lock.is_lost:
            return
        told = {"stage": self._stage, "board": self._boards.name, "tool": self._boards.tool}
        raise BackendError(message("board-hangs", seconds=self._boards.sample_seconds, **told)) from error

    def _keep(self, one: _Wanted, frame: Frame) -> None:
        made: dict[str, Tensor] = {}
        files = {name.removeprefix(OUTPUT).partition("_")[0]: content for name, content in frame.files.items()}
        for number, (name, layout) in enumerate(self._opened.layouts.items()):
            content = files.get(str(number))
            told = {"stage": self._stage, "board": self._boards.name, "sample": one.sample, "output": name}
            if content is None:
                raise BackendError(message("board-no-dump", found=tuple(frame.files) or ("-",), **told))
            try:
                made[name] = tensor_of(content, layout)
            except StrideError as error:
                raise BackendError(message("board-dump", reason=str(error), **told)) from error
        with self._state:
            self._tries = 0
            self._wanted.remove(one)
            self._done[one.sample] = made
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
            connection.taken.lock.transport.__exit__(None, None, None)

    def _drop(self) -> None:
        """Forget a connection that is lost; the lock is ours to take again."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        connection.taken.lock.forget()
        with suppress(Lost):
            if connection.channel is not None:
                connection.channel.close()
            connection.taken.lock.transport.__exit__(None, None, None)


def _bytes(outputs: Mapping[str, Tensor]) -> int:
    return sum(value.nbytes for value in outputs.values())
