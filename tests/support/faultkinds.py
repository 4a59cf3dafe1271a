"""What can be wrong with a node: each kind changes one node of a model of its own and says what that hits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from support.faults import CONVOLUTIONS, MATRICES, Plant, Planted, Site
from support.rewriting import attribute, folded, give, readers, set_attribute

Array = NDArray[Any]

NORMS = ("LayerNormalization", "SkipLayerNormalization", "InstanceNormalization")


def _lane(array: Array, axis: int, channel: int) -> Array:
    lane: Array = np.moveaxis(array, axis, 0)[channel]
    return lane


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
    set_attribute(
        site.node, "coordinate_transformation_mode", "align_corners" if mode != "align_corners" else "asymmetric"
    )
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
    numbers = all(name in site.bed.shapes for name in site.node.input)
    if len(site.node.input) < 2 or not numbers or site.node.input[0] == site.node.input[1]:
        return None
    site.node.input[:] = [site.node.input[1], site.node.input[0], *site.node.input[2:]]
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
    channel = site.channel(
        found[0] * scale.reshape([-1 if n == found[1] else 1 for n in range(found[0].ndim)]), found[1]
    )
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


def fold_faults(model: onnx.ModelProto, seed: int) -> Iterator[Planted]:
    """Candidates in which one of the model's batch norms is folded with another epsilon or without its beta."""
    random = np.random.default_rng(seed)
    reading = readers(model)
    norms = {node.input[0]: node.output[0] for node in model.graph.node if node.op_type == "BatchNormalization"}
    convolutions = [
        (node.name, norms[node.output[0]])
        for node in model.graph.node
        if node.op_type == "Conv" and node.output[0] in norms and len(reading[node.output[0]]) == 1
    ]
    for number, place in enumerate(random.permutation(len(convolutions))):
        name, output = convolutions[place]
        if number % 2:
            yield Planted("fold without beta", folded(model, no_beta=True, wrong=(name,)), (name,), output)
        else:
            epsilon = float(random.choice([1e-3, 1e-2]))
            yield Planted("fold's epsilon", folded(model, epsilon=epsilon, wrong=(name,)), (name,), output)
