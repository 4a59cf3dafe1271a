"""What follows from the vendor's files: float operators inside, CPU operators, thresholds, march, contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftgate.domain.toolchain.build import NodeInfo
from driftgate.domain.toolchain.common import InputContract
from driftgate.vendor.compile_log import read_compile_log
from driftgate.vendor.derived import (
    Conflict,
    FloatOperators,
    Thresholds,
    contract_conflicts,
    cpu_operators,
    first_contract,
    float_operators,
    march_fits,
    node_thresholds,
    quant_info_thresholds,
    unknown_units,
)
from driftgate.vendor.exec_info import read_model_tensors
from driftgate.vendor.node_info import read_node_info
from driftgate.vendor.quant_info import parse_quant_info

SHARED = Path(__file__).parents[3] / "shared" / "vendor-logs"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="the vendor's real output is not here")


def node(name: str, op: str, *dtypes: str, on: str = "BPU", threshold: float | None = None) -> NodeInfo:
    return NodeInfo(name, op, on, dtypes, threshold)


#: in → conv → softmax(float) → mul → two heads: one float to the end, one integer up to a fused sigmoid
NODES = (
    node("in", "Quantize", "si8"),
    node("conv", "Conv", "si8"),
    node("cast", "Cast", "f32"),
    node("softmax", "Softmax", "f32"),
    node("mul", "Mul", "si8"),
    node("head", "Conv", "f32"),
    node("head_out", "Reshape", "f32"),
    node("other", "Conv", "si16"),
    node("sigmoid", "Sigmoid"),
    node("other_out", "Reshape", "f32", "si16"),
    node("pick", "ArgMax", "si64"),
)
EDGES = {
    "in": ["conv"],
    "conv": ["cast"],
    "cast": ["softmax"],
    "softmax": ["mul"],
    "mul": ["head", "other"],
    "head": ["head_out"],
    "head_out": ["pick"],
    "other": ["sigmoid"],
    "sigmoid": ["other_out"],
    "other_out": [],
    "pick": [],
}


def test_with_the_graph_every_float_operator_has_its_place() -> None:
    assert float_operators(NODES, EDGES) == FloatOperators(("softmax",), ("head", "head_out"), ())


def test_without_the_graph_only_the_end_of_the_table_is_certain() -> None:
    assert float_operators(NODES) == FloatOperators((), (), ("softmax", "head", "head_out"))
    assert float_operators(NODES[:7]) == FloatOperators((), ("head", "head_out"), ("softmax",))


def test_a_name_that_the_graph_lacks_is_undecided() -> None:
    cut = (*NODES[:3], node("...max", "Softmax", "f32"), *NODES[4:])
    assert float_operators(cut, EDGES).undecided == ("...max",)
    lost = (*NODES[:7], node("...er", "Conv", "si16"))
    assert float_operators(lost, EDGES) == FloatOperators(("softmax",), (), ("head", "head_out"))


def test_a_merged_row_stands_for_both_its_nodes() -> None:
    merged = (*NODES[:3], node("cast+softmax", "Softmax", "f32"), *NODES[4:])
    assert float_operators(merged, EDGES).inside == ("cast+softmax",)


def test_circles_and_unlisted_nodes_do_not_hang() -> None:
    edges = {"a": ["b", "z"], "b": ["a"], "c": []}
    nodes = (node("a", "Softmax", "f32"), node("b", "Exp", "f16"), node("c", "Conv", "si8"))
    assert float_operators(nodes, edges) == FloatOperators((), ("a", "b"), ())


def test_units_are_cpu_known_or_unknown() -> None:
    nodes = [node(on or "none", "X", on=on) for on in ("BPU", "CPU", "VPU+BPU", "BPU+CPU", "", "XPU", "cpu")]
    assert [n.node for n in cpu_operators(nodes)] == ["CPU", "BPU+CPU", "cpu"]
    assert [n.node for n in unknown_units(nodes)] == ["none", "XPU"]


@pytest.mark.parametrize(
    ("ones", "others", "never"),
    [(38, 2, True), (40, 0, True), (4, 36, False), (0, 0, None), (1, 1, False)],
)
def test_thresholds_of_one_mean_that_nothing_was_calibrated(ones: int, others: int, never: bool | None) -> None:
    nodes = [node("a", "Conv", threshold=1.0)] * ones + [node("b", "Conv", threshold=5.5)] * others
    found = node_thresholds([*nodes, node("c", "Relu")])
    assert (found, found.never_calibrated) == (Thresholds(ones + others, ones), never)


def test_thresholds_of_quant_info_count_too() -> None:
    info = parse_quant_info('{"/a": {"thresholds": [[1.0], [1.0, 1.0]]}}')
    assert quant_info_thresholds(info).never_calibrated is True


@pytest.mark.parametrize(
    ("march", "platform", "fits"),
    [
        ("nash-m", "J6M", True),
        ("nash-e", "J6M", False),
        ("nash-p", "S600", True),
        ("nash-b-lite", "J6B", None),
        ("nash-starry-p", "J6P", False),
        (None, "J6M", None),
        ("", "J6M", None),
        ("nash-m", "J9", None),
    ],
)
def test_a_march_fits_its_platform(march: str | None, platform: str, fits: bool | None) -> None:
    assert march_fits(march, platform) is fits


def test_the_first_contract_counts_and_conflicts_are_named() -> None:
    told = (InputContract("data", type_rt="nv12", mean=(), shape=(1, 3, 8, 8)),)
    other = (InputContract("data", type_rt="rgb", mean=(0.5,), scale=(1.0,)), InputContract("more"))
    assert first_contract([(), told, other]) == told
    assert contract_conflicts(told, other) == (
        Conflict("data", "type_rt", "nv12", "rgb"),
        Conflict("data", "mean", "()", "(0.5,)"),
    )


@real
def test_real_thresholds_and_units() -> None:
    table = read_node_info(SHARED / "node_info.csv")
    thresholds = node_thresholds(table.nodes)
    assert (thresholds, thresholds.never_calibrated) == (Thresholds(36, 4), False)
    assert (cpu_operators(table.nodes), unknown_units(table.nodes)) == ((), ())
    older = read_compile_log(SHARED / "hb_compile-ondisk-3.3.11-excerpt.log").node_table
    assert older is not None
    assert (len(unknown_units(older.nodes)), cpu_operators(older.nodes)) == (6, ())


@real
def test_real_float_operators_of_a_chain_of_heads() -> None:
    table = read_node_info(SHARED / "node_info.csv")
    alone = float_operators(table.nodes)
    assert (alone.inside, len(alone.undecided)) == ((), 12)
    assert [name.rsplit("/", 1)[1] for name in alone.tail] == [
        "Gemm_reshape_output",
        "Gemm",
        "Gemm_reshape_output",
    ]
    names = [entry.node for entry in table.nodes]
    trunk = names.index("/model/plan_length_head/Gemm")
    heads = [at for at in range(trunk, len(names)) if names[at].endswith("_head/Gemm")]
    edges = {name: [names[at + 1]] for at, name in enumerate(names[:-1]) if at + 1 not in heads}
    edges = {**{name: [] for name in names}, **edges, names[trunk - 1]: [names[at] for at in heads]}
    found = float_operators(table.nodes, edges)
    assert (found.inside, found.undecided, len(found.tail)) == ((), (), 15)


@real
def test_real_march_and_contract() -> None:
    log = read_compile_log(SHARED / "hb_compile-full.log")
    (model,) = read_model_tensors(SHARED / "hrt_model_exec-model_info.log").models
    assert (march_fits(log.march, "J6P"), march_fits(log.march, "J6M")) == (True, False)
    assert contract_conflicts(log.blocks.inputs, model.inputs) == ()
    assert len(first_contract([(), log.blocks.inputs])) == 4
