"""The worker's side of the protocol of backends/foreign.py; it is copied beside a worker and imported by it first.

Standard library and numpy only, and Python 3.8: it runs under foreign interpreters.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, TextIO, Tuple  # noqa: UP035

PROTOCOL = 1
TAIL_LINES = 20
TAIL_LINE_CHARACTERS = 300
FOLDER = Path(__file__).resolve().parent

#: A function from feeds to outputs, all of them numpy arrays.
Infer = Callable[[Dict[str, Any]], Mapping[str, Any]]  # noqa: UP006
#: A function from feeds to what one run calls, in order: {"tensor", "module", "size", "same"}.
Trace = Callable[[Dict[str, Any]], List[Dict[str, Any]]]  # noqa: UP006
#: A function from a request and the names of taps to the answer to `open`, what answers `infer`, and, where
#: the answer has "modules", what answers `trace`.
Open = Callable[[Dict[str, Any], Sequence[str]], Tuple[Any, ...]]  # noqa: UP006


class Failure(Exception):
    """A failure with a code; `kind` is artifact, refused, sample or tool."""

    def __init__(self, kind: str, code: str, **params: object) -> None:
        super().__init__(code)
        self.params = params
        self.report = {"kind": kind, "code": code, "params": params}


def take_channels() -> tuple[TextIO, TextIO]:
    """Keep stdin and stdout for the protocol: whoever prints from now on prints to stderr, whoever reads gets
    nothing."""
    commands = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return commands, answers


def serve(packages: Sequence[str], open_artifact: Open, known: Mapping[str, str] = {}) -> int:
    """Greet with the versions of `packages` and those `known`, then answer commands until stdin ends; returns the
    exit code."""
    commands, answers = take_channels()
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != FOLDER]
    versions = {"python": platform.python_version(), **known}
    for package in ("numpy", *packages):
        try:
            versions[package] = str(importlib.import_module(package).__version__)
        except ImportError as error:
            missing = Failure("tool", "worker-package", package=package, reason=str(error))
            _say(answers, {"protocol": PROTOCOL, "error": missing.report})
            return 1
    _say(answers, {"protocol": PROTOCOL, "versions": versions})
    infer = trace = None
    for line in commands:
        command = json.loads(line)
        try:
            if command["do"] == "open":
                answer, infer, trace = (*open_artifact(command["request"], command["taps"]), None)[:3]
            elif command["do"] == "trace":
                answer = _trace(trace, command)
            else:
                answer = _infer(infer, command)
            _say(answers, {"number": command["number"], "ok": answer})
        except Failure as failure:
            _say(answers, {"number": command["number"], "error": _with_tail(failure)})
        except (Exception, SystemExit) as error:  # the user's code and foreign stacks raise whatever they like
            raised = Failure("tool", "worker-raised", doing=command["do"], reason=reason(error))
            _say(answers, {"number": command["number"], "error": _with_tail(raised)})
    return 0


def distributions(names: Sequence[str]) -> Dict[str, str]:  # noqa: UP006
    """Versions of those distributions that are installed."""
    from importlib import metadata

    told = {}
    for name in names:
        try:
            told[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return told


def reason(error: BaseException) -> str:
    """Type and first line of an exception."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _with_tail(failure: Failure) -> dict[str, Any]:
    """The report, with the end of the traceback that is being handled: stderr may lag behind the answer."""
    traceback.print_exc()
    lines = [line[:TAIL_LINE_CHARACTERS] for line in traceback.format_exc().splitlines()[-TAIL_LINES:]]
    return {**failure.report, "params": {**failure.params, "tail": "\n".join(lines)}}


def _feeds(command: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    return {name: np.load(FOLDER / file, allow_pickle=False) for name, file in command["feeds"].items()}


def _trace(trace: Trace | None, command: Mapping[str, Any]) -> dict[str, Any]:
    if trace is None:
        raise Failure("tool", "worker-raised", doing="trace", reason="nothing is open that can be traced")
    return {"calls": trace(_feeds(command))}


def _infer(infer: Infer | None, command: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    if infer is None:
        raise Failure("tool", "worker-raised", doing="infer", reason="nothing is open")
    files = {}
    for position, (name, array) in enumerate(infer(_feeds(command)).items()):
        files[name] = f"out-{position}.npy"
        np.save(FOLDER / files[name], array, allow_pickle=False)
    return {"outputs": files}


def _say(answers: TextIO, answer: Mapping[str, Any]) -> None:
    sys.stderr.flush()
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
