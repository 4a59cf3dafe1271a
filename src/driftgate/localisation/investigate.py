"""Investigating a link: pair its points, tell own from inherited error, within a budget of memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.domain.investigations import Investigation, NodeError, Pair
from driftgate.domain.measurements import Array, Moments, concatenate
from driftgate.errors import DriftgateError
from driftgate.localisation.explained import excess, explained
from driftgate.localisation.forced import Cut, cut
from driftgate.localisation.pairing import Match, Side, pair
from driftgate.localisation.points import VIEWS, Point
from driftgate.localisation.rounding import Rounding, read_rounding
from driftgate.localisation.subject import Subject, shaped, windows
from driftgate.messages.message import Message, message
from driftgate.numerics.alignment import channel_axis
from driftgate.numerics.moments import by_channel, fold
from driftgate.numerics.sketches import Sketch, likeness, sketch
from driftgate.sessions import Tensor

ROUNDS = 3
TOP_CHANNELS = 5
MOST_AXES = 5
DEFAULT_MEMORY = 512 * 1024 * 1024


@dataclass(slots=True)
class _Work:
    """What is known of the two sides while they are investigated."""

    a: Subject
    b: Subject
    sketches_a: dict[int, Sketch] = field(default_factory=dict)
    sketches_b: dict[int, Sketch] = field(default_factory=dict)
    types: dict[str, tuple[np.dtype[Any], int]] = field(default_factory=dict)
    matches: tuple[Match, ...] = ()
    permuted: dict[tuple[int, int], tuple[int, ...] | None] = field(default_factory=dict)
    notes: list[Message] = field(default_factory=list)


def investigate(
    link: str,
    a: Subject,
    b: Subject,
    samples: Sequence[str],
    *,
    outputs: Mapping[str, str],
    memory: int = DEFAULT_MEMORY,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Investigation:
    """Find out where the candidate `b` leaves the reference `a`; `outputs` maps a's outputs to b's.

    Both are run on the first sample to pair their points, then on all samples to measure. Raises what the
    sessions raise; a candidate that cannot be cut open has no own errors.
    """
    started = clock()
    work = _Work(a, b)
    first = samples[:1]
    _sketch_side(a, work.sketches_a, first, memory, None)
    _sketch_side(b, work.sketches_b, first, memory, work.types)
    known = _known(a, b, outputs)
    for turn in range(ROUNDS):
        before = len(work.matches)
        work.matches = _verified(
            work, pair(_side(a, work.sketches_a), _side(b, work.sketches_b), (*known, *_firm(work.matches)))
        )
        if turn == ROUNDS - 1 or b.surgeon is None or (turn and len(work.matches) == before):
            break
        if not _sketch_forced(work, first, memory):
            break
    _find_permutations(work, first, memory)
    nodes, gap = _measure(work, samples, memory, progress)
    paired_a, paired_b = {m.a for m in work.matches}, {m.b for m in work.matches}
    return Investigation(
        link=link,
        pairs=tuple(_pair(work, match) for match in work.matches),
        unpaired_a=tuple(p.tensor for p in a.points if p.index not in paired_a and p.index in work.sketches_a),
        unpaired_b=tuple(p.tensor for p in b.points if p.index not in paired_b and p.index in work.sketches_b),
        nodes=nodes,
        samples=len(samples),
        tap_gap=gap,
        runs=a.count.runs + b.count.runs,
        seconds=round(clock() - started, 3),
        notes=tuple(work.notes),
    )


def _side(subject: Subject, sketches: Mapping[int, Sketch]) -> Side:
    return Side(subject.points, subject.routes, sketches)


def _known(a: Subject, b: Subject, outputs: Mapping[str, str]) -> tuple[Match, ...]:
    """Inputs pair by name, or one to one; outputs as the link pairs them."""
    ins_a, ins_b = [p for p in a.points if p.is_input], [p for p in b.points if p.is_input]
    named = {p.names[0]: p for p in ins_b}
    found = [Match(p.index, named[p.names[0]].index, "structure", 1.0) for p in ins_a if p.names[0] in named]
    if not found and len(ins_a) == len(ins_b) == 1:
        found.append(Match(ins_a[0].index, ins_b[0].index, "structure", 1.0))
    place_a = {name: p.index for p in a.points for name in p.names}
    place_b = {name: p.index for p in b.points for name in p.names}
    taken = {m.b for m in found}
    for name, other in outputs.items():
        if name in place_a and other in place_b and place_b[other] not in taken:
            found.append(Match(place_a[name], place_b[other], "structure", 1.0))
            taken.add(place_b[other])
    return tuple(found)


def _firm(matches: Sequence[Match]) -> tuple[Match, ...]:
    return tuple(match for match in matches if match.how != "name" and match.certainty >= 0.8)


def _verified(work: _Work, matches: Sequence[Match]) -> tuple[Match, ...]:
    """Only pairs that hold numbers on both sides."""
    return tuple(m for m in matches if m.a in work.sketches_a and m.b in work.sketches_b)


def _sketch_side(
    subject: Subject,
    sketches: dict[int, Sketch],
    samples: Sequence[str],
    memory: int,
    types: dict[str, tuple[np.dtype[Any], int]] | None,
) -> None:
    """Sketch every point once, and note what type and rank each name of it has."""
    indices = [point.index for point in subject.points]
    for _, _, values, outputs in subject.tapped(windows(indices, _guessed_sizes(subject), memory), samples):
        for index, value in values.items():
            sketches[index] = sketch(value)
        if types is None:
            continue
        for index, value in values.items():
            point = subject.points[index]
            raw = outputs.get(point.tensor)
            for name in point.names:
                told = None if subject.graph is None else subject.graph.quantizers.get(name)
                if told is not None:
                    types[name] = (np.dtype(np.int8 if told.low < 0 else np.uint8), value.ndim)
                else:
                    dtype = value.dtype if raw is None or raw.dtype.kind != "f" else raw.dtype
                    types[name] = (dtype, value.ndim)


def _guessed_sizes(subject: Subject) -> dict[int, int]:
    """Bytes of points by shape inference, where it can tell."""
    if subject.model is None:
        return {}
    bare = onnx.ModelProto()
    bare.CopyFrom(subject.model)
    for tensor in bare.graph.initializer:
        if tensor.ByteSize() > 4096:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
    try:
        inferred = onnx.shape_inference.infer_shapes(bare, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return {}
    sizes: dict[str, int] = {}
    for value in inferred.graph.value_info:
        dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.HasField("shape") and all(dims):
            sizes[value.name] = 4 * int(np.prod(dims, dtype=np.int64)) if dims else 4
    return {p.index: sizes[p.tensor] for p in subject.points if p.tensor in sizes}


def _sizes(sketches: Mapping[int, Sketch]) -> dict[int, int]:
    return {index: 4 * found.size for index, found in sketches.items()}


@dataclass(frozen=True, slots=True)
class _Window:
    """Some pairs of which the own error is measured together, and what they need to be given."""

    matches: tuple[Match, ...]
    cut: Cut
    needs: tuple[int, ...]  # points of the reference whose values are given


def _plan_cuts(work: _Work, matches: Sequence[Match], memory: int, extra: Sequence[int] = ()) -> list[_Window]:
    """The pairs in windows; each with the model that computes them from what comes right before."""
    b = work.b
    if b.model is None or b.graph is None:
        return []
    given = {match.b for match in work.matches}
    partner = {match.b: match.a for match in work.matches}
    sizes = {m.b: 3 * 4 * work.sketches_b[m.b].size for m in matches}
    sizes.update({index: 4 * work.sketches_b[index].size for index in extra})
    by_b = {match.b: match for match in matches}
    ordered = sorted({*by_b, *extra})
    planned = []
    for window in windows(ordered, sizes, memory):
        made = cut(b.model, b.graph, b.points, given=given, wanted=window, types=work.types)
        needs = tuple(sorted({partner[point] for _, point, _ in made.feeds}))
        planned.append(_Window(tuple(by_b[i] for i in window if i in by_b), made, needs))
    return planned


def _sketch_forced(work: _Work, samples: Sequence[str], memory: int) -> bool:
    """Sketch the candidate's points anew, computed from the reference's values; False where it cannot be done."""
    loose = [i for i in sorted(work.sketches_b) if i not in {m.b for m in work.matches}]
    weak = [m for m in work.matches if m.how == "name" or m.certainty < 0.8]
    if not loose and not weak:
        return False
    try:
        for window in _plan_cuts(work, weak, memory, loose):
            wanted = [*(m.b for m in window.matches), *(i for i in loose if i in dict(window.cut.outputs))]
            for _, _, numbers, _, _ in _forced_values(work, window, samples, wanted):
                for index, value in numbers.items():
                    work.sketches_b[index] = sketch(value)
    except DriftgateError as error:
        work.notes.append(message("cut-failed", reason=str(error).splitlines()[0]))
        return False
    return True


def _forced_values(work: _Work, window: _Window, samples: Sequence[str], wanted: Sequence[int]) -> Any:
    """(sample, reference's numbers, candidate's own numbers, raw outputs, untapped) for each sample."""
    a, b = work.a, work.b
    if b.surgeon is None:
        return
    partner = {match.b: match for match in work.matches}
    reference = sorted({*window.needs, *(partner[i].a for i in wanted if i in partner)})
    with b.surgeon.open_model(b.artifact, window.cut.model) as session:
        names = {spec.name for spec in (session.signature.inputs if session.signature else ())}
        for _, sample, numbers, _ in a.tapped([reference], samples):
            given = {
                point: _as_b(work, partner[point], numbers[partner[point].a])
                for _, point, _ in window.cut.feeds
                if partner[point].a in numbers
            }
            dtypes = {name: told[0] for name, told in work.types.items()}
            feeds = {**window.cut.given(given, dtypes), **{n: f for n, f in b.feeds(sample).items() if n in names}}
            outputs = b.cut_runs(session, {n: f for n, f in feeds.items() if n in names}, sample)
            yield sample, numbers, b.values(wanted, outputs, sample), outputs, None


def _as_b(work: _Work, match: Match, value: Tensor) -> Tensor:
    """The reference's value in the candidate's axes."""
    order = work.permuted.get((match.a, match.b))
    if order is not None:
        value = value.transpose(np.argsort(order))
    shape = work.sketches_b[match.b].shape
    return value.reshape(shape) if value.shape != shape and value.size == int(np.prod(shape)) else value


def _find_permutations(work: _Work, samples: Sequence[str], memory: int) -> None:
    """For pairs in another axis order, the order: the one in which the values agree best."""
    open_pairs = [m for m in work.matches if _needs_order(work, m)]
    for match in open_pairs:
        value_a = next(iter(work.a.tapped([[match.a]], samples)))[2][match.a]
        value_b = next(iter(work.b.tapped([[match.b]], samples)))[2][match.b]
        work.permuted[match.a, match.b] = _order(value_a, value_b)


def _needs_order(work: _Work, match: Match) -> bool:
    shape_a, shape_b = work.sketches_a[match.a].shape, work.sketches_b[match.b].shape
    longer = lambda shape: [n for n in shape if n != 1]  # noqa: E731
    return (
        longer(shape_a) != longer(shape_b)
        and len(shape_a) == len(shape_b) <= MOST_AXES
        and sorted(shape_a) == sorted(shape_b)
    )


def _order(a: NDArray[Any], b: NDArray[Any]) -> tuple[int, ...] | None:
    """The axis order of b that gives a; None where none does better than any other."""
    reference = sketch(a)
    scored = [
        (likeness(reference, sketch(b.transpose(order))), order)
        for order in permutations(range(b.ndim))
        if b.transpose(order).shape == a.shape
    ]
    return max(scored)[1] if scored else None


@dataclass(slots=True)
class _Gathered:
    """One pair's moments, sample by sample."""

    total: list[Moments] = field(default_factory=list)
    own: list[Moments] = field(default_factory=list)
    clipped: float = 0.0
    count: int = 0
    source_power: list[Array] = field(default_factory=list)


def _measure(
    work: _Work, samples: Sequence[str], memory: int, progress: Callable[[int, int], None] | None
) -> tuple[tuple[NodeError, ...], float]:
    b = work.b
    pairs = [m for m in work.matches if not (b.points[m.b].is_input and len(b.points[m.b].names) == 1)]
    gathered = {match.b: _Gathered() for match in pairs}
    gap = _gather_total(work, pairs, gathered, samples, memory)
    rounding: Mapping[int, Rounding] = {}
    planned: list[_Window] = []
    if b.model is not None and b.graph is not None and b.constants is not None:
        rounding = read_rounding(b.model, b.points, b.constants)
        planned = _plan_cuts(work, pairs, memory)
    done = 0
    try:
        for window in planned:
            for sample, reference, own, _, _ in _forced_values(work, window, samples, [m.b for m in window.matches]):
                del sample
                for match in window.matches:
                    if match.b in own and match.a in reference:
                        _gather_own(work, match, gathered[match.b], reference, own[match.b], rounding.get(match.b))
            done += len(window.matches)
            if progress is not None:
                progress(done, len(pairs))
    except DriftgateError as error:
        work.notes.append(message("cut-failed", reason=str(error).splitlines()[0]))
    regions = _regions(work)
    errors = [
        _node_error(work, match, gathered[match.b], rounding.get(match.b), regions[match.b])
        for match in pairs
        if gathered[match.b].total
    ]
    return tuple(sorted(errors, key=lambda node: node.order)), gap


def _gather_total(
    work: _Work, pairs: Sequence[Match], gathered: Mapping[int, _Gathered], samples: Sequence[str], memory: int
) -> float:
    """The error of every pair as both sides run; returns the largest effect of tapping on an output."""
    a, b = work.a, work.b
    sizes = {m.b: 2 * 4 * work.sketches_b[m.b].size for m in pairs}
    by_b = {match.b: match for match in pairs}
    for window in windows(sorted(by_b), sizes, memory):
        matches = [by_b[index] for index in window]
        runs_a = a.tapped([[m.a for m in matches]], samples)
        runs_b = b.tapped([window], samples)
        for (_, _, values_a, _), (_, _, values_b, _) in zip(runs_a, runs_b, strict=True):
            for match in matches:
                if match.a in values_a and match.b in values_b:
                    table = _moments(work, match, values_a[match.a], values_b[match.b])
                    if table is not None:
                        gathered[match.b].total.append(fold(table))
    return 0.0


def _moments(work: _Work, match: Match, value_a: Tensor, value_b: Tensor) -> Moments | None:
    other = shaped(value_b, value_a.shape, work.permuted.get((match.a, match.b)))
    if other is None:
        return None
    axis = _axis(work, match, value_a.shape)
    return by_channel(value_a, other, axis=axis, step=work.b.points[match.b].step)


def _axis(work: _Work, match: Match, shape: tuple[int, ...]) -> int | None:
    """The axis of the features of a pair in the reference's order."""
    known = work.a.points[match.a].axis
    if known is None and work.permuted.get((match.a, match.b)) is None:
        known = work.b.points[match.b].axis
    if known is None or not -len(shape) <= known < len(shape):
        return channel_axis(shape)
    return known % len(shape)


def _power(value: Tensor, axis: int | None) -> Array:
    """The mean square by channel."""
    wide = value.astype(np.float64)
    others = tuple(n for n in range(value.ndim) if n != axis)
    power: Array = np.atleast_1d((wide * wide).mean(axis=others))
    return power


def _gather_own(
    work: _Work,
    match: Match,
    found: _Gathered,
    reference: Mapping[int, Tensor],
    own: Tensor,
    rounding: Rounding | None,
) -> None:
    value = reference[match.a]
    point = work.b.points[match.b]
    if point.clip is not None:
        low, high = point.clip
        slack = (point.step or 0.0) / 2
        found.clipped += float(((value < low - slack) | (value > high + slack)).sum())
        value = np.clip(value, low, high)
    found.count += value.size
    table = _moments(work, match, value, own)
    if table is not None and (not found.own or len(found.own[0]) == len(table)):
        found.own.append(table)
    if rounding is not None:
        source = next((m for m in work.matches if m.b == rounding.source), None)
        if source is not None and source.a in reference:
            found.source_power.append(_power(reference[source.a], _axis(work, source, reference[source.a].shape)))


def _node_error(
    work: _Work, match: Match, found: _Gathered, rounding: Rounding | None, region: tuple[str, ...]
) -> NodeError:
    point = work.b.points[match.b]
    own: Moments | None = None
    excess = 0.0
    channels: tuple[tuple[int, float], ...] = ()
    if found.own:
        table = fold(concatenate(found.own), len(found.own[0]))
        own = fold(table)
        excess, channels = _excess(work, match, table, found, rounding)
    return NodeError(
        pair=_pair(work, match),
        op=point.op,
        order=match.b,
        region=region,
        total=fold(concatenate(found.total)),
        own=own,
        excess=excess,
        top_channels=channels,
        step=point.step,
        clipped=found.clipped / found.count if found.count else 0.0,
    )


def _excess(
    work: _Work, match: Match, table: Moments, found: _Gathered, rounding: Rounding | None
) -> tuple[float, tuple[tuple[int, float], ...]]:
    """How many times the own error is what precision explains: of the tensor, and of its worst channels."""
    point = work.b.points[match.b]
    given = sum(
        (step**2 / 12.0 for step in _given_steps(work, point)),
        0.0,
    )
    allowed = explained(
        point,
        power=table.m2_a / np.maximum(table.count, 1.0) + table.mean_a**2,
        rounding=rounding,
        source_power=np.mean(found.source_power, axis=0) if found.source_power else None,
        given_noise=given,
    )
    worst, ratio = excess(table, allowed)
    order = np.argsort(-ratio, kind="stable")[:TOP_CHANNELS]
    return worst, tuple((int(c), float(ratio[c])) for c in order if ratio[c] > 0) if len(ratio) > 1 else ()


def _given_steps(work: _Work, point: Point) -> list[float]:
    """Steps of the integers that a point's operator is given: rounding the reference's values to them costs."""
    graph = work.b.graph
    if graph is None:
        return []
    return [
        told.step
        for source in point.sources
        for name in work.b.points[source].names
        if (told := graph.quantizers.get(name)) is not None
        and told.step is not None
        and work.b.points[source].quantizer is not None
    ]


def _regions(work: _Work) -> dict[int, tuple[str, ...]]:
    """For every paired point the candidate's operators between the pairs before it and itself."""
    paired = {match.b for match in work.matches}
    found: dict[int, tuple[str, ...]] = {}
    for match in work.matches:
        names: list[str] = []
        pending, seen = [match.b], set()
        while pending:
            index = pending.pop()
            if index in seen or work.b.points[index].is_input:
                continue
            seen.add(index)
            point = work.b.points[index]
            if point.op not in VIEWS or index == match.b:
                names.append(point.node)
            pending.extend(source for source in point.sources if source not in paired)
        found[match.b] = tuple(names)
    return found


def _pair(work: _Work, match: Match) -> Pair:
    return Pair(
        tensor_a=work.a.points[match.a].tensor,
        tensor_b=work.b.points[match.b].tensor,
        how=match.how,
        certainty=match.certainty,
        permutation=work.permuted.get((match.a, match.b)),
    )
