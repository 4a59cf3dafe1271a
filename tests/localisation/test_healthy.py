"""Healthy pairs name no node, however they were optimised, calibrated or put on integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from driftgate.domain.investigations import Investigation
from driftgate.judgement.nodes import first_divergence
from support import stages
from support.fieldnets import classifier, face_network
from support.nets import BUILT, Network, branching, resnet50
from support.rewriting import computed_constants, folded, give, halved, renamed, reordered, values
from support.trials import investigated

Build = Callable[[Path], Network]

NETWORKS: Mapping[str, Build] = {
    **{name: (lambda folder, build=build: build()) for name, build in BUILT.items()},  # type: ignore[misc]
    "branching": lambda folder: branching(),
    "resnet50": lambda folder: resnet50(),
    "classifier": classifier,
    "face_network": face_network,
}

#: How a quantised form was made, and the networks that are looked at in it.
CALIBRATED: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "signed": (stages.SIGNED, ("branching", "resnet50", "face_network")),
    "unsigned": (stages.UNSIGNED, tuple(NETWORKS)),
    "symmetric": (stages.SYMMETRIC, ("mobile", "resnet50", "classifier")),
    "one scale": (stages.ONE_SCALE, ("residual", "unet", "classifier", "face_network")),
    "seven bits": (stages.SEVEN_BITS, ("detector", "resnet50")),
    "sixteen bits": (stages.SIXTEEN_BITS, ("transformer", "modern", "resnet50")),
    "percentile": (stages.PERCENTILE, ("residual", "mobile", "classifier")),
    "integer operators": (stages.OPERATORS, ("mobile", "transformer", "classifier")),
}


def rewritten(network: Network, folder: Path) -> dict[str, onnx.ModelProto]:
    """Float forms that compute the same."""
    extended = stages.optimised(network.model, folder)
    return {
        "basic": stages.optimised(network.model, folder, "basic"),
        "extended": extended,
        "renamed": renamed(reordered(extended, 3), 3)[0],
        "folded": folded(network.model),
        "computed constants": computed_constants(network.model),
    }


HALVES = ("residual", "mobile", "unet", "detector", "transformer", "modern")


def assert_healthy(investigation: Investigation, of: str) -> None:
    first = first_divergence(investigation.nodes)
    assert first is None, f"{of}: {first}"
    assert investigation.nodes, of
    assert all(node.own is not None for node in investigation.nodes), of
    assert not investigation.notes, investigation.notes


@pytest.mark.parametrize("name", NETWORKS)
def test_float_forms_that_compute_the_same(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name](tmp_path)
    for form, candidate in rewritten(network, tmp_path).items():
        found = investigated(network.model, candidate, network.feeds, tmp_path)
        assert_healthy(found, form)
        assert max(node.excess for node in found.nodes) < 1.0, form


@pytest.mark.parametrize(("form", "name"), [(form, name) for form, (_, names) in CALIBRATED.items() for name in names])
def test_quantised_forms(form: str, name: str, tmp_path: Path) -> None:
    network = NETWORKS[name](tmp_path)
    candidate = stages.quantised(network, tmp_path, CALIBRATED[form][0])
    assert_healthy(investigated(network.model, candidate, network.feeds, tmp_path), form)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_quantised_form_on_integers(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name](tmp_path)
    simulated = stages.quantised(network, tmp_path, stages.UNSIGNED)
    deployed = stages.on_integers(simulated, tmp_path)
    assert_healthy(investigated(simulated, deployed, network.feeds, tmp_path), "against the simulation")
    assert_healthy(investigated(network.model, deployed, network.feeds, tmp_path), "against the float network")


@pytest.mark.parametrize("name", HALVES)
def test_a_form_in_half_precision(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name](tmp_path)
    found = investigated(network.model, halved(network.model), network.feeds, tmp_path)
    assert first_divergence(found.nodes) is None
    assert all(node.own is not None for node in found.nodes)
    assert [note.code for note in found.notes] == ["tap-gap"]


@pytest.mark.parametrize("name", HALVES)
def test_a_fault_in_half_precision_is_named(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name](tmp_path)
    candidate = halved(network.model)
    weighted = [node for node in candidate.graph.node if node.op_type in ("Conv", "Gemm", "MatMul")]
    node = next(node for node in weighted[len(weighted) // 2 :] if node.input[1] in values(candidate))
    weight = values(candidate)[node.input[1]].copy()
    weight[(0,) if node.op_type == "Conv" else (..., 0)] *= np.float16(1.5)
    give(candidate, node, 1, weight)
    found = investigated(network.model, candidate, network.feeds, tmp_path)
    first = first_divergence(found.nodes)
    assert first is not None
    assert node.name in first.region
