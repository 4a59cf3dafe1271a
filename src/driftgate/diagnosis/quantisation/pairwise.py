"""Sums of products as targets without wide dot products make them: pairs that are cut off at 16 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from driftgate.diagnosis.bench import INTEGER_FLOOR, Bench
from driftgate.diagnosis.quantisation.quantisers import is_its_own
from driftgate.diagnosis.quantisation.spreads import SPREAD_UNIT
from driftgate.diagnosis.residuals import lattice, widest
from driftgate.diagnosis.surgery import Quantised, added_constant, attribute, copied, label, opset
from driftgate.diagnosis.trials import explained, trial
from driftgate.domain.investigations import Explanation, Trial

Tensor = NDArray[Any]

LOWEST, HIGHEST = -32768.0, 32767.0
BYTE = 8
LEAST_OPSET = 13  # axes as inputs
MOST_NUMBERS = 1 << 26  # that the sums of all pairs of one layer may hold
#: In which order a convolution's products are added: axes of its weight (outputs, channels, height, width).
ORDERS: Sequence[tuple[int, int, int]] = ((2, 3, 1), (1, 2, 3))


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer of bytes: the node, what it reads, the weights as integers (products, outputs), their scales, and of a
    convolution the axes of an output's weights in the order of its products, and their sizes."""

    node: onnx.NodeProto
    fed: Quantised
    levels: Tensor
    scales: Tensor
    order: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()

    @property
    def may_saturate(self) -> bool:
        """Whether two neighbours of one sign with the largest inputs pass 16 bits."""
        rows = self.levels[: len(self.levels) // 2 * 2]
        largest = np.abs(rows[0::2] + rows[1::2]).max(initial=0.0) * (self.fed.high - self.fed.low)
        return bool(largest > HIGHEST)


def find_pairs_cut_off(bench: Bench) -> Iterator[Explanation]:
    """The candidate's model does not give here what was recorded; with sums of pairs cut off at 16 bits it does."""
    if not bench.recorded_b or is_its_own(bench) or bench.b.model is None or opset(bench.b.model) < LEAST_OPSET:
        return
    rerun = bench.rerun_b
    tried: list[tuple[Trial, tuple[str, ...]]] = []
    for order in ORDERS:
        layers = {place: layer for place, layer in _layers(bench, order) if layer.may_saturate}
        if not layers or rerun is None:
            return
        feeds = bench.evidence.feeds_b or bench.evidence.feeds_a
        made = bench.run(bench.b, feeds, _saturating(bench.b.model, layers))
        if made is not None:
            pair = widest(bench.outputs_b, rerun), widest(bench.outputs_b, made)
            one = trial("accumulator-saturation", "pairs cut off", *pair, INTEGER_FLOOR / 2)
            tried.append((one, tuple(label(layer.node) for layer in layers.values())))
        if not any(layer.shape for layer in layers.values()):
            break
    if tried:
        best, names = min(tried, key=lambda item: item[0].after)
        yield from explained(best, subjects=names[:8], facts=(("layers", float(len(names)), ""),), unit=SPREAD_UNIT)


def _layers(bench: Bench, order: tuple[int, int, int]) -> Iterator[tuple[int, _Layer]]:
    fed = {tensor.tensor: tensor for tensor in bench.b.quantised if tensor.bits == BYTE}
    for place, node in enumerate(bench.b.whole_model.graph.node):
        source = fed.get(node.input[0]) if node.input else None
        if source is None or node.op_type not in NODES or not _is_plain(node):
            continue
        held = _integers(bench, node.input[1])
        made = bench.values_b.get(node.output[0])
        if held is None or made is None:
            continue
        levels, scales = held
        shape: tuple[int, ...] = ()
        if node.op_type == "Conv":
            if levels.ndim != 4:
                continue
            shape = tuple(levels.shape[axis] for axis in order)
            levels = levels.transpose(0, *order).reshape(len(levels), -1).T
        elif node.op_type == "Gemm" and attribute(node, "transB", 0):
            levels = levels.T
        if levels.ndim != 2 or scales.size not in (1, levels.shape[1]):
            continue
        if len(levels) // 2 * max(made.size, levels.size) <= MOST_NUMBERS:
            yield place, _Layer(node, source, levels, scales, order if shape else (), shape)


def _is_plain(node: onnx.NodeProto) -> bool:
    """Whether nothing but products and their sum is in it."""
    usual = {"transA": 0, "alpha": 1.0, "beta": 1.0, "group": 1, "auto_pad": "NOTSET"}
    return all(attribute(node, name, value) == value for name, value in usual.items())


def _integers(bench: Bench, name: str) -> tuple[Tensor, Tensor] | None:
    """A weight as integers and their scales, stored so or rounded to one step."""
    node = bench.b.makers.get(name)
    if node is not None and node.op_type == "DequantizeLinear":
        stored, scale = bench.b.value(node.input[0]), bench.b.value(node.input[1])
        zero = bench.b.value(node.input[2]) if len(node.input) > 2 else None
        if stored is None or scale is None or stored.dtype != np.int8 or (zero is not None and zero.any()):
            return None
        return np.asarray(stored, np.float64), np.asarray(scale, np.float64).reshape(-1)
    value = bench.b.value(name)
    step = lattice(value) if value is not None and value.dtype.kind == "f" else None
    if value is None or step is None or np.abs(value).max() > -LOWEST / 256 * step:
        return None
    return np.rint(np.asarray(value, np.float64) / step), np.array([step])


def _saturating(model: onnx.ModelProto, layers: Mapping[int, _Layer]) -> onnx.ModelProto:
    """The candidate whose layers add pairs in 16 bits."""
    copy = copied(model)
    nodes: list[onnx.NodeProto] = []
    for place, node in enumerate(model.graph.node):
        layer = layers.get(place)
        nodes.extend([node] if layer is None else _nodes(copy, layer))
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


class _Graph:
    """Nodes that are being made, with constants in a model."""

    def __init__(self, model: onnx.ModelProto, prefix: str) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self._model, self._prefix = model, prefix

    def held(self, value: object, dtype: type = np.float32) -> str:
        """A constant."""
        return added_constant(self._model, np.asarray(value, dtype))

    def then(self, op: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        """A node with one output, which it gives the name of."""
        name = f"{self._prefix}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [*inputs], [name], name=name, **attributes))
        return name

    def cut_off(self, name: str) -> str:
        """What fits into 16 bits."""
        return self.then("Min", self.then("Max", name, self.held(LOWEST)), self.held(HIGHEST))


def _nodes(model: onnx.ModelProto, layer: _Layer) -> list[onnx.NodeProto]:
    """One layer: codes from 0 to 255, neighbours times their weights, cut off, summed, and back to numbers."""
    graph = _Graph(model, f"driftgate.{layer.node.output[0]}")
    offset = -float(layer.fed.low)
    codes = graph.then("Round", graph.then("Div", layer.node.input[0], graph.held(layer.fed.step)))
    sums = NODES[layer.node.op_type](graph, layer, graph.then("Add", codes, graph.held(offset)), offset)
    around = (1, -1, 1, 1) if layer.shape else (-1,)
    sums = graph.then("Sub", sums, graph.held((offset * layer.levels.sum(0)).reshape(around)))
    numbers = graph.then("Mul", sums, graph.held((layer.fed.step * layer.scales).reshape(around)))
    if len(layer.node.input) > 2 and layer.node.input[2]:
        bias = layer.node.input[2]
        if layer.shape:
            bias = graph.then("Reshape", bias, graph.held(around, np.int64))
        graph.then("Add", numbers, bias)
    graph.nodes[-1].output[0] = layer.node.output[0]
    return graph.nodes


def _matrix(graph: _Graph, layer: _Layer, codes: str, offset: float) -> str:
    """Sums of a matrix product."""
    del offset
    count = len(layer.levels)
    rows = np.vstack([layer.levels, np.zeros((count % 2, layer.levels.shape[1]))])
    seconds = np.minimum(np.arange(1, count + 1, 2), count - 1)
    terms = []
    for places, weights in ((np.arange(0, count, 2), rows[0::2]), (seconds, rows[1::2])):
        picked = graph.then("Gather", codes, graph.held(places, np.int64), axis=-1)
        picked = graph.then("Unsqueeze", picked, graph.held([-1], np.int64))
        terms.append(graph.then("Mul", picked, graph.held(weights)))
    pairs = graph.cut_off(graph.then("Add", *terms))
    return graph.then("ReduceSum", pairs, graph.held([-2], np.int64), keepdims=0)


def _convolution(graph: _Graph, layer: _Layer, codes: str, offset: float) -> str:
    """Sums of a convolution: one output for each pair of products, then those of a channel added."""
    node, count, channels = layer.node, *layer.levels.shape
    pads = list(attribute(node, "pads", [0] * 4))
    if any(pads):  # zero is the code `offset`
        whole = [0, 0, *pads[:2], 0, 0, *pads[2:]]
        codes = graph.then("Pad", codes, graph.held(whole, np.int64), graph.held(offset))
    pairs = -(-count // 2)
    weights = np.zeros((channels, pairs, count))
    for place in range(count):
        weights[:, place // 2, place] = layer.levels[place]
    back = (0, *(1 + int(axis) for axis in np.argsort(layer.order)))
    single = weights.reshape(-1, *layer.shape).transpose(back)
    kept = {name: attribute(node, name) for name in ("strides", "dilations") if attribute(node, name) is not None}
    each = graph.cut_off(graph.then("Conv", codes, graph.held(single), **kept))
    return graph.then("Conv", each, graph.held(np.ones((channels, pairs, 1, 1))), group=channels)


NODES: Mapping[str, Callable[[_Graph, _Layer, str, float], str]] = {
    "MatMul": _matrix,
    "Gemm": _matrix,
    "Conv": _convolution,
}
