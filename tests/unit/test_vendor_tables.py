"""The vendor's node tables: read from whole logs, excerpts and CSV, from damaged ones rightly or not at all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftgate.domain.investigations import Investigation, VendorTable
from driftgate.errors import ArtifactError
from driftgate.judgement.nodes import divergences, low_vendor_nodes
from driftgate.storage.document import read_results
from driftgate.vendor.console import plain_lines, without_prefix
from driftgate.vendor.nodetables import read_node_table
from driftgate.vendor.tables import bar_tables, comma_table
from support.commandline import call

Rows = Sequence[tuple[str, ...]]
SHARED = Path(__file__).parents[3] / "shared" / "vendor-logs"
#: Our own, in the form of the tools' output.
NODES: Rows = [
    ("/stem/Conv", "Conv", "BPU", "3.25", "0.999812", "0.998731", "si8"),
    ("/stem/Relu", "Relu", "BPU", "fused", "0.999815", "0.998744", "si8"),
    ("/head/Softmax", "Softmax", "BPU", "1.0", "0.981503", "0.940021", "f32,si16"),
    ("/head/Gather", "Gather", "CPU", "-", "1.000004", "-", "si64"),
]
COLUMNS = ("Node", "NodeType", "ON", "Threshold", "Calibrated Cosine", "Quantized Cosine", "Output Data Type")
VERIFIER: Rows = [("/stem/Relu", "t1", "0.999402"), ("/neck/Add", "t2", "0.712345"), ("/head/Conv", "out", "0.640001")]
VERIFIER_COLUMNS = ("NodeName", "TensorName", "CosineSimilarity")
PREFIX = "2026-11-02 08:01:02,345 \x1b[92mINFO\x1b[0m "


def bars(columns: tuple[str, ...], rows: Rows, prefix: str = PREFIX, border: bool = True) -> str:
    widths = [max(len(row[k]) for row in [columns, *rows]) for k in range(len(columns))]
    edge = prefix + "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        prefix + "|" + "|".join(f" {cell.ljust(width)} " for cell, width in zip(row, widths, strict=True)) + "|"
        for row in [columns, *rows]
    ]
    return "\n".join([edge, lines[0], edge, *lines[1:], edge] if border else lines) + "\n"


def csv() -> str:
    return "\n".join(",".join(row) for row in [COLUMNS, *NODES]) + "\n"


def read(tmp_path: Path, text: str, stage: str = "quantized") -> VendorTable:
    path = tmp_path / "told.log"
    path.write_text(text, "utf-8", newline="")
    return read_node_table(path, stage)


@pytest.mark.parametrize(
    "text",
    [
        bars(COLUMNS, NODES),
        bars(COLUMNS, NODES, prefix="", border=False),
        bars(COLUMNS, NODES, prefix="2026-11-02 08:01:02,345 INFO "),
        bars(COLUMNS, NODES).replace("\n", "\r\n"),
        "compiling  1%\rcompiling 99%\r" + bars(COLUMNS, NODES),
        "nothing of a table | here\n" + bars(("TensorName", "Other"), [("x", "1")]) + bars(COLUMNS, NODES),
        csv(),
        "\ufeff" + csv().replace("\n", "\r\n"),
    ],
    ids=["log", "filtered", "plain", "crlf", "progress", "second-table", "csv", "csv-crlf"],
)
@pytest.mark.parametrize(("stage", "place"), [("calibrated", 4), ("ptq", 5), ("quantized", 5)])
def test_every_form_gives_the_same_numbers(text: str, stage: str, place: int, tmp_path: Path) -> None:
    table = read(tmp_path, text, stage)
    assert table.column == COLUMNS[place]
    assert [(n.node, n.op, n.on, n.dtype) for n in table.nodes] == [(r[0], r[1], r[2], r[6]) for r in NODES]
    assert [n.cosine for n in table.nodes] == [None if r[place] == "-" else float(r[place]) for r in NODES]
    assert table.unread == 0


def test_columns_in_another_order_and_unknown_ones_change_nothing(tmp_path: Path) -> None:
    order = [6, 4, 0, 2, 5, 1, 3]
    columns = (*(COLUMNS[k] for k in order), "New Column")
    rows = [(*(row[k] for k in order), "?") for row in NODES]
    assert read(tmp_path, bars(columns, rows)).nodes == read(tmp_path, bars(COLUMNS, NODES)).nodes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no table\n",
        bars(("Layer", "Latency"), [("a", "1")]),
        bars(COLUMNS, []),
        bars(COLUMNS, NODES).split("\n")[3],
    ],
    ids=["empty", "prose", "another-table", "no-rows", "no-header"],
)
def test_what_is_no_such_table_is_said(text: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no table of nodes with a cosine"):
        read(tmp_path, text)


@pytest.mark.parametrize("text", [bars(COLUMNS, NODES), csv(), bars(VERIFIER_COLUMNS, VERIFIER)])
def test_a_file_cut_at_any_byte_gives_right_numbers_or_says_so(text: str, tmp_path: Path) -> None:
    whole = read(tmp_path, text).nodes
    for end in range(len(text)):
        try:
            found = read(tmp_path, text[:end]).nodes
        except ArtifactError:
            continue
        told = found[:-1] if "|" not in text else found  # the last cell of a CSV may be cut and nobody can tell
        assert list(told) == list(whole[: len(told)])


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("|+- \r\n\x1b[0m,Nodeable123.Cosine\ufeff")), st.integers(0, 2**32))
def test_noise_between_the_rows_never_ends_in_another_exception(noise: str, seed: int) -> None:
    lines = bars(COLUMNS, NODES).split("\n")
    place = random.Random(seed).randrange(len(lines))
    text = "\n".join([*lines[:place], noise, *lines[place:]])
    for table in bar_tables(text, ["Node"]):
        assert all(set(row) == set(table.columns) for row in table.rows)
    comma_table(text, ["Node"])


def test_prefixes_and_escapes_go() -> None:
    (line,) = plain_lines("50%\r\x1b[1;31m2026-11-02 08:01:02,345 WARNING it is so\x1b[m  ")
    assert without_prefix(line) == "it is so"


def test_the_first_low_node_leads_the_others_come_by_cosine(tmp_path: Path) -> None:
    table = read(tmp_path, bars(VERIFIER_COLUMNS, [("a", "t", "0.98"), ("b", "u", "0.5"), ("c", "v", "0.7")]))
    assert [node.node for node in low_vendor_nodes(table)] == ["a", "b", "c"]
    first, *_ = divergences(Investigation("ptq..quantized", vendor=table))
    assert (first.cause, first.cosine, first.excess) == ("vendor", 0.98, None)


def test_it_is_shown_as_the_vendors_where_nothing_can_be_tapped(tmp_path: Path) -> None:
    call("demo", "--fault", "board-scale", "--out", tmp_path)
    project = tmp_path / "project"
    (project / "verifier.log").write_text(bars(VERIFIER_COLUMNS, VERIFIER), "utf-8")
    config = project / "driftgate.yaml"
    text = config.read_text("utf-8")
    config.write_text(text.replace("path: stages/hbm.npz}", "path: stages/hbm.npz, node-table: verifier.log}"))
    out = tmp_path / "out"
    answer = call("check", "-c", config, "--out", out)
    assert answer.code == 1
    (facts,) = read_results(out).facts
    (found,) = facts.investigations
    assert found.vendor is not None
    assert [node.cosine for node in found.vendor.nodes] == [0.999402, 0.712345, 0.640001]
    summary = (out / "summary.md").read_text("utf-8")
    for told in (answer.out, summary):
        assert "First node below the limit by the vendor's table" in told
        assert "/neck/Add" in told
        said = " ".join(told.replace("`", "").split())
        assert "not measured here: column CosineSimilarity of verifier.log, 3 nodes" in said


def test_a_table_that_cannot_be_read_does_not_end_the_check(tmp_path: Path) -> None:
    call("demo", "--fault", "board-scale", "--out", tmp_path)
    config = tmp_path / "project" / "driftgate.yaml"
    (tmp_path / "project" / "verifier.log").write_text("hb_verifier: not found\n", "utf-8")
    text = config.read_text("utf-8")
    config.write_text(text.replace("path: stages/hbm.npz}", "path: stages/hbm.npz, node-table: verifier.log}"))
    answer = call("check", "-c", config, "--out", tmp_path / "out")
    assert answer.code == 1
    assert "no table of nodes with a cosine was found" in answer.out


@pytest.mark.skipif(not SHARED.is_dir(), reason="the vendor's real output is not here")
@pytest.mark.parametrize(
    ("name", "stage", "column", "rows", "low"),
    [
        ("hb_verifier-cosine-int8.log", "quantized", "CosineSimilarity", 16, 0),
        ("hb_verifier-cosine-uncalibrated.log", "quantized", "CosineSimilarity", 16, 13),
        ("hb_compile-full.log", "calibrated", "Calibrated Cosine", 59, None),
        ("hb_compile-full.log", "quantized", "Quantized Cosine", 59, None),
        ("node_info.csv", "calibrated", "Calibrated Cosine", 59, None),
        ("node_info.csv", "ptq", "Quantized Cosine", 59, None),
        ("quantanalysis-compare_per_layer_out.txt", "qat", "Cosine", 11, 0),
    ],
)
def test_real_output_is_read(name: str, stage: str, column: str, rows: int, low: int | None) -> None:
    table = read_node_table(SHARED / name, stage)
    assert table.column == column
    assert (len(table.nodes), table.unread) == (rows, 0)
    assert all(node.node or name.startswith("quantanalysis") for node in table.nodes)
    if low is not None:
        assert len(low_vendor_nodes(table)) == low
