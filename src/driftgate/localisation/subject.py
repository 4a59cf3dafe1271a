"""One side of a link as an investigation sees it: what can be tapped, and runs that are counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.domain.graphs import Graph
from driftgate.domain.tensors import Quantization
from driftgate.errors import BackendError
from driftgate.localisation.modules import read_modules
from driftgate.localisation.onnx_graph import Constants, read_graph
from driftgate.localisation.points import Point, Route, read_points, read_routes
from driftgate.messages.message import message
from driftgate.numerics.alignment import dequantised
from driftgate.sessions import Artifact, Backend, Session, Tensor, Tensors

PART = 1 << 16  # integers that are turned into numbers at a time


class Feeder(Protocol):
    """The feeds of one side for one sample."""

    def __call__(self, sample: str, /) -> Tensors: ...


class Parts(Protocol):
    """An ONNX model taken apart; `folder` is that of its external data."""

    @property
    def model(self) -> onnx.ModelProto: ...

    @property
    def folder(self) -> Path: ...

    def open(self, model: onnx.ModelProto, taps: Sequence[str] = ()) -> Session:
        """Open a model made of these parts as the artifact itself is opened, with intermediate tensors `taps`
        as further outputs."""


class Surgeon(Protocol):
    """A backend whose artifacts can be taken apart and put together anew."""

    def take_apart(self, artifact: Artifact) -> Parts:
        """The parts of an artifact. Raises ArtifactError."""


@dataclass(slots=True)
class Count:
    """What an investigation cost: runs of a model on a sample, and the seconds in them."""

    runs: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Subject:
    """One side. `points` are in order, `outputs` names what the network gives; `graph`, `constants` and `parts` are
    there where the artifact is an ONNX model. `taps` says what to ask a session for where that is not the name of
    the tensor, `sizes` how many numbers a point holds where that is known beforehand."""

    stage: str
    artifact: Artifact
    backend: Backend
    feeds: Feeder
    points: tuple[Point, ...]
    routes: tuple[tuple[Route, ...], ...]
    graph: Graph | None = None
    constants: Constants | None = None
    parts: Parts | None = None
    outputs: tuple[str, ...] = ()
    taps: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[int, int] = field(default_factory=dict)
    count: Count = field(default_factory=Count)
    clock: Callable[[], float] = time.perf_counter

    @property
    def model(self) -> onnx.ModelProto | None:
        """The parsed model, where it is one."""
        return None if self.parts is None else self.parts.model

    def open(self, points: Iterable[int] = ()) -> Session:
        """A session that gives these points as well. An input as it is fed needs no tap."""
        wanted = (self.points[index] for index in points)
        names = (p.tensor for p in wanted if not p.is_input or len(p.names) > 1)
        taps = tuple(tap for tap in dict.fromkeys(self.taps.get(name, name) for name in names) if tap)
        if self.parts is None:
            return self.backend.open(self.artifact, taps=taps)
        return self.parts.open(self.parts.model, taps)

    def run(self, session: Session, feeds: Tensors, sample: str) -> dict[str, Tensor]:
        """One counted run of the artifact, or of a model made of its parts."""
        started = self.clock()
        made = session.infer(feeds, sample=sample)
        self.count.seconds += self.clock() - started
        self.count.runs += 1
        return made

    def numbers(self, index: int, outputs: Mapping[str, Tensor], feeds: Tensors) -> Tensor | None:
        """A point as floating numbers; None where it was not given or is no tensor of numbers."""
        point = self.points[index]
        value = outputs.get(point.tensor, feeds.get(point.tensor))
        if value is None:
            return None
        if point.quantizer is not None and value.dtype.kind in "iu":
            return _dequantised(value, point.quantizer.quantization)
        return value if value.dtype.kind == "f" else None


def read_subject(
    stage: str,
    artifact: Artifact,
    backend: Backend,
    surgeon: Surgeon | None,
    feeds: Feeder,
    *,
    sample: str | None = None,
) -> Subject:
    """An artifact as one side of an investigation: an ONNX model with a surgeon, modules without.

    Modules are found by running one `sample`. Raises BackendError if nothing inside can be looked at, and what
    the backend raises.
    """
    if surgeon is None:
        if sample is None:
            raise BackendError(message("taps-none", stage=stage, backend=artifact.backend))
        found = read_modules(stage, artifact, backend, feeds(sample), sample)
        return Subject(
            stage=stage,
            artifact=artifact,
            backend=backend,
            feeds=feeds,
            points=found.points,
            routes=((),) * len(found.points),
            outputs=found.outputs,
            taps=found.taps,
            sizes=found.sizes,
            count=Count(runs=1),
        )
    parts = surgeon.take_apart(artifact)
    constants = Constants(parts.model, parts.folder)
    graph = read_graph(parts.model, constants)
    points = read_points(graph)
    return Subject(
        stage=stage,
        artifact=artifact,
        backend=backend,
        feeds=feeds,
        points=points,
        routes=read_routes(points, graph),
        graph=graph,
        constants=constants,
        parts=parts,
        outputs=graph.outputs,
    )


def shaped(value: NDArray[Any], like: tuple[int, ...], permutation: tuple[int, ...] | None) -> NDArray[Any] | None:
    """A tensor in the axes of its partner; None where that cannot be."""
    if permutation is not None and len(permutation) == value.ndim:
        value = value.transpose(permutation)
    if value.shape == like:
        return value
    return value.reshape(like) if value.size == int(np.prod(like, dtype=np.int64)) else None


def _dequantised(value: Tensor, quantization: Quantization) -> Tensor:
    """Integers as float32 numbers; in parts where there is one scale, so that little is held."""
    if len(quantization.scales) > 1 or len(quantization.zero_points) > 1:
        return dequantised(value, quantization).astype(np.float32)
    flat = np.ascontiguousarray(value).reshape(-1)
    numbers = np.empty(flat.shape, np.float32)
    for start in range(0, len(flat), PART):
        numbers[start : start + PART] = dequantised(flat[start : start + PART], quantization)
    return numbers.reshape(value.shape)
