"""Sessions whose work is done by a worker: our script under another interpreter, with another stack.

The protocol, version 1. The worker writes one JSON object a line, the greeting first:
`{"protocol": 1, "versions": {"python": …}}`. Each command that it reads has a number, and its answer the same:

    {"number": 1, "do": "open", "request": {…}, "taps": […]}
    {"number": 1, "ok": {"inputs": [{"name", "dtype", "shape", "optional"}], "provider", "level", "threads",
                         "modules": [[name, type], …], "anything": true where any feeds will do,
                         "outputs": [{"name", …}] where they are known before the first run,
                         "told": {"march": …} where the artifact says something of itself}}
    {"number": 2, "do": "infer", "sample": "0000", "feeds": {"x": "in-0.npy"}}
    {"number": 2, "ok": {"outputs": {"y": "out-0.npy"}}}
    {"number": 3, "do": "trace", "sample": "0000", "feeds": {"x": "in-0.npy"}}
    {"number": 3, "ok": {"calls": [{"tensor", "module", "size", "same"}]}}
    {"number": 4, "error": {"kind": "tool", "code": "torch-tap-unknown", "params": {…}}}

Where integers of an input or output stand for numbers, its entry has "quantized", their type, with "scales",
"zero_points" and "axis".

Tensors are `.npy` files in the folder that the script itself lies in, a private one. In a container, this folder
must be mounted under its own name. The end of its stdin ends the worker.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from driftgate.backends.feeds import check_feeds
from driftgate.backends.process import Child, ChildDied, ChildSilent
from driftgate.backends.processor import processor
from driftgate.backends.quantfile import OutputQuantization
from driftgate.domain.runs import Environment
from driftgate.domain.tensors import Quantization, Signature, TensorSpec
from driftgate.errors import ArtifactError, BackendError, DriftgateError, LoadRefused, SampleError
from driftgate.messages.message import Message, Param, message
from driftgate.numerics.alignment import quantised
from driftgate.sessions import Tensor, Tensors

PROTOCOL = 1
WORKERS = Path(__file__).with_name("workers")
#: The worker's side of the protocol, which its script imports from its own folder.
PROTOCOL_FILE = "worker_protocol.py"
SHOWN_CHARACTERS = 200
CONTAINERS = ("docker", "podman", "nerdctl")

#: What a worker calls a failure, and the error that stands for it.
KINDS: dict[str, type[DriftgateError]] = {
    "artifact": ArtifactError,
    "refused": LoadRefused,
    "sample": SampleError,
    "tool": BackendError,
}


@dataclass(frozen=True, slots=True)
class WorkerCall:
    """How to start a worker, and what it is asked to open. `seconds` is the longest it may take to answer."""

    stage: str
    interpreter: tuple[str, ...]
    script: Path
    request: Mapping[str, Any]
    seconds: float
    taps: tuple[str, ...] = ()
    quantization: Mapping[str, OutputQuantization] = field(default_factory=dict)  # of outputs, by name


@dataclass(frozen=True, slots=True)
class TracedTensor:
    """A floating tensor that a module returned; `same` names it as it was returned before, if it was."""

    tensor: str
    module: str
    size: int
    same: str = ""


def open_foreign(call: WorkerCall) -> ForeignSession:
    """Start the worker and let it open the artifact.

    Raises BackendError if the worker is absent, dies, hangs or answers nonsense, and what the worker reports.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="driftgate-worker-")))
        for file in (call.script, WORKERS / PROTOCOL_FILE):
            shutil.copy(file, folder / file.name)
        command = (*call.interpreter, str(folder / call.script.name))
        try:
            child = stack.enter_context(Child(command))
        except OSError as error:
            reason = error.strerror or str(error)
            raise BackendError(message("worker-start", stage=call.stage, command=command, reason=reason)) from error
        line = _Line(call, child)
        versions = line.greeting()
        opened = line.ask("open", request=dict(call.request), taps=list(call.taps))
        session = ForeignSession(line, folder, opened, versions)
        session.own(stack.pop_all())
    return session


class ForeignSession:
    """One artifact, opened by a worker that serves all samples."""

    def __init__(
        self, line: _Line, folder: Path, opened: Mapping[str, Any], versions: tuple[tuple[str, str], ...]
    ) -> None:
        self._line = line
        self._folder = folder
        self._resources = ExitStack()
        self._inputs = tuple(line.spec(entry) for entry in line.items(opened, "inputs"))
        self._optional = frozenset(entry["name"] for entry in opened["inputs"] if entry.get("optional"))
        self._takes_anything = opened.get("anything") is True  # a function, whose inputs nobody knows
        self._quantization = line.quantization
        self._seen = False
        self._outputs = tuple(self._described(line.spec(e)) for e in line.items({"outputs": [], **opened}, "outputs"))
        self._told = {name: str(value) for name, value in line.entries({"told": {}, **opened}, "told").items()}
        self._modules = tuple(line.module(entry) for entry in line.items({"modules": [], **opened}, "modules"))
        self._environment = Environment(
            provider=str(opened.get("provider", "")),
            level=str(opened.get("level", "")),
            threads=line.integer(opened, "threads"),
            cpu=processor(),
            versions=versions,
        )

    def own(self, resources: ExitStack) -> None:
        """Take over what must be closed with the session: process and folder."""
        self._resources = resources

    @property
    def signature(self) -> Signature:
        """Inputs that must be fed, with an empty dtype where the artifact does not say; the outputs become
        known, as they were seen, with the first sample."""
        return Signature(tuple(spec for spec in self._inputs if spec.name not in self._optional), self._outputs)

    @property
    def optional_inputs(self) -> tuple[str, ...]:
        """Names of inputs that may be fed, in the artifact's order."""
        return tuple(spec.name for spec in self._inputs if spec.name in self._optional)

    @property
    def environment(self) -> Environment:
        """What the worker says of its stack, on this machine's processor."""
        return self._environment

    @property
    def tappable(self) -> tuple[tuple[str, str], ...]:
        """Names and types of the modules whose outputs can be tapped; empty where there are none."""
        return self._modules

    @property
    def told(self) -> Mapping[str, str]:
        """What the artifact says of itself, such as its march, by name."""
        return self._told

    @property
    def notes(self) -> tuple[Message, ...]:
        """Which inputs are quantised here, as the node that did it was removed."""
        names = tuple(spec.name for spec in self._inputs if spec.quantization is not None)
        return (message("inputs-requantised", stage=self._line.stage, inputs=names),) if names else ()

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        """Hand the feeds over as files, and read the outputs from files."""
        with self._asked("infer", feeds, sample) as answer:
            made = {name: self._read(file) for name, file in self._line.entries(answer, "outputs").items()}
        if not self._seen:
            known = {spec.name: spec for spec in self._outputs}
            specs = (
                replace(known.get(name, TensorSpec(name, "")), dtype=t.dtype.name, shape=t.shape)
                for name, t in made.items()
            )
            self._outputs, self._seen = tuple(self._described(spec) for spec in specs), True
        return made

    def _described(self, spec: TensorSpec) -> TensorSpec:
        """An output with what is known of its quantisation."""
        told = self._quantization.get(spec.name)
        return spec if told is None else replace(spec, quantization=told.quantization, step=told.step)

    def trace(self, feeds: Tensors, *, sample: str) -> tuple[TracedTensor, ...]:
        """Run once, and tell which tensors the modules returned, in order."""
        with self._asked("trace", feeds, sample) as answer:
            return tuple(self._line.traced(entry) for entry in self._line.items(answer, "calls"))

    @contextmanager
    def _asked(self, verb: str, feeds: Tensors, sample: str) -> Iterator[Mapping[str, Any]]:
        """The answer to a command that takes feeds; its files are there as long as this lasts."""
        feeds = {name: self._fitted(name, value) for name, value in feeds.items()}
        if not self._takes_anything:
            check_feeds(feeds, self._inputs, stage=self._line.stage, sample=sample, optional=self._optional)
        names = {name: f"in-{position}.npy" for position, name in enumerate(feeds)}
        for name, file in names.items():
            np.save(self._folder / file, feeds[name], allow_pickle=False)
        try:
            yield self._line.ask(verb, sample=sample, feeds=names)
        finally:
            for spent in self._folder.glob("*.npy"):
                spent.unlink()

    def _fitted(self, name: str, feed: Tensor) -> Tensor:
        """A feed as its input takes it: numbers for an input of scaled integers are quantised."""
        spec = next((spec for spec in self._inputs if spec.name == name), None)
        if spec is None or spec.quantization is None or feed.dtype.kind != "f":
            return feed
        return quantised(feed, spec.quantization, spec.dtype)

    def __enter__(self) -> ForeignSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def _read(self, file: object) -> Tensor:
        if not isinstance(file, str) or os.path.basename(file) != file or not file.endswith(".npy"):  # noqa: PTH119
            raise self._line.nonsense(str(file))
        try:
            tensor: Tensor = np.load(self._folder / file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise self._line.nonsense(f"{file}: {error}") from error
        return tensor


def is_container(command: Sequence[str]) -> bool:
    """Whether an interpreter's command starts it in a container."""
    return Path(command[0]).name in CONTAINERS if command else False


def _quantization(entry: Mapping[str, Any]) -> Quantization:
    """Scales, zero points and axis of an entry. Raises KeyError, TypeError or ValueError."""
    axis = entry.get("axis")
    scales = tuple(float(scale) for scale in entry["scales"])
    if not scales or not all(math.isfinite(scale) and scale > 0 for scale in scales):
        raise ValueError("scales")
    return Quantization(scales, tuple(int(zero) for zero in entry["zero_points"]), None if axis is None else int(axis))


class _Line:
    """The conversation with one worker; every failure becomes an error of the stage, with its last words."""

    def __init__(self, call: WorkerCall, child: Child) -> None:
        self.stage = call.stage
        self.quantization = call.quantization
        self._call = call
        self._child = child
        self._number = 0
        self._over = False

    def greeting(self) -> tuple[tuple[str, str], ...]:
        """The versions in the greeting, sorted by name."""
        greeting = self._answer("start")
        if greeting.get("protocol") != PROTOCOL:
            if isinstance(greeting.get("protocol"), int):
                found = int(greeting["protocol"])
                raise self._given_up("worker-protocol", found=found, wanted=PROTOCOL)
            raise self.nonsense(json.dumps(greeting))
        if "error" in greeting:
            raise self._reported(greeting["error"])
        return tuple(sorted((str(name), str(value)) for name, value in self.entries(greeting, "versions").items()))

    def ask(self, verb: str, **arguments: object) -> Mapping[str, Any]:
        """Send a command and wait for its answer."""
        if self._over:
            raise self._failure("worker-over")
        self._number += 1
        doing = f"{verb} {arguments['sample']}" if "sample" in arguments else verb
        try:
            self._child.send(json.dumps({"number": self._number, "do": verb, **arguments}))
        except ChildDied as error:
            raise self._died(doing) from error
        answer = self._answer(doing)
        if answer.get("number") != self._number:
            raise self.nonsense(json.dumps(answer))
        if "error" in answer:
            raise self._reported(answer["error"])
        if not isinstance(answer.get("ok"), dict):
            raise self.nonsense(json.dumps(answer))
        result: Mapping[str, Any] = answer["ok"]
        return result

    def items(self, answer: Mapping[str, Any], key: str) -> list[Any]:
        """A list in an answer."""
        found = answer.get(key)
        if not isinstance(found, list):
            raise self.nonsense(json.dumps(answer))
        return found

    def entries(self, answer: Mapping[str, Any], key: str) -> dict[str, Any]:
        """An object in an answer."""
        found = answer.get(key)
        if not isinstance(found, dict):
            raise self.nonsense(json.dumps(answer))
        return found

    def integer(self, answer: Mapping[str, Any], key: str) -> int:
        """A whole number in an answer, 0 where it is absent."""
        found = answer.get(key, 0)
        if not isinstance(found, int):
            raise self.nonsense(json.dumps(answer))
        return found

    def spec(self, entry: object) -> TensorSpec:
        """One input as the worker describes it."""
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise self.nonsense(json.dumps(entry))
        shape = entry.get("shape")
        fixed = None if shape is None else tuple(None if n is None else int(n) for n in shape)
        if not entry.get("quantized"):
            return TensorSpec(entry["name"], str(entry.get("dtype") or ""), fixed)
        try:
            return TensorSpec(entry["name"], np.dtype(entry["quantized"]).name, fixed, _quantization(entry))
        except (KeyError, TypeError, ValueError) as error:
            raise self.nonsense(json.dumps(entry)) from error

    def module(self, entry: object) -> tuple[str, str]:
        """A module's name and type."""
        if not isinstance(entry, list) or [type(item) for item in entry] != [str, str]:
            raise self.nonsense(json.dumps(entry))
        return entry[0], entry[1]

    def traced(self, entry: object) -> TracedTensor:
        """One tensor that a module returned."""
        kinds = {"tensor": str, "module": str, "size": int, "same": str}
        if not isinstance(entry, dict) or {key: type(item) for key, item in entry.items()} != kinds:
            raise self.nonsense(json.dumps(entry))
        return TracedTensor(**entry)

    def nonsense(self, found: str) -> BackendError:
        """What it wrote is no answer."""
        return self._given_up("worker-nonsense", found=found[:SHOWN_CHARACTERS])

    def _answer(self, doing: str) -> dict[str, Any]:
        try:
            line = self._child.receive(self._call.seconds)
        except ChildDied as error:
            raise self._died(doing) from error
        except ChildSilent as error:
            raise self._given_up("worker-silent", doing=doing, seconds=self._call.seconds) from error
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise self.nonsense(line) from error
        if not isinstance(answer, dict):
            raise self.nonsense(line)
        return answer

    def _died(self, doing: str) -> BackendError:
        self._over = True
        code = self._child.close()
        tail = self._child.last_words()
        if doing == "start" and is_container(self._call.interpreter):
            folder = tempfile.gettempdir()
            told = message("worker-container", exit_code=code, tail=tail, folder=folder, stage=self.stage)
            return BackendError(told)
        return BackendError(
            message("worker-died", doing=doing, exit_code=code, tail=tail, stage=self.stage, command=self._command)
        )

    def _given_up(self, code: str, **params: Param) -> BackendError:
        """A worker that no longer keeps to the protocol is ended at once."""
        self._over = True
        failure = self._failure(code, **params)
        self._child.terminate()
        return failure

    def _failure(self, code: str, **params: Param) -> BackendError:
        tail = self._child.last_words()
        return BackendError(message(code, tail=tail, stage=self.stage, command=self._command, **params))

    @property
    def _command(self) -> str:
        return " ".join(self._call.interpreter)

    def _reported(self, problem: object) -> DriftgateError:
        """What the worker itself says of a failure."""
        if (
            not isinstance(problem, dict)
            or problem.get("kind") not in KINDS
            or not isinstance(problem.get("code"), str)
        ):
            return self.nonsense(json.dumps(problem))
        params: dict[str, Param] = {
            str(name): tuple(str(item) for item in value) if isinstance(value, list) else value
            for name, value in self.entries(problem, "params").items()
            if isinstance(value, (str, int, float, list))
        }
        given = {"command": self._command, "tail": self._child.last_words(), **params, "stage": self.stage}
        return KINDS[problem["kind"]](Message(problem["code"], tuple(sorted(given.items()))))
