"""The `chains` section: chains of one's own beside ptq and qat."""

from __future__ import annotations

from pydantic import Field, model_validator

from driftgate.domain.chain import Chain, Check, CheckKind, FeedKind, LinkKind, Stage
from driftgate.settings.section import Section


class StageSettings(Section):
    """A stage; all but the first say what may differ from the stage before."""

    name: str = Field(min_length=1)
    segment: int = Field(default=1, ge=1)
    feeds: FeedKind = FeedKind.RAW
    kind: LinkKind | None = None


class CheckSettings(Section):
    """A row of the table."""

    slug: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str = Field(min_length=1)
    kind: CheckKind = CheckKind.LINKS
    stages: tuple[str, ...] = Field(min_length=1)


class ChainSettings(Section):
    """Stages in order and the rows they are reported in."""

    stages: tuple[StageSettings, ...] = Field(min_length=2)
    checks: tuple[CheckSettings, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sound(self) -> ChainSettings:
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise ValueError("a stage stands twice")
        if self.stages[0].kind is not None:
            raise ValueError(f"{names[0]} is the first stage and has no kind")
        kindless = [stage.name for stage in self.stages[1:] if stage.kind is None]
        if kindless:
            raise ValueError(f"kind is missing at {', '.join(kindless)}")
        linked = [s for check in self.checks if check.kind is CheckKind.LINKS for s in check.stages]
        unknown = [s for check in self.checks for s in check.stages if s not in names]
        if unknown:
            raise ValueError(f"checks name stages that the chain has not: {', '.join(unknown)}")
        missing = [name for name in names[1:] if linked.count(name) != 1]
        if missing:
            raise ValueError(
                f"each stage but the first belongs to exactly one check of kind links: {', '.join(missing)}"
            )
        return self

    def chain(self, name: str) -> Chain:
        """As the domain's value."""
        return Chain(
            name=name,
            stages=tuple(Stage(s.name, s.segment, s.feeds, s.kind) for s in self.stages),
            checks=tuple(Check(c.slug, c.title, c.kind, c.stages) for c in self.checks),
        )
