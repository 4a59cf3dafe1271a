"""What the doctor says of boards: what they tell, and why one cannot be used; never an address."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.board.lab import TestBoard
from support.boards import BoardProject, described
from support.commandline import call


def item(made: BoardProject, code: int) -> tuple[str, str, str]:
    """State, what was found and advice of the one board; a missing one ends the doctor with 2."""
    answer = call("doctor", "-c", made.config, "--json")
    (found,) = [one for one in answer.json["items"] if one["name"] == "board lab"]
    assert (found["state"] == "missing") == (code == 2)
    assert answer.code == 2 or code == 0
    return found["state"], found["found"], found["advice"] or ""


def test_a_board_tells_its_tool_and_who_holds_it(board: TestBoard, tmp_path: Path) -> None:
    made = BoardProject(tmp_path / "project").made(described(board, march="nash-m"))
    state, found, advice = item(made, 0)
    assert state == "there", advice
    assert "nash-m" in found
    assert "UCP 3.15.8" in found
    assert board.address not in found
    lock = board.root / "driftgate" / "lock"
    lock.mkdir(parents=True)
    (lock / "who").write_text("laptop 7\n")
    assert "lock: laptop 7" in item(made, 0)[1]
    assert sorted(path.name for path in (board.root / "driftgate").iterdir()) == ["lock"]


def test_a_board_that_cannot_be_used_says_why(board: TestBoard, tmp_path: Path) -> None:
    made = BoardProject(tmp_path / "project").made(described(board, tool="/nowhere/hrt_model_exec"))
    assert "has no /nowhere/hrt_model_exec" in item(made, 2)[2]
    board.new_host_key()
    advice = item(made, 2)[2]
    assert "host key" in advice
    assert board.address not in advice


def test_variables_that_are_not_set_are_named(
    board: TestBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_BOARD", raising=False)
    made = BoardProject(tmp_path / "project").made(described(board, hosts=["${NO_SUCH_BOARD}"]))
    assert "NO_SUCH_BOARD not set" in item(made, 2)[2]
