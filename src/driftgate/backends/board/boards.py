"""What is known of the boards that a configuration names: where they are, their folder, their tool, their habits."""

from __future__ import annotations

from dataclasses import dataclass, field

from driftgate.backends.board.transport import Host
from driftgate.errors import ConfigError
from driftgate.messages.message import message


@dataclass(frozen=True, slots=True)
class PerfPlan:
    """How speed is measured: `runs` times hrt_model_exec perf with so many frames and threads."""

    runs: int = 3
    frames: int = 200
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Boards:
    """A pool of boards of one kind: the first that is free is used. Without hosts it is this machine.

    `folder` holds the lock, the cache of models and what a run needs; `core`: None for any, else its number from 0.
    `unset` are variables of the environment that would tell where they are: a machine that only plans has none of them.
    """

    name: str
    hosts: tuple[Host, ...] = ()
    march: str | None = None
    folder: str = "/map/driftgate"
    tool: str = "hrt_model_exec"
    environment: tuple[tuple[str, str], ...] = ()
    core: int | None = None
    w_stride: int = 64
    lease_seconds: float = 30.0
    wait_seconds: float = 1800.0
    patience_seconds: float = 120.0
    sample_seconds: float = 120.0
    cache_bytes: int = 2 << 30
    power_cycle: tuple[str, ...] = field(default=(), repr=False)
    boot_seconds: float = 90.0
    perf: PerfPlan | None = None
    unset: tuple[str, ...] = ()

    def places(self) -> tuple[Host | None, ...]:
        """Where they are, None for this machine. Raises ConfigError where this machine is not told."""
        if self.unset:
            raise ConfigError(message("board-variables", board=self.name, names=self.unset))
        return self.hosts or (None,)
