"""Faults planted in a candidate: each says which node is wrong and which channels of its output it hits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from support.rewriting import attribute, copied, copied_node, give, makers, readers, values

Array = NDArray[Any]

CONVOLUTIONS = ("Conv", "FusedConv")
MATRICES = ("MatMul", "Gemm", "FusedMatMul", "FusedGemm")


@dataclass(frozen=True, slots=True)
class Planted:
    """A candidate with one fault. `accepted` are the names of the wrong node and of the quantisers that belong
    to it; `tensor` is the number it makes, `axis` where the hit `channels` lie, () where all are hit."""

    kind: str
    model: onnx.ModelProto
    accepted: tuple[str, ...]
    tensor: str
    axis: int = 1
    channels: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bed:
    """A healthy model to plant in, with what is looked up in it again and again."""

    model: onnx.ModelProto
    values: Mapping[str, Array]
    makers: Mapping[str, onnx.NodeProto]
    readers: Mapping[str, Sequence[onnx.NodeProto]]
    shapes: Mapping[str, tuple[int, ...]]  # of the tensors that were looked at

    @classmethod
    def of(cls, model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> Bed:
        """Look a model up."""
        return cls(model, values(model), makers(model), readers(model), shapes)

    def array(self, name: str) -> Array | None:
        """The integers or numbers of a constant, also behind its dequantisation."""
        maker = self.makers.get(name)
        if maker is not None and maker.op_type == "DequantizeLinear":
            return self.values.get(maker.input[0])
        return self.values.get(name)

    def has_constant(self, node: onnx.NodeProto, place: int) -> bool:
        """Whether an input is there and a constant."""
        return len(node.input) > place and bool(node.input[place]) and self.array(node.input[place]) is not None

    def chain(self, node: onnx.NodeProto) -> tuple[str, ...]:
        """The quantisers of what a node makes and of its constants."""
        names = [node.name]
        for name in node.input:
            maker = self.makers.get(name)
            if maker is not None and maker.op_type == "DequantizeLinear" and maker.input[0] in self.values:
                names.append(maker.name)
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            names += [quantiser.name for quantiser in self.quantisers(node.output[0])]
        return tuple(names)

    def quantisers(self, tensor: str) -> list[onnx.NodeProto]:
        """Quantiser and dequantiser right after a tensor."""
        found: list[onnx.NodeProto] = []
        for quantise in self.readers.get(tensor, ()):
            if quantise.op_type == "QuantizeLinear":
                found += [quantise, *self.readers.get(quantise.output[0], ())]
        return [node for node in found if node.op_type in ("QuantizeLinear", "DequantizeLinear")]

    def number(self, tensor: str) -> str:
        """The tensor the network goes on with: behind the quantiser where all read that."""
        reading = self.readers.get(tensor, ())
        if len(reading) == 1 and reading[0].op_type == "QuantizeLinear":
            behind = self.readers.get(reading[0].output[0], ())
            if len(behind) == 1 and behind[0].op_type == "DequantizeLinear":
                return str(behind[0].output[0])
        return tensor


#: Changes a copy of the node in a copy of the model; gives the channels that are hit, () for all, None where it
#: cannot be planted there.
Plant = Callable[["Site"], "tuple[int, ...] | None"]


@dataclass(slots=True)
class Site:
    """A node to make wrong, in a model of its own."""

    bed: Bed
    model: onnx.ModelProto
    node: onnx.NodeProto
    random: np.random.Generator

    def holder(self, place: int) -> tuple[onnx.NodeProto, int]:
        """The node and place where a constant is read: the operator itself or its dequantiser."""
        maker = self.bed.makers.get(self.node.input[place])
        if maker is None or maker.op_type != "DequantizeLinear":
            return self.node, place
        node = next(node for node in self.model.graph.node if node.name == maker.name)
        if len(self.bed.readers[maker.output[0]]) > 1:
            node = copied_node(node)  # others read it too, and stay healthy
            node.name, node.output[0] = f"{node.name}.own", f"{node.output[0]}.own"
            self.model.graph.node.insert(0, node)
            self.node.input[place] = node.output[0]
        return self.model.graph.node[0] if node.name.endswith(".own") else node, 0

    def change(self, place: int, change: Callable[[Array], Array]) -> None:
        """Let the node read a changed constant."""
        node, at = self.holder(place)
        value = self.bed.values[node.input[at]]
        changed = change(value.copy())
        if value.dtype.kind in "iu":
            limits = np.iinfo(value.dtype)
            changed = np.clip(np.rint(changed), limits.min, limits.max)
        give(self.model, node, at, changed.astype(value.dtype))

    def weight(self) -> tuple[Array, int] | None:
        """Weights and the axis of their output channels."""
        if not self.bed.has_constant(self.node, 1):
            return None
        array = self.bed.array(self.node.input[1])
        if array is None or array.ndim < 2:
            return None
        if self.node.op_type in CONVOLUTIONS:
            return array, 0
        if self.node.op_type == "ConvTranspose":
            return array, 1
        return array, 0 if attribute(self.node, "transB", 0) else array.ndim - 1

    def channel(self, array: Array, axis: int) -> int:
        """A channel that is not dead."""
        size = np.abs(np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1).astype(np.float64)).mean(1)
        return int(self.random.choice(np.flatnonzero(size >= 0.3 * size.max())))


def planted(bed: Bed, kinds: Mapping[str, tuple[tuple[str, ...], Plant]], seed: int) -> Iterator[Planted]:
    """Faults while there are places, one kind after the other, each at a random node that it fits."""
    random = np.random.default_rng(seed)
    sites = {
        kind: random.permutation(
            [n for n, node in enumerate(bed.model.graph.node) if node.op_type in kinds[kind][0]]
        ).tolist()
        for kind in random.permutation(list(kinds)).tolist()
    }
    while any(sites.values()):
        for kind in sites:
            while sites[kind]:
                made = _plant(bed, sites[kind].pop(), kind, kinds[kind][1], random)
                if made is not None:
                    yield made
                    break


def _plant(bed: Bed, number: int, kind: str, plant: Plant, random: np.random.Generator) -> Planted | None:
    healthy = bed.model.graph.node[number]
    if healthy.op_type == "QuantizeLinear":
        return _plant_quantiser(bed, number, kind, plant, random)
    model = copied(bed.model)
    node = model.graph.node[number]
    channels = plant(Site(bed, model, node, random))
    if channels is None:
        return None
    matrix = healthy.op_type in MATRICES
    return Planted(kind, model, bed.chain(healthy), bed.number(healthy.output[0]), -1 if matrix else 1, channels)


def _plant_quantiser(bed: Bed, number: int, kind: str, plant: Plant, random: np.random.Generator) -> Planted | None:
    """A quantiser of an activation; it belongs to the operator that makes the tensor."""
    healthy = bed.model.graph.node[number]
    if healthy.input[0] in bed.values:
        return None
    model = copied(bed.model)
    if plant(Site(bed, model, model.graph.node[number], random)) is None:
        return None
    maker = bed.makers.get(healthy.input[0])
    behind = [node for node in bed.readers.get(healthy.output[0], ()) if node.op_type == "DequantizeLinear"]
    if not behind:
        return None
    names = (*((maker.name,) if maker is not None else ()), healthy.name, *(node.name for node in behind))
    return Planted(kind, model, names, str(behind[0].output[0]))
