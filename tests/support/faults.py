"""Faults planted in a candidate: each says which node is wrong and which channels of its output it hits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from support.rewriting import attribute, copied, give, makers, readers, set_attribute, values

Array = NDArray[Any]

CONVOLUTIONS = ("Conv", "FusedConv")
MATRICES = ("MatMul", "Gemm", "FusedMatMul", "FusedGemm")
NORMS = ("LayerNormalization", "SkipLayerNormalization", "InstanceNormalization", "SimplifiedLayerNormalization")


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
        if maker is not None and maker.op_type == "DequantizeLinear":
            return next(n for n in self.model.graph.node if n.name == maker.name), 0
        return self.node, place

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


def _lane(array: Array, axis: int, channel: int) -> Array:
    return np.moveaxis(array, axis, 0)[channel]


def _weight_scaled(site: Site) -> tuple[int, ...] | None:
    found = site.weight()
    if found is None:
        return None
    channel = site.channel(*found)
    factor = site.random.choice([0.5, 1.4, 1.8])

    def change(array: Array) -> Array:
        wide = array.astype(np.float64)
        _lane(wide, found[1], channel)[...] *= factor
        return wide

    site.change(1, change)
    return (channel,)


def _weight_zeroed(site: Site) -> tuple[int, ...] | None:
    found = site.weight()
    if found is None:
        return None
    channel = site.channel(*found)

    def change(array: Array) -> Array:
        _lane(array, found[1], channel)[...] = 0
        return array

    site.change(1, change)
    return (channel,)


def _weights_swapped(site: Site) -> tuple[int, ...] | None:
    found = site.weight()
    if found is None or found[0].shape[found[1]] < 2:
        return None
    one = site.channel(*found)
    other = (one + 1) % found[0].shape[found[1]]

    def change(array: Array) -> Array:
        lanes = np.moveaxis(array, found[1], 0)
        lanes[[one, other]] = lanes[[other, one]]
        return array

    site.change(1, change)
    return (one, other)


def _weight_of_another(site: Site) -> tuple[int, ...] | None:
    found = site.weight()
    if found is None or found[0].shape[found[1]] < 2:
        return None
    one = site.channel(*found)
    other = (one + 1) % found[0].shape[found[1]]

    def change(array: Array) -> Array:
        lanes = np.moveaxis(array, found[1], 0)
        lanes[one] = lanes[other]
        return array

    site.change(1, change)
    return (one,)


def _weight_transposed(site: Site) -> tuple[int, ...] | None:
    found = site.weight()
    if found is None or found[0].ndim != 2 or found[0].shape[0] != found[0].shape[1]:
        return None
    site.change(1, lambda array: array.T)
    return ()


def _kernel_turned(site: Site) -> tuple[int, ...] | None:
    found = site.weight()
    if found is None or found[0].ndim != 4 or found[0].shape[2] == 1 or found[0].shape[2] != found[0].shape[3]:
        return None
    site.change(1, lambda array: array.swapaxes(2, 3))
    return ()


def _bias_dropped(site: Site) -> tuple[int, ...] | None:
    if not site.bed.has_constant(site.node, 2):
        return None
    site.change(2, np.zeros_like)
    return ()


def _bias_shifted(site: Site) -> tuple[int, ...] | None:
    array = site.bed.array(site.node.input[2]) if site.bed.has_constant(site.node, 2) else None
    if array is None:
        return None
    spread = float(np.abs(array.astype(np.float64)).max())
    if spread == 0:
        return None
    channel = int(site.random.integers(array.size))

    def change(array: Array) -> Array:
        wide = array.astype(np.float64)
        wide.reshape(-1)[channel] += site.random.choice([-0.7, 0.7]) * spread
        return wide

    site.change(2, change)
    return (channel,)


def _pads_moved(site: Site) -> tuple[int, ...] | None:
    pads = list(attribute(site.node, "pads", ()))
    if len(pads) != 4 or not pads[0] or not pads[2]:
        return None
    set_attribute(site.node, "pads", [pads[0] - 1, pads[1], pads[2] + 1, pads[3]])
    return ()


def _dilated(site: Site) -> tuple[int, ...] | None:
    pads, kernel = list(attribute(site.node, "pads", ())), list(attribute(site.node, "kernel_shape", ()))
    if kernel != [3, 3] or pads != [1] * 4 or attribute(site.node, "strides", [1, 1]) != [1, 1]:
        return None
    set_attribute(site.node, "dilations", [2, 2])
    set_attribute(site.node, "pads", [2] * 4)
    return ()


def _epsilon(site: Site) -> tuple[int, ...] | None:
    set_attribute(site.node, "epsilon", float(site.random.choice([1e-2, 0.1])))
    return ()


def _softmax_axis(site: Site) -> tuple[int, ...] | None:
    shape = site.bed.shapes.get(site.node.input[0], ())
    axis = attribute(site.node, "axis", -1) % max(1, len(shape))
    others = [n for n, length in enumerate(shape) if n != axis and length > 1]
    if not others:
        return None
    set_attribute(site.node, "axis", others[-1])
    return ()


def _operands_swapped(site: Site) -> tuple[int, ...] | None:
    site.node.input[:] = [site.node.input[1], site.node.input[0]]
    return ()


def _resized_otherwise(site: Site) -> tuple[int, ...] | None:
    mode = attribute(site.node, "coordinate_transformation_mode", b"half_pixel").decode()
    set_attribute(site.node, "coordinate_transformation_mode", "align_corners" if mode != "align_corners" else "asymmetric")
    return ()


def _pads_counted(site: Site) -> tuple[int, ...] | None:
    if not any(attribute(site.node, "pads", ())):
        return None
    set_attribute(site.node, "count_include_pad", 1 - attribute(site.node, "count_include_pad", 0))
    return ()


def _alpha(site: Site) -> tuple[int, ...] | None:
    default = {"LeakyRelu": 0.01, "HardSigmoid": 0.2, "Elu": 1.0, "QuickGelu": 1.702, "FusedMatMul": 1.0}
    now = attribute(site.node, "alpha", default.get(site.node.op_type))
    set_attribute(site.node, "alpha", float(now) * float(site.random.choice([0.5, 1.5, 2.5])))
    return ()


def _bounds(site: Site) -> tuple[int, ...] | None:
    """A bound that cuts off what the healthy one lets through."""
    if attribute(site.node, "activation", b"") == b"Clip":
        low, high = attribute(site.node, "activation_params")
        set_attribute(site.node, "activation_params", [low, high * 0.2])
        return ()
    if site.node.op_type != "Clip" or not site.bed.has_constant(site.node, 2):
        return None
    site.change(2, lambda array: array * 0.2)
    return ()


def _order(site: Site) -> tuple[int, ...] | None:
    shapes = [site.bed.shapes.get(name) for name in site.node.input]
    if len(shapes) < 2 or site.node.input[0] == site.node.input[1]:
        return None
    site.node.input[:] = [site.node.input[1], site.node.input[0], *site.node.input[2:]]
    return ()


def _parts_swapped(site: Site) -> tuple[int, ...] | None:
    shapes = {site.bed.shapes.get(name) for name in site.node.output}
    if len(site.node.output) != 2 or len(shapes) != 1:
        return None
    site.node.output[:] = [site.node.output[1], site.node.output[0]]
    return ()


def _operand_scaled(site: Site) -> tuple[int, ...] | None:
    """A constant operand of an operator that works element by element; all of it."""
    places = [place for place in range(len(site.node.input)) if site.bed.has_constant(site.node, place)]
    if len(places) != 1:
        return None
    array = site.bed.array(site.node.input[places[0]])
    if array is None or array.dtype.kind not in "fiu" or not np.any(array):
        return None
    site.change(places[0], lambda array: array * site.random.choice([0.5, 1.5]))
    return ()


def _activation_gone(site: Site) -> tuple[int, ...] | None:
    if not attribute(site.node, "activation", b""):
        return None
    site.node.op_type, site.node.domain = "Conv", ""
    kept = [a for a in site.node.attribute if not a.name.startswith("activation")]
    del site.node.attribute[:]
    site.node.attribute.extend(kept)
    return ()


def _scale_of_weights(site: Site) -> tuple[int, ...] | None:
    """One channel's scale of quantised weights."""
    node, _ = site.holder(1)
    if node.op_type != "DequantizeLinear":
        return None
    scale = site.bed.values[node.input[1]].copy()
    found = site.weight()
    if found is None or scale.size != found[0].shape[found[1]]:
        return None
    channel = site.channel(found[0] * scale.reshape([-1 if n == found[1] else 1 for n in range(found[0].ndim)]), found[1])
    scale.reshape(-1)[channel] *= site.random.choice([0.5, 1.5, 2.0])
    give(site.model, node, 1, scale)
    return (channel,)


def _zero_of_weights(site: Site) -> tuple[int, ...] | None:
    node, _ = site.holder(1)
    if node.op_type != "DequantizeLinear" or len(node.input) < 3:
        return None
    zero = site.bed.values[node.input[2]].copy()
    channel = int(site.random.integers(zero.size)) if zero.size > 1 else -1
    zero.reshape(-1)[channel] = site.random.choice([-20, 20])
    give(site.model, node, 2, zero)
    return (channel,) if channel >= 0 else ()


def _scale_of_bias(site: Site) -> tuple[int, ...] | None:
    if not site.bed.has_constant(site.node, 2):
        return None
    node, _ = site.holder(2)
    if node.op_type != "DequantizeLinear":
        return None
    give(site.model, node, 1, site.bed.values[node.input[1]] * np.float32(site.random.choice([0.25, 3.0])))
    return ()


def _quantiser_pair(site: Site) -> list[onnx.NodeProto]:
    """The quantiser that is the site and its dequantisers, in the site's model."""
    names = {node.name for node in site.bed.readers.get(site.node.output[0], ()) if node.op_type == "DequantizeLinear"}
    return [site.node, *(node for node in site.model.graph.node if node.name in names)]


def _range_too_small(site: Site) -> tuple[int, ...] | None:
    for node in _quantiser_pair(site):
        give(site.model, node, 1, site.bed.values[node.input[1]] * np.float32(0.4))
    return ()


def _zero_moved(site: Site) -> tuple[int, ...] | None:
    """Both ends agree, so that one side of the range is cut off."""
    move = int(site.random.choice([-60, 60]))
    for node in _quantiser_pair(site):
        if len(node.input) < 3:
            return None
        zero = site.bed.values[node.input[2]]
        limits = np.iinfo(zero.dtype)
        give(site.model, node, 2, np.clip(zero.astype(np.int64) + move, limits.min, limits.max).astype(zero.dtype))
    return ()


def _ends_differ_in_scale(site: Site) -> tuple[int, ...] | None:
    pair = _quantiser_pair(site)
    if len(pair) < 2:
        return None
    for node in pair[1:]:
        give(site.model, node, 1, site.bed.values[node.input[1]] * np.float32(site.random.choice([0.7, 1.4])))
    return ()


def _ends_differ_in_zero(site: Site) -> tuple[int, ...] | None:
    pair = _quantiser_pair(site)
    if len(pair) < 2 or len(site.node.input) < 3:
        return None
    for node in pair[1:]:
        zero = site.bed.values[node.input[2]]
        limits = np.iinfo(zero.dtype)
        move = 25 if int(zero.reshape(-1)[0]) < 0 else -25
        give(site.model, node, 2, np.clip(zero.astype(np.int64) + move, limits.min, limits.max).astype(zero.dtype))
    return ()


ELEMENTWISE = ("Add", "Mul", "Sub", "Div", "PRelu")

#: What can be wrong with a float node, by operators.
FLOAT: Mapping[str, tuple[tuple[str, ...], Plant]] = {
    "weight scaled": ((*CONVOLUTIONS, *MATRICES, "ConvTranspose"), _weight_scaled),
    "weight zeroed": ((*CONVOLUTIONS, *MATRICES, "ConvTranspose"), _weight_zeroed),
    "weights swapped": ((*CONVOLUTIONS, *MATRICES), _weights_swapped),
    "weight of another": ((*CONVOLUTIONS, *MATRICES), _weight_of_another),
    "weight transposed": (MATRICES, _weight_transposed),
    "kernel turned": (CONVOLUTIONS, _kernel_turned),
    "bias dropped": ((*CONVOLUTIONS, "Gemm", "FusedGemm", "ConvTranspose"), _bias_dropped),
    "bias shifted": ((*CONVOLUTIONS, "Gemm", "FusedGemm", "ConvTranspose"), _bias_shifted),
    "pads moved": ((*CONVOLUTIONS, "MaxPool", "AveragePool"), _pads_moved),
    "dilated": (CONVOLUTIONS, _dilated),
    "epsilon": (NORMS, _epsilon),
    "softmax axis": (("Softmax",), _softmax_axis),
    "operands swapped": (("Sub", "Div"), _operands_swapped),
    "resized otherwise": (("Resize",), _resized_otherwise),
    "pads counted": (("AveragePool",), _pads_counted),
    "alpha": (("LeakyRelu", "HardSigmoid", "QuickGelu", "FusedMatMul"), _alpha),
    "bounds": (("Clip", "FusedConv"), _bounds),
    "concat order": (("Concat",), _order),
    "parts swapped": (("Split",), _parts_swapped),
    "operand scaled": (ELEMENTWISE, _operand_scaled),
    "activation gone": (("FusedConv",), _activation_gone),
}
#: What can be wrong with a node of a QDQ graph beside that.
QUANTISED: Mapping[str, tuple[tuple[str, ...], Plant]] = {
    "scale of weights": ((*CONVOLUTIONS, *MATRICES), _scale_of_weights),
    "zero point of weights": ((*CONVOLUTIONS, *MATRICES), _zero_of_weights),
    "scale of bias": ((*CONVOLUTIONS, "Gemm"), _scale_of_bias),
    "range too small": (("QuantizeLinear",), _range_too_small),
    "zero point moved": (("QuantizeLinear",), _zero_moved),
    "ends differ in scale": (("QuantizeLinear",), _ends_differ_in_scale),
    "ends differ in zero point": (("QuantizeLinear",), _ends_differ_in_zero),
}


def planted(bed: Bed, kinds: Mapping[str, tuple[tuple[str, ...], Plant]], seed: int) -> Iterator[Planted]:
    """Faults without end, one kind after the other, each at a random node that it fits."""
    random = np.random.default_rng(seed)
    sites = {
        kind: random.permutation([n for n, node in enumerate(bed.model.graph.node) if node.op_type in ops]).tolist()
        for kind, (ops, _) in kinds.items()
    }
    while any(sites.values()):
        for kind, (_, plant) in kinds.items():
            while sites[kind]:
                made = _plant(bed, sites[kind].pop(), kind, plant, random)
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
