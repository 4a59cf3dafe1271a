"""What ran where: environments, runs, timings and recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from driftgate.domain.chain import FeedKind
from driftgate.domain.digest import digest
from driftgate.domain.tensors import Signature
from driftgate.messages.message import Message

#: Backends that are told about a pool of boards.
BOARD, INFER = "board", "hbm_infer"
ON_BOARDS = (BOARD, INFER)
#: Those, and what runs where this machine is the board.
BOARD_BACKENDS = (*ON_BOARDS, "hbm_runtime")


#: Code of the note on a run that was not made anew, because nothing had changed since an earlier one.
UNCHANGED_SINCE = "unchanged-since"


class RunOutcome(str, Enum):
    """`refused`: the runtime meant for the artifact cannot load it, which is a FAIL and no ERROR."""

    PASSED = "passed"
    REFUSED = "refused"
    ERROR = "error"
    PARTIAL = "partial"


class Pass(str, Enum):
    """Verdicts come from untapped runs."""

    UNTAPPED = "untapped"
    TAPPED = "tapped"
    FORCED = "forced"


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine and stack an artifact ran on; whatever may change a number is here."""

    provider: str
    level: str = ""
    threads: int = 0
    cpu: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    board: str = ""

    @property
    def id(self) -> str:
        """A short digest; equal environments have equal ids on every machine."""
        return digest(self)[:12]


@dataclass(frozen=True, slots=True)
class Run:
    """One leg's share of running one artifact. `id` is the same in every leg that ran the same artifact in
    the same environment, so that shards merge into what one run would have measured. `day` (ISO 8601, UTC) is when it
    ended, empty in what older versions wrote."""

    id: str
    leg: str
    stage: str
    backend: str
    artifact: str
    environment: str
    samples_done: int
    outcome: RunOutcome
    reason: Message | None
    seconds: float
    how: Pass = Pass.UNTAPPED
    feeds: FeedKind = FeedKind.RAW
    signature: Signature | None = None
    notes: tuple[Message, ...] = ()
    day: str = ""


def run_id(stage: str, artifact: str, environment: str, how: Pass = Pass.UNTAPPED) -> str:
    """The id of a run: stage, what ran, and where."""
    return f"{stage}@{digest((artifact, environment, how))[:12]}"


@dataclass(frozen=True, slots=True)
class Performance:
    """What a board says of speed and memory under one number of threads and one core; None where it does not say.

    Latency and frames a second are the medians of `latencies_ms` and `fps_runs`, where the board was asked several
    times. `frames` are those of one time; `core` is `any` or the core's number from 0; `memory_bytes` is what the
    model takes of the board's memory; `source` is the tool that said it.
    """

    run: str
    latency_ms: float | None
    fps: float | None
    frames: int | None = None
    threads: int | None = None
    core: str | None = None
    latencies_ms: tuple[float, ...] = ()
    fps_runs: tuple[float, ...] = ()
    memory_bytes: int | None = None
    source: str = ""

    @property
    def key(self) -> tuple[str, int | None, str | None]:
        """One run has one of these for each number of threads and core."""
        return self.run, self.threads, self.core


def performance(
    run: str,
    latencies_ms: Sequence[float],
    fps_runs: Sequence[float],
    *,
    source: str,
    frames: int | None = None,
    threads: int | None = None,
    core: str | None = None,
    memory_bytes: int | None = None,
) -> Performance:
    """What a board said each time it was asked, with the medians; a number that it never gave is None."""
    return Performance(
        run=run,
        latency_ms=median(latencies_ms) if latencies_ms else None,
        fps=median(fps_runs) if fps_runs else None,
        frames=frames,
        threads=threads,
        core=core,
        latencies_ms=tuple(latencies_ms),
        fps_runs=tuple(fps_runs),
        memory_bytes=memory_bytes,
        source=source,
    )


@dataclass(frozen=True, slots=True)
class Recording:
    """Tensors kept on disk for one sample of one stage, by digest."""

    stage: str
    run: str
    sample: str
    files: tuple[tuple[str, str], ...]
