"""What an investigation of a failing link found out by experiment: pairs, node errors and trials."""

from __future__ import annotations

import math
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
    `shape` is the candidate's, of one sample; `channel_excess` the excess of every channel, of the worst nodes alone.
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
    shape: tuple[int, ...] = ()
    channel_excess: tuple[float, ...] = ()

    @property
    def own_steps(self) -> float | None:
        """Root mean square of the own error in LSB; rounding alone gives 1/√12 ≈ 0.289. None without a step."""
        return _in_steps(self.own, self.step)

    @property
    def total_steps(self) -> float | None:
        """Root mean square of the whole error in LSB."""
        return _in_steps(self.total, self.step)


def _in_steps(moments: Moments | None, step: float | None) -> float | None:
    if moments is None or not step or not moments.count.sum():
        return None
    return math.sqrt(float(moments.sum_dd.sum() / moments.count.sum())) / step


@dataclass(frozen=True, slots=True)
class Histogram:
    """How the values of a pair are spread: counts of both sides in bins of one width from `low` to `high`, the range
    that the candidate's quantiser can hold, and rows of (percentile, reference, candidate). `every`: one of so many
    values was counted."""

    tensor: str
    low: float
    high: float
    counts_a: tuple[int, ...]
    counts_b: tuple[int, ...]
    clip: tuple[float, float] | None = None
    percentiles: tuple[tuple[float, float, float], ...] = ()
    every: int = 1


@dataclass(frozen=True, slots=True)
class VendorNode:
    """One row of a table that the vendor's tool printed; empty strings and None where it does not say."""

    node: str
    cosine: float | None
    tensor: str = ""
    op: str = ""
    on: str = ""  # the unit that runs it
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class VendorTable:
    """The vendor's numbers node by node, as told: from which file, in which column, and rows that were unreadable."""

    source: str
    column: str
    nodes: tuple[VendorNode, ...]
    unread: int = 0


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
class Explanation:
    """A cause that an experiment or a look at the facts speaks for; `share` is the part of the residual that it
    explains, 0 … 1, `evidence` rows of (name, value, unit). What the code means, judgement knows."""

    code: str
    confirmed: bool
    evidence: tuple[tuple[str, float, str], ...]
    share: float = 1.0
    subjects: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, slots=True)
class Investigation:
    """Everything that was tried on one link, with what it cost. `ruled_out`: codes that were tested and explain
    nothing; `explained` says whether causes were looked for at all."""

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
    histograms: tuple[Histogram, ...] = ()  # of the worst pairs, the worst first
    vendor: VendorTable | None = None  # where nothing could be tapped
    explained: bool = False
    explanations: tuple[Explanation, ...] = ()
    ruled_out: tuple[str, ...] = ()
