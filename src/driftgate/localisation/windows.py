"""Windows: neighbouring tensors that are tapped together because they fit the memory together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from driftgate.localisation.forced import Cut, cut
from driftgate.localisation.pairing import Match
from driftgate.localisation.subject import Subject
from driftgate.localisation.survey import Survey
from driftgate.sessions import Tensors

NUMBER_BYTES = 4
DEFAULT_SIZE = 1 << 20  # numbers of a tensor whose size nobody knows yet
#: How often a number of a pair is held at most: in the reference's run, in the candidate's, in the forced one, and
#: once more by what is given there or as the number that an integer stands for.
HELD = 4
#: What a session's memory pool takes beyond what it was asked for.
SLACK = 1.25
#: Constants that shape inference needs; larger ones are weights.
SHAPE_NUMBERS = 1024


@dataclass(frozen=True, slots=True)
class Window:
    """Pairs that are measured together: the points to tap on both sides, and the model that computes the
    candidate's own values (None where it cannot be cut open)."""

    matches: tuple[Match, ...]
    reference: tuple[int, ...]
    candidate: tuple[int, ...]
    cut: Cut | None


def fitting(points: Sequence[int], sizes: Mapping[int, int], memory: int, *, held: float) -> list[list[int]]:
    """The points in runs of neighbours that fit the memory (bytes) together, `held` times each; one that does not
    fit stands alone."""
    found: list[list[int]] = []
    taken = 0.0
    for index in points:
        size = sizes.get(index, DEFAULT_SIZE) * NUMBER_BYTES * held * SLACK
        if not found or taken + size > memory:
            found.append([])
            taken = 0.0
        found[-1].append(index)
        taken += size
    return found


def plan_windows(survey: Survey, matches: Sequence[Match], memory: int, extra: Sequence[int] = ()) -> list[Window]:
    """All pairs, and `extra` points of the candidate, in windows in the candidate's order."""
    b = survey.b
    by_b = {match.b: match for match in matches}
    partner = survey.by_candidate
    sizes = {**survey.sizes(matches), **{index: survey.sketches_b[index].size for index in extra}}
    windows = []
    for wanted in fitting(sorted({*by_b, *extra}), sizes, memory, held=HELD):
        within = tuple(by_b[index] for index in wanted if index in by_b)
        made = None
        if b.model is not None and b.graph is not None:
            made = cut(b.model, b.graph, b.points, given=partner, wanted=wanted, types=survey.types)
        needs = {partner[point].a for _, point, _ in made.feeds} if made is not None else set()
        windows.append(
            Window(
                matches=within,
                reference=tuple(sorted({*needs, *(match.a for match in within)})),
                candidate=tuple(wanted),
                cut=made,
            )
        )
    return windows


def guessed_sizes(subject: Subject, feeds: Tensors) -> dict[int, int]:
    """Numbers that each point holds for these feeds: as it says itself or by shape inference, else a cautious
    guess."""
    known = {**subject.sizes, **_inferred(subject, feeds)}
    fed = max((feed.size for feed in feeds.values()), default=0)
    guess = max(DEFAULT_SIZE, 4 * fed, *known.values()) if known else max(DEFAULT_SIZE, 4 * fed)
    return {point.index: known.get(point.index, guess) for point in subject.points}


def _inferred(subject: Subject, feeds: Tensors) -> dict[int, int]:
    if subject.model is None:
        return {}
    bare = onnx.ModelProto(ir_version=subject.model.ir_version, opset_import=subject.model.opset_import)
    bare.graph.name = "bare"
    bare.graph.node.extend(subject.model.graph.node)
    bare.graph.output.extend(subject.model.graph.output)
    for value in subject.model.graph.input:
        feed = feeds.get(value.name)
        fed = bare.graph.input.add()
        fed.CopyFrom(value)
        if feed is not None:
            fed.type.tensor_type.shape.Clear()
            for length in feed.shape:
                fed.type.tensor_type.shape.dim.add().dim_value = length
    for tensor in subject.model.graph.initializer:
        if math.prod(tensor.dims) <= SHAPE_NUMBERS and tensor.data_location != onnx.TensorProto.EXTERNAL:
            bare.graph.initializer.append(tensor)
        else:
            bare.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    try:
        inferred = onnx.shape_inference.infer_shapes(bare, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return {}
    sizes: dict[str, int] = {}
    for value in (*inferred.graph.value_info, *inferred.graph.output, *inferred.graph.input):
        lengths = [length.dim_value for length in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.HasField("shape") and all(lengths):
            size = 1
            for length in lengths:
                size *= length
            sizes[value.name] = size
    return {p.index: sizes[p.tensor] for p in subject.points if p.tensor in sizes}
