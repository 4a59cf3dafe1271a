"""Bars in plain text: what is high looks high, and what is not known is no bar."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftgate.domain.judgement import Score
from driftgate.messages.text import text
from driftgate.reporting.sparkline import BARS, grouped, sparkline
from driftgate.reporting.view.bars import WIDTH, error_bars, score_bars
from support.measured import LINK, measured
from support.results import facts, plan

NAN, INF = math.nan, math.inf
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("values", "low", "high", "shown"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], 0, 7, "▁▂▃▄▅▆▇█"),
        ([7, 0], 0, 7, "█▁"),
        ([0, 0, 1], 0, 1, "▁▁█"),
        ([1, NAN, 0], 0, 1, "█?▁"),
        ([INF, -INF], 0, 1, "█▁"),
        ([5, -5], 0, 1, "█▁"),
        ([0, 0], 0, 0, "▁▁"),
        ([3, 3], 3, 3, "██"),
        ([1e308, -1e308], -1e308, 1e308, "█▁"),
        ([], 0, 1, ""),
    ],
)
def test_bars(values: list[float], low: float, high: float, shown: str) -> None:
    assert sparkline(values, low=low, high=high) == shown


@given(st.lists(st.floats()), FINITE, FINITE)
def test_every_number_is_one_character(values: list[float], low: float, high: float) -> None:
    shown = sparkline(values, low=low, high=high)
    assert len(shown) == len(values)
    assert set(shown) <= {*BARS, "?"}
    assert [c == "?" for c in shown] == [math.isnan(value) for value in values]


def test_many_numbers_are_grouped_and_the_worst_of_a_group_is_seen() -> None:
    assert grouped([0, 9, 1, 2, 3], 3) == ((9, 2, 3), 2)
    assert grouped([1, 2], 3) == ((1, 2), 1)
    values, size = grouped([0.0, NAN, 1.0], 2)
    assert size == 2 and math.isnan(values[0]) and values[1] == 1.0
    assert grouped([], 3) == ((), 1)


@given(st.lists(st.floats(allow_nan=False), max_size=300), st.integers(1, 70))
def test_no_group_hides_the_highest(values: list[float], most: int) -> None:
    groups, _ = grouped(values, most)
    assert len(groups) <= most
    assert max(groups, default=0.0) == max(values, default=0.0)


def score(*values: float) -> tuple[Score, ...]:
    return tuple(Score(f"s{n}", "top1", value, 10, str(value)) for n, value in enumerate(values))


@pytest.mark.parametrize(
    ("values", "shown"),
    [((0.9, 0.9, 0.4), "██▁"), ((0.9, 0.9), ""), ((0.9,), ""), ((), ""), ((0.9, NAN, 0.4), "█?▁"), ((NAN, NAN), "")],
)
def test_a_score_along_the_stages(values: tuple[float, ...], shown: str) -> None:
    assert score_bars(score(*values)) == shown


BASE = facts(plan())


def test_the_error_of_every_sample_in_order() -> None:
    errors = [0.0] * 360
    errors[6 * 10] = 2.0
    bars = error_bars(LINK, "logits", measured(BASE, errors))
    assert bars is not None
    assert bars.text == "▁" * 10 + "█" + "▁" * (WIDTH - 11)
    assert text(bars.title) == "max abs error of logits, sample by sample (360, one bar for the worst of 6); highest 2"
    assert bars.legend is None


def test_samples_that_are_missing_or_not_finite_are_seen() -> None:
    bars = error_bars(LINK, "logits", measured(BASE, [1.0] * 6 + [NAN] + [1.0] * 5))
    assert bars is not None
    assert bars.text == "█" + "?" * (WIDTH - 1)
    assert bars.legend is not None and "nothing could be compared" in text(bars.legend)


def test_few_samples_have_a_bar_each() -> None:
    few = replace(BASE, plan=replace(BASE.plan, samples=BASE.plan.samples.first(4)))
    bars = error_bars(LINK, "logits", measured(few, [0.0, 4.0, 1.0, 0.0]))
    assert bars is not None
    assert bars.text == "▁█▃▁"
    assert text(bars.title) == "max abs error of logits, sample by sample (4); highest 4"


def test_a_broken_score_shows_the_output_that_there_is() -> None:
    bars = error_bars(LINK, "top1", measured(BASE, [1.0] * 360))
    assert bars is not None and bars.title.get("output") == "logits"


def test_nothing_measured_has_no_bars() -> None:
    assert error_bars(LINK, "logits", BASE) is None
    assert error_bars(LINK, "logits", None) is None
    assert error_bars("a..b", "logits", measured(BASE, [1.0] * 360)) is None
    one = replace(BASE, plan=replace(BASE.plan, samples=BASE.plan.samples.first(1)))
    assert error_bars(LINK, "logits", measured(one, [1.0])) is None
