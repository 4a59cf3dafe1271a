"""What ran where: environments, runs, timings and recordings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from driftgate.domain.chain import FeedKind
from driftgate.domain.digest import digest
from driftgate.domain.tensors import Signature
from driftgate.messages.message import Message


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
    the same environment, so that shards merge into what one run would have measured."""

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


def run_id(stage: str, artifact: str, environment: str, how: Pass = Pass.UNTAPPED) -> str:
    """The id of a run: stage, what ran, and where."""
    return f"{stage}@{digest((artifact, environment, how))[:12]}"


@dataclass(frozen=True, slots=True)
class Performance:
    """What a board says of speed; None where it does not say."""

    run: str
    latency_ms: float | None
    fps: float | None
    frames: int | None = None
    threads: int | None = None
    core: str | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """Tensors kept on disk for one sample of one stage, by digest."""

    stage: str
    run: str
    sample: str
    files: tuple[tuple[str, str], ...]
