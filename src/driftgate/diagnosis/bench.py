"""The workbench of a diagnosis: both sides of an evidence folder, ready to be run, changed and compared."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.residuals import is_rounded, widest, worst
from driftgate.diagnosis.surgery import Quantised, quantised_tensors, ready
from driftgate.domain.evidence import Evidence
from driftgate.errors import DriftgateError
from driftgate.localisation.onnx_graph import Constants
from driftgate.localisation.subject import Parts
from driftgate.messages.message import Message
from driftgate.numerics.alignment import same_shape
from driftgate.numerics.outputs import NamedTensor, pair_outputs
from driftgate.sessions import Session

Made = TypeVar("Made")
Tensor = NDArray[Any]
Tensors = Mapping[str, Tensor]
OpenParts = Callable[[Path], Parts]
#: A stage's outputs for feeds that may be other ones than it was given. Raises DriftgateError where it cannot.
Answer = Callable[[Tensors], Tensors]

SECONDS = 60.0
TAPPED_BYTES = 4 << 30  # a guess of what all tensors of a model hold, beyond which they are not looked at
#: Residuals that are noise: float32 sums, half precision, rounding to integers (a spread).
FLOAT_FLOOR, HALF_FLOOR, INTEGER_FLOOR = 1e-4, 5e-3, 0.1
FEW_WEIGHTS = 16
SAME = 1e-5  # a rerun or an input within this is the same
_SAMPLE = "0"


@dataclass(frozen=True, slots=True)
class FeedSet:
    """Feeds of one run by the model's names; outputs of it are recorded under their names and `suffix`."""

    suffix: str
    feeds: Tensors


class Side:
    """One model, or the reason why there is none; `answer` runs the stage where it is no model that can be opened."""

    def __init__(self, path: Path | None, open_parts: OpenParts | None, answer: Answer | None = None) -> None:
        self.parts: Parts | None = None
        self.answer = answer
        self.refused: tuple[Message, ...] = ()
        self._opened: dict[tuple[str, ...], Session] = {}
        self._stack = ExitStack()
        if path is not None and open_parts is not None:
            try:
                self.parts = open_parts(path)
                self.session(())
            except DriftgateError as error:
                self.refused = error.problems

    @property
    def model(self) -> onnx.ModelProto | None:
        """The parsed model; also where it cannot run."""
        return None if self.parts is None else self.parts.model

    @property
    def whole_model(self) -> onnx.ModelProto:
        """The parsed model. Raises LookupError where there is none."""
        if self.parts is None:
            raise LookupError
        return self.parts.model

    @cached_property
    def makers(self) -> dict[str, onnx.NodeProto]:
        """The node that makes a tensor, by the tensor."""
        nodes = () if self.model is None else self.model.graph.node
        return {name: node for node in nodes for name in node.output if name}

    @property
    def runs(self) -> bool:
        """Whether its model can be loaded."""
        return self.parts is not None and not self.refused

    @property
    def answers(self) -> bool:
        """Whether other feeds can be tried on it, in whatever way."""
        return self.runs or self.answer is not None

    @cached_property
    def constants(self) -> Constants | None:
        """Its constants."""
        return None if self.parts is None else Constants(self.parts.model, self.parts.folder)

    def value(self, name: str) -> Tensor | None:
        """A constant by name."""
        return None if self.constants is None or not name else self.constants.value(name)

    @cached_property
    def quantised(self) -> tuple[Quantised, ...]:
        """Its rounded tensors."""
        return () if self.model is None else quantised_tensors(self.model, self.value)

    def session(self, taps: tuple[str, ...]) -> Session:
        """The unchanged model with taps, opened once."""
        parts = self.parts
        if taps not in self._opened and parts is not None:
            self._opened[taps] = self._stack.enter_context(parts.open(parts.model, taps))
        return self._opened[taps]

    def close(self) -> None:
        """Close its sessions."""
        self._stack.close()


@dataclass(slots=True)
class Costs:
    """Runs and problems of a diagnosis."""

    runs: int = 0
    problems: list[Message] = field(default_factory=list)


class Bench:
    """What rules work with; close it by leaving its `with` block. Numbers are as the evidence has them; a model
    that cannot be run, or not as asked, gives None and never an exception."""

    def __init__(
        self,
        evidence: Evidence,
        open_parts: OpenParts | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        seconds: float = SECONDS,
        answers: tuple[Answer | None, Answer | None] = (None, None),
    ) -> None:
        self.evidence = evidence
        self.costs = Costs()
        self._clock, self._end = clock, clock() + seconds
        self._names_b: dict[str, str] | None = None
        self._made: dict[Callable[[Bench], Any], Any] = {}
        self.a = Side(evidence.model_a, open_parts, answers[0])
        self.b = Side(evidence.model_b, open_parts, answers[1])

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.a.close()
        self.b.close()

    @property
    def has_time(self) -> bool:
        """Whether another experiment may be begun."""
        return self._clock() < self._end

    def once(self, make: Callable[[Bench], Made]) -> Made:
        """What a function makes of this bench, made only the first time."""
        if make not in self._made:
            self._made[make] = make(self)
        found: Made = self._made[make]
        return found

    # what is compared

    @cached_property
    def same_feeds(self) -> bool:
        """Whether nothing says that the candidate was fed something else."""
        return not self.evidence.feeds_b

    @cached_property
    def recorded_b(self) -> bool:
        """Whether the candidate's outputs were recorded, not computed here."""
        return bool(self.evidence.outputs_b)

    @cached_property
    def outputs_a(self) -> dict[str, Tensor]:
        """The reference's outputs, computed where they were not recorded."""
        return self.readable(self.evidence.outputs_a) or self.run(self.a, self.evidence.feeds_a) or {}

    @cached_property
    def outputs_b(self) -> dict[str, Tensor]:
        """The candidate's outputs under the reference's names where they pair, computed if not recorded."""
        feeds = self.evidence.feeds_b or self.evidence.feeds_a
        found = self.readable(self.evidence.outputs_b) or self._raw(self.b, feeds, None, ()) or {}
        names = self._names_b = self._paired(found)
        return {names.get(name, name): value for name, value in found.items()}

    def readable(self, tensors: Tensors) -> dict[str, Tensor]:
        """Those tensors whose bytes are whole; the others are problems."""
        found = {}
        for name in tensors:
            try:
                found[name] = tensors[name]
            except DriftgateError as error:
                self.costs.problems.extend(error.problems)
        return found

    def _paired(self, found: Tensors) -> dict[str, str]:
        a, b = (
            [NamedTensor(name, value.dtype.kind, value.shape) for name, value in side.items()]
            for side in (self.outputs_a, found)
        )
        pairs = pair_outputs(a, b, names={})
        names = {pair.b: pair.a for pair in pairs.pairs}
        if len(pairs.left_a) == len(pairs.left_b) == 1:
            names[pairs.left_b[0]] = pairs.left_a[0]
        return names

    @cached_property
    def pairs(self) -> tuple[tuple[str, Tensor, Tensor], ...]:
        """(name, reference, candidate) of every output that both have."""
        both = [name for name in self.outputs_a if name in self.outputs_b]
        return tuple((name, self.outputs_a[name], self.outputs_b[name]) for name in both)

    @cached_property
    def before(self) -> float:
        """The residual as it is."""
        return worst(self.outputs_a, self.outputs_b)

    @cached_property
    def before_spread(self) -> float:
        """The spread as it is."""
        return widest(self.outputs_a, self.outputs_b)

    # what kind of link it is

    @cached_property
    def fixed_point(self) -> bool:
        """Whether the candidate computes with integers, as far as the folder tells."""
        e = self.evidence
        board = e.board is not None and any(o.scales or o.step for o in e.board.outputs)
        told = e.quant is not None or bool(e.weights) or bool(e.ablation) or board
        told = told or e.link.kind == "stepped"
        return told or bool(self.b.quantised) or self.integer_model or self._rounded_weights

    @cached_property
    def _rounded_weights(self) -> bool:
        """Whether weights of the candidate lie on few steps where the reference's do not."""
        for name in self.b.constants.names() if self.b.constants is not None else ():
            a, b = self.a.value(name), self.b.value(name)
            if (
                a is None
                or b is None
                or a.shape != b.shape
                or b.ndim < 2
                or b.dtype.kind != "f"
                or b.size < FEW_WEIGHTS
            ):
                continue
            if not np.array_equal(a, b) and is_rounded(b) and not is_rounded(a):
                return True
        return False

    @cached_property
    def integer_model(self) -> bool:
        """Whether the candidate's model has quantisers or integer operators."""
        model = self.b.model
        return model is not None and any(
            node.op_type in ("QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger")
            or node.op_type == "MatMulInteger"
            for node in model.graph.node
        )

    @cached_property
    def half(self) -> bool:
        """Whether the candidate computes in half precision."""
        model = self.b.model
        return model is not None and any(
            node.op_type == "Cast" and any(a.name == "to" and a.i in HALVES for a in node.attribute)
            for node in model.graph.node
        )

    @cached_property
    def floor(self) -> float:
        """Residual (spread where the candidate computes with integers) below which all is noise."""
        return INTEGER_FLOOR if self.fixed_point else HALF_FLOOR if self.half else FLOAT_FLOOR

    def step(self, output: str) -> float | None:
        """One LSB of an output, where something tells."""
        board = self.evidence.board.output(output) if self.evidence.board is not None else None
        if board is not None and (board.step or len(board.scales) == 1):
            return board.step or board.scales[0]
        if self.evidence.quant is not None and output in self.evidence.quant.steps:
            return self.evidence.quant.steps[output]
        rounded = (*self.b.quantised, *self.a.quantised)
        return next((q.step for q in rounded if q.tensor == output), None)

    def distance(self, a: Tensors, b: Tensors | None) -> float:
        """Residual of two sides in the measure of this link; inf where a side could not be computed."""
        if b is None:
            return math.inf
        return widest(a, b) if self.fixed_point else worst(a, b)

    @property
    def start(self) -> float:
        """The residual as it is, in the measure of this link."""
        return self.before_spread if self.fixed_point else self.before

    # runs

    def run(
        self, side: Side, feeds: Tensors, model: onnx.ModelProto | None = None, taps: Sequence[str] = ()
    ) -> dict[str, Tensor] | None:
        """Outputs (under the reference's names) and taps of a side or of a changed model of it; None if it cannot."""
        found = self._raw(side, feeds, model, taps)
        if found is None or side is self.a:
            return found
        names = self._names_b
        if names is None:
            names = self._names_b = self._paired(self.readable(self.evidence.outputs_b) or found)
        return {names.get(name, name): value for name, value in found.items()}

    def _raw(
        self, side: Side, feeds: Tensors, model: onnx.ModelProto | None, taps: Sequence[str]
    ) -> dict[str, Tensor] | None:
        if not side.runs or side.parts is None or not feeds or not self.has_time:
            return None
        sets = feed_sets(side.parts.model, feeds)
        if not sets:
            return None
        made: dict[str, Tensor] = {}
        try:
            with ExitStack() as stack:
                if model is None:
                    session = side.session(tuple(taps))
                else:
                    session = stack.enter_context(side.parts.open(ready(model), tuple(taps)))
                for given in sets:
                    found = session.infer(given.feeds, sample=_SAMPLE)
                    self.costs.runs += 1
                    made.update({f"{name}{given.suffix}": value for name, value in found.items()})
        except DriftgateError:
            return None
        return made

    def tried(self, side: Side, feeds: Tensors) -> dict[str, Tensor] | None:
        """Outputs of a side for these feeds, also where it is no model that can be opened; None if it cannot."""
        if side.parts is not None:
            return self.run(side, feeds)
        if side.answer is None or not feeds or not self.has_time:
            return None
        try:
            made = side.answer(feeds)
        except DriftgateError:
            return None
        self.costs.runs += 1
        names = (self._names_b or {}) if side is self.b else {}
        return {names.get(name, name): value for name, value in made.items()}

    @cached_property
    def rerun_a(self) -> dict[str, Tensor] | None:
        """The reference's outputs as its model computes them here."""
        return self.run(self.a, self.evidence.feeds_a)

    @cached_property
    def rerun_b(self) -> dict[str, Tensor] | None:
        """The candidate's outputs as its model computes them here from its own feeds."""
        return self.run(self.b, self.evidence.feeds_b or self.evidence.feeds_a)

    @cached_property
    def replays_a(self) -> bool:
        """Whether the reference's model gives the outputs that were recorded."""
        return self.rerun_a is not None and worst(self.outputs_a, self.rerun_a) <= FLOAT_FLOOR

    @cached_property
    def replays_b(self) -> bool:
        """Whether the candidate's model gives the outputs that were recorded."""
        return self.rerun_b is not None and _same(self.outputs_b, self.rerun_b)

    @cached_property
    def values_a(self) -> dict[str, Tensor]:
        """Intermediate tensors of the reference, recorded or computed, its inputs and outputs included."""
        return self._values(self.a, self.evidence.layers_a, self.evidence.feeds_a, self.outputs_a)

    @cached_property
    def values_b(self) -> dict[str, Tensor]:
        """Those of the candidate."""
        feeds = self.evidence.feeds_b or self.evidence.feeds_a
        return self._values(self.b, self.evidence.layers_b, feeds, self.outputs_b)

    def _values(self, side: Side, layers: Tensors, feeds: Tensors, outputs: Tensors) -> dict[str, Tensor]:
        given = self.readable(feeds)
        taps = side_tensors(side)
        fits = len(taps) * max((v.nbytes for v in (*given.values(), *outputs.values())), default=0) <= TAPPED_BYTES
        tapped = self.run(side, given, taps=taps) if side.runs and fits else None
        return {**(tapped or {}), **given, **outputs, **self.readable(layers)}

    def calibrated(self, feeds: Tensors | None = None) -> dict[str, Tensor]:
        """The reference's intermediate tensors on the calibration feeds, or on others."""
        given = self.evidence.calib if feeds is None else feeds
        tapped = self._that_fit(given)
        found = (self.run(self.a, tapped, taps=side_tensors(self.a)) or self._one_by_one(tapped)) if tapped else {}
        return {**found, **given}

    def _that_fit(self, feeds: Tensors) -> Tensors:
        """As many samples, along axis 0, as can be held with all tensors that they make; none where not one can."""
        counts = {value.shape[0] for value in feeds.values() if value.ndim}
        if len(counts) != 1:
            return feeds
        count = counts.pop()
        sample = len(side_tensors(self.a)) * max(value.nbytes for value in feeds.values()) / max(count, 1)
        held = count if sample * count <= TAPPED_BYTES / 4 else int(TAPPED_BYTES / 4 / sample)
        return {name: value[:held] for name, value in feeds.items()} if held else {}

    def _one_by_one(self, feeds: Tensors) -> dict[str, Tensor]:
        """The same for a model that takes one sample at a time; nothing where it does not take these either."""
        counts = {value.shape[0] for value in feeds.values() if value.ndim}
        if not self.a.runs or len(counts) != 1:
            return {}
        made: dict[str, list[Tensor]] = {}
        for at in range(counts.pop()):
            one = {name: value[at : at + 1] for name, value in feeds.items()}
            for name, value in (self.run(self.a, one, taps=side_tensors(self.a)) or {}).items():
                made.setdefault(name, []).append(value)
        alike = {name: values for name, values in made.items() if len({value.shape for value in values}) == 1}
        return {name: np.concatenate(values) for name, values in alike.items() if values[0].ndim}

    @cached_property
    def order(self) -> tuple[tuple[str, str], ...]:
        """(tensor, operator) of the candidate in the order of its graph: topo.json, its model, or the reference's."""
        if self.evidence.order:
            return tuple((name, self.evidence.ops.get(name, "")) for name in self.evidence.order)
        for side in (self.b, self.a):
            if side.model is not None:
                return tuple((name, node.op_type) for node in side.model.graph.node for name in node.output if name)
        return tuple((name, "") for name in self.evidence.layers_b)


HALVES = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


def side_tensors(side: Side) -> tuple[str, ...]:
    """Names of all tensors that a model's nodes make."""
    if side.model is None:
        return ()
    return tuple(dict.fromkeys(name for node in side.model.graph.node for name in node.output if name))


def feed_sets(model: onnx.ModelProto, feeds: Tensors) -> tuple[FeedSet, ...]:
    """Feeds by the model's input names, cast to its types: by name; one for one; or `<input>_<suffix>` several
    times, each a run of its own. Empty where they do not fit."""
    held = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in held]
    names = [value.name for value in inputs]
    if not names:
        return ()
    if all(name in feeds for name in names):
        return (FeedSet("", _cast(inputs, {name: feeds[name] for name in names})),)
    suffixes = dict.fromkeys(feed[len(name) :] for feed in feeds for name in names if feed.startswith(f"{name}_"))
    whole = [suffix for suffix in suffixes if all(f"{name}{suffix}" in feeds for name in names)]
    if whole:
        return tuple(FeedSet(s, _cast(inputs, {name: feeds[f"{name}{s}"] for name in names})) for s in whole)
    if len(names) == len(feeds) == 1:
        return (FeedSet("", _cast(inputs, {names[0]: next(iter(feeds.values()))})),)
    return ()


def _cast(inputs: Sequence[onnx.ValueInfoProto], feeds: dict[str, Tensor]) -> dict[str, Tensor]:
    given = {}
    for value in inputs:
        wanted = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        feed = feeds[value.name]
        given[value.name] = feed if feed.dtype == wanted else feed.astype(wanted)
    return given


def _same(recorded: Tensors, rerun: Tensors) -> bool:
    for name, value in recorded.items():
        other = rerun.get(name)
        if other is None or same_shape(value, other) is None:
            return False
    return worst(recorded, rerun) <= FLOAT_FLOOR or all(
        np.array_equal(np.isfinite(value), np.isfinite(rerun[name])) and not np.isfinite(value).all()
        for name, value in recorded.items()
    )
