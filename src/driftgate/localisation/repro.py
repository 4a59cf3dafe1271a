"""A repro: the smallest part of the candidate that shows a node's error by itself, as a folder of files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from driftgate.domain.graphs import Graph
from driftgate.domain.investigations import Investigation, NodeError, Pair
from driftgate.errors import ArtifactError, BackendError, UsageError
from driftgate.localisation.forced import Cut, alone, cut, frontier, plain_names
from driftgate.localisation.points import Point
from driftgate.localisation.subject import Parts, Subject, shaped
from driftgate.localisation.types import tensor_types
from driftgate.messages.message import message
from driftgate.numerics.alignment import all_equal
from driftgate.numerics.moments import by_channel
from driftgate.sessions import Tensor, Tensors
from driftgate.storage.folder import write_all
from driftgate.storage.npz import npz_bytes

REPRO, MODEL_A, MODEL_B = "repro.onnx", "model_a.onnx", "model_b.onnx"
INPUTS, INPUTS_B, OUTPUTS_A, OUTPUTS_B = "inputs.npz", "inputs_b.npz", "outputs_a.npz", "outputs_b.npz"
SAME = 1e-6  # share of the error by which a second run may differ


@dataclass(frozen=True, slots=True)
class Repro:
    """The written files, and the root mean square of what the part gives against the reference."""

    files: tuple[Path, ...]
    error: float


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of one side that runs by itself, what it is fed and what it gives, by name."""

    model: onnx.ModelProto
    feeds: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]


def write_repro(
    folder: Path, a: Subject, b: Subject, investigation: Investigation, node: NodeError, sample: str
) -> Repro:
    """Write the candidate's operators between the pairs before a node and the node itself, what the reference
    gives them on one sample, and what comes out on both sides; then run what was written.

    `repro.onnx` is the candidate's part; the rest is an evidence folder. Raises BackendError if the candidate
    cannot be cut open or the written part gives another error, UsageError for a node of another link,
    StorageError, and what the backends raise.
    """
    if b.parts is None or b.graph is None:
        raise BackendError(message("repro-uncut", stage=b.stage))
    partner = _partners(a, b, investigation)
    if node.order not in partner:
        known = tuple(pair.tensor_b for pair in investigation.pairs)
        raise UsageError(message("repro-unknown", node=node.pair.tensor_b, known=known))
    given = tuple(index for index in partner if index != node.order)
    needed = frontier(b.parts.model, b.graph, b.points, given=given, wanted=[node.order])
    wanted_a = partner[node.order][0]
    others = tuple(index for index, _ in partner.values() if index != wanted_a)
    before_a: tuple[int, ...] = ()
    if a.parts is not None and a.graph is not None:
        before_a = frontier(a.parts.model, a.graph, a.points, given=others, wanted=[wanted_a])
    tapped = dict.fromkeys((*(partner[index][0] for index in needed), wanted_a, *before_a))
    reference = _numbers(a, tuple(tapped), sample)
    own = _numbers(b, (*needed, node.order), sample)
    values = {
        index: _as_candidate(reference[partner[index][0]], own[index], partner[index][1].permutation)
        for index in needed
        if partner[index][0] in reference and index in own
    }
    part_b = _part(b, b.parts, b.graph, tuple(values), node.order, values, own, sample)
    truth = reference[wanted_a]
    part_a = None
    if a.parts is not None and a.graph is not None and not _is_fed(a.points[wanted_a], a.graph):
        given_a = tuple(index for index in others if index in reference)
        part_a = _part(a, a.parts, a.graph, given_a, wanted_a, reference, reference, sample)
    error = _error(b, node, truth, part_b.outputs)
    files = _files(part_a, part_b, {node.pair.tensor_a: truth})
    write_all(folder, files)
    again = _error(b, node, truth, _run_again(b, folder, INPUTS_B if INPUTS_B in files else INPUTS, sample))
    if not abs(again - error) <= SAME * error:
        raise BackendError(
            message("repro-other", stage=b.stage, node=node.pair.tensor_b, error=f"{error:.3g}", again=f"{again:.3g}")
        )
    return Repro(tuple(folder / name for name in files), error)


def _is_fed(point: Point, graph: Graph) -> bool:
    """Whether it is an input: nothing computes it, so that there is no part to write."""
    return not {*point.names}.isdisjoint(graph.inputs)


def _partners(a: Subject, b: Subject, investigation: Investigation) -> dict[int, tuple[int, Pair]]:
    """By the candidate's point the reference's, with the pair."""
    place_a = {point.tensor: point.index for point in a.points}
    place_b = {point.tensor: point.index for point in b.points}
    return {place_b[pair.tensor_b]: (place_a[pair.tensor_a], pair) for pair in investigation.pairs}


def _numbers(subject: Subject, points: Collection[int], sample: str) -> dict[int, Tensor]:
    feeds = subject.feeds(sample)
    with subject.open(points) as session:
        outputs = subject.run(session, feeds, sample)
    return {index: n for index in points if (n := subject.numbers(index, outputs, feeds)) is not None}


def _as_candidate(value: Tensor, like: Tensor, permutation: tuple[int, ...] | None) -> Tensor:
    turned = value if permutation is None else value.transpose(np.argsort(permutation))
    fitted = shaped(turned, like.shape, None)
    return np.ascontiguousarray(turned if fitted is None else fitted)


def _part(
    subject: Subject,
    parts: Parts,
    graph: Graph,
    given: Collection[int],
    wanted: int,
    values: Mapping[int, Tensor],
    like: Mapping[int, Tensor],
    sample: str,
) -> _Part:
    """The part of one side that computes a point from given ones, run once in memory."""
    types = {
        name: (kind, value.ndim)
        for i, value in like.items()
        for name, kind in tensor_types(graph, subject.points[i], value.dtype).items()
    }
    made = cut(parts.model, graph, subject.points, given=given, wanted=[wanted], types=types)
    with parts.open(made.model) as session:
        names = {spec.name for spec in (session.signature.inputs if session.signature is not None else ())}
        every = {**made.given(values, {name: dtype for name, (dtype, _) in types.items()}), **subject.feeds(sample)}
        feeds = {name: np.ascontiguousarray(feed) for name, feed in every.items() if name in names}
        outputs = subject.run(session, feeds, sample)
    return _Part(_written(made, parts, feeds, outputs), _plain(made, feeds), outputs)


def _plain(made: Cut, feeds: Tensors) -> dict[str, Tensor]:
    names = plain_names(made)
    return {names.get(name, name): feed for name, feed in feeds.items()}


def _written(made: Cut, parts: Parts, feeds: Tensors, outputs: Tensors) -> onnx.ModelProto:
    """The model of a part with everything in it, inputs and outputs with their types."""
    model = alone(made, parts.model, parts.folder, feeds)
    del model.graph.output[:]
    for name, value in outputs.items():
        kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, kind, value.shape))
    return model


def _files(part_a: _Part | None, part_b: _Part, reference: Mapping[str, Tensor]) -> dict[str, bytes]:
    """What the folder holds. The reference's part is fed by the names of the candidate's inputs only where they
    agree; else each side has its own feeds."""
    candidate = part_b.model.SerializeToString(deterministic=True)
    files = {
        REPRO: candidate,
        INPUTS: npz_bytes(part_b.feeds),
        OUTPUTS_A: npz_bytes(reference),
        OUTPUTS_B: npz_bytes(part_b.outputs),
    }
    if part_a is None:
        return files
    files |= {
        MODEL_A: part_a.model.SerializeToString(deterministic=True),
        MODEL_B: candidate,
        OUTPUTS_A: npz_bytes(part_a.outputs),
    }
    if not all_equal(part_a.feeds, part_b.feeds):
        files |= {INPUTS: npz_bytes(part_a.feeds), INPUTS_B: npz_bytes(part_b.feeds)}
    return files


def _run_again(b: Subject, folder: Path, inputs: str, sample: str) -> dict[str, Tensor]:
    """What the written part gives for the written feeds."""
    with np.load(folder / inputs, allow_pickle=False) as archive:
        feeds = {name: archive[name] for name in archive.files}
    with b.backend.open(replace(b.artifact, path=folder / REPRO)) as session:
        return b.run(session, feeds, sample)


def _error(b: Subject, node: NodeError, truth: Tensor, outputs: Tensors) -> float:
    """Root mean square of the difference of the node's numbers; infinite where only the candidate is not finite."""
    value = b.numbers(node.order, outputs, {})
    other = None if value is None else shaped(value, truth.shape, node.pair.permutation)
    if other is None:
        raise ArtifactError(message("repro-uncut", stage=b.stage))
    row = by_channel(truth, other, axis=None)
    if row.broken.any():
        return float("inf")
    return float(np.sqrt(row.sum_dd[0] / max(1.0, float(row.count[0]))))
