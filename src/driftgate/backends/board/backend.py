"""Runs an .hbm on a board with hrt_model_exec, over SSH or on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from driftgate.backends.board.boards import Boards
from driftgate.backends.board.session import BoardSession
from driftgate.backends.quantfile import read_quantization, signature_path
from driftgate.backends.vendorfiles import vendor_digest, vendor_path
from driftgate.errors import BackendError, ConfigError
from driftgate.messages.message import message
from driftgate.sessions import Artifact


class BoardBackend:
    """The artifact is an .hbm.

    Options: `boards`, a Boards with what is known of the pool; `model`, the network, where the file has several;
    `keeps_inputs`, whether the session keeps the inputs as the board saw them. Nothing can be tapped.
    """

    needs_feeds = True

    def digest(self, artifact: Artifact) -> str:
        """SHA-256 over the file, and the signature.json."""
        return vendor_digest(artifact)

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> BoardSession:
        """Take a board, send the model if it is not there, let the runtime load it. Raises LoadRefused for what it
        does not load, BackendError where no board can be had."""
        path = vendor_path(artifact)
        if taps:
            raise BackendError(message("board-taps", stage=artifact.stage, taps=tuple(taps)))
        boards = artifact.options.get("boards")
        if not isinstance(boards, Boards):
            raise ConfigError(message("board-unknown", stage=artifact.stage, name="-", known=("-",)))
        scales = read_quantization(signature_path(path)) or {}
        return BoardSession(
            artifact.stage,
            path,
            boards,
            scales,
            model=artifact.options.get("model"),
            keeps_inputs=bool(artifact.options.get("keeps_inputs")),
        )
