"""How a plan's work is divided: shares of whole blocks for one machine each, and what runs on a board apart from the
rest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

from driftgate.domain.plan import Leg, Omission, Plan, Where


def divide(plan: Plan, legs: int) -> Plan:
    """The plan divided into at most so many legs of whole blocks, as evenly as may be; each runs all stages."""
    return replace(plan, legs=tuple(_leg(plan, Where.HOST, plan.stages, share) for share in _shares(plan, legs)))


def distribute(plan: Plan, on_boards: Collection[str], *, host_legs: int, board_legs: int) -> Plan:
    """The plan divided into legs for hosts and legs for boards.

    What a link between the two compares is recorded: by the host the reference, by the board what it runs. Stages that
    are linked lie in one leg, but for those links.
    """
    boards = tuple(stage for stage in plan.stages if stage in on_boards)
    hosts = tuple(stage for stage in plan.stages if stage not in on_boards)
    across = [link for link in plan.links if (link.reference in boards) != (link.candidate in boards)]
    met = {stage for link in across for stage in (link.reference, link.candidate)}
    made: list[Leg] = []
    for where, stages, count in ((Where.HOST, hosts, host_legs), (Where.BOARD, boards, board_legs)):
        if stages:
            records = tuple(stage for stage in stages if stage in met)
            made += [_leg(plan, where, stages, share, records) for share in _shares(plan, count)]
    return replace(plan, legs=tuple(made))


def omitting(plan: Plan, omissions: Sequence[Omission]) -> Plan:
    """The plan without some of its stages, which are left out for reasons that are told."""
    left_out = {one.stage for one in omissions}
    kept = tuple(artifact for artifact in plan.artifacts if artifact.stage not in left_out)
    return replace(plan, artifacts=kept, omitted=tuple(omissions))


def leg_of(plan: Plan, name: str) -> Leg | None:
    """The leg of that id which runs all stages, however the plan was divided; None where the id is not of this plan."""
    blocks = plan.samples.blocks
    head, _, span = name.rpartition("/")
    first, dash, last = span.partition("-")
    if head != _head(plan, Where.HOST) or not dash or not (first.isdigit() and last.isdigit()):
        return None
    chosen = tuple(block for block in blocks if int(first) <= block <= int(last))
    return _leg(plan, Where.HOST, plan.stages, chosen) if chosen and chosen[-1] == int(last) else None


def _shares(plan: Plan, count: int) -> tuple[tuple[int, ...], ...]:
    blocks = plan.samples.blocks
    count = max(1, min(count, len(blocks)))
    bounds = [round(n * len(blocks) / count) for n in range(count + 1)]
    return tuple(tuple(blocks[a:b]) for a, b in pairwise(bounds))


def _head(plan: Plan, where: Where) -> str:
    return f"{plan.subject}/{plan.target}/{where.value}"


def _leg(
    plan: Plan, where: Where, stages: tuple[str, ...], blocks: Sequence[int], records: tuple[str, ...] = ()
) -> Leg:
    return Leg(f"{_head(plan, where)}/{blocks[0]}-{blocks[-1]}", where, stages, tuple(blocks), records)
