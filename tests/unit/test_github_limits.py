"""Which replies are rate limits, and how long each asks to wait."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from requests.structures import CaseInsensitiveDict

from driftgate.github.limits import wait_seconds
from driftgate.github.patience import Patience
from support.github.faults import PRIMARY, SECONDARY

NOW = 1_790_000_000


@pytest.mark.parametrize(
    ("status", "headers", "said", "seconds"),
    [
        (403, {"Retry-After": "17"}, SECONDARY, 17),
        (403, {}, SECONDARY, 60),
        (403, {}, "You have triggered an abuse detection mechanism.", 60),
        (429, {"Retry-After": "5"}, "", 5),
        (429, {"Retry-After": formatdate(NOW + 90, usegmt=True)}, "", 90),
        (429, {"Retry-After": "soon"}, "", 60),
        (429, {}, "", 60),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(NOW + 40)}, PRIMARY, 41),
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(NOW + 40)}, PRIMARY, 41),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(NOW - 40)}, PRIMARY, 1),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "later"}, PRIMARY, 60),
    ],
)
def test_a_rate_limit_says_how_long(status: int, headers: dict[str, str], said: str, seconds: float) -> None:
    found = wait_seconds(status, CaseInsensitiveDict(headers), said, epoch_seconds=NOW, attempt=1)
    assert found == seconds


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (403, {}, "Resource not accessible by integration"),
        (
            403,
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(NOW + 40)},
            "Resource not accessible by integration",
        ),
        (403, {"X-RateLimit-Remaining": "12"}, "Unable to create comment because issue is locked."),
        (200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(NOW + 40)}, ""),
        (404, {}, "Not Found"),
    ],
)
def test_what_waiting_does_not_help_is_no_rate_limit(status: int, headers: dict[str, str], said: str) -> None:
    assert wait_seconds(status, CaseInsensitiveDict(headers), said, epoch_seconds=NOW, attempt=1) is None


def test_without_a_hint_the_wait_doubles() -> None:
    waits = [wait_seconds(403, {}, SECONDARY, epoch_seconds=NOW, attempt=attempt) for attempt in (1, 2, 3)]
    assert waits == [60, 120, 240]


def test_a_wrong_clock_does_no_harm_where_the_server_tells_the_time() -> None:
    headers = CaseInsensitiveDict(
        {"Date": formatdate(NOW, usegmt=True), "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(NOW + 40)}
    )
    assert wait_seconds(403, headers, PRIMARY, epoch_seconds=NOW - 86_400, attempt=1) == 41


def test_backoff_doubles_up_to_its_longest_and_spreads_over_the_upper_half() -> None:
    patience = Patience(first_backoff_seconds=1, longest_backoff_seconds=10)
    assert [patience.backoff_seconds(attempt, 0.0) for attempt in (1, 2, 3, 4, 5, 500)] == [0.5, 1, 2, 4, 5, 5]
    assert patience.backoff_seconds(3, 0.999) == pytest.approx(4, abs=0.01)
