"""Intermediate tensors are paired through everything that writes the same network down otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, version_converter

from driftgate.domain.investigations import Investigation, Pair
from driftgate.judgement.nodes import diverges, first_divergence
from support import stages
from support.fieldnets import classifier
from support.nets import BUILT, Network, branching, detector, mobile, modern, residual, resnet50, transformer, unet
from support.rewriting import (
    between,
    channels_last,
    computed_constants,
    copied,
    folded,
    makers,
    renamed,
    reordered,
    swapped_names,
)
from support.trials import ALIKE_DB, SAME_DB, Array, Ground, decibel, floats

Rewrite = Callable[[Network, Path], tuple[onnx.ModelProto, Mapping[str, str]]]

VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose")


def unnamed(network: Network, folder: Path) -> tuple[onnx.ModelProto, Mapping[str, str]]:
    """Optimised, re-ordered, every name another."""
    return renamed(reordered(stages.optimised(network.model, folder), 4), 4)


def hidden(model: onnx.ModelProto) -> tuple[onnx.ModelProto, Mapping[str, str]]:
    """Re-ordered, every name another."""
    return renamed(reordered(model, 8), 8)


def lying(model: onnx.ModelProto) -> tuple[onnx.ModelProto, Mapping[str, str]]:
    """Every name that of another."""
    return swapped_names(model, 8)


def kept(model: onnx.ModelProto) -> tuple[onnx.ModelProto, Mapping[str, str]]:
    """As it is."""
    return model, {}


NAMES = {"as quantised": kept, "renamed": hidden, "lying": lying}

#: What is done to the candidate, and the networks to which it is done.
FLOAT: Mapping[str, tuple[Rewrite, tuple[Callable[[], Network], ...]]] = {
    "batch norms folded": (lambda n, _: (folded(n.model), {}), (residual, mobile, unet, detector)),
    "optimised, basic": (lambda n, d: (stages.optimised(n.model, d, "basic"), {}), (*BUILT.values(), branching)),
    "optimised, extended": (lambda n, d: (stages.optimised(n.model, d), {}), (*BUILT.values(), branching)),
    "Identity everywhere": (lambda n, _: (between(n.model, "Identity"), {}), (residual, transformer)),
    "Cast everywhere": (lambda n, _: (between(n.model, "Cast", to=onnx.TensorProto.FLOAT), {}), (unet, modern)),
    "channels last": (lambda n, _: (channels_last(n.model), {}), (residual, mobile)),
    "channels last, renamed": (lambda n, _: renamed(channels_last(n.model), 5), (residual, resnet50)),
    "constants computed": (lambda n, _: (computed_constants(n.model), {}), (detector, transformer)),
    "renamed": (lambda n, _: renamed(n.model, 3), (*BUILT.values(), branching)),
    "optimised, renamed": (unnamed, (*BUILT.values(), branching)),
    "names that lie": (lambda n, _: swapped_names(n.model, 6), (residual, mobile, transformer, resnet50)),
    "opset 21": (lambda n, _: (version_converter.convert_version(n.model, 21), {}), (detector, branching)),
}


def look(network: Network, candidate: onnx.ModelProto, folder: Path, names: Mapping[str, str]) -> _Look:
    ground = Ground.of(network.name, network.model, candidate, network.feeds, folder, new_names=names)
    return _Look(ground, ground.investigated(candidate), floats(candidate, next(iter(network.feeds.values()))))


class _Look:
    """An investigation beside the truth: what the tensors hold, and who made them."""

    def __init__(self, ground: Ground, found: Investigation, made: Mapping[str, Array]) -> None:
        self.ground, self.found, self._made = ground, found, made

    def agreement(self, pair: Pair) -> float:
        """In dB, in the axis order that was found."""
        value = self._made[pair.tensor_b]
        if pair.permutation is not None:
            value = value.transpose(pair.permutation)
        reference = self.ground.numbers[0][pair.tensor_a]
        return decibel(reference, value.reshape(reference.shape))

    def left_out(self) -> list[str]:
        """Tensors of the candidate that have a partner, are no views, and were not paired."""
        paired = {pair.tensor_b for pair in self.found.pairs}
        made = makers(self.ground.candidate)
        return [
            name
            for name in self.found.unpaired_b
            if name in self.ground.partners and name not in paired and made[name].op_type not in VIEWS
        ]

    def false(self) -> list[Pair]:
        """Pairs with another tensor than the one whose name the candidate's had."""
        numbers = self.ground.numbers[0]
        wrong = []
        for pair in self.found.pairs:
            partner = self.ground.partners.get(pair.tensor_b)
            if partner is not None and decibel(numbers[partner], _like(numbers[pair.tensor_a], numbers[partner])) < 100:
                wrong.append(pair)
        return wrong


def _like(value: Array, other: Array) -> Array:
    return value.reshape(other.shape) if value.size == other.size else np.zeros_like(other)


@pytest.mark.parametrize("rewrite", FLOAT)
def test_float_candidates(rewrite: str, tmp_path: Path) -> None:
    change, networks = FLOAT[rewrite]
    for build in networks:
        network = build()
        candidate, names = change(network, tmp_path)
        seen = look(network, candidate, tmp_path, names)
        apart = [pair for pair in seen.found.pairs if seen.agreement(pair) < SAME_DB]
        assert not apart, (network.name, apart)
        assert not seen.left_out(), (network.name, seen.left_out())
        assert first_divergence(seen.found.nodes) is None, network.name
        assert max(len(node.region) for node in seen.found.nodes) <= 2, network.name


@pytest.mark.parametrize("build", [*BUILT.values(), branching, resnet50])
@pytest.mark.parametrize("names", NAMES)
def test_quantised_candidates(build: Callable[[], Network], names: str, tmp_path: Path) -> None:
    network = build()
    candidate, new = NAMES[names](stages.quantised(network, tmp_path))
    seen = look(network, candidate, tmp_path, new)
    assert not seen.false(), seen.false()
    assert not seen.left_out(), seen.left_out()
    assert all(seen.agreement(pair) >= ALIKE_DB for pair in seen.found.pairs)
    assert first_divergence(seen.found.nodes) is None


def test_an_older_opset(tmp_path: Path) -> None:
    network = classifier(tmp_path)
    newer = version_converter.convert_version(network.model, 20)
    seen = look(network, newer, tmp_path, {})
    assert not seen.left_out()
    assert all(seen.agreement(pair) >= SAME_DB for pair in seen.found.pairs)


def test_the_axis_order_is_found(tmp_path: Path) -> None:
    network = residual()
    seen = look(network, channels_last(network.model), tmp_path, {})
    by_candidate = {pair.tensor_b: pair for pair in seen.found.pairs}
    assert by_candidate["relu_2"].permutation == (0, 3, 1, 2)
    assert by_candidate["clip_5"].permutation == (0, 3, 1, 2)
    assert by_candidate["logits"].permutation is None


def test_a_pair_says_how_it_was_found_and_how_sure_it_is(tmp_path: Path) -> None:
    network = unet()
    exact = look(network, folded(network.model), tmp_path, {}).found
    assert {pair.how for pair in exact.pairs if pair.tensor_b not in ("x", "mask")} == {"value"}
    assert {pair.certainty for pair in exact.pairs} == {1.0}
    lossy = look(network, stages.quantised(network, tmp_path), tmp_path, {}).found
    assert {pair.how for pair in lossy.pairs} == {"structure"}
    assert all(0.5 < pair.certainty <= 1.0 for pair in lossy.pairs)


def test_what_only_one_side_has_stays_unpaired(tmp_path: Path) -> None:
    network = residual()
    found = look(network, folded(network.model), tmp_path, {}).found
    made = makers(network.model)
    norms = {node.input[0] for node in network.model.graph.node if node.op_type == "BatchNormalization"}
    assert {name for name in found.unpaired_a if made[name].op_type == "Conv"} == norms
    assert not found.unpaired_b


def test_no_tensor_of_resnet_50_is_flagged_whose_values_agree(tmp_path: Path) -> None:
    network = resnet50()
    plain = Network(network.name, folded(network.model), network.feeds)
    assert len(plain.model.graph.node) == 122
    candidate = stages.quantised(plain, tmp_path)
    seen = look(plain, candidate, tmp_path, {})
    assert len([node for node in candidate.graph.node if node.op_type in ("Conv", "Gemm")]) == 54
    raw = floats(candidate, plain.feeds["0"])
    misled = [
        name
        for name, value in seen.ground.numbers[0].items()
        if name in raw and raw[name].shape == value.shape and decibel(value, raw[name]) < ALIKE_DB
    ]
    assert misled, "names alone would not have misled anyone"
    assert not [node.pair for node in seen.found.nodes if diverges(node)]
    assert not seen.false()
    assert len(seen.found.pairs) == 74  # 54 with weights, 16 additions, 2 pools, flattened, the input


def test_inside_a_branch_the_node_at_its_boundary_is_named(tmp_path: Path) -> None:
    network = branching()
    healthy = stages.optimised(network.model, tmp_path)
    faulty = copied(healthy)
    (node,) = [node for node in faulty.graph.node if node.op_type == "If"]
    for branch in ("then_branch", "else_branch"):
        (inside,) = [held.g for held in node.attribute if held.name == branch]
        for tensor in inside.initializer:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(0.8), tensor.name))
    first = first_divergence(look(network, faulty, tmp_path, {}).found.nodes)
    assert first is not None
    assert first.op == "If"
    assert node.name in first.region


def test_an_activation_that_was_lost_is_named_where_it_belongs(tmp_path: Path) -> None:
    network = unet()
    faulty = stages.optimised(network.model, tmp_path)
    lost = next(node for node in faulty.graph.node if node.op_type == "FusedConv" and "relu_12" in node.output)
    lost.op_type, lost.domain = "Conv", ""
    rest = [held for held in lost.attribute if not held.name.startswith("activation")]
    del lost.attribute[:]
    lost.attribute.extend(rest)
    first = first_divergence(look(network, faulty, tmp_path, {}).found.nodes)
    assert first is not None
    assert (first.pair.tensor_a, first.pair.tensor_b) == ("relu_12", "relu_12")
    assert first.region == (lost.name,)
