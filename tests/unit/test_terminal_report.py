"""The table on a terminal, and as plain text in a log."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from driftgate.domain.results import Results
from driftgate.reporting.terminal import show
from support.golden import golden
from support.results import crashed, error, failing, healthy, hostile, several

SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


def logged(made: Results, encoding: str = "utf-8") -> str:
    """What a log gets."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    show(made, Console(file=file, width=80))
    file.flush()
    return raw.getvalue().decode(encoding)


def on_terminal(made: Results, width: int = 120) -> str:
    """What a terminal gets."""
    file = io.StringIO()
    show(made, Console(file=file, width=width, force_terminal=True, color_system="standard"))
    return file.getvalue()


def test_a_log_gets_the_golden_table() -> None:
    made = logged(failing())
    assert made == golden("table-failing.txt", made)


def test_a_log_gets_six_unbroken_rows_without_colours() -> None:
    lines = logged(healthy()).splitlines()
    assert lines[1] == "digits J6M: PASS 6 of 6"
    assert [re.split(r" {2,}", line)[1] for line in lines[2:9]] == ["Result", *["PASS"] * 6]
    assert "\x1b" not in logged(healthy())


def test_a_terminal_gets_colours() -> None:
    shown = on_terminal(failing())
    assert "\x1b[32mPASS\x1b[0m" in shown
    assert "\x1b[1;31mFAIL" in shown
    assert "FAIL at BC ↔ HBM" in shown


def test_a_narrow_terminal_loses_nothing() -> None:
    shown = SEQUENCE.sub("", on_terminal(failing(), width=60))
    assert shown.count("PASS") == 4
    assert "0.5625" in shown


def test_the_first_failure_is_told_below_the_table() -> None:
    told = logged(failing()).partition("First failure: BC ↔ HBM\n")[2]
    assert "quantized → hbm (compiled): logits, sample 0137, channel 3: max abs error 0.5625, limit ≤ 1e-05" in told
    assert "SQNR 41.25 dB" in told
    assert "not investigated" in told


def test_errors_are_told_with_their_whole_text() -> None:
    assert "no leg has reported the stage hbm" in logged(error())
    assert "\n    RuntimeError: out of memory\n" in logged(crashed())


def test_several_subjects_get_a_line_over_all() -> None:
    assert logged(several()).splitlines()[0] == "FAIL in 1 of 3 subjects"


@pytest.mark.parametrize("shown", [logged(hostile()), SEQUENCE.sub("", on_terminal(hostile(), width=200))])
def test_hostile_names_move_nothing(shown: str) -> None:
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    assert not re.search(r"^(::|##\[)", shown, re.MULTILINE)
    assert "[bold]x" in shown


def test_a_log_that_is_not_unicode_gets_question_marks() -> None:
    assert "FAIL at BC ? HBM" in logged(failing(), encoding="latin-1")
    assert "PASS" in logged(healthy(), encoding="ascii")
