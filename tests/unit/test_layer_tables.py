"""QuantAnalysis' comparison layer by layer as a node table: text and CSV, whole and damaged, and in a check."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from driftgate.domain.investigations import VendorTable
from driftgate.errors import ArtifactError
from driftgate.judgement.nodes import low_vendor_nodes
from driftgate.storage.document import read_results
from driftgate.vendor.nodetables import read_node_table
from support.commandline import call
from support.project import two_stages

SHARED = Path(__file__).parents[3] / "shared" / "vendor-logs"
COLUMNS = ("", "mod_name", "base_op_type", "analy_op_type", "shape", "quant_dtype", "qscale", "Cosine", "L1", "Atol")
#: Our own, in the tool's form: a name that is empty, one that occurs twice, and a layer without a cosine.
LAYERS = (
    ("0", "quant", "stubs.QuantStub", "qat.stubs.QuantStub", "torch.Size([1, 3, 8, 8])", "qint8", "0.0078", "0.99999"),
    ("1", "conv", "torch.nn.Conv2d", "qat.conv2d.Conv2d", "", "qint8", "0.0082", ""),
    ("2", "", "functional.add", "functional.add", "torch.Size([1, 3, 8, 8])", "qint16", "0.0001", "0.87"),
    ("3", "conv", "torch.nn.Conv2d", "qat.conv2d.Conv2d", "torch.Size([1, 3, 8, 8])", "qint8", "0.0091", "0.95"),
)
ROWS = tuple((*layer, "0.001", "0.003") for layer in LAYERS)
NODES = ("0 quant", "1 conv", "2", "3 conv")
COSINES = (0.99999, None, 0.87, 0.95)


def as_text(rows: Sequence[Sequence[str]] = ROWS, columns: Sequence[str] = COLUMNS) -> str:
    widths = [max(len(row[place]) for row in (columns, *rows)) for place in range(len(columns))]
    lines = ["".join(f"| {c.ljust(w)} " for c, w in zip(row, widths, strict=True)) + "|" for row in (columns, *rows)]
    dashes = ["-" * (width + 2) for width in widths]
    edge, rule = "+" + "+".join(dashes) + "+", "|" + "+".join(dashes) + "|"
    return "\n".join([edge, lines[0], rule, *lines[1:], edge]) + "\n"


def as_csv(rows: Sequence[Sequence[str]] = ROWS, columns: Sequence[str] = COLUMNS) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([columns, *rows])
    return written.getvalue()


def read(tmp_path: Path, text: str) -> VendorTable:
    path = tmp_path / "compare_per_layer_out.txt"
    path.write_text(text, "utf-8", newline="")
    return read_node_table(path, "qat_export")


@pytest.mark.parametrize(
    "text",
    [as_text(), as_csv(), "\ufeff" + as_csv().replace("\n", "\r\n"), as_csv(columns=("Unnamed: 0", *COLUMNS[1:]))],
    ids=["text", "csv", "csv-windows", "csv-pandas"],
)
def test_every_form_gives_the_same_layers(text: str, tmp_path: Path) -> None:
    table = read(tmp_path, text)
    assert (table.column, table.unread) == ("Cosine", 0)
    assert tuple(node.node for node in table.nodes) == NODES
    assert tuple(node.cosine for node in table.nodes) == COSINES
    assert [(node.op, node.dtype) for node in table.nodes] == [(layer[2], layer[5]) for layer in LAYERS]
    assert [node.node for node in low_vendor_nodes(table)] == ["2", "3 conv"]


@pytest.mark.parametrize("write", [as_text, as_csv])
def test_rows_that_are_damaged_are_counted_and_not_shown(write: Callable[..., str], tmp_path: Path) -> None:
    no_index = ("?", *ROWS[0][1:])
    lines = write((*ROWS[:2], no_index, *ROWS[2:])).splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if "qint16" in line)
    lines[place] = lines[place][: lines[place].index("add")] + "\n"
    table = read(tmp_path, "".join(lines))
    assert [node.node for node in table.nodes] == ["0 quant", "1 conv", "3 conv"]
    assert table.unread == 2


def test_a_csv_that_was_cut_does_not_give_its_last_row(tmp_path: Path) -> None:
    table = read(tmp_path, as_csv().rstrip("\n"))
    assert ([node.node for node in table.nodes], table.unread) == (["0 quant", "1 conv", "2"], 1)


@pytest.mark.parametrize("write", [as_text, as_csv])
@pytest.mark.parametrize("cosine", ["", "nan"])
def test_layers_of_which_none_has_a_cosine_are_no_such_table(
    write: Callable[..., str], cosine: str, tmp_path: Path
) -> None:
    rows = [(*row[:7], cosine, *row[8:]) for row in ROWS]
    with pytest.raises(ArtifactError, match=r"no table of nodes with a cosine.*compare_per_layer_out"):
        read(tmp_path, write(rows))


def test_a_table_without_that_column_is_no_such_table(tmp_path: Path) -> None:
    columns, rows = (*COLUMNS[:7], *COLUMNS[8:]), [(*row[:7], *row[8:]) for row in ROWS]
    with pytest.raises(ArtifactError, match="no table of nodes with a cosine"):
        read(tmp_path, as_text(rows, columns))
    with pytest.raises(ArtifactError, match=r"found .*mod_name.*Atol"):
        read(tmp_path, as_csv(rows, columns))


def test_it_is_shown_where_nothing_can_be_tapped(tmp_path: Path) -> None:
    project = two_stages(tmp_path, shift=0.5)
    (tmp_path / "layers.csv").write_text(as_csv(), "utf-8")
    recording = project.artifacts.pop("onnx")
    project.artifacts["calibration"] = {"path": recording, "node-table": "layers.csv"}
    project.subject["chain"] = "qat"
    out = tmp_path / "out"
    answer = call("check", "-c", project.write(), "--out", out)
    assert answer.code == 1
    (facts,) = read_results(out).facts
    (found,) = facts.investigations
    assert found.vendor is not None
    assert tuple(node.node for node in found.vendor.nodes) == NODES
    said = " ".join(answer.out.split())
    assert "column Cosine of layers.csv, 4 nodes" in said


@pytest.mark.skipif(not SHARED.is_dir(), reason="the vendor's real output is not here")
def test_real_layers_are_read_from_text_and_from_the_same_table_as_csv(tmp_path: Path) -> None:
    table = read_node_table(SHARED / "quantanalysis-compare_per_layer_out.txt", "qat")
    assert ([node.node.split()[0] for node in table.nodes], table.unread) == ([str(n) for n in range(11)], 0)
    assert (table.nodes[0].node, table.nodes[0].cosine) == ("0 quant", 0.9999925)
    assert (table.nodes[1].node, table.nodes[1].cosine) == ("1 conv", None)
    assert table.nodes[4].node == "4"
    lines = (SHARED / "quantanalysis-compare_per_layer_out.txt").read_text("utf-8").splitlines()
    columns, *rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert read(tmp_path, as_csv(rows, columns)).nodes == table.nodes
