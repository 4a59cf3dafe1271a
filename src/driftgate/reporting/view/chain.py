"""The chain as it went: every stage and link with what was found of it, and where it breaks first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driftgate.domain.chain import Check, CheckKind, Link
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import CELLS, CheckResult, Judgement, Outcome, Verdict
from driftgate.domain.plan import ScoreSpec
from driftgate.messages.message import Message, message
from driftgate.reporting.view.readings import Reading, as_written, reading
from driftgate.reporting.view.table import first_failure, worst_first

#: Of what is judged on one link, the first of these that occurs is what the link is.
_WORST_FIRST = (Outcome.FAILED, Outcome.ERROR, Outcome.PASSED)
_NOTHING = CELLS[Outcome.SKIPPED]


@dataclass(frozen=True, slots=True)
class Step:
    """What was found of a link: PASS, FAIL, ERROR or -, and the number that decided it. `is_broken`: the chain breaks
    here first; `is_behind`: it lies behind that and is not blamed."""

    link: Link
    cell: str
    reading: Reading | None
    is_broken: bool
    is_behind: bool


@dataclass(frozen=True, slots=True)
class Band:
    """A check of links, over those from `first` to `last`."""

    title: str
    cell: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Spot:
    """A check of a stage's own, such as its score, at the stage's place."""

    title: str
    cell: str
    reading: Reading | None
    place: int


@dataclass(frozen=True, slots=True)
class Chain:
    """The stages that ran, with one step fewer between them; `broken` is the first stage that is wrong."""

    stages: tuple[str, ...]
    steps: tuple[Step, ...]
    bands: tuple[Band, ...]
    spots: tuple[Spot, ...]
    broken: str | None

    @property
    def behind(self) -> tuple[str, ...]:
        """The stages behind the first that is wrong."""
        return () if self.broken is None else self.stages[self.stages.index(self.broken) + 1 :]

    @property
    def break_told(self) -> Message | None:
        """Where it breaks, in words."""
        for step in self.steps:
            if step.is_broken:
                return message("page-break", reference=step.link.reference, candidate=step.link.candidate)
        return None if self.broken is None else message("page-break-at", stage=self.broken)

    @property
    def told(self) -> tuple[Message, ...]:
        """All of it in words, link by link."""
        return tuple(
            message("page-chain-link", reference=step.link.reference, candidate=step.link.candidate, result=step.cell)
            for step in self.steps
        )


def chain(judgement: Judgement, facts: Facts | None) -> Chain | None:
    """The chain of a subject; None where the facts, which have it, were not kept, or no stage was to run."""
    if facts is None or not facts.plan.stages:
        return None
    plan, specs = facts.plan, facts.plan.scores
    checks = {check.slug: check for check in plan.chain.checks}
    place, stage = _break(judgement, plan.links, plan.stages, checks)
    begin = None if stage is None else plan.stages.index(stage)
    return Chain(
        stages=plan.stages,
        steps=tuple(
            _step(link, judgement, specs, is_broken=at == place, is_behind=begin is not None and at >= begin)
            for at, link in enumerate(plan.links)
        ),
        bands=_bands(judgement, plan.links, checks),
        spots=_spots(judgement, plan.stages, checks, specs),
        broken=stage,
    )


def _break(
    judgement: Judgement, links: Sequence[Link], stages: Sequence[str], checks: Mapping[str, Check]
) -> tuple[int | None, str | None]:
    """The place of the link that breaks first, None where a stage's own check does, and the first wrong stage."""
    check = first_failure(judgement)
    if check is None:
        return None, None
    targets = [verdict.target for verdict in worst_first(check)]
    for at, link in enumerate(links):
        if link.name in targets[:1]:
            return at, link.candidate
    of = checks.get(check.slug)
    return None, next((stage for stage in stages if of is not None and stage in of.stages), None)


def _step(link: Link, judgement: Judgement, specs: Sequence[ScoreSpec], *, is_broken: bool, is_behind: bool) -> Step:
    shown = [] if is_behind else _verdicts(link.name, judgement)
    if not shown:
        return Step(link, _NOTHING, None, is_broken, is_behind)
    return Step(link, CELLS[shown[0].outcome], _reading(shown[0], judgement, specs), is_broken, is_behind)


def _verdicts(target: str, judgement: Judgement) -> list[Verdict]:
    """The verdicts on a link that make it what it is, the worst first."""
    shown = [check for check in judgement.checks if not check.hidden]
    found = [verdict for check in shown for verdict in (*worst_first(check), *check.verdicts)]
    on_link = [verdict for verdict in found if verdict.target == target]
    for outcome in _WORST_FIRST:
        alike = [verdict for verdict in on_link if verdict.outcome is outcome]
        if alike:
            return alike
    return []


def _reading(verdict: Verdict, judgement: Judgement, specs: Sequence[ScoreSpec]) -> Reading | None:
    return as_written(reading(verdict), verdict, judgement.scores, specs)


def _cell(result: CheckResult) -> str:
    return _NOTHING if result.hidden else CELLS[result.outcome]


def _bands(judgement: Judgement, links: Sequence[Link], checks: Mapping[str, Check]) -> tuple[Band, ...]:
    found = []
    for result in judgement.checks:
        check = checks.get(result.slug)
        if check is None or check.kind is not CheckKind.LINKS:
            continue
        places = [at for at, link in enumerate(links) if link.candidate in check.stages]
        if places:
            found.append(Band(result.title, _cell(result), places[0], places[-1]))
    return tuple(found)


def _spots(
    judgement: Judgement, stages: Sequence[str], checks: Mapping[str, Check], specs: Sequence[ScoreSpec]
) -> tuple[Spot, ...]:
    found = []
    for result in judgement.checks:
        check = checks.get(result.slug)
        if check is None or check.kind is CheckKind.LINKS:
            continue
        verdicts = [] if result.hidden else worst_first(result)
        number = _reading(verdicts[0], judgement, specs) if verdicts else None
        found += [
            Spot(result.title, _cell(result), number, at) for at, stage in enumerate(stages) if stage in check.stages
        ]
    return tuple(found)
