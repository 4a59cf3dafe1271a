"""Matching of points where one kind of evidence has to do alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from driftgate.localisation.pairing import Match, Side, pair
from driftgate.localisation.points import Point
from driftgate.numerics.sketches import sketch
from support.trials import Array

random = np.random.default_rng(4)
SHAPE = (1, 6, 10, 10)


def numbers(count: int) -> list[Array]:
    """Unrelated tensors."""
    return [random.normal(0, 1, SHAPE).astype(np.float32) for _ in range(count)]


def noisy(tensors: Sequence[Array], decibel: float) -> list[Array]:
    """The same with noise so far below them."""
    return [tensor + random.normal(0, 10 ** (-decibel / 20), SHAPE).astype(np.float32) for tensor in tensors]


def side(tensors: Sequence[Array], names: Sequence[str] = (), op: str = "Conv") -> Side:
    """Points of which nobody knows what they are computed from."""
    told = names or [f"t{number}" for number in range(len(tensors))]
    points = [Point(n, name, (name,), op, name) for n, name in enumerate(told)]
    return Side(points, [()] * len(points), {n: sketch(tensor) for n, tensor in enumerate(tensors)})


def pairs(found: Sequence[Match]) -> list[tuple[int, int]]:
    return [(match.a, match.b) for match in found]


def test_equal_values_pair_whatever_they_are_called() -> None:
    tensors = numbers(4)
    found = pair(side(tensors), side(tensors[::-1], ["t0", "t1", "t2", "t3"]))
    assert pairs(found) == [(0, 3), (1, 2), (2, 1), (3, 0)]
    assert {match.how for match in found} == {"value"}
    assert {match.certainty for match in found} == {1.0}


def test_lossy_values_pair_where_nothing_else_resembles_them() -> None:
    tensors = numbers(4)
    found = pair(side(tensors), side(noisy(tensors, 25)[::-1], ["a", "b", "c", "d"]))
    assert pairs(found) == [(0, 3), (1, 2), (2, 1), (3, 0)]
    assert {(match.how, match.certainty) for match in found} == {("value", 0.9)}


def test_lossy_values_that_resemble_two_tensors_alike_stay_unpaired() -> None:
    first, second = numbers(2)
    twin = noisy([first], 30)[0]
    found = pair(side([first, twin, second]), side(noisy([first, second], 20), ["a", "b"]))
    assert pairs(found) == [(2, 1)]


def test_the_same_tensor_in_another_axis_order_pairs_by_what_no_order_changes() -> None:
    tensors = numbers(3)
    turned = [tensor.transpose(0, 2, 3, 1) for tensor in tensors]
    found = pair(side(tensors), side(turned, ["a", "b", "c"]))
    assert pairs(found) == [(0, 0), (1, 1), (2, 2)]


def test_equal_names_are_a_hint_where_neither_values_nor_structure_speak() -> None:
    found = pair(side(numbers(2), ["p", "q"]), side(numbers(2), ["q", "r"]))
    assert [(match.a, match.b, match.how) for match in found] == [(1, 0, "name")]
    assert found[0].certainty == pytest.approx(0.5)


def test_equal_names_of_other_operators_are_none() -> None:
    assert pair(side(numbers(1), ["p"]), side(numbers(1), ["p"], op="Relu")) == ()


def test_tensors_of_a_few_values_agree_by_chance_and_stay_unpaired() -> None:
    few = [np.ones((1, 4), np.float32) * n for n in (1, 2)]
    assert pair(side(few), side(few, ["a", "b"])) == ()


def test_what_is_known_stays() -> None:
    tensors = numbers(2)
    known = Match(0, 1, "structure", 1.0)
    found = pair(side(tensors), side(tensors, ["a", "b"]), [known])
    assert known in found
    assert (1, 1) not in pairs(found)
