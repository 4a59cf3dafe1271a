"""Rate limits: whether a reply refuses a request for now only, and how long GitHub wants to be left alone.

Follows GitHub's "Rate limits for the REST API": `Retry-After` first, then the reset of an exhausted primary
limit, else a minute that doubles. A secondary limit may come as a 403 that only its text tells from a lack of
rights.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

FORBIDDEN = 403
TOO_MANY = 429
FIRST_WAIT_SECONDS = 60.0

_LIMITED = re.compile(r"rate limit|abuse detection|too many requests|wait a few minutes", re.IGNORECASE)
_NO_RIGHTS = re.compile(r"resource not accessible", re.IGNORECASE)
_SECONDS = re.compile(r"\d{1,9}")


def wait_seconds(
    status: int, headers: Mapping[str, str], said: str, *, epoch_seconds: float, attempt: int
) -> float | None:
    """Seconds to wait, or None where the reply is no rate limit; `said` is the message in its body.

    `headers` ignore case. `attempt` counts from 1. The server's own `Date` is now where it is given, so that a
    wrong clock does no harm.
    """
    if status not in (FORBIDDEN, TOO_MANY) or (status == FORBIDDEN and _NO_RIGHTS.search(said)):
        return None
    now = _moment(headers.get("Date", "")) or epoch_seconds
    asked = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(asked):
        return float(asked)
    until = _moment(asked)
    if until is not None:
        return max(0.0, until - now)
    reset = headers.get("X-RateLimit-Reset", "").strip()
    if headers.get("X-RateLimit-Remaining", "").strip() == "0" and re.fullmatch(r"\d{1,12}", reset):
        return max(0.0, float(reset) - now) + 1.0
    if status == TOO_MANY or _LIMITED.search(said):
        return FIRST_WAIT_SECONDS * 2.0 ** min(attempt - 1, 10)
    return None


def _moment(written: str) -> float | None:
    """Seconds since 1970 of an HTTP date; None for anything else."""
    try:
        read: datetime = parsedate_to_datetime(written)
    except (ValueError, TypeError):
        return None
    return (read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp()
