"""hb_verifier's two answers: cosines by tensor, or the verdict on consistency (toolchain facts §1.4, §1.5).

The sentence decides, not the exit code. What was compared with nothing, a run without a verdict and a table whose
columns are not known are errors. The consistency table is known from documents only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from driftgate.domain.toolchain.common import ToolVersions
from driftgate.domain.toolchain.comparisons import ConsistencyReport, ConsistencyRow, CosineReport, CosineRow
from driftgate.errors import ArtifactError
from driftgate.messages.message import message
from driftgate.vendor.cells import finite
from driftgate.vendor.console import last_run, said_lines, whole_lines
from driftgate.vendor.files import another_file, read_text
from driftgate.vendor.tables import Row, Table, bar_tables, cell, column, rule_tables

TOOL = "hb_verifier"
_START = re.compile(r"^hb_verifier starts\b")
_VERSION = re.compile(r"^verifier tool version: (\d[\w.\-+]*)$")
_MODEL = re.compile(r"^(?:Start to inference (?:onnx|bc|hbm) model (\S+)|(\S+) inference\.\.\.)$")
_PASSED = re.compile(r"output consistency compar(?:ison|e) was successful")
_FAILED = re.compile(r"output consistency compar(?:ison|e) was failed")
_NOTHING = re.compile(r"No output to compare\b")
_BOARD = re.compile(r"^Receive board info\b")
_SKIPPED = re.compile(
    r"(?:The output of (?P<empty>.+) is empty|The model \[(?P<shapes>.+)\] has different shapes), skip this tensor"
)
_MISMATCHED = re.compile(r"^(\d{1,18})\s*/\s*(\d{1,18})(?:\s*\(.*\))?$")
NODE = ("NodeName", "Node Name")
TENSOR = ("TensorName", "Tensor Name")
COSINE = ("CosineSimilarity", "Cosine Similarity")
OUTPUT = ("output name", "output", "name", "output tensor", "tensor name")
EQUAL = ("ret", "consistency", "consistent", "result")
MISMATCHED = ("mismatched", "mismatched elements", "number of inconsistent elements", "inconsistent elements")
ABSOLUTE = ("max_abs_diff", "max abs error", "max absolute error", "max absolute difference")
RELATIVE = ("max_rel_diff", "max rel error", "max relative error", "max relative difference")
COSINE_COLUMNS = (*NODE, *TENSOR, *COSINE)
CONSISTENCY_COLUMNS = (*OUTPUT, *EQUAL, *MISMATCHED, *ABSOLUTE, *RELATIVE)
VERDICTS = {"true": True, "passed": True, "pass": True, "false": False, "failed": False, "fail": False}


def read_verifier(path: Path) -> CosineReport | ConsistencyReport:
    """The answer of the last run; ArtifactError where there is none, or nothing was compared."""
    return parse_verifier(read_text(path), name=str(path))


def parse_verifier(text: str, *, name: str = "-") -> CosineReport | ConsistencyReport:
    """The same from text."""
    runs, text = last_run(text, _START)
    said, lines = said_lines(text), whole_lines(text)
    models = tuple(dict.fromkeys(found[1] or found[2] for line in lines if (found := _MODEL.match(line))))
    passed, failed, nothing = (any(pattern.search(line) for line in said) for pattern in (_PASSED, _FAILED, _NOTHING))
    if nothing:
        raise ArtifactError(message("verifier-nothing-compared", path=name))
    if passed and failed:
        raise ArtifactError(message("verifier-contradiction", path=name))
    version = next((found[1] for line in lines if (found := _VERSION.match(line))), None)
    versions = ToolVersions(tool=version)
    skipped = tuple(found["empty"] or found["shapes"] for line in lines if (found := _SKIPPED.search(line)))
    cosines = _cosine_table(text)
    if not (passed or failed) and cosines is not None:
        rows = _cosines(cosines)
        if all(row.cosine is None for row in rows):
            raise ArtifactError(message("verifier-nothing-compared", path=name))
        return CosineReport(versions, models, rows, skipped, cosines.odd, cosines.closed, runs)
    if not (passed or failed or version or any(_START.match(line) for line in said)):
        raise another_file(text, name, tool=TOOL, wanted=("| NodeName | TensorName |", "consistency comparison was"))
    table = _consistency_table(text, lines, name)
    if not (passed or failed):
        raise ArtifactError(message("verifier-no-verdict", path=name, models=models or ("-",)))
    consistency, unread = _consistencies(table) if table else ((), 0)
    if table and table.rows and not consistency:
        raise _unknown_layout(name, tuple(f"{key}: {value}" for key, value in table.rows[0].items()))
    if consistency and all(row.total == 0 for row in consistency):
        raise ArtifactError(message("verifier-nothing-compared", path=name))
    on_board = any(_BOARD.match(line) for line in said)
    return ConsistencyReport(versions, models, passed, consistency, on_board, skipped, unread, runs)


def _cosine_table(text: str) -> Table | None:
    """The last table of cosines that has rows, or had."""
    tables = bar_tables(text, COSINE_COLUMNS, least=2)
    fits = [table for table in tables if column(table, TENSOR) and column(table, COSINE)]
    return next((table for table in reversed(fits) if table.rows or table.odd), fits[-1] if fits else None)


def _cosines(table: Table) -> tuple[CosineRow, ...]:
    node, tensor, cosine = (column(table, names) for names in (NODE, TENSOR, COSINE))
    return tuple(CosineRow(cell(row, node), cell(row, tensor), finite(cell(row, cosine))) for row in table.rows)


def _consistency_table(text: str, lines: Sequence[str], name: str) -> Table | None:
    """The last table of outputs; None where there is no table. ArtifactError: one whose columns are not known."""
    tables = (*bar_tables(text, CONSISTENCY_COLUMNS, least=2), *rule_tables(lines, CONSISTENCY_COLUMNS, least=2))
    fits = [table for table in tables if column(table, OUTPUT) and column(table, EQUAL)]
    if fits:
        return fits[-1]
    odd = next((line.strip() for line in lines if line.lstrip().startswith("|")), None)
    if odd is not None and _cosine_table(text) is None:
        raise _unknown_layout(name, tuple(part.strip() for part in odd.strip("|").split("|")))
    return None


def _unknown_layout(name: str, found: tuple[str, ...]) -> ArtifactError:
    wanted = (OUTPUT[0], f"{EQUAL[0]}: True | False")
    return ArtifactError(message("verifier-layout", path=name, found=found, wanted=wanted))


def _consistencies(table: Table) -> tuple[tuple[ConsistencyRow, ...], int]:
    """The rows, and how many could not be read."""
    rows = [_consistency(table, row) for row in table.rows]
    good = tuple(row for row in rows if row is not None)
    return good, table.odd + len(rows) - len(good)


def _consistency(table: Table, row: Row) -> ConsistencyRow | None:
    names = (OUTPUT, EQUAL, MISMATCHED, ABSOLUTE, RELATIVE)
    output, equal, mismatched, absolute, relative = (cell(row, column(table, wanted)) for wanted in names)
    verdict = VERDICTS.get(equal.lower())
    if not output or verdict is None:
        return None
    count = _MISMATCHED.match(mismatched)
    return ConsistencyRow(
        output=output,
        equal=verdict,
        mismatched=int(count[1]) if count else None,
        total=int(count[2]) if count else None,
        max_absolute=finite(absolute),
        max_relative=finite(relative),
    )
