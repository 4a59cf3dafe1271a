"""The plan: what must be measured, by whom; nothing in it disappears silently, and no limit is in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from driftgate.domain.chain import Chain, Link
from driftgate.domain.digest import digest
from driftgate.domain.samples import SampleSet
from driftgate.messages.message import Message


class Where(str, Enum):
    """The kind of machine a leg runs on."""

    HOST = "host"
    BOARD = "board"


@dataclass(frozen=True, slots=True)
class ScoreSpec:
    """One number that the data set gives a stage. `labels` is the digest of the labels."""

    name: str
    task: str
    better: str  # "higher" or "lower"
    output: str | None
    labels: str
    declared: str | None = None  # the score that the PyTorch model is said to have, as written
    params: tuple[tuple[str, float], ...] = ()  # of the task: confidence, ignored
    post: str = ""  # digest of the post-processing that all stages share


@dataclass(frozen=True, slots=True)
class Leg:
    """A share of the work: some stages on some blocks of samples."""

    id: str
    where: Where
    stages: tuple[str, ...]
    blocks: tuple[int, ...]
    records: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedArtifact:
    """Which artifact stands for a stage, by content."""

    stage: str
    backend: str
    digest: str


@dataclass(frozen=True, slots=True)
class Omission:
    """A stage that is left out on purpose, and why."""

    stage: str
    reason: Message


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that one subject on one target must report."""

    subject: str
    target: str
    chain: Chain
    artifacts: tuple[PlannedArtifact, ...]
    samples: SampleSet
    scores: tuple[ScoreSpec, ...] = ()
    legs: tuple[Leg, ...] = ()
    omitted: tuple[Omission, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Subject and target, which name it among the plans of a configuration."""
        return self.subject, self.target

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that run, in the chain's order."""
        have = {artifact.stage for artifact in self.artifacts}
        return tuple(stage.name for stage in self.chain.stages if stage.name in have)

    @property
    def links(self) -> tuple[Link, ...]:
        """The links between the stages that run."""
        return self.chain.links(self.stages)

    def links_of(self, slug: str) -> tuple[Link, ...]:
        """The links that belong to a check's row."""
        return tuple(link for link in self.links if (check := self.chain.check_of(link)) and check.slug == slug)

    @property
    def digest(self) -> str:
        """Identity of the work: all of the plan but how it is divided."""
        return digest(replace(self, legs=()))
