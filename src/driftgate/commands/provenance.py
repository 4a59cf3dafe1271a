"""Which commit and run of the CI this process is of, and on which day."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from driftgate.storage.planfile import Provenance


def provenance(environment: Mapping[str, str]) -> Provenance:
    """As the CI's variables say.

    For a pull request GITHUB_SHA is a merge that nobody made, so that DRIFTGATE_SHA, where it is set, goes before.
    """
    sha = environment.get("DRIFTGATE_SHA") or environment.get("GITHUB_SHA", "")
    return Provenance(sha, environment.get("GITHUB_RUN_ID", ""), environment.get("GITHUB_RUN_ATTEMPT", ""))


def today() -> str:
    """The day by UTC, as ISO 8601."""
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()
