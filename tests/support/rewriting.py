"""The same network written down otherwise: renamed, re-ordered, folded, padded with operators that do nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that can be changed."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def values(model: onnx.ModelProto) -> dict[str, Array]:
    """The initializers and the Constant nodes with a tensor, by name."""
    found = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return found


def makers(model: onnx.ModelProto) -> dict[str, onnx.NodeProto]:
    """The node that makes a tensor."""
    return {name: node for node in model.graph.node for name in node.output if name}


def readers(model: onnx.ModelProto) -> dict[str, list[onnx.NodeProto]]:
    """The nodes that read a tensor."""
    found: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            found.setdefault(name, []).append(node)
    return found


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    """An attribute's value, or what it is when left out."""
    found = [a for a in node.attribute if a.name == name]
    return helper.get_attribute_value(found[0]) if found else default


def set_attribute(node: onnx.NodeProto, name: str, value: Any) -> None:
    """Give an attribute another value."""
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def give(model: onnx.ModelProto, node: onnx.NodeProto, place: int, array: Array) -> None:
    """Let one node, and no other, read a new constant."""
    name = f"given_{len(model.graph.initializer)}_{place}"
    model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
    node.input[place] = name


def renamed(model: onnx.ModelProto, seed: int) -> tuple[onnx.ModelProto, Mapping[str, str]]:
    """All tensors but inputs and outputs, and all nodes, under random names; (model, old name → new name).

    Tensors and nodes share the map: their names must not overlap.
    """
    made = copied(model)
    kept = {value.name for value in (*made.graph.input, *made.graph.output)}
    tensors = [name for node in made.graph.node for name in node.output if name and name not in kept]
    tensors += [t.name for t in made.graph.initializer if t.name not in kept]
    order = np.random.default_rng(seed).permutation(len(tensors) + len(made.graph.node))
    new = {name: f"t{order[number]}" for number, name in enumerate(dict.fromkeys(tensors))}
    nodes: dict[str, str] = {}
    for number, node in enumerate(made.graph.node):
        nodes[node.name] = f"n{order[len(tensors) + number]}"
        node.name = f"n{order[len(tensors) + number]}"
    for graph in _graphs(made.graph):
        for node in graph.node:
            node.input[:] = [new.get(name, name) for name in node.input]
            node.output[:] = [new.get(name, name) for name in node.output]
    for tensor in made.graph.initializer:
        tensor.name = new.get(tensor.name, tensor.name)
    del made.graph.value_info[:]
    return made, {**nodes, **new}


def swapped_names(model: onnx.ModelProto, seed: int) -> tuple[onnx.ModelProto, Mapping[str, str]]:
    """Each tensor under the name of another that the same operator makes in the same shape, where there is one;
    (model, old name → new name)."""
    made, new = renamed(model, seed)
    kept = {value.name for value in (*model.graph.input, *model.graph.output)}
    inferred = onnx.shape_inference.infer_shapes(model)
    shapes = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in inferred.graph.value_info}
    twins: dict[object, list[str]] = {}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in kept:
                twins.setdefault((node.op_type, shapes.get(name)), []).append(name)
    swapped = {name: names[number - 1] for names in twins.values() for number, name in enumerate(names)}
    final = {new[name]: other for name, other in swapped.items()}
    for graph in _graphs(made.graph):
        for node in graph.node:
            node.input[:] = [final.get(name, name) for name in node.input]
            node.output[:] = [final.get(name, name) for name in node.output]
    return made, {**new, **swapped}


def reordered(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The nodes in another order in which they can run."""
    made = copied(model)
    random = np.random.default_rng(seed)
    waiting = list(made.graph.node)
    known = {"", *(v.name for v in made.graph.input), *(t.name for t in made.graph.initializer)}
    ordered: list[onnx.NodeProto] = []
    while waiting:
        ready = [n for n, node in enumerate(waiting) if all(name in known for name in _read(node))]
        node = waiting.pop(ready[random.integers(len(ready))])
        known.update(node.output)
        ordered.append(node)
    nodes = [copied_node(node) for node in ordered]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def copied_node(node: onnx.NodeProto) -> onnx.NodeProto:
    """A node that belongs to no graph yet."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    return made


def folded(
    model: onnx.ModelProto, *, epsilon: float | None = None, no_beta: bool = False, wrong: Collection[str] = ()
) -> onnx.ModelProto:
    """Batch norms folded into the convolutions before them; a folded one goes by the batch norm's output.

    For the convolutions named in `wrong` the fold takes another epsilon, or forgets beta.
    """
    made = copied(model)
    constant, maker, reading = values(made), makers(made), readers(made)
    gone = []
    for norm in made.graph.node:
        conv = maker.get(norm.input[0]) if norm.op_type == "BatchNormalization" else None
        if conv is None or conv.op_type != "Conv" or len(reading[norm.input[0]]) != 1:
            continue
        gain, beta, mean, variance = (constant[name].astype(np.float64) for name in norm.input[1:5])
        is_wrong = conv.name in wrong
        small = epsilon if is_wrong and epsilon is not None else attribute(norm, "epsilon", 1e-5)
        factor = gain / np.sqrt(variance + small)
        weight = constant[conv.input[1]] * factor.reshape(-1, 1, 1, 1)
        bias = constant[conv.input[2]] if len(conv.input) > 2 else np.zeros(len(factor))
        shift = (bias - mean) * factor + (0.0 if is_wrong and no_beta else beta)
        inputs = list(conv.input)
        conv.input[:] = [*inputs[:2], ""]
        give(made, conv, 1, weight.astype(np.float32))
        give(made, conv, 2, shift.astype(np.float32))
        conv.output[0] = norm.output[0]
        gone.append(norm)
    for norm in gone:
        made.graph.node.remove(norm)
    return made


def between(model: onnx.ModelProto, op: str, **attributes: Any) -> onnx.ModelProto:
    """An operator that does nothing after every operator whose output is no output of the model."""
    made = copied(model)
    kept = {value.name for value in made.graph.output}
    nodes: list[onnx.NodeProto] = []
    new: dict[str, str] = {}
    for node in made.graph.node:
        copy = copied_node(node)
        copy.input[:] = [new.get(name, name) for name in node.input]
        nodes.append(copy)
        if node.op_type in ("Constant", "Shape") or len(node.output) != 1 or node.output[0] in kept:
            continue
        new[node.output[0]] = f"{node.output[0]}.same"
        nodes.append(
            helper.make_node(op, [node.output[0]], [new[node.output[0]]], f"{node.output[0]}.as", **attributes)
        )
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def channels_last(model: onnx.ModelProto) -> onnx.ModelProto:
    """Activations of four axes lie channels last; convolutions and pools have transposes around them.

    Only for models whose other operators work element by element.
    """
    made = copied(model)
    constant = values(made)
    outputs = {value.name for value in made.graph.output}
    nodes: list[onnx.NodeProto] = []
    turned: set[str] = set()

    def turn(name: str, to: str, perm: list[int]) -> str:
        nodes.append(helper.make_node("Transpose", [name], [to], f"turn:{to}", perm=perm))
        return to

    for node in made.graph.node:
        copy = copied_node(node)
        first = node.input[0]
        if node.op_type in ("Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "BatchNormalization"):
            if first in turned:
                copy.input[0] = turn(first, f"{node.output[0]}.in", [0, 3, 1, 2])
            if node.output[0] in outputs:
                nodes.append(copy)
                continue
            copy.output[0] = f"{node.output[0]}.first"
            nodes.append(copy)
            turn(copy.output[0], node.output[0], [0, 2, 3, 1])
            turned.add(node.output[0])
            continue
        if any(name in turned for name in node.input):
            if node.op_type == "Flatten" or node.output[0] in outputs:
                copy.input[:] = [
                    turn(name, f"{node.output[0]}.in{place}", [0, 3, 1, 2]) if name in turned else name
                    for place, name in enumerate(node.input)
                ]
            else:
                for place, name in enumerate(node.input):
                    if name in constant and constant[name].ndim == 3:
                        give(made, copy, place, constant[name].transpose(1, 2, 0))
                if attribute(node, "axis") == 1:
                    set_attribute(copy, "axis", 3)
                turned.update(node.output)
        nodes.append(copy)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    del made.graph.value_info[:]
    return made


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """The network in half precision behind a Cast of every input and before one of every output."""
    made = copied(model)
    graph = made.graph
    sizes = {name for node in graph.node if node.op_type == "Resize" for name in node.input[1:]}
    held = [tensor for tensor in graph.initializer if tensor.name not in sizes]
    held += [attribute.t for node in graph.node for attribute in node.attribute if attribute.HasField("t")]
    for tensor in held:
        if tensor.data_type == TensorProto.FLOAT:
            half = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(half, tensor.name))
    del graph.value_info[:]
    ends = [
        [value.name for value in side if value.type.tensor_type.elem_type == TensorProto.FLOAT]
        for side in (graph.input, graph.output)
    ]
    inner = {name: f"{name}_half" for side in ends for name in side}
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [inner.get(name, name) for name in names]
    first = [
        helper.make_node("Cast", [name], [inner[name]], f"cast_{name}", to=TensorProto.FLOAT16) for name in ends[0]
    ]
    last = [helper.make_node("Cast", [inner[name]], [name], f"cast_{name}", to=TensorProto.FLOAT) for name in ends[1]]
    nodes = [*first, *(copied_node(node) for node in graph.node), *last]
    del graph.node[:]
    graph.node.extend(nodes)
    return made


def computed_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """Every constant of floats is computed by the model itself, of two others."""
    made = copied(model)
    nodes: list[onnx.NodeProto] = []
    for tensor in made.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.data_type != TensorProto.FLOAT or not array.size:
            continue
        name = tensor.name
        half = numpy_helper.from_array((array * np.float32(0.5)).astype(np.float32), f"{name}.half")
        nodes.append(helper.make_node("Constant", [], [f"{name}.two"], f"{name}.two", value_float=2.0))
        nodes.append(helper.make_node("Mul", [half.name, f"{name}.two"], [name], f"{name}.product"))
        tensor.CopyFrom(half)
    rest = [copied_node(node) for node in made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend([*nodes, *rest])
    return made


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for held in node.attribute:
            if held.HasField("g"):
                yield from _graphs(held.g)


def _read(node: onnx.NodeProto) -> list[str]:
    """What a node reads, its sub-graphs included."""
    names = list(node.input)
    for held in node.attribute:
        if held.HasField("g"):
            own = {name for inner in held.g.node for name in inner.output}
            own |= {t.name for t in held.g.initializer}
            names += [name for inner in held.g.node for name in _read(inner) if name not in own]
    return names
