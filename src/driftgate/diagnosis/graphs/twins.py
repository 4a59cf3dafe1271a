"""Two models side by side on the same feeds: what each tensor is, and which tensors of both are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench, Side, feed_sets, side_tensors
from driftgate.diagnosis.residuals import residual, worst
from driftgate.diagnosis.surgery import attribute
from driftgate.numerics.alignment import same_shape

Tensor = NDArray[Any]
Summary = tuple[tuple[int, ...], str, float, float]

#: Operators that hand on what they get.
TRANSPARENT = frozenset({"Identity", "Dropout"})
_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)


class Twin:
    """One model with the values of its tensors."""

    def __init__(self, side: Side, values: Mapping[str, Tensor]) -> None:
        self.side = side
        self.model = side.whole_model
        self._values = values
        self._constants: dict[str, Tensor | None] = {}
        self.maker = {name: place for place, node in enumerate(self.model.graph.node) for name in node.output if name}

    def node(self, place: int) -> onnx.NodeProto:
        """A node by its place."""
        found: onnx.NodeProto = self.model.graph.node[place]
        return found

    def constant(self, name: str) -> Tensor | None:
        """The value of a constant; None for what is computed."""
        if name not in self._constants:
            self._constants[name] = self.side.value(name)
        return self._constants[name]

    def value(self, name: str) -> Tensor | None:
        """A constant, or what was computed."""
        held = self.constant(name)
        return self._values.get(name) if held is None else held

    def rank(self, name: str) -> int | None:
        """The number of axes of a tensor."""
        value = self.value(name)
        return None if value is None else value.ndim

    def through(self, name: str) -> str:
        """The tensor that operators which hand it on begin with."""
        while (place := self.maker.get(name)) is not None:
            node = self.node(place)
            if not (node.op_type in TRANSPARENT or self._is_float_cast(node)) or is_active_dropout(self, node):
                break
            name = node.input[0]
        return name

    def _is_float_cast(self, node: onnx.NodeProto) -> bool:
        before = self.value(node.input[0]) if node.op_type == "Cast" else None
        return before is not None and before.dtype.kind == "f" and attribute(node, "to") in _FLOATS

    @cached_property
    def reached(self) -> frozenset[str]:
        """Tensors that an input reaches."""
        held = {tensor.name for tensor in self.model.graph.initializer}
        found = {value.name for value in self.model.graph.input if value.name not in held}
        for node in self.model.graph.node:
            if any(name in found for name in node.input):
                found.update(node.output)
        return frozenset(found)

    @cached_property
    def summaries(self) -> Mapping[tuple[tuple[int, ...], str], Sequence[tuple[str, float, float]]]:
        """(tensor, mean, spread) of what depends on the input, by shape and kind of number."""
        found: dict[tuple[tuple[int, ...], str], list[tuple[str, float, float]]] = {}
        for name, value in self._values.items():
            if name in self.reached and value.size:
                shape, kind, mean, spread = summary(value)
                found.setdefault((shape, kind), []).append((name, mean, spread))
        return found


def is_active_dropout(twin: Twin, node: onnx.NodeProto) -> bool:
    """Whether a dropout drops."""
    mode = twin.value(node.input[2]) if len(node.input) > 2 and node.op_type == "Dropout" else None
    return mode is not None and bool(mode.reshape(-1)[0])


def summary(value: Tensor) -> Summary:
    """Shape, kind of number, mean and spread."""
    numbers = np.asarray(value, np.float64)
    with np.errstate(all="ignore"):
        return value.shape, value.dtype.kind, float(numbers.mean()), float(numbers.std())


class Twins:
    """Both models. A tensor is the same on both sides where its values are, within the noise of the link."""

    def __init__(self, a: Twin, b: Twin, ends: Sequence[tuple[str, str]], *, runs: int, tolerance: float) -> None:
        """`ends` are outputs of both that mean the same, `runs` how many runs the feeds are for."""
        self.a, self.b, self.ends, self.runs = a, b, ends, runs
        self._tolerance = tolerance
        self._same: dict[tuple[str, str], bool] = {}
        self._partners: dict[tuple[bool, str], str | None] = {}

    def agree(self, a: str, b: str) -> bool:
        """Whether a tensor of the reference and one of the candidate are the same, but for axes of length 1."""
        if (a, b) not in self._same:
            x, y = self.a.value(a), self.b.value(b)
            self._same[a, b] = x is not None and y is not None and self.are_same(x, y)
        return self._same[a, b]

    def are_same(self, x: Tensor, y: Tensor) -> bool:
        """Whether two values are the same."""
        if x.dtype.kind != y.dtype.kind or same_shape(x, y) is None:
            return False
        if x.dtype.kind != "f" or not x.size:
            return np.array_equal(x.reshape(-1), y.reshape(-1))
        return residual(x, y) <= self._tolerance

    def partner_in_b(self, a: str) -> str | None:
        """The candidate's tensor that is the same and has the same shape."""
        return self._partner(a, self.a, self.b, in_b=True)

    def partner_in_a(self, b: str) -> str | None:
        """The reference's."""
        return self._partner(b, self.b, self.a, in_b=False)

    def _partner(self, name: str, mine: Twin, other: Twin, *, in_b: bool) -> str | None:
        key = (in_b, name)
        if key not in self._partners:
            value = mine.value(name) if name in mine.reached else None
            self._partners[key] = None if value is None else self._searched(name, value, other, in_b=in_b)
        return self._partners[key]

    def _searched(self, name: str, value: Tensor, other: Twin, *, in_b: bool) -> str | None:
        shape, kind, mean, spread = summary(value)
        alike = other.summaries.get((shape, kind), ())
        slack = 0.05 * spread + 1e-6 * abs(mean) + 1e-12
        near = [row[0] for row in alike if not (abs(row[1] - mean) > slack or abs(row[2] - spread) > slack)]
        for candidate in sorted(near, key=lambda one: one != name):
            if self.agree(name, candidate) if in_b else self.agree(candidate, name):
                return candidate
        return None


def read_twins(bench: Bench) -> Twins | None:
    """Both models run on the reference's feeds; of several runs the one in which their outputs differ most.

    None where one cannot run, or where their outputs do not differ: then no graph is at fault.
    """
    feeds = bench.evidence.feeds_a
    if not (bench.a.runs and bench.b.runs and feeds and bench.outputs_a):
        return None
    made = [bench.run(side, feeds, taps=side_tensors(side)) for side in (bench.a, bench.b)]
    if made[0] is None or made[1] is None:
        return None
    sets = [{given.suffix: given.feeds for given in feed_sets(s.whole_model, feeds)} for s in (bench.a, bench.b)]
    named = output_names(bench.a.whole_model)
    runs = {suffix: [_of_run(values, suffix) for values in (made[0], made[1])] for suffix in sets[0]}
    gaps = {suffix: worst({name: a[name] for name in named if name in a}, b) for suffix, (a, b) in runs.items()}
    suffix = max(gaps, key=lambda one: gaps[one], default="")
    if not gaps or gaps[suffix] <= FLOAT_FLOOR:
        return None
    a, b = runs[suffix]
    # Runs give the candidate's outputs first, in its order, under the reference's names.
    names = dict(zip(output_names(bench.b.whole_model), b, strict=False))
    own = {**b, **{name: b[given] for name, given in names.items()}}
    twins = [
        Twin(side, {**given.get(suffix, {}), **values})
        for side, given, values in ((bench.a, sets[0], a), (bench.b, sets[1], own))
    ]
    ends = tuple((given, name) for name, given in names.items() if given in named)
    return Twins(twins[0], twins[1], ends, runs=len(runs), tolerance=max(FLOAT_FLOOR, bench.floor))


def output_names(model: onnx.ModelProto) -> tuple[str, ...]:
    """Names of a model's outputs."""
    return tuple(output.name for output in model.graph.output)


def _of_run(made: Mapping[str, Tensor], suffix: str) -> dict[str, Tensor]:
    return {name.removesuffix(suffix): value for name, value in made.items() if name.endswith(suffix)}


def takes_axes(node: onnx.NodeProto) -> bool:
    """Whether an operator is told axes, by an attribute or, in later versions, by its second input."""
    return node.op_type.startswith("Reduce") or node.op_type in ("Squeeze", "Unsqueeze")


def axes_of(twin: Twin, node: onnx.NodeProto) -> tuple[int, ...] | None:
    """The axes that such a node is told, counted from the first; None where they are not told."""
    held = twin.value(node.input[1]) if len(node.input) > 1 and takes_axes(node) else None
    told = attribute(node, "axes") if held is None else held.reshape(-1).tolist()
    rank = twin.rank(node.input[0])
    if told is None:
        return None
    return tuple(sorted(int(axis) % rank if rank else int(axis) for axis in told))
