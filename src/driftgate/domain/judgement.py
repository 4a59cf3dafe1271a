"""Judgement: what follows from facts, a policy and nothing else; recomputable at will."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from driftgate.domain.scores import Flip, Interval
from driftgate.messages.message import Message


class Outcome(str, Enum):
    """`error`: could not be established. `skipped`: not asked for, or behind the first failure."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


#: What a cell of the table prints.
CELLS = {Outcome.PASSED: "PASS", Outcome.FAILED: "FAIL", Outcome.ERROR: "ERROR", Outcome.SKIPPED: "-"}


class LimitOrigin(str, Enum):
    """Who set a limit."""

    DEFAULT = "default"
    CONFIG = "config"
    POLICY = "policy"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a criterion; the criterion's entry says which side is better and over what it is taken."""

    criterion: str
    value: float
    origin: LimitOrigin = LimitOrigin.DEFAULT


class Standing(str, Enum):
    """Whether something may stand as it is, or fails the gate."""

    ALLOW = "allow"
    FAIL = "fail"


class Slide(str, Enum):
    """What can slide from run to run, each as a share of the level that was reached before."""

    SCORE_DROP = "score-drop"
    ERROR_RISE = "error-rise"
    LATENCY_RISE = "latency-rise"
    FPS_DROP = "fps-drop"
    MEMORY_RISE = "memory-rise"


#: What is told of a history where no policy says how far a number may slide.
SLIDES: Mapping[Slide, float] = {
    Slide.SCORE_DROP: 0.005,
    Slide.ERROR_RISE: 0.5,
    Slide.LATENCY_RISE: 0.05,
    Slide.FPS_DROP: 0.05,
    Slide.MEMORY_RISE: 0.1,
}
HISTORY_RUNS = 50
#: A level counts once so many of the last runs have reached it: one lucky run sets no level.
REACHED_BY = 2


@dataclass(frozen=True, slots=True)
class Slides:
    """How far numbers may slide away from what the last `runs` runs have reached; what has no limit may."""

    runs: int = HISTORY_RUNS
    limits: tuple[tuple[Slide, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Clauses:
    """What a policy asks of a gate besides limits.

    `samples`: so many real ones at least. `skipped`: whether rows that nobody asked for may stand as `-`.
    `regressions`: whether results may be worse than the baseline; `history`: how far they may slide over many runs.
    `same_commit`: whether they must be of the commit that is gated; `same_artifacts`: whether what ran must be what was
    built; `same_versions`: whether all who ran a stage must have had the same software. `board_days`: how old a board's
    result may be, in days.
    """

    samples: int = 0
    skipped: Standing = Standing.ALLOW
    regressions: Standing = Standing.ALLOW
    history: Slides | None = None
    same_commit: bool = False
    same_artifacts: bool = False
    same_versions: bool = False
    board_days: int | None = None


class Uncertainty(str, Enum):
    """What a score within the noise of its limit does."""

    WARN = "warn"
    FAIL = "fail"


class WaiverKind(str, Enum):
    """What a waiver is of."""

    CHECK = "check"
    LINK = "link"
    FINDING = "finding"


@dataclass(frozen=True, slots=True)
class Waiver:
    """A failure that is known: `on` is a check's slug, a link, or the code of a confirmed cause. `expires` is the last
    day on which it holds, as ISO 8601; `limits` by criterion say how bad it may be. An empty target is every one."""

    subject: str
    kind: WaiverKind
    on: str
    reason: str
    owner: str
    expires: str
    target: str = ""
    limits: tuple[tuple[str, float], ...] = ()


class WaiverState(str, Enum):
    """What became of a waiver: it is of a failure, which it excuses together with others or alone; there is none that
    it is of; its last day is over, and what it excused still fails, or does not."""

    USED = "used"
    UNUSED = "unused"
    EXPIRED_IN_USE = "expired-in-use"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class WaiverUse:
    """A waiver, and what became of it."""

    waiver: Waiver
    state: WaiverState


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits by check slug or link name, and which checks must be there. `required` None: those asked for.
    `accepts`: codes of harmless causes that pass a link when they are confirmed. `tightened`: limits of one subject,
    which hold where they are stricter."""

    name: str = "default"
    limits: tuple[tuple[str, tuple[Limit, ...]], ...] = ()
    required: tuple[str, ...] | None = None
    uncertainty: Uncertainty = Uncertainty.WARN
    accepts: tuple[str, ...] = ()
    calibration_tuned: bool = False  # declared by the user: advice depends on it
    declared_speed: tuple[tuple[str, float], ...] = ()  # latency_ms and fps that the board is said to have
    clauses: Clauses = field(default_factory=Clauses)
    tightened: tuple[tuple[str, tuple[Limit, ...]], ...] = ()
    waivers: tuple[Waiver, ...] = ()
    today: str = ""  # ISO 8601; the day on which waivers are looked at


class Certainty(str, Enum):
    """Whether the samples suffice to tell a score's loss from its limit."""

    CERTAIN = "certain"
    WITHIN_NOISE = "within noise"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing judged: a link's output, a score on a link, or a score of a check.

    `target` is the link or check slug; `output` the output or score judged, None for the link as a whole;
    `channel` the worst channel where the criterion is taken per channel.
    """

    target: str
    output: str | None
    outcome: Outcome
    criterion: str | None = None
    value: float | None = None
    limit: float | None = None
    origin: LimitOrigin | None = None
    sample: str | None = None
    channel: int | None = None
    reason: Message | None = None
    notes: tuple[Message, ...] = ()
    certainty: Certainty | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause with its evidence; what the code means stands in the table of codes."""

    code: str
    link: str
    confirmed: bool
    evidence: tuple[tuple[str, float, str], ...]
    subjects: tuple[str, ...] = ()
    next: Message | None = None


@dataclass(frozen=True, slots=True)
class Divergence:
    """A node at which the candidate leaves the reference: the tensors of both sides, the candidate's operator,
    the region of its nodes that lies between the last agreement and here, and the numbers.

    `cause` is excess, clipped, total or vendor: which of the numbers says so. `excess`: its own error over what
    its precision explains, None where only the whole error is known; signal to noise ratios in dB; `clipped`: the
    share of reference values that its range cuts off; `cosine`: as the vendor's tool says, where only that is known.
    """

    link: str
    reference: str
    candidate: str
    op: str
    region: tuple[str, ...]
    how: str
    certainty: float
    cause: str
    excess: float | None
    own_sqnr: float | None
    total_sqnr: float | None
    clipped: float = 0.0
    channels: tuple[int, ...] = ()
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The metrics of one measurement over all samples, and the worst sample by the deciding criterion."""

    link: str
    output: str
    count: int
    metrics: tuple[tuple[str, float], ...]
    worst_sample: str | None
    worst_value: float | None
    dead_channels: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Score:
    """A stage's score over `n` items; `text` is how it is written (356/360). `interval` is None of one number
    for the whole set."""

    stage: str
    name: str
    value: float
    n: int
    text: str
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class SegmentLoss:
    """What the stages of one segment cost of a score, from the stage before them to their last one, in the
    score's unit; `eroded`: their share of the margins of the items that were lost, None where none was."""

    score: str
    segment: int
    reference: str
    candidate: str
    loss: float
    eroded: float | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A row of the table. `hidden`: judged, but standing behind the first failure and printed as `-`.
    `waived`: it failed, and every failure is excused for now."""

    slug: str
    title: str
    outcome: Outcome
    verdicts: tuple[Verdict, ...]
    notes: tuple[Message, ...] = ()
    required: bool = True
    hidden: bool = False
    waived: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one subject on one target."""

    subject: str
    target: str
    policy: str
    plan: str
    outcome: Outcome
    first_failure: str | None
    checks: tuple[CheckResult, ...]
    summaries: tuple[Summary, ...] = ()
    scores: tuple[Score, ...] = ()
    findings: tuple[Finding, ...] = ()
    divergences: tuple[Divergence, ...] = ()
    losses: tuple[SegmentLoss, ...] = ()
    flips: tuple[Flip, ...] = ()
    flip_count: int = 0
    waivers: tuple[WaiverUse, ...] = ()
    advice: tuple[Message, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Subject and target, as of the plan."""
        return self.subject, self.target

    def check(self, slug: str) -> CheckResult:
        """The row of that slug; KeyError if there is none."""
        for check in self.checks:
            if check.slug == slug:
                return check
        raise KeyError(slug)
