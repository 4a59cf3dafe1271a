"""Shards of whole blocks, merged in any order, are what one run would have measured, to the bit."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftgate.domain.chain import LinkKind
from driftgate.domain.facts import Facts, merge
from driftgate.domain.judgement import Outcome, Policy
from driftgate.errors import MergeConflict
from driftgate.judgement.judge import judge
from support.judging import a_plan, leg_facts

COUNT = 53
Side = list[dict[str, NDArray[np.generic]]]


def outputs() -> tuple[Side, Side]:
    """A dense output, one whose channels come and go, and one of integers."""
    rng = np.random.default_rng(3)
    a: Side = []
    for n in range(COUNT):
        boxes = rng.standard_normal((1, 2 + n % 5, 4)).astype(np.float32)
        a.append(
            {
                "y": rng.standard_normal((1, 6, 5, 5)).astype(np.float32) * 10.0 ** rng.integers(-3, 3),
                "boxes": boxes,
                "mask": rng.integers(0, 2, (1, 8)).astype(bool),
            }
        )
    b = [
        {name: t if t.dtype == bool else (t + np.float32(1e-6)).astype(np.float32) for name, t in one.items()}
        for one in a
    ]
    return a, b


A, B = outputs()


@st.composite
def divisions(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    """A block size, and the blocks dealt out to legs in any order."""
    block = draw(st.integers(1, 20))
    blocks = list(range(-(-COUNT // block)))
    dealt = draw(st.lists(st.integers(0, 3), min_size=len(blocks), max_size=len(blocks)))
    legs = [[n for n in blocks if dealt[n] == leg] for leg in range(4)]
    return block, draw(st.permutations([leg for leg in legs if leg]))


@settings(max_examples=25, deadline=None)
@given(divisions())
def test_merged_equals_unsharded_to_the_bit(division: tuple[int, list[list[int]]]) -> None:
    block, legs = division
    plan = a_plan(LinkKind.EQUIVALENT, COUNT, block=block)
    whole = leg_facts(plan, plan.samples.blocks, A, B)
    merged = merge([leg_facts(plan, leg, A, B) for leg in legs])
    assert merged.measurements == whole.measurements
    assert judge(merged, Policy()) == judge(whole, Policy())


def two_legs() -> list[Facts]:
    plan = a_plan(LinkKind.EQUIVALENT, COUNT)
    return [leg_facts(plan, [0, 1], A, B), leg_facts(plan, [2, 3], A, B)]


def test_merging_again_changes_nothing() -> None:
    shards = two_legs()
    once = merge(shards)
    assert merge([once, *shards]) == once


@pytest.mark.parametrize("order", list(itertools.permutations(range(2))))
def test_the_order_of_shards_does_not_matter(order: tuple[int, ...]) -> None:
    shards = two_legs()
    assert merge([shards[n] for n in order]) == merge(shards)


def test_a_missing_leg_is_an_error_naming_what_is_missing() -> None:
    judgement = judge(merge(two_legs()[:1]), Policy())
    assert judgement.outcome is Outcome.ERROR
    reasons = {v.reason.code for v in judgement.checks[0].verdicts if v.reason}
    assert reasons == {"samples-partial"}


def test_two_shards_that_disagree_are_a_conflict_naming_both() -> None:
    plan = a_plan(LinkKind.EQUIVALENT, COUNT)
    other = [{name: t if t.dtype == bool else t * 2 for name, t in one.items()} for one in B]
    with pytest.raises(MergeConflict, match="disagree about Measurement"):
        merge([leg_facts(plan, [0, 1], A, B), leg_facts(plan, [1, 2, 3], A, other)])


def test_shards_of_two_plans_are_a_conflict() -> None:
    first, second = two_legs()
    with pytest.raises(MergeConflict, match="different plans"):
        merge([first, replace(second, plan=replace(second.plan, target="J6P"))])
