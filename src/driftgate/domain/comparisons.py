"""Two versions compared: what became better or worse, what else changed, and where it began."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from driftgate.messages.message import Message


class Change(str, Enum):
    """What became of one number or outcome. `same`: equal, or within the noise. `drift`: another number of the same
    artifact on the same samples in another environment, which is no change of the network. `other-samples`: another
    outcome over other samples, which tells nothing of the network. `unknown`: the two cannot be held against each
    other."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    NEW = "new"
    GONE = "gone"
    DRIFT = "environment-drift"
    SAMPLES = "other-samples"
    UNKNOWN = "unknown"


class RowKind(str, Enum):
    """What a row is about; the order is that of reports."""

    CHECK = "check"
    SCORE = "score"
    LOSS = "loss"
    LINK = "link"
    NODE = "node"
    FINDING = "finding"
    SPEED = "speed"
    BUILD = "build"


class Thing(str, Enum):
    """What can be another thing in two versions besides the numbers."""

    TARGET = "target"
    PLAN = "plan"
    SAMPLES = "samples"
    SCORING = "scoring"
    ARTIFACT = "artifact"
    RECORDING = "recording"
    TOOLCHAIN = "toolchain"
    CONFIG = "config"
    ENVIRONMENT = "environment"
    LIMIT = "limit"
    TOOL = "tool"
    POLICY = "policy"


@dataclass(frozen=True, slots=True)
class Row:
    """One thing compared: `key` names it within its kind, `criterion` the number.

    `base` and `head` are the number in its own unit, None where a side has none; the texts are how people write them
    (356/360, passed). `low … high`: where the change lies with 95 % confidence, more is worse: for scores and losses in
    the score's unit, for links the factor by which the error grew; None where nothing can be told of noise. `n`: over
    so many samples or items.
    """

    kind: RowKind
    key: tuple[str, ...]
    change: Change
    criterion: str = ""
    base: float | None = None
    head: float | None = None
    base_text: str = ""
    head_text: str = ""
    low: float | None = None
    high: float | None = None
    n: int = 0
    note: Message | None = None


#: Kind of a row → the changes by which nobody can say that nothing became worse.
_OPEN = {RowKind.CHECK: (Change.UNKNOWN, Change.GONE), RowKind.SCORE: (Change.UNKNOWN,)}


@dataclass(frozen=True, slots=True)
class Changed:
    """Something besides the numbers that is another one: of which stage or name, and what it was and is."""

    what: Thing
    name: str
    base: str
    head: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Where it began to be worse: the first link or stage in the route, and the node where one is known."""

    at: str
    node: str = ""
    op: str = ""


@dataclass(frozen=True, slots=True)
class Paired:
    """The samples that both versions have, by their content: how many, and how many each has."""

    common: int
    base: int
    head: int


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run whose numbers are kept: its commit and its number in the CI, empty where it was none, and the day (UTC)."""

    sha: str = ""
    run: str = ""
    day: str = ""


@dataclass(frozen=True, slots=True)
class Erosion:
    """A number that has slid away from the level that two of the last runs reached, by more than `limit`.

    `drop` is the share of that level. `first_bad` is the run from which on every one is beyond the limit; None where
    it is this one. `runs`: over so many runs before this one.
    """

    kind: RowKind
    key: tuple[str, ...]
    criterion: str
    value: float
    level: float
    level_run: PastRun
    drop: float
    limit: float
    first_bad: PastRun | None
    runs: int


@dataclass(frozen=True, slots=True)
class SubjectComparison:
    """One subject on one target in two versions; `eroded` is what has slid over the last `past_runs` runs."""

    subject: str
    target: str
    paired: Paired
    changed: tuple[Changed, ...]
    rows: tuple[Row, ...]
    moved: Moved | None = None
    problem: Message | None = None
    eroded: tuple[Erosion, ...] = ()
    past_runs: int = 0

    @property
    def slides(self) -> tuple[Erosion, ...]:
        """What has slid, the worst first: of a score that of its worst stage, or of the first where all slide alike."""
        found: dict[tuple[str, ...], Erosion] = {}
        for one in self.eroded:
            key = one.key[1:] if one.kind is RowKind.SCORE else (*one.key, one.criterion)
            found.setdefault((one.kind.value, *key), one)
        return tuple(found.values())

    @property
    def worse(self) -> tuple[Row, ...]:
        """What became worse, and counts."""
        return tuple(row for row in self.rows if row.change is Change.WORSE and row.kind is not RowKind.BUILD)

    @property
    def better(self) -> tuple[Row, ...]:
        """What became better."""
        return tuple(row for row in self.rows if row.change is Change.BETTER and row.kind is not RowKind.BUILD)

    @property
    def change(self) -> Change:
        """Worse where anything is; unknown where a check cannot be held against its former outcome, as one that is
        gone, or a score against the former one; else better where anything is, else the same."""
        if self.worse:
            return Change.WORSE
        if self.problem is not None or any(row.change in _OPEN.get(row.kind, ()) for row in self.rows):
            return Change.UNKNOWN
        return Change.BETTER if self.better else Change.SAME


@dataclass(frozen=True, slots=True)
class Version:
    """One side: what it is called, which driftgate measured it, the commit where it is known."""

    label: str
    tool: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All subjects of two versions; `new` and `gone` are those that only one has, as subject and target;
    `problem` says why there is nothing to compare with."""

    base: Version
    head: Version
    subjects: tuple[SubjectComparison, ...]
    new: tuple[tuple[str, str], ...] = ()
    gone: tuple[tuple[str, str], ...] = ()
    problem: Message | None = None

    @property
    def change(self) -> Change:
        """The worst over all subjects; unknown where none is in both, or one is gone."""
        found = {one.change for one in self.subjects}
        if Change.WORSE in found:
            return Change.WORSE
        if not self.subjects or self.gone or Change.UNKNOWN in found:
            return Change.UNKNOWN
        return Change.BETTER if Change.BETTER in found else Change.SAME

    @property
    def exit_code(self) -> int:
        """0 same or better, 1 worse, 2 not comparable."""
        return {Change.WORSE: 1, Change.UNKNOWN: 2}.get(self.change, 0)

    def of(self, key: tuple[str, str]) -> SubjectComparison | None:
        """The comparison of one subject and target."""
        return next((one for one in self.subjects if (one.subject, one.target) == key), None)
