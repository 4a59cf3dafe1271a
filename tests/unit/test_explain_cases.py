"""Every field case gets its verdict and its cause, first, from what lies in its folder without case.json."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from driftgate.diagnosis.rules import RULES
from driftgate.judgement.codes import CODES
from driftgate.messages.english import ENGLISH
from support.commandline import call

CASES = Path(__file__).parents[1] / "cases"
FOLDERS = tuple(sorted(path for stage in range(1, 5) for path in CASES.glob(f"s{stage}-*")))
EXITS = {"PASS": 0, "FAIL": 1, "ERROR": 2}


def expected(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "case.json").read_text("utf-8"))["expected"]
    return found


def explained(folder: Path) -> tuple[int, dict[str, Any]]:
    done = call("explain", folder, "--json")
    document: dict[str, Any] = done.json
    return done.code, document


def test_the_cases_are_there() -> None:
    assert len(FOLDERS) == 40


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_case_is_explained_without_its_answer(folder: Path, tmp_path: Path) -> None:
    wanted = expected(folder)
    bare = tmp_path / "evidence"
    shutil.copytree(folder, bare, ignore=shutil.ignore_patterns("case.json"))
    code, document = explained(bare)
    first = document["findings"][0]
    assert (document["verdict"], code) == (wanted["verdict"], EXITS[wanted["verdict"]])
    assert first["code"] in (wanted["diagnosis"], *wanted["also_acceptable"])
    assert first["confirmed"] is True
    assert first["evidence"] and first["next"]


def test_every_code_has_its_sentences() -> None:
    told = [message for code in CODES.values() for message in (code.cause, code.next, code.actor, code.untouched)]
    assert [message.code for message in told if message is not None and message.code not in ENGLISH] == []


def test_rules_give_codes_of_the_table() -> None:
    assert {code for rule in RULES for code in rule.codes} - CODES.keys() == set()
