"""hrt_model_exec: what it is asked, and what its answers mean (toolchain facts §7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driftgate.backends.board import scripts
from driftgate.backends.board.boards import Boards
from driftgate.backends.board.cores import hrt_core
from driftgate.backends.board.lock import asked
from driftgate.backends.board.transport import Transport
from driftgate.backends.boardtensors import TYPES
from driftgate.domain.toolchain.board import BoardModels, BoardPerf, BoardTensor
from driftgate.domain.toolchain.releases import is_newer
from driftgate.errors import ArtifactError, BackendError, DriftgateError, LoadRefused
from driftgate.messages.message import message
from driftgate.sessions import Tensor
from driftgate.transforms.strided import Layout, bytes_of, nv12_stride
from driftgate.vendor.exec_info import parse_model_tensors
from driftgate.vendor.exec_perf import parse_board_perf
from driftgate.vendor.faults import parse_faults, telling_lines

INFO_SECONDS = 300.0
PERF_SECONDS = 1800.0
SHOWN = 300
#: Words of a runtime that will never load this file, as against one that could not just now. Its greeting tells a
#: version whatever happens, so that the word alone says nothing.
REFUSED = re.compile(
    r"-600002|INVALID_ARGUMENT"
    r"|version[^\n]*(mismatch|incompatib|unsupported|not support|newer|older|too )"
    r"|(mismatch|incompatib|unsupported|newer|older)[^\n]*version",
    re.IGNORECASE,
)
PICTURE_RANK = 4


@dataclass(frozen=True, slots=True)
class Input:
    """A feed as a file for the tool, and what must be said of it where its form is not fixed."""

    content: bytes
    ending: str = "bin"
    shape: str = ""
    stride: str = ""


def asked_model(transport: Transport, boards: Boards, path: str, *, stage: str) -> BoardModels:
    """What the runtime says of a model. Raises LoadRefused where it does not load it, BackendError where
    the tool is absent or answers something else, Lost where the board does not."""
    command = f"{scripts.quoted(boards.tool)} model_info --model_file={scripts.quoted(path)}"
    text, code = _run(transport, boards, command, step="model_info", seconds=INFO_SECONDS)
    if code:
        raise failed(text, code, boards, stage=stage, loading=True)
    try:
        return parse_model_tensors(text, name=f"{boards.tool} model_info")
    except DriftgateError as error:
        said = text[-SHOWN:].strip()
        raise BackendError(message("board-garbage", stage=stage, board=boards.name, said=said or "-")) from error


def measured(transport: Transport, boards: Boards, path: str, *, stage: str) -> tuple[BoardPerf, ...]:
    """So many runs of perf as are planned. Raises as `asked_model`."""
    plan = boards.perf
    found = []
    for _ in range(0 if plan is None else plan.runs):
        command = (
            f"{scripts.quoted(boards.tool)} perf --model_file={scripts.quoted(path)} --core_id={hrt_core(boards.core)} "
            f"--frame_count={plan.frames if plan else 0} --thread_num={plan.threads if plan else 0}"
        )
        text, code = _run(transport, boards, command, step="perf", seconds=PERF_SECONDS)
        if code:
            raise failed(text, code, boards, stage=stage)
        try:
            found.append(parse_board_perf(text, name=f"{boards.tool} perf"))
        except DriftgateError as error:
            said = text[-SHOWN:].strip()
            raise BackendError(message("board-garbage", stage=stage, board=boards.name, said=said or "-")) from error
    return tuple(found)


def infer_command(boards: Boards, path: str, folder: str, model: str | None) -> str:
    """What runs one sample, but for its inputs."""
    words = [
        scripts.quoted(boards.tool),
        "infer",
        f"--model_file={scripts.quoted(path)}",
        *([f"--model_name={scripts.quoted(model)}"] if model else []),
        f"--core_id={hrt_core(boards.core)}",
        "--enable_dump=true",
        "--dump_format=bin",
        f"--dump_path={scripts.quoted(folder)}",
    ]
    return " ".join(words)


def arguments(files: Sequence[str], inputs: Sequence[Input]) -> str:
    """The inputs of one sample, for the tool."""
    words = [f"--input_file={','.join(files)}"]
    if any(one.shape for one in inputs):
        shapes, strides = (
            ";".join(values) for values in zip(*((one.shape, one.stride) for one in inputs), strict=True)
        )
        words += [f'--input_valid_shape="{shapes}"', f'--input_stride="{strides}"']
    return " ".join(words)


def input_of(tensor: BoardTensor, value: Tensor, *, w_stride: int) -> Input:
    """A feed as the tool reads it: dense where the form is fixed, the tool pads it; with the platform's strides where
    it is not (pyramid, resizer); a region as text."""
    kind = TYPES[tensor.dtype or ""]
    if value.dtype.name != kind:
        raise ArtifactError(
            message("board-feed", input=str(tensor.name), found=value.dtype.name, wanted=kind, shape=str(value.shape))
        )
    if kind == "int32" and value.size == PICTURE_RANK and None not in (tensor.shape or (None,)) and _is_region(tensor):
        return Input((" ".join(str(int(one)) for one in value.reshape(-1)) + "\n").encode(), "txt")
    if None not in (tensor.shape or ()) or value.ndim != PICTURE_RANK:
        return Input(np.ascontiguousarray(value).tobytes())
    stride = nv12_stride(value.shape, w_stride)
    held = bytes_of(np.ascontiguousarray(value), Layout(kind, value.shape, stride), total_bytes=stride[0])
    return Input(held, shape=_listed(value.shape), stride=_listed(stride))


def failed(text: str, code: int, boards: Boards, *, stage: str, loading: bool = False) -> DriftgateError:
    """What a call that failed means. A march that is not the board's, a model newer than its runtime, and a file that
    this never loads are refusals; memory, and what depends on what ran before, are not the model's fault."""
    faults = {fault.kind: fault for fault in parse_faults(f"{text}\n")}
    said = {"stage": stage, "board": boards.name}
    tail = _tail(text)
    if march := faults.get("march"):
        return LoadRefused(message("board-march", found=march.found or "?", wanted=march.wanted or "?", **said))
    if "environment" in faults:
        return BackendError(message("board-environment", said=tail, **said))
    if memory := faults.get("memory"):
        return BackendError(message("board-memory", length=memory.length_bytes or 0, **said))
    if code in (126, 127):
        return BackendError(message("board-no-tool", tool=boards.tool, said=tail, **said))
    version = faults.get("version")
    built, loads = (version.found or "", version.wanted or "") if version else ("", "")
    if loading and is_newer(built, loads):
        return LoadRefused(message("board-newer", hbdk=built, hbrt=loads, said=tail, **said))
    if loading and REFUSED.search(text):
        return LoadRefused(message("board-refused", said=tail, **said))
    return BackendError(message("board-tool-failed", tool=boards.tool, exit_code=code, said=tail, **said))


def _run(transport: Transport, boards: Boards, command: str, *, step: str, seconds: float) -> tuple[str, int]:
    """What a call prints on both streams, and its exit code, which is told behind it."""
    environment: Mapping[str, str] = dict(boards.environment)
    line = f"{scripts.exported(environment)}; {command} < /dev/null 2>&1; c=$?; echo; echo exit $c"
    said = asked(transport, line, step=step, seconds=seconds)
    text, _, code = said.rstrip("\n").rpartition("exit ")
    return text.rstrip("\n"), int(code) if code.isdigit() else 1


def _is_region(tensor: BoardTensor) -> bool:
    return tuple(tensor.shape or ()) == (1, PICTURE_RANK) and "roi" in str(tensor.name).lower()


def _listed(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def _tail(text: str) -> str:
    """The last lines, and before them the first one that tells a known error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()][-3:]
    told = next((line[: SHOWN // 2] for line in telling_lines(text) if line not in lines), None)
    if told is None:
        return " / ".join(lines)[-SHOWN:] or "-"
    return f"{told} / {' / '.join(lines)[-SHOWN // 2 :]}"
