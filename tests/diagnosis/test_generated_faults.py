"""Planted causes are named first, and healthy pairs are left alone, as often as the floors say."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from diagnosis.running import FIXED, Answer, answers, blamed_pairs, commit
from faultgen.catalogue import FAMILIES, PLANTERS, instances
from faultgen.healthy import KINDS, pairs

SEEDS = (*commit(), FIXED)
JOBS = int(os.environ.get("WORKERS", "2"))
INSTANCES = 600
PAIRS = 300
OVERALL = 0.95
IN_EACH_FAMILY = 0.85

GENERATOR = Path(__file__).parents[1] / "faultgen"


def rounds(wanted: int, kinds: int) -> int:
    """How many of each kind for each seed make at least as many as wanted."""
    return -(-wanted // (kinds * len(SEEDS)))


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Answer]:
    """Every instance, explained."""
    made = tuple(instances(SEEDS, rounds(INSTANCES, len(PLANTERS))))
    return answers(made, tmp_path_factory.mktemp("faults"), JOBS)


def share(answered: Sequence[Answer]) -> float:
    """How many of the answers are right."""
    return sum(item.is_right for item in answered) / len(answered)


def missed(answered: Sequence[Answer]) -> str:
    """What was said instead, one instance a line."""
    return "\n".join(
        f"{item.instance.name}: {', '.join(item.codes) or 'nothing'}" for item in answered if not item.is_right
    )


def test_the_cause_is_named_first(answered: Sequence[Answer]) -> None:
    assert len(answered) >= INSTANCES
    assert share(answered) >= OVERALL, missed(answered)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cause_is_named_first_in_each_family(family: str, answered: Sequence[Answer]) -> None:
    mine = [item for item in answered if item.instance.planter.family == family]
    assert share(mine) >= IN_EACH_FAMILY, missed(mine)


def test_healthy_pairs_are_left_alone(tmp_path: Path) -> None:
    made = tuple(pairs(SEEDS, rounds(PAIRS, len(KINDS))))
    assert len(made) >= PAIRS
    assert blamed_pairs(made, tmp_path, JOBS) == {}


def test_an_instance_is_the_same_each_time(tmp_path: Path) -> None:
    for instance in instances((FIXED,), 1):
        for folder in ("first", "second"):
            instance.plant(tmp_path / folder / instance.planter.name)
    for path in (tmp_path / "first").rglob("*.*"):
        if path.is_file() and path.suffix != ".npz":  # an archive holds the time of its making
            assert path.read_bytes() == (tmp_path / "second" / path.relative_to(tmp_path / "first")).read_bytes()


def test_planters_are_told_apart_and_allow_two_other_codes_at_most() -> None:
    assert len({planter.name for planter in PLANTERS}) == len(PLANTERS)
    assert [planter.name for planter in PLANTERS if len(planter.also) > 2 or planter.code in planter.also] == []


def test_the_generator_does_not_know_the_diagnosis() -> None:
    trees = {path.name: ast.parse(path.read_text("utf-8")) for path in GENERATOR.glob("*.py")}
    known = [
        f"{name}:{node.lineno}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any(
            told.split(".")[0] == "driftgate"
            for told in (getattr(node, "module", None) or "", *(alias.name for alias in node.names))
        )
    ]
    assert known == []
