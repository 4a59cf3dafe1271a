"""Which node is named: by judgement from measured node errors, and from end to end on the demo's faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driftgate.domain.chain import LinkKind
from driftgate.domain.investigations import Investigation, NodeError, Pair
from driftgate.domain.measurements import Moments
from driftgate.judgement.nodes import divergences, diverges, first_divergence, ranked, situation
from driftgate.numerics.moments import by_channel
from support.commandline import call


def moments(decibel: float) -> Moments:
    """Moments of a pair with about this signal to noise ratio."""
    signal = np.random.default_rng(0).standard_normal((1, 1000))
    noise = np.random.default_rng(1).standard_normal((1, 1000)) * 10 ** (-decibel / 20)
    return by_channel(signal, signal + noise, axis=None)


def node(order: int, *, excess: float = 1.0, own: float = 40.0, total: float = 40.0, clipped: float = 0.0) -> NodeError:
    return NodeError(
        pair=Pair(f"a{order}", f"b{order}", "structure", 0.9),
        op="Conv",
        order=order,
        region=(f"conv{order}",),
        total=moments(total),
        own=moments(own),
        excess=excess,
        top_channels=((3, excess), (1, excess / 2)),
        clipped=clipped,
    )


def test_the_earliest_node_in_the_graph_is_named_not_the_worst() -> None:
    found = first_divergence([node(7, excess=900.0), node(2), node(4, excess=12.0)])
    assert found is not None
    assert found.order == 4


def test_what_precision_explains_names_none() -> None:
    assert first_divergence([node(n, excess=2.3) for n in range(20)]) is None


def test_a_range_that_cuts_values_off_diverges_although_the_rest_fits() -> None:
    assert diverges(node(1, excess=1.0, clipped=0.2))
    assert not diverges(node(1, excess=1.0, clipped=0.001))


def test_an_excess_that_is_no_number_never_passes() -> None:
    assert diverges(node(1, excess=float("nan")))


def test_inherited_error_is_not_blamed() -> None:
    """A node with a bad total and a good own error stands behind the fault."""
    nodes = [node(1), node(2, excess=50.0, own=5.0, total=5.0), node(3, total=4.0)]
    assert [d.candidate for d in divergences(Investigation("a..b", nodes=tuple(nodes)))] == ["b2"]


def test_nodes_rank_by_what_they_add_themselves() -> None:
    order = [n.order for n in ranked([node(1, own=30.0), node(2, own=10.0, total=9.0), node(3, excess=9.0, own=50.0)])]
    assert order == [3, 2, 1]


def test_only_channels_beyond_the_limit_are_named() -> None:
    (first,) = divergences(Investigation("a..b", nodes=(node(1, excess=5.0),)))
    assert first.channels == (3,)


def test_without_own_errors_the_first_fall_is_named() -> None:
    bare = [replace(node(n, total=total), own=None) for n, total in ((1, 90.0), (2, 88.0), (3, 20.0), (4, 19.0))]
    (first,) = divergences(Investigation("a..b", nodes=tuple(bare)))
    assert (first.candidate, first.cause, first.excess) == ("b3", "total", None)


@pytest.mark.parametrize(
    ("fault", "tensor", "cause"),
    [
        ("optimizer-fold", "/bn1/BatchNormalization_output_0", "excess"),
        ("calibration-range", "input_DequantizeLinear_Output", "clipped"),
    ],
)
def test_the_demos_faults_are_found_at_their_node(tmp_path: Path, fault: str, tensor: str, cause: str) -> None:
    answer = call("demo", "--fault", fault, "--out", str(tmp_path), "--json")
    first = answer.json["subjects"][0]["divergences"][0]
    assert (first["candidate"], first["cause"]) == (tensor, cause)
    assert "First diverging node" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_a_fault_on_the_board_is_not_looked_for_in_recordings(tmp_path: Path) -> None:
    answer = call("demo", "--fault", "board-scale", "--out", str(tmp_path), "--json")
    assert answer.json["subjects"][0]["divergences"] == []


def test_diff_compares_nodes_of_healthy_models_and_names_none(tmp_path: Path) -> None:
    call("demo", "--out", str(tmp_path))
    stages = tmp_path / "project" / "stages"
    inputs = str(tmp_path / "project" / "data" / "eval.npz")
    for pair, kind in ((("original", "optimized_float"), "equivalent"), (("optimized_float", "calibrated"), "lossy")):
        models = [str(stages / f"{name}.onnx") for name in pair]
        answer = call("diff", *models, "--inputs", inputs, "--kind", kind, "--nodes")
        assert answer.code == 0
        assert "no node adds more than its precision explains" in answer.out


def test_nodes_of_recordings_cannot_be_compared(tmp_path: Path) -> None:
    call("demo", "--out", str(tmp_path))
    stages, inputs = tmp_path / "project" / "stages", str(tmp_path / "project" / "data" / "eval.npz")
    answer = call(
        "diff",
        str(stages / "quantized.npz"),
        str(stages / "hbm.npz"),
        "--inputs",
        inputs,
        "--kind",
        "compiled",
        "--nodes",
    )
    assert answer.code == 2
    assert "can be tapped" in answer.err


@pytest.mark.parametrize("size", ["much", "12 apples", ""])
def test_a_memory_size_that_is_none_is_told(tmp_path: Path, size: str) -> None:
    answer = call("check", "-c", "demo", "--out", str(tmp_path), "--memory", size)
    assert answer.code == 2
    assert "512MiB" in answer.err


@pytest.mark.parametrize(
    ("totals", "excess", "said"),
    [
        ([60, 62, 70, 65], 1.0, "situation-fine"),
        ([4, 3, 5, 2], 1.0, "situation-all-off"),
        ([4, 3, 5, 2], 50.0, "situation-some-off"),
        ([60, 62, 5, 4], 1.0, "situation-some-off"),
        ([4, 3, 5], 1.0, None),
    ],
)
def test_a_comparison_node_by_node_has_one_of_three_headlines(
    totals: list[float], excess: float, said: str | None
) -> None:
    nodes = tuple(node(n, total=total, excess=excess) for n, total in enumerate(totals))
    told = situation(Investigation("a..b", nodes=nodes), LinkKind.LOSSY)
    assert (None if told is None else told.code) == said
