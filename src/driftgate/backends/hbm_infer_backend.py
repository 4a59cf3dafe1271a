"""Runs an .hbm on a board with the vendor's hbm_infer: a worker on this machine, a server on the board."""

from __future__ import annotations

import math
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType

from driftgate.backends.board.boards import Boards
from driftgate.backends.board.cores import infer_core
from driftgate.backends.board.transport import Host
from driftgate.backends.foreign import WORKERS, ForeignSession, WorkerCall, open_foreign
from driftgate.backends.quantfile import read_quantization, signature_path
from driftgate.backends.vendorfiles import vendor_digest, vendor_path
from driftgate.domain.runs import Environment
from driftgate.domain.tensors import Signature
from driftgate.errors import ConfigError, DriftgateError
from driftgate.messages.message import Message, Param, message
from driftgate.sessions import Artifact, Tensor, Tensors

SCRIPT = WORKERS / "hbm_infer_worker.py"
#: The upload of the model and the start of the server come before the first answer.
DEFAULT_SECONDS = 600.0
HIDDEN = "***"


class HbmInferBackend:
    """The artifact is an .hbm, run on a board by HbmRpcSession (toolchain facts §6).

    Options: `boards` (a Boards, of whose hosts the first is taken, without a lock), `remote_root` (folder of hbm_infer
    on the board), `model` (the network, where a packed .hbm has several), `python` (command of the vendor's
    interpreter), `timeout` (seconds an answer may take). hbm_infer knows no keys, known hosts and jump hosts of ours:
    without a password it signs in as ssh does by itself. Nothing can be tapped. Scales are what the board tells;
    `<name>.signature.json` beside the file goes before it.
    """

    needs_feeds = True

    def digest(self, artifact: Artifact) -> str:
        """SHA-256 over the file, and the signature.json."""
        return vendor_digest(artifact)

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> BoardSession:
        """Start the worker, and through it the server. Raises LoadRefused for what the board does not load."""
        path, options = vendor_path(artifact), artifact.options
        boards, host = _reached(artifact)
        frame_seconds = math.ceil(boards.sample_seconds)
        request = {
            "path": str(path.absolute()),
            "model": options.get("model"),
            "board": host.name,
            "host": host.address,
            "user": host.user,
            "password": host.password or None,
            "port": host.port,
            "remote_root": options.get("remote_root"),
            "core_id": infer_core(boards.core),
            "frame_seconds": frame_seconds,
        }
        call = WorkerCall(
            stage=artifact.stage,
            interpreter=tuple(options.get("python") or (sys.executable,)),
            script=SCRIPT,
            request=request,
            seconds=float(options.get("timeout") or DEFAULT_SECONDS + frame_seconds),
            taps=tuple(taps),
            quantization=read_quantization(signature_path(path)) or {},
        )
        shown = _shown(host)
        with _masked(shown):
            return BoardSession(open_foreign(call), board=host.name, shown=shown)


class BoardSession:
    """A worker's session with a board, of which nothing that is said shows the address."""

    def __init__(self, session: ForeignSession, *, board: str, shown: Mapping[str, str]) -> None:
        self._session = session
        self._board = board
        self._shown = shown

    @property
    def signature(self) -> Signature:
        """The network's inputs and outputs as the board tells them."""
        return self._session.signature

    @property
    def environment(self) -> Environment:
        """The worker's stack, and the name of the board."""
        return replace(self._session.environment, board=self._board)

    @property
    def told(self) -> Mapping[str, str]:
        """What the artifact says of itself, such as its march, by name."""
        return self._session.told

    @property
    def notes(self) -> tuple[Message, ...]:
        """Which inputs are quantised here, as the node that did it was removed."""
        return self._session.notes

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """The outputs of one frame."""
        with _masked(self._shown):
            return self._session.infer(feeds, sample=sample)

    def __enter__(self) -> BoardSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.__exit__(kind, error, trace)


def _reached(artifact: Artifact) -> tuple[Boards, Host]:
    """The pool, and the board of it. Raises ConfigError where hbm_infer cannot get there."""
    boards = artifact.options.get("boards")
    host = boards.places()[0] if isinstance(boards, Boards) else None
    if not isinstance(boards, Boards) or host is None:
        raise ConfigError(message("hbm-infer-host", stage=artifact.stage))
    if host.jump is not None or host.proxy:
        raise ConfigError(message("hbm-infer-jump", stage=artifact.stage, board=host.name))
    return boards, host


def _shown(host: Host) -> Mapping[str, str]:
    """What stands in messages for each text that must not; the longer texts first."""
    shown = dict.fromkeys((host.address, *_addresses(host.address)), host.name)
    shown |= dict.fromkeys((host.password, repr(host.password)[1:-1]), HIDDEN) if host.password else {}
    return {secret: shown[secret] for secret in sorted(shown, key=len, reverse=True)}


def _addresses(address: str) -> tuple[str, ...]:
    """What the name of a host stands for, where that is known."""
    try:
        return tuple({str(found[4][0]) for found in socket.getaddrinfo(address, None)})
    except OSError:
        return ()


@contextmanager
def _masked(shown: Mapping[str, str]) -> Iterator[None]:
    """Failures in here are raised anew, without the texts that must not be shown; the old ones are forgotten."""
    try:
        yield
    except DriftgateError as error:
        problems = [
            Message(problem.code, tuple((name, _replaced(value, shown)) for name, value in problem.params))
            for problem in error.problems
        ]
        raise type(error)(*problems) from None


def _replaced(value: Param, shown: Mapping[str, str]) -> Param:
    if isinstance(value, tuple):
        return tuple(_in_text(item, shown) for item in value)
    return _in_text(value, shown) if isinstance(value, str) else value


def _in_text(text: str, shown: Mapping[str, str]) -> str:
    for secret, said in shown.items():
        text = text.replace(secret, said)
    return text
