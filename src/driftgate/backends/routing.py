"""Which backend runs an artifact, where its content says more than its name."""

from __future__ import annotations

from dataclasses import replace

from driftgate.backends.onnxfile import read_onnx
from driftgate.domain.runs import BOARD, INFER
from driftgate.errors import DriftgateError
from driftgate.sessions import Artifact

VENDOR = "hbruntime"


def on_board(artifact: Artifact, board: str | None) -> Artifact:
    """An .hbm that would be simulated runs on a board where one is named for all."""
    is_hbm = artifact.backend == VENDOR and artifact.path is not None and artifact.path.suffix == ".hbm"
    if board is None or not is_hbm:
        return artifact
    kept = {name: value for name, value in artifact.options.items() if name in ("model", "threads", "node_table")}
    return replace(artifact, backend=BOARD, options={**kept, "board": board})


def routed(artifact: Artifact, *, python: tuple[str, ...] | None, timeout: float | None) -> Artifact:
    """The artifact as it is run: an ONNX file with private operators goes to the vendor's runtime where an
    interpreter for it is known; its operators are never emulated.

    `python` and `timeout` are what artifacts of that runtime take where they do not say themselves.
    """
    if artifact.backend == INFER:
        return replace(artifact, options={"python": python, **artifact.options})
    if artifact.backend == VENDOR:
        own = {name: value for name, value in artifact.options.items() if value is not None}
        return replace(artifact, options={"python": python, "timeout": timeout, **own})
    libraries = artifact.options.get("custom_ops")
    if artifact.backend != "onnxruntime" or artifact.path is None or python is None or libraries:
        return artifact
    try:
        foreign = read_onnx(artifact.path).has_foreign_operators()
    except DriftgateError:
        return artifact  # the backend says what is wrong with it
    return replace(artifact, backend=VENDOR, options={"python": python, "timeout": timeout}) if foreign else artifact
