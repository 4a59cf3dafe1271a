"""The candidate's graph cut open: every paired tensor is an input too, so that no error is inherited."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.domain.graphs import Graph, Quantizer
from driftgate.localisation.onnx_graph import outer_references
from driftgate.localisation.points import Point

GIVEN = "::given"


@dataclass(frozen=True, slots=True)
class Cut:
    """A model that computes `outputs` from what it is given: (feed's name, point, quantiser where the feed is
    integers standing for the point's numbers)."""

    model: onnx.ModelProto
    feeds: tuple[tuple[str, int, Quantizer | None], ...]
    outputs: tuple[tuple[int, str], ...]  # (point, tensor)

    def given(self, values: Mapping[int, NDArray[Any]], dtypes: Mapping[str, np.dtype[Any]]) -> dict[str, NDArray[Any]]:
        """The feeds, from the points' values as numbers."""
        feeds: dict[str, NDArray[Any]] = {}
        for name, point, quantizer in self.feeds:
            value = values[point]
            feeds[name] = value if quantizer is None else quantised(value, quantizer)
            wanted = dtypes.get(name.removesuffix(GIVEN))
            if quantizer is None and wanted is not None and feeds[name].dtype != wanted:
                feeds[name] = feeds[name].astype(wanted)
        return feeds


def quantised(values: NDArray[Any], quantizer: Quantizer) -> NDArray[Any]:
    """Numbers as the integers that stand for them, rounded half to even and saturated, per tensor or axis."""
    scales = np.asarray(quantizer.quantization.scales, np.float64)
    zeros = np.asarray(quantizer.quantization.zero_points, np.float64)
    axis = quantizer.quantization.axis
    if axis is not None and scales.size > 1:
        around: list[int] = [1] * values.ndim
        around[axis] = -1
        scales, zeros = scales.reshape(around), zeros.reshape(around) if zeros.size > 1 else zeros
    integers = np.clip(np.rint(values.astype(np.float64) / scales) + zeros, quantizer.low, quantizer.high)
    return integers.astype(
        np.min_scalar_type(quantizer.low) if quantizer.low < 0 else np.min_scalar_type(quantizer.high)
    )


def cut(
    model: onnx.ModelProto,
    graph: Graph,
    points: Sequence[Point],
    *,
    given: Collection[int],
    wanted: Sequence[int],
    types: Mapping[str, tuple[np.dtype[Any], int]],
) -> Cut:
    """A model of the nodes that are needed to compute `wanted` points from `given` ones.

    A point that is given and wanted is computed from what comes before it and handed on as given. `types` has
    dtype and rank of the tensors, for the new inputs. Initializers are not copied: what opens parts of `model`
    finds them there.
    """
    needed, used = _needed(model, graph, points, given, wanted)
    owner = {name: point.index for point in points for name in point.names}
    copies = [_rewired(model.graph.node[number], used, owner) for number in needed]
    read = {name for node in copies for name in (*node.input, *outer_references(node))}
    made = onnx.ModelProto(
        ir_version=model.ir_version,
        opset_import=model.opset_import,
        functions=model.functions,
        producer_name="driftgate",
    )
    made.graph.name = "cut"
    made.graph.node.extend(copies)
    inputs = set(graph.inputs)
    made.graph.input.extend(v for v in model.graph.input if v.name in read and v.name in inputs)
    feeds = []
    for name, point in sorted(used.items()):
        if name + GIVEN in read:
            dtype, rank = types[name]
            made.graph.input.append(_value(name + GIVEN, dtype, [None] * rank))
            feeds.append((name + GIVEN, point, graph.quantizers.get(name)))
    outputs = tuple((index, points[index].tensor) for index in wanted if points[index].tensor not in inputs)
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for _, name in dict.fromkeys(outputs))
    return Cut(made, tuple(feeds), outputs)


def frontier(
    model: onnx.ModelProto, graph: Graph, points: Sequence[Point], *, given: Collection[int], wanted: Sequence[int]
) -> tuple[int, ...]:
    """The given points from which the wanted ones are computed."""
    return tuple(sorted(set(_needed(model, graph, points, given, wanted)[1].values())))


def alone(made: Cut, source: onnx.ModelProto, folder: Path, feeds: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
    """A cut with all weights in it and inputs of the feeds' types and shapes, for a file of its own.

    Inputs have the names of the tensors that they stand for, unless the cut computes those as well; the feeds go
    by the names they have in `made`. `folder` is that of the source's external data.
    """
    model = onnx.ModelProto()
    model.CopyFrom(made.model)
    names = plain_names(made)
    for node in model.graph.node:
        _rename(node, names)
    del model.graph.input[:]
    model.graph.input.extend(_value(names.get(name, name), feed.dtype, feed.shape) for name, feed in feeds.items())
    read = {name for node in model.graph.node for name in (*node.input, *outer_references(node))}
    for tensor in source.graph.initializer:
        if tensor.name in read:
            own = model.graph.initializer.add()
            own.CopyFrom(tensor)
            if own.data_location == onnx.TensorProto.EXTERNAL:
                onnx.external_data_helper.load_external_data_for_tensor(own, str(folder))
                own.ClearField("external_data")
                own.data_location = onnx.TensorProto.DEFAULT
    return model


def plain_names(made: Cut) -> dict[str, str]:
    """For each new input the name of the tensor that it stands for, where nothing else has that name."""
    computed = {name for node in made.model.graph.node for name in node.output}
    plain = {name: name.removesuffix(GIVEN) for name, _, _ in made.feeds}
    return {name: bare for name, bare in plain.items() if bare not in computed}


def _value(name: str, dtype: np.dtype[Any], shape: Sequence[int | None]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(dtype), shape)


def _needed(
    model: onnx.ModelProto, graph: Graph, points: Sequence[Point], given: Collection[int], wanted: Sequence[int]
) -> tuple[list[int], dict[str, int]]:
    """The numbers of the nodes that compute the wanted points, and the points to be given by the names read."""
    owner = {name: point.index for point in points for name in point.names}
    maker = {name: n for n, node in enumerate(model.graph.node) for name in node.output if name}
    inputs = set(graph.inputs)
    needed: set[int] = set()
    used: dict[str, int] = {}
    pending = [(points[index].tensor, index) for index in wanted]
    seen: set[tuple[str, int]] = set()
    while pending:
        name, making = pending.pop()
        if (name, making) in seen or not name or name in graph.constants:
            continue
        seen.add((name, making))
        point = owner.get(name)
        if point is not None and point in given and point != making:
            used[name] = point
            continue
        number = None if name in inputs else maker.get(name)
        if number is None:
            continue
        needed.add(number)
        node = model.graph.node[number]
        # Within the names of one point (quantise, dequantise, identity) the chain is followed to its start.
        inside = point if point is not None else making
        pending.extend((read, inside) for read in (*node.input, *outer_references(node)))
    constant = {number for number, node in enumerate(model.graph.node) if _is_constant(node, graph)}
    return sorted(needed | _needed_constants(model, needed, constant, maker)), used


def _is_constant(node: onnx.NodeProto, graph: Graph) -> bool:
    return bool(node.output) and all(not name or name in graph.constants for name in node.output)


def _needed_constants(
    model: onnx.ModelProto, needed: Collection[int], constant: Collection[int], maker: Mapping[str, int]
) -> set[int]:
    """The nodes that compute the constants which the needed nodes read."""
    found: set[int] = set()
    pending = list(needed)
    while pending:
        node = model.graph.node[pending.pop()]
        for name in (*node.input, *outer_references(node)):
            number = maker.get(name)
            if number is not None and number in constant and number not in found:
                found.add(number)
                pending.append(number)
    return found


def _rewired(node: onnx.NodeProto, used: Mapping[str, int], owner: Mapping[str, int]) -> onnx.NodeProto:
    """A copy that reads what is given instead of what was computed, but for a point's own chain."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    own = {owner[name] for name in node.output if name in owner}
    read = (*node.input, *outer_references(node))
    _rename(copy, {name: name + GIVEN for name in read if name in used and used[name] not in own})
    return copy


def _rename(node: onnx.NodeProto, new: Mapping[str, str]) -> None:
    for place, name in enumerate(node.input):
        if name in new:
            node.input[place] = new[name]
    for attribute in node.attribute:
        for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
            for inner in graph.node:
                _rename(inner, new)
            for value in graph.output:
                if value.name in new and not any(value.name in inner.output for inner in graph.node):
                    value.name = new[value.name]
