"""Runs an .hbm on a board with hrt_model_exec, over SSH or on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from driftgate.backends.artifactfiles import files_digest
from driftgate.backends.board.boards import Boards
from driftgate.backends.board.session import BoardSession
from driftgate.backends.quantfile import FILE_NAME, read_quantization, signature_path
from driftgate.errors import ArtifactError, BackendError, ConfigError
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
        if artifact.path is None:
            raise ArtifactError(message("artifact-no-path", stage=artifact.stage, backend=artifact.backend))
        signature = signature_path(artifact.path)
        parts = [("", artifact.path), *([(FILE_NAME, signature)] if signature.exists() else [])]
        return files_digest(parts)

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> BoardSession:
        """Take a board, send the model if it is not there, let the runtime load it. Raises LoadRefused for what it
        does not load, BackendError where no board can be had."""
        if artifact.path is None:
            raise ArtifactError(message("artifact-no-path", stage=artifact.stage, backend=artifact.backend))
        if not artifact.path.is_file():
            raise ArtifactError(message("artifact-missing", path=str(artifact.path)))
        if taps:
            raise BackendError(message("board-taps", stage=artifact.stage, taps=tuple(taps)))
        boards = artifact.options.get("boards")
        if not isinstance(boards, Boards):
            raise ConfigError(message("board-unknown", stage=artifact.stage, name="-", known=("-",)))
        scales = read_quantization(signature_path(artifact.path)) or {}
        return BoardSession(
            artifact.stage,
            artifact.path,
            boards,
            scales,
            model=artifact.options.get("model"),
            keeps_inputs=bool(artifact.options.get("keeps_inputs")),
        )
