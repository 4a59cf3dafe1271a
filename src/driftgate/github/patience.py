"""How long and how often a client waits; time and chance themselves are arguments."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds since some moment, seconds since 1970, a way to wait, and a random number from 0 to below 1."""

    monotonic: Callable[[], float]
    epoch: Callable[[], float]
    sleep: Callable[[float], None]
    chance: Callable[[], float]


def machine_timing() -> Timing:
    """That of this machine; for the programs, which alone may make one."""
    return Timing(time.monotonic, time.time, time.sleep, random.SystemRandom().random)


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits of one client; `total_seconds` counts from its first moment, waiting included.

    `gap_seconds` lies between the end of a write and the start of the next: GitHub asks for one second.
    """

    attempts: int = 8
    total_seconds: float = 600.0
    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    gap_seconds: float = 1.0
    first_backoff_seconds: float = 1.0
    longest_backoff_seconds: float = 60.0
    answer_bytes: int = 16 * 1024 * 1024

    def backoff_seconds(self, attempt: int, chance: float) -> float:
        """The wait after failure number `attempt` (from 1): doubled each time, and spread over its upper half."""
        longest = min(self.longest_backoff_seconds, self.first_backoff_seconds * 2.0 ** min(attempt - 1, 30))
        return longest * (0.5 + 0.5 * chance)
