"""The vendor's own comparisons: hb_verifier's two answers, sensitivities, QuantAnalysis; ours and real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftgate.domain.toolchain.common import ToolVersions
from driftgate.domain.toolchain.comparisons import ConsistencyReport, ConsistencyRow, CosineReport, CosineRow
from driftgate.errors import ArtifactError
from driftgate.vendor.quantanalysis import (
    parse_layers,
    parse_sensitive_operators,
    parse_statistics,
    read_layers,
    read_sensitive_operators,
    read_statistics,
)
from driftgate.vendor.sensitivity import parse_sensitivity, read_sensitivity
from driftgate.vendor.verifier import parse_verifier, read_verifier
from unit.test_vendor_samples import (
    CONSISTENCY,
    CONSISTENCY_COLUMNS,
    COSINES,
    FAILED,
    LAYERS,
    PASSED,
    SENSITIVE,
    SENSITIVITY,
    STATISTIC,
    VERIFIER_CONSISTENCY,
    VERIFIER_COSINE,
    VERIFIER_HEAD,
    bars,
    logged,
    ruled,
)

SHARED = Path(__file__).parents[3] / "shared" / "vendor-logs"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="the vendor's real output is not here")


def consistency(text: str) -> ConsistencyReport:
    report = parse_verifier(text)
    assert isinstance(report, ConsistencyReport)
    return report


def cosine(text: str) -> CosineReport:
    report = parse_verifier(text)
    assert isinstance(report, CosineReport)
    return report


def test_cosines_are_read_and_give_no_verdict() -> None:
    report = cosine(VERIFIER_COSINE)
    assert (report.versions, report.models) == (
        ToolVersions(tool="3.4.1"),
        ("net_ptq_model", "net_quantized_model"),
    )
    assert report.rows == (
        CosineRow("/stem/Relu", "t1", 0.999402),
        CosineRow("/head/Out", "boxes", 0.712345),
        CosineRow("/head/B", "scores", None),
    )
    assert (report.skipped, report.unread, report.is_closed) == (("t9",), 0, True)


def test_an_excerpt_without_borders_is_read_and_not_called_closed() -> None:
    columns = ("CosineSimilarity", "More", "TensorName", "NodeName")
    report = cosine(logged(bars(columns, [(c, "?", t, n) for n, t, c in COSINES], border=False)))
    assert (report.rows, report.is_closed) == (cosine(VERIFIER_COSINE).rows, False)


def test_the_sentence_decides_and_the_rows_say_where() -> None:
    report = consistency(VERIFIER_CONSISTENCY)
    assert (report.is_consistent, report.on_board, report.rows_agree) == (False, True, True)
    assert report.rows == (
        ConsistencyRow("boxes", True, 0, 40, 0.0, 0.0),
        ConsistencyRow("scores", False, 3, 10, 0.00125, 0.5),
    )
    passed = consistency(VERIFIER_CONSISTENCY.replace(FAILED, PASSED))
    assert (passed.is_consistent, passed.rows_agree) == (True, False)


@pytest.mark.parametrize(
    "columns",
    [
        ("Output Name", "Consistency", "Number of Inconsistent Elements", "Max Abs Error", "Max Rel Error"),
        ("name", "ret", "mismatched", "max_abs_diff", "max_rel_diff"),
    ],
)
def test_either_wording_of_the_columns_is_known(columns: tuple[str, ...]) -> None:
    for lines in (bars(columns, CONSISTENCY), ruled(columns, CONSISTENCY, "   ")):
        assert consistency(logged([*lines, "", FAILED])).rows == consistency(VERIFIER_CONSISTENCY).rows


def test_order_and_further_columns_change_nothing() -> None:
    columns = (*CONSISTENCY_COLUMNS[::-1], "more")
    rows = [(*row[::-1], "?") for row in CONSISTENCY]
    assert consistency(logged([*bars(columns, rows), FAILED])).rows == consistency(VERIFIER_CONSISTENCY).rows


def test_a_verdict_alone_is_an_excerpt() -> None:
    report = consistency(f"{PASSED}\n")
    assert (report.is_consistent, report.rows, report.models) == (True, (), ())


def test_a_row_without_a_clear_word_is_unread() -> None:
    report = consistency(VERIFIER_CONSISTENCY.replace("| True  |", "| maybe |"))
    assert ([row.output for row in report.rows], report.unread) == (["scores"], 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (logged([*VERIFIER_HEAD, "No output to compare."]), "compared nothing"),
        (logged([*bars(CONSISTENCY_COLUMNS, [("a", "True", "0/0", "0", "0")]), PASSED]), "compared nothing"),
        (logged([*bars(("NodeName", "TensorName", "CosineSimilarity"), [("a", "b", "nan")])]), "compared nothing"),
        (logged([*bars(("NodeName", "TensorName", "CosineSimilarity"), [])]), "compared nothing"),
        (logged(VERIFIER_HEAD), "no sentence with hb_verifier's verdict"),
        (logged([VERIFIER_HEAD[0], *bars(CONSISTENCY_COLUMNS, CONSISTENCY)]), "no sentence with hb_verifier's verdict"),
        (logged([*bars(("Tensor", "Fine?"), [("a", "yes")]), PASSED]), "a form that is not known: Tensor, Fine?"),
        (logged([*bars(CONSISTENCY_COLUMNS, [("a", "so", "", "", "")]), PASSED]), "a form that is not known: name: a"),
        (logged([*VERIFIER_HEAD, *bars(("Tensor", "Fine?"), [("a", "yes")])]), "a form that is not known: Tensor"),
        (logged([PASSED, FAILED]), "both verdicts"),
        ("Strict check PASSED\n", "nothing that hb_verifier writes"),
    ],
    ids=[
        "no-output",
        "zero",
        "nan",
        "no-rows",
        "no-table",
        "no-verdict",
        "layout",
        "words",
        "layout-alone",
        "both",
        "older",
    ],
)
def test_what_proves_nothing_is_an_error(text: str, told: str) -> None:
    with pytest.raises(ArtifactError, match=r"it\.log") as caught:
        parse_verifier(text, name="it.log")
    assert told in str(caught.value)


def test_of_several_runs_in_one_log_the_last_counts() -> None:
    report = consistency(VERIFIER_CONSISTENCY.replace(FAILED, PASSED) + VERIFIER_CONSISTENCY)
    assert (report.is_consistent, report.runs) == (False, 2)
    assert cosine(VERIFIER_CONSISTENCY + VERIFIER_COSINE).rows == cosine(VERIFIER_COSINE).rows


def test_an_interrupted_last_run_does_not_show_the_one_before() -> None:
    with pytest.raises(ArtifactError, match="no sentence"):
        parse_verifier(VERIFIER_CONSISTENCY + logged(VERIFIER_HEAD))


def test_sensitivities_are_read_with_their_kind() -> None:
    node, activation = parse_sensitivity(SENSITIVITY)
    assert (node.kind, activation.kind) == ("node", "activation")
    assert [(n.node, n.metrics) for n in node.nodes] == [
        ("/a", (("cosine-similarity", 0.91), ("mse", 1.5))),
        ("/b", (("cosine-similarity", 0.999), ("mse", 0.1))),
    ]
    assert activation.nodes[0].other == (("threshold", "3.5"), ("bit", "8"))


def test_one_rule_below_the_header_is_enough() -> None:
    text = (
        "node      cosine-similarity    mse\n" + "-" * 40 + "\n/a b      0.91       1.5\n/b   broken   x\n/c 1.0 0.5\n"
    )
    (table,) = parse_sensitivity(text)
    assert [n.node for n in table.nodes] == ["/a b", "/c"]
    assert table.unread == 1


def test_the_files_name_tells_the_kind_where_no_title_does(tmp_path: Path) -> None:
    path = tmp_path / "sensitivity_of_weight.log"
    path.write_text(SENSITIVITY.split("\n\n")[0].split("\n", 1)[1] + "\n", "utf-8")
    assert [table.kind for table in read_sensitivity(path)] == ["weight"]


def test_layers_are_read_by_index() -> None:
    listing = parse_layers(LAYERS)
    assert [(row.index, row.module, row.dtype, row.scale) for row in listing.rows] == [
        (0, "stem", "qint8", 0.0078125),
        (1, "", "torch.float32", None),
        (2, "stem", "qint16", 0.5),
    ]
    assert [row.shape for row in listing.rows] == [(1, 3, 8), None, ()]
    assert [row.metrics for row in listing.rows] == [
        (("Cosine", 0.999), ("SQNR", 31.5)),
        (),
        (("Cosine", 1.0), ("SQNR", 60.0)),
    ]
    assert listing.unread == 0


def test_layers_are_the_same_from_csv() -> None:
    rows = [line.strip("|").split("|") for line in LAYERS.split("\n") if line.startswith("|")]
    cells = [[f'"{cell.strip()}"' if "," in cell else cell.strip() for cell in row] for row in rows]
    assert parse_layers("".join(f"{','.join(row)}\n" for row in cells)) == parse_layers(LAYERS)


def test_a_layer_without_an_index_is_unread() -> None:
    listing = parse_layers(LAYERS.replace("| 2 |", "| x |"))
    assert ([row.index for row in listing.rows], listing.unread) == ([0, 1], 1)


def test_statistics_have_several_rows_an_operation() -> None:
    listing = parse_statistics(STATISTIC)
    assert [(row.index, row.attribute, row.dtype, row.scale, row.shape) for row in listing.rows] == [
        (0, "input", "torch.float32", None, (1, 3, 8)),
        (0, "output", "qint8", 0.25, (1, 4, 8)),
    ]
    assert listing.rows[1].metrics == (("Min", -1.0), ("Max", 2.0))


def test_sensitive_operators_have_the_tables_metric() -> None:
    listing = parse_sensitive_operators(SENSITIVE)
    assert [(row.name, row.kind, row.op, row.metric, row.value, row.flops) for row in listing.rows] == [
        ("stem", "weight", "<class 'qat.Conv2d'>", "L1", 0.00364654, 36720),
        ("add", "activation", "<class 'qat.Add'>", "L1", 3.5e-05, 0),
    ]
    other = parse_sensitive_operators(SENSITIVE.replace("L1     ", "Odd    "))
    assert [row.metric for row in other.rows] == ["Odd", "Odd"]


@real
def test_real_cosines() -> None:
    report = read_verifier(SHARED / "hb_verifier-cosine-int8.log")
    assert isinstance(report, CosineReport)
    assert report.models == ("student_int8", "student_v0_j6p_quantized_model")
    assert (len(report.rows), report.unread, report.is_closed) == (16, 0, True)
    assert report.rows[6] == CosineRow("plan_length_logits_DequantizeLinear", "plan_length_logits", 0.999981)
    excerpt = read_verifier(SHARED / "hb_verifier-cosine-uncalibrated.log")
    assert isinstance(excerpt, CosineReport)
    assert (len(excerpt.rows), excerpt.is_closed, excerpt.versions.tool) == (16, False, "3.5.16")
    assert min(row.cosine or 0.0 for row in excerpt.rows) == 0.79346


@real
def test_a_real_compile_log_is_another_file() -> None:
    with pytest.raises(ArtifactError, match="nothing that hb_verifier writes"):
        read_verifier(SHARED / "hb_compile-full.log")


@real
def test_real_tables_of_quantanalysis() -> None:
    layers = read_layers(SHARED / "quantanalysis-compare_per_layer_out.txt")
    assert ([row.index for row in layers.rows], layers.unread) == (list(range(11)), 0)
    quant, conv = layers.rows[:2]
    assert (quant.module, quant.shape, quant.dtype, quant.scale) == ("quant", (18, 3, 17, 7), "qint8", 0.0078425)
    assert dict(quant.metrics)["max_qscale_diff"] == 0.4999948
    assert (conv.shape, "Cosine" in dict(conv.metrics)) == (None, False)
    assert [row.module for row in layers.rows].count("") == 2
    statistics = read_statistics(SHARED / "quantanalysis-statistic.txt")
    assert (len(statistics.rows), statistics.unread) == (15, 0)
    weight = next(row for row in statistics.rows if row.attribute == "weight")
    assert (weight.index, weight.module, dict(weight.metrics)["Max"]) == (3, "conv", 0.5123628)
    operators = read_sensitive_operators(SHARED / "quantanalysis-sensitive_ops.txt")
    assert [row.name for row in operators.rows] == ["add2", "conv", "bn", "conv", "quant", "quant_grid", "add1"]
    assert (operators.rows[3].kind, operators.rows[3].value, operators.rows[3].flops) == ("weight", 0.00116543, 36720)
    assert operators.rows[5].op == "<class 'horizon_plugin_pytorch.nn.qat.stubs.QuantStub'>"
