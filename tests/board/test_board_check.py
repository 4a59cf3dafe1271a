"""Where board and .bc differ: the input, the board or the compiler, told apart on a test board."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from driftgate.domain.bundles import Status
from driftgate.domain.investigations import Investigation
from driftgate.storage.bundle import open_bundle
from support.board.lab import TestBoard
from support.boards import BoardProject, described
from support.chains import Chain
from support.handed import hand_on

WRAPPER = "/userdata/wrapped"


def wrapped(board: TestBoard, before: str, after: str) -> str:
    """A tool that does something before and after hrt_model_exec."""
    path = board.root / "wrapped"
    path.write_text(f'#!/bin/sh\n{before}\n{board.tool} "$@"\ncode=$?\n{after}\nexit $code\n')
    path.chmod(0o755)
    return WRAPPER


def investigated(made: BoardProject) -> Investigation:
    answer = made.check()
    assert answer.code == 1, answer.out + answer.err
    (judgement,) = made.results().judgements or ()
    assert judgement.first_failure == "bc-hbm"
    (found,) = [one for one in made.results().facts[0].investigations if one.link.endswith("..hbm")]
    return found


def codes(found: Investigation) -> set[str]:
    return {note.code for note in found.notes}


def test_an_hbm_of_another_bc_is_the_compilers_or_the_builds(board: TestBoard, tmp_path: Path) -> None:
    made = BoardProject(tmp_path / "project").made(described(board))
    other = Chain(made.root, ("J6M",)).build("J6M", seed=5, folder="other")
    shutil.copy(other / "net.hbm", made.root / "build_J6M" / "model_output" / "net.hbm")
    found = investigated(made)
    assert {"board-check-inputs-same", "board-check-compiler"} <= codes(found)
    assert "input-mismatch" not in {one.code for one in found.explanations if one.confirmed}


def test_inputs_that_the_board_sees_otherwise_are_the_cause(board: TestBoard, tmp_path: Path) -> None:
    (board.root / "zeros").write_bytes(bytes(36 * 36))
    before = """
for word in "$@"; do case "$word" in
  --input_file=*) files="${word#--input_file=}"; cat /userdata/zeros > "${files%%,*}" ;;
esac; done"""
    made = BoardProject(tmp_path / "project").made(described(board, tool=wrapped(board, before, ":")))
    found = investigated(made)
    (cause,) = [one for one in found.explanations if one.code == "input-mismatch"]
    assert cause.confirmed
    assert cause.subjects == ("image_y",)
    assert "board-check-inputs-same" not in codes(found)


@pytest.mark.parametrize("knows_infer", [True, False])
def test_outputs_that_only_this_tool_gives_are_the_boards(knows_infer: bool, board: TestBoard, tmp_path: Path) -> None:
    after = """
for word in "$@"; do case "$word" in
  --dump_path=*) for f in "${word#--dump_path=}"/model_infer_output_0_*; do cat /userdata/ones > "$f"; done ;;
esac; done"""
    (board.root / "ones").write_bytes(b"\1" * (1 << 16))
    made = BoardProject(tmp_path / "project").made(described(board, tool=wrapped(board, ":", after)))
    if not knows_infer:
        made.without_the_vendors_interpreter()
    found = investigated(made)
    told = codes(found)
    assert "board-check-inputs-same" in told
    assert ("board-check-board" if knows_infer else "board-check-no-infer") in told
    hand_on(made.root / "out", tmp_path / "handed")
    with open_bundle(made.root / "out" / "bundle.zip") as bundle:
        (link,) = bundle.manifest.links
        status = {one.what.code: one.status for one in link.wanted}
        infer = next(one for one in link.wanted if one.what.code == "keep-infer-output")
        assert set(infer.paths) <= set(bundle.names)
    assert status["keep-infer-output"] is (Status.INCLUDED if knows_infer else Status.MISSING)
    assert (status["keep-board-output"], status["keep-board-input"]) == (Status.INCLUDED, Status.INCLUDED)
