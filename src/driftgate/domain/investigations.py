"""What an investigation of a failing link found out by experiment: pairs, node errors and trials."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from driftgate.domain.measurements import Moments
from driftgate.messages.message import Message, Param


@dataclass(frozen=True, slots=True)
class Pair:
    """Two intermediate tensors that mean the same, how that was found and how sure it is (0 … 1)."""

    tensor_a: str
    tensor_b: str
    how: str  # structure, value or name
    certainty: float
    permutation: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeError:
    """What a pair's error is made of: `total` as the candidate runs, `own` where it is given the reference's
    values at every cut before (None where the candidate cannot be cut open).

    `excess` is how many times the own error is what the node's precision explains, in its worst channel;
    `region` the candidate's operators between the cuts and the pair; `step` one LSB and `clipped` the share of
    reference values that its range cannot hold, where it is quantised. Moments have one row over all samples.
    """

    pair: Pair
    op: str
    order: int
    region: tuple[str, ...]
    total: Moments
    own: Moments | None
    excess: float
    top_channels: tuple[tuple[int, float], ...] = ()  # (channel, its excess), worst first
    step: float | None = None
    clipped: float = 0.0


class TrialResult(str, Enum):
    """How an experiment ended."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    INAPPLICABLE = "inapplicable"
    OUT_OF_TIME = "out_of_time"


@dataclass(frozen=True, slots=True)
class Trial:
    """An experiment: a suspected error applied or undone; `before`, `after` and `floor` are residuals."""

    code: str
    transform: str
    params: tuple[tuple[str, Param], ...]
    target: str
    before: float
    after: float
    floor: float
    result: TrialResult


@dataclass(frozen=True, slots=True)
class Investigation:
    """Everything that was tried on one link, with what it cost."""

    link: str
    pairs: tuple[Pair, ...] = ()
    unpaired_a: tuple[str, ...] = ()
    unpaired_b: tuple[str, ...] = ()
    nodes: tuple[NodeError, ...] = ()
    trials: tuple[Trial, ...] = ()
    samples: int = 0
    tap_gap: float = 0.0  # largest |tapped - untapped| of an output of the candidate
    runs: int = 0
    seconds: float = 0.0
    notes: tuple[Message, ...] = ()
