"""One side of a link as an investigation sees it: what can be tapped, and runs that are counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.domain.graphs import Graph
from driftgate.localisation.onnx_graph import Constants, read_graph
from driftgate.localisation.points import Point, Route, read_points, read_routes
from driftgate.numerics.alignment import dequantised
from driftgate.sessions import Artifact, Backend, Session, Tensor, Tensors

DEFAULT_BYTES = 1 << 22  # a tensor whose size nobody knows yet
SHARE = 4  # what is tapped is held about so many times: in the runtime, here, as numbers, as differences


class Feeder(Protocol):
    """The feeds of one side for one sample."""

    def __call__(self, sample: str, /) -> Tensors: ...


class Model(Protocol):
    """A parsed model and the folder of its external data."""

    @property
    def model(self) -> onnx.ModelProto: ...

    @property
    def folder(self) -> Path: ...


class Surgeon(Protocol):
    """A backend whose artifacts can be taken apart and put together anew."""

    def read_model(self, artifact: Artifact) -> Model:
        """The parsed model."""

    def open_model(self, artifact: Artifact, model: onnx.ModelProto) -> Session:
        """Open a model made of the artifact's parts."""


@dataclass(slots=True)
class Count:
    """What an investigation cost: runs of a model on a sample, and the seconds in them."""

    runs: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Subject:
    """One side. `graph` and `surgeon` are there where the artifact is an ONNX model; `points` are in order."""

    stage: str
    artifact: Artifact
    backend: Backend
    feeds: Feeder
    points: tuple[Point, ...]
    routes: tuple[tuple[Route, ...], ...]
    graph: Graph | None = None
    constants: Constants | None = None
    model: onnx.ModelProto | None = None
    surgeon: Surgeon | None = None
    count: Count = field(default_factory=Count)

    def tapped(
        self, windows: Sequence[Sequence[int]], samples: Sequence[str]
    ) -> Iterator[tuple[int, str, dict[int, Tensor], dict[str, Tensor]]]:
        """Run with taps, windows outside and samples inside: (window, sample, numbers by point, all outputs)."""
        for number, window in enumerate(windows):
            names = [self.points[index].tensor for index in window if not self.points[index].is_input]
            extra = [self.points[i].tensor for i in window if self.points[i].is_input and len(self.points[i].names) > 1]
            with self.backend.open(self.artifact, taps=tuple(dict.fromkeys((*names, *extra)))) as session:
                for sample in samples:
                    outputs = self._run(session, self.feeds(sample), sample)
                    yield number, sample, self.values(window, outputs, sample), outputs

    def values(self, window: Sequence[int], outputs: Mapping[str, Tensor], sample: str) -> dict[int, Tensor]:
        """The tapped points as numbers; what is no tensor of numbers is left out."""
        feeds = self.feeds(sample)
        found: dict[int, Tensor] = {}
        for index in window:
            point = self.points[index]
            value = outputs.get(point.tensor, feeds.get(point.tensor))
            if value is None:
                continue
            if point.quantizer is not None:
                found[index] = dequantised(value, point.quantizer.quantization).astype(np.float32)
            elif value.dtype.kind == "f":
                found[index] = value
        return found

    def _run(self, session: Session, feeds: Tensors, sample: str) -> dict[str, Tensor]:
        self.count.runs += 1
        return session.infer(feeds, sample=sample)

    def cut_runs(self, session: Session, feeds: Tensors, sample: str) -> dict[str, Tensor]:
        """One counted run of a model made of this one's parts."""
        return self._run(session, feeds, sample)


def read_subject(stage: str, artifact: Artifact, backend: Backend, surgeon: Surgeon, feeds: Feeder) -> Subject:
    """An ONNX artifact as one side of an investigation."""
    file = surgeon.read_model(artifact)
    constants = Constants(file.model, file.folder)
    graph = read_graph(file.model, constants)
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
        model=file.model,
        surgeon=surgeon,
    )


def windows(points: Sequence[int], sizes: Mapping[int, int], budget_bytes: int) -> list[list[int]]:
    """The points in runs of neighbours whose tensors fit the budget together; one that does not fit stands alone."""
    room = max(1, budget_bytes // SHARE)
    found: list[list[int]] = []
    held = 0
    for index in points:
        size = sizes.get(index, DEFAULT_BYTES)
        if not found or held + size > room:
            found.append([])
            held = 0
        found[-1].append(index)
        held += size
    return found


def shaped(value: NDArray[Any], like: tuple[int, ...], permutation: tuple[int, ...] | None) -> NDArray[Any] | None:
    """A tensor in the axes of its partner; None where that cannot be."""
    if permutation is not None and len(permutation) == value.ndim:
        value = value.transpose(permutation)
    if value.shape == like:
        return value
    return value.reshape(like) if value.size == int(np.prod(like, dtype=np.int64)) else None
