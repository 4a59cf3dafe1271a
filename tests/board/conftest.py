"""What the tests of boards share: a board, where this machine can have one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.board.lab import TestBoard, missing_tools


@pytest.fixture(scope="session")
def board_tools() -> None:
    """What a test board needs is there."""
    if missing := missing_tools():
        message = f"a test board needs {', '.join(missing)}"
        if os.environ.get("DRIFTGATE_REQUIRE_TOOLS"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture
def board(board_tools: None, tmp_path: Path) -> Iterator[TestBoard]:
    """One of its own for a test."""
    with TestBoard(tmp_path) as board:
        yield board
