"""Changed copies of an ONNX model, for experiments; the original and its weights stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from driftgate.localisation.onnx_graph import outer_references

Tensor = NDArray[Any]
OURS = "driftgate."
LEAST_STEP = 1e-12


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that may be changed."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:  # noqa: ANN401
    """The value of an attribute."""
    for entry in node.attribute:
        if entry.name == name:
            value = helper.get_attribute_value(entry)
            return value.decode() if isinstance(value, bytes) else value
    return default


def opset(model: onnx.ModelProto) -> int:
    """The version of ONNX's own operators that a model is written in."""
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def with_attributes(model: onnx.ModelProto, places: Iterable[int], **values: object) -> onnx.ModelProto:
    """Nodes with other attributes; None takes one away."""
    copy = copied(model)
    for place in places:
        node = copy.graph.node[place]
        kept = [entry for entry in node.attribute if entry.name not in values]
        del node.attribute[:]
        node.attribute.extend(kept)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in values.items() if value is not None)
    return copy


def with_input(model: onnx.ModelProto, place: int, number: int, value: Tensor) -> onnx.ModelProto:
    """A node that reads a constant of our own."""
    copy = copied(model)
    node = copy.graph.node[place]
    node.input[number] = _added(copy, value)
    return copy


def with_inputs(model: onnx.ModelProto, changes: Iterable[tuple[int, int, Tensor]]) -> onnx.ModelProto:
    """Several nodes that read constants of our own: (node, input, value)."""
    copy = copied(model)
    for place, number, value in changes:
        copy.graph.node[place].input[number] = _added(copy, value)
    return copy


def with_constants(model: onnx.ModelProto, values: Mapping[str, Tensor]) -> onnx.ModelProto:
    """Every reader of a constant reads another value of it."""
    copy = copied(model)
    names = {name: _added(copy, value) for name, value in values.items()}
    for node in copy.graph.node:
        for number, name in enumerate(node.input):
            node.input[number] = names.get(name, name)
    return copy


def forced(model: onnx.ModelProto, values: Mapping[str, Tensor]) -> onnx.ModelProto:
    """Tensors that have given values, whatever their node computes."""
    copy = copied(model)
    for node in copy.graph.node:
        for number, name in enumerate(node.output):
            if name in values:
                node.output[number] = f"{OURS}unread.{name}"
    for name, value in values.items():
        held = _added(copy, value)
        copy.graph.node.insert(0, helper.make_node("Identity", [held], [name], name=f"{OURS}{name}"))
    return copy


def replaced(model: onnx.ModelProto, place: int, nodes: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
    """Other nodes in one's place."""
    copy = copied(model)
    kept = list(copy.graph.node)
    del copy.graph.node[:]
    copy.graph.node.extend([*kept[:place], *nodes, *kept[place + 1 :]])
    return copy


def added_constant(model: onnx.ModelProto, value: Tensor) -> str:
    """Put a constant into a model that is a copy already, and give its name."""
    return _added(model, value)


def ready(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model to be opened: constants of our own as nodes, because sessions take weights from the artifact."""
    copy = copied(model)
    ours = [tensor for tensor in copy.graph.initializer if tensor.name.startswith(OURS)]
    kept = [tensor for tensor in copy.graph.initializer if not tensor.name.startswith(OURS)]
    nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in ours]
    nodes.extend(copy.graph.node)
    del copy.graph.initializer[:], copy.graph.node[:]
    copy.graph.initializer.extend(kept)
    copy.graph.node.extend(nodes)
    return copy


def sort_nodes(model: onnx.ModelProto) -> bool:
    """Put the nodes of a model that is a copy into an order in which each reads what is made before it; nodes keep
    their order where they can. False where there is none."""
    made = {name for node in model.graph.node for name in node.output if name}
    waiting, ordered, ready_names = list(model.graph.node), list[onnx.NodeProto](), set[str]()
    while waiting:
        left = []
        for node in waiting:
            if any(name in made and name not in ready_names for name in (*node.input, *outer_references(node))):
                left.append(node)
                continue
            ordered.append(node)
            ready_names.update(node.output)
        if len(left) == len(waiting):
            return False
        waiting = left
    copies = []
    for node in ordered:
        copies.append(onnx.NodeProto())
        copies[-1].CopyFrom(node)
    del model.graph.node[:]
    model.graph.node.extend(copies)
    return True


def label(node: onnx.NodeProto) -> str:
    """A node's name, or that of the tensor it makes."""
    return node.name or next((name for name in node.output if name), node.op_type)


def _added(model: onnx.ModelProto, value: Tensor) -> str:
    name = f"{OURS}constant.{len(model.graph.initializer)}"
    model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
    return name


@dataclass(frozen=True, slots=True)
class Quantised:
    """A tensor that a QuantizeLinear and its DequantizeLinear round; places are indices of nodes.

    `source` is the name before, `tensor` the name after; a number is `step` times an integer from `low` to `high`,
    stored as `dtype`.
    """

    source: str
    tensor: str
    quantise: int
    dequantise: int
    step: float
    low: int
    high: int
    dtype: str = "uint8"

    @property
    def threshold(self) -> float:
        """The largest magnitude that fits."""
        return max(abs(self.low), abs(self.high)) * self.step if self.low >= 0 else self.high * self.step

    def step_for(self, low: float, high: float) -> float:
        """The smallest step with which these fit, those aside that the quantiser cuts off by design."""
        up = high / self.high if self.high > 0 else 0.0
        return max(up, low / self.low if self.low < 0 else 0.0, LEAST_STEP)

    @property
    def bits(self) -> int:
        """Bits of the integer."""
        return int(self.high - self.low + 1).bit_length() - 1


def quantised_tensors(model: onnx.ModelProto, value: Callable[[str], Tensor | None]) -> tuple[Quantised, ...]:
    """The rounded tensors of a model in its order; only those with one scale."""
    return tuple(_quantised(model, value))


def _quantised(model: onnx.ModelProto, value: Callable[[str], Tensor | None]) -> Iterator[Quantised]:
    readers: dict[str, list[int]] = {}
    for place, node in enumerate(model.graph.node):
        for name in node.input:
            readers.setdefault(name, []).append(place)
    for place, node in enumerate(model.graph.node):
        if node.op_type != "QuantizeLinear":
            continue
        scale = value(node.input[1])
        zero = value(node.input[2]) if len(node.input) > 2 else np.zeros((), np.uint8)
        after = next(
            (r for r in readers.get(node.output[0], ()) if model.graph.node[r].op_type == "DequantizeLinear"), None
        )
        if scale is None or scale.size != 1 or zero is None or zero.dtype.kind not in "iu" or after is None:
            continue
        limits = np.iinfo(zero.dtype)
        offset = int(zero.reshape(-1)[0])
        yield Quantised(
            source=node.input[0],
            tensor=model.graph.node[after].output[0],
            quantise=place,
            dequantise=after,
            step=float(scale.reshape(-1)[0]),
            low=int(limits.min) - offset,
            high=int(limits.max) - offset,
            dtype=zero.dtype.name,
        )


def rescaled(model: onnx.ModelProto, changes: Mapping[Quantised, float]) -> onnx.ModelProto:
    """Rounded tensors with other steps."""
    found = []
    for tensor, step in changes.items():
        for place in (tensor.quantise, tensor.dequantise):
            found.append((place, 1, np.array(step, np.float32)))
    return with_inputs(model, found)


def reranged(model: onnx.ModelProto, ranges: Mapping[Quantised, tuple[float, float]]) -> onnx.ModelProto:
    """Rounded tensors with steps for these lowest and highest numbers, and with the zero point for them.

    A range in the middle of its integers stays there, and one that begins at zero behind a node does: a Relu's.
    """
    found, fed = [], {entry.name for entry in model.graph.input}
    for tensor, (low, high) in ranges.items():
        low, high = min(low, 0.0), max(high, 0.0)
        step = tensor.step_for(low, high)
        begins = tensor.low == 0 and (tensor.source not in fed or len(model.graph.node[tensor.quantise].input) < 3)
        if abs(tensor.low + tensor.high) > 1 and not begins:
            limits = np.iinfo(tensor.dtype)
            step = max((high - low) / (tensor.high - tensor.low), LEAST_STEP)
            zero = np.clip(np.rint(limits.min - low / step), limits.min, limits.max).astype(tensor.dtype)
            found += [(place, 2, zero) for place in (tensor.quantise, tensor.dequantise)]
        found += [(place, 1, np.array(step, np.float32)) for place in (tensor.quantise, tensor.dequantise)]
    return with_inputs(model, found)


def unrounded(model: onnx.ModelProto, tensors: Iterable[Quantised]) -> onnx.ModelProto:
    """Tensors that are not rounded any more.

    A range that begins at zero stays as a Clip: quantisers leave out a Relu or a Clip that it stands for.
    """
    copy = copied(model)
    for tensor in tensors:
        node = copy.graph.node[tensor.dequantise]
        made, inputs = "Identity", [tensor.source]
        if tensor.low == 0:
            limits = (np.array(limit * tensor.step, np.float32) for limit in (tensor.low, tensor.high))
            made, inputs = "Clip", [tensor.source, *(_added(copy, limit) for limit in limits)]
        node.CopyFrom(helper.make_node(made, inputs, [tensor.tensor], name=node.name))
    return copy
