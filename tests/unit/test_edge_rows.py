"""The ten edge rows that comparators get wrong, and what driftgate says of each (design §6)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from driftgate.domain.chain import LinkKind
from driftgate.domain.judgement import Outcome
from support.judging import check_of, judged

SHAPE = (24, 6, 8, 8)
Pair = tuple[NDArray[np.generic], NDArray[np.generic]]
PASS, FAIL, ERROR = Outcome.PASSED, Outcome.FAILED, Outcome.ERROR
EXACT, EQUIVALENT, COMPILED, STEPPED, LOSSY = (
    LinkKind.EXACT,
    LinkKind.EQUIVALENT,
    LinkKind.COMPILED,
    LinkKind.STEPPED,
    LinkKind.LOSSY,
)
ALL = (EXACT, EQUIVALENT, COMPILED, STEPPED, LOSSY)
INEXACT = ALL[1:]


def noise(seed: int, scale: float = 1.0) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal(SHAPE) * scale).astype(np.float32)


def full(value: float) -> NDArray[np.float32]:
    return np.full(SHAPE, value, np.float32)


def with_value(values: NDArray[np.float32], value: float) -> NDArray[np.float32]:
    values = values.copy()
    values[3, 2, 1, 5] = value
    return values


def outlier() -> Pair:
    a, b = noise(1), noise(2)
    return with_value(a, 1e4), with_value(b, 1e4)


ROWS: dict[str, tuple[Callable[[], Pair], dict[LinkKind, Outcome]]] = {
    "zeros, zeros": (lambda: (full(0), full(0)), dict.fromkeys(ALL, PASS)),
    "zeros, noise of 1e-6": (lambda: (full(0), noise(1, 1e-6)), {EXACT: FAIL, **dict.fromkeys(INEXACT, PASS)}),
    "1e-20, another 1e-20": (
        lambda: (noise(1, 1e-20), noise(2, 1e-20)),
        {EXACT: FAIL, **dict.fromkeys(INEXACT, PASS)},
    ),
    "5, 10": (lambda: (full(5), full(10)), dict.fromkeys(ALL, FAIL)),
    "1000 and noise, 1000 and other noise": (lambda: (noise(1) + 1000, noise(2) + 1000), dict.fromkeys(ALL, FAIL)),
    "one outlier of 1e4, the rest unrelated": (outlier, dict.fromkeys(ALL, FAIL)),
    "the same NaN": (lambda: (with_value(noise(1), np.nan), with_value(noise(1), np.nan)), dict.fromkeys(ALL, ERROR)),
    "the same infinity": (
        lambda: (with_value(noise(1), np.inf), with_value(noise(1), np.inf)),
        dict.fromkeys(ALL, PASS),
    ),
    "identical 1e30": (lambda: (noise(1, 1e30), noise(1, 1e30)), dict.fromkeys(ALL, PASS)),
}


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [(name, kind, outcome) for name, (_, outcomes) in ROWS.items() for kind, outcome in outcomes.items()],
)
def test_edge_row(name: str, kind: LinkKind, expected: Outcome) -> None:
    a, b = ROWS[name][0]()
    assert check_of(kind, a, b).outcome is expected


def top_k(*, tied: bool) -> tuple[list[dict[str, NDArray[np.generic]]], list[dict[str, NDArray[np.generic]]]]:
    """Two runs of a top-5 whose second and third entries stand in the other order."""
    values = np.array([[0.9, 0.7, 0.7 if tied else 0.6, 0.5, 0.4]], np.float32)
    index = np.array([[11, 4, 7, 3, 9]], np.int64)
    swapped = np.array([[11, 7, 4, 3, 9]], np.int64)
    return [{"values": values, "index": index}], [{"values": values, "index": swapped}]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(("tied", "expected"), [(True, PASS), (False, FAIL)])
def test_a_swapped_top_k_passes_only_where_the_scores_tie(kind: LinkKind, tied: bool, expected: Outcome) -> None:
    a, b = top_k(tied=tied)
    judgement = judged(kind, a, b)
    assert judgement.outcome is expected
    notes = {note.code for verdict in judgement.checks[0].verdicts for note in verdict.notes}
    assert ("ties-settled" in notes) is tied


@pytest.mark.parametrize("name", ["zeros, noise of 1e-6", "1e-20, another 1e-20"])
def test_what_passes_below_the_floor_says_so(name: str) -> None:
    verdict = check_of(EQUIVALENT, *ROWS[name][0]()).verdicts[0]
    assert verdict.reason is not None
    assert verdict.reason.code == "below-floor"


def test_the_same_infinity_is_noted_and_left_out_of_the_moments() -> None:
    a, b = ROWS["the same infinity"][0]()
    verdict = check_of(EXACT, a, b).verdicts[0]
    assert {note.code for note in verdict.notes} == {"infinite-same", "bit-equal"}


def test_opposite_infinities_are_no_trustworthy_reference() -> None:
    assert check_of(LOSSY, with_value(noise(1), np.inf), with_value(noise(1), -np.inf)).outcome is ERROR


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ALL)
def test_a_candidate_that_is_not_finite_where_the_reference_is_fails(kind: LinkKind, bad: float) -> None:
    result = check_of(kind, noise(1), with_value(noise(1), bad))
    assert result.outcome is FAIL
    assert result.verdicts[0].sample == "0003"


def test_a_channel_that_died_fails_although_the_rest_is_fine() -> None:
    a = noise(1)
    b = a.copy()
    b[:, 4] = 0.25
    lossy = check_of(LOSSY, a, b)
    assert lossy.outcome is FAIL
    assert check_of(EQUIVALENT, a, b).verdicts[0].channel == 4


def test_a_small_channel_is_held_against_its_own_range() -> None:
    """A channel a thousand times smaller than the others is not hidden by their range."""
    a = noise(1)
    a[:, 2] *= 1e-3
    b = a.copy()
    b[:, 2] += 1e-5 * np.sign(noise(5)[:, 2])
    verdict = check_of(EQUIVALENT, a, b).verdicts[0]
    assert (verdict.outcome, verdict.channel) == (FAIL, 2)


def test_float32_noise_of_a_single_sample_is_equivalent() -> None:
    """One sample of 1,000 logits has one value a channel: no channel has a range of its own."""
    a = (np.random.default_rng(0).standard_normal((1, 1000)) * 10).astype(np.float32)
    b = np.nextafter(a, np.float32(np.inf))
    assert check_of(EQUIVALENT, a, b).outcome is PASS


def test_nothing_compared_is_an_error() -> None:
    empty = np.zeros((1, 0, 4), np.float32)
    assert check_of(EQUIVALENT, empty, empty).outcome is ERROR
