"""Time that passes only when somebody waits, and chance that is always the same."""

from __future__ import annotations

from driftgate.github.patience import Timing

EPOCH = 1_790_000_000.0


class FakeClock:
    """Starts at EPOCH; `waits` are the seconds of every sleep."""

    def __init__(self) -> None:
        self.now = EPOCH
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        """Time passes at once."""
        self.waits.append(seconds)
        self.now += seconds

    def timing(self, chance: float = 0.0) -> Timing:
        """What a client takes; its monotonic clock and its wall clock differ by a constant."""
        return Timing(lambda: self.now - EPOCH, lambda: self.now, self.sleep, lambda: chance)
