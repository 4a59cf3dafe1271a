"""Score records with any number of rows a sample: united from shards and read back, to the bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driftgate.domain.chain import LinkKind
from driftgate.domain.facts import Facts, merge
from driftgate.domain.results import Results, Tool
from driftgate.domain.scores import ScoreRecords, concatenate
from driftgate.errors import MergeConflict, StorageError
from driftgate.storage.document import encode_results, read_results
from driftgate.storage.folder import write_all
from support.judging import a_plan
from support.scoring import in_shards

EMPTY = ScoreRecords("a", "a@1", "detection", ("x", "y"), (), np.empty((0, 2)))


def uneven(count: int = 23) -> ScoreRecords:
    """Samples with none, one or several rows, and a number that is not finite."""
    rng = np.random.default_rng(0)
    tables = [rng.standard_normal((rows, 2)) for rows in rng.integers(0, 4, count)]
    tables[5] = np.array([[np.nan, np.inf]])
    return EMPTY.with_rows((f"{n:04}", table) for n, table in enumerate(tables))


def test_rows_belong_to_their_samples() -> None:
    records = EMPTY.with_rows([("0000", np.ones((2, 2))), ("0001", np.empty((0, 2))), ("0002", np.zeros((1, 2)))])
    assert records.counts == (2, 0, 1)
    assert records.owners.tolist() == [0, 0, 2]
    assert records.column("y").tolist() == [1.0, 1.0, 0.0]
    assert {sample: len(rows) for sample, rows in records.by_sample().items()} == {"0000": 2, "0001": 0, "0002": 1}


def test_one_row_each_needs_no_counts() -> None:
    records = EMPTY.with_rows([("0000", np.ones((1, 2))), ("0001", np.zeros((1, 2)))])
    assert (records.rows, records.counts) == (None, (1, 1))


def test_shards_are_united_in_the_order_of_the_samples() -> None:
    records = uneven()
    rng = np.random.default_rng(1)
    for _ in range(10):
        assert in_shards(records, rng) == records


def test_equal_parts_collapse_and_unequal_ones_are_a_conflict() -> None:
    records = uneven()
    plan = a_plan(LinkKind.LOSSY, 23)
    rows = list(records.by_sample().items())
    overlapping = [Facts(plan, scores=(records.with_rows(part),)) for part in (rows[:15], rows[10:])]
    assert merge(overlapping).scores == (records,)
    other = records.with_rows([*rows[10:-1], (rows[-1][0], np.ones((9, 2)))])
    renamed = replace(records, columns=("x", "z"))
    for conflicting in (other, renamed):
        with pytest.raises(MergeConflict):
            merge([Facts(plan, scores=(records,)), Facts(plan, scores=(conflicting,))])


def test_parts_of_several_machines_are_joined() -> None:
    records = uneven()
    rows = list(records.by_sample().items())
    assert concatenate([records.with_rows(rows[:4]), records.with_rows(rows[4:])]) == records


def test_they_come_back_from_disk(tmp_path: Path) -> None:
    records = uneven()
    facts = Facts(a_plan(LinkKind.LOSSY, 23), scores=(records,))
    write_all(tmp_path, encode_results(Results(Tool("driftgate", "0"), (facts,), None)))
    assert read_results(tmp_path).facts[0].scores == (records,)


@pytest.mark.parametrize("rows", [(1,) * 22, (1,) * 24, (40, *(-1,) * 17, 1, 1, 1, 1, 1)])
def test_rows_that_do_not_add_up_are_an_error(tmp_path: Path, rows: tuple[int, ...]) -> None:
    facts = Facts(a_plan(LinkKind.LOSSY, 23), scores=(replace(uneven(), rows=rows),))
    write_all(tmp_path, encode_results(Results(Tool("driftgate", "0"), (facts,), None)))
    with pytest.raises(StorageError) as caught:
        read_results(tmp_path)
    assert caught.value.problems[0].code == "facts-length"
