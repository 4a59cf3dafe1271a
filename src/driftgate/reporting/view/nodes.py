"""The first diverging node of a link, and the nodes that add most."""

from __future__ import annotations

from dataclasses import dataclass

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Divergence, Judgement
from driftgate.messages.message import Message, message

CHANNELS = 5
REGION = 6
SURE = 0.8


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One diverging node as a row."""

    op: str
    node: str
    tensor: str
    own: str
    total: str
    excess: str
    clipped: str
    channels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Nodes:
    """What an investigation of a link found: the first node in words, the others as rows, and what it cost.

    `op`, `node`, `reference` and `candidate` name the first one; they are empty where none diverges.
    """

    op: str
    node: str
    reference: str
    candidate: str
    told: tuple[Message, ...]
    lines: tuple[NodeLine, ...]
    cost: Message
    notes: tuple[Message, ...]


def nodes(target: str, judgement: Judgement, facts: Facts | None) -> Nodes | None:
    """What is known of a link's nodes; None where it was not investigated."""
    for found in facts.investigations if facts is not None else ():
        if found.link != target:
            continue
        diverging = [d for d in judgement.divergences if d.link == target]
        cost = message(
            "nodes-cost",
            pairs=len(found.pairs),
            samples=found.samples,
            unpaired=len(found.unpaired_a) + len(found.unpaired_b),
            runs=found.runs,
            seconds=found.seconds,
        )
        if not diverging:
            told = message("nodes-none", pairs=len(found.nodes)) if found.nodes else message("nodes-nothing")
            return Nodes("", "", "", "", (told,), (), cost, found.notes)
        first = diverging[0]
        return Nodes(
            op=first.op,
            node=_node(first),
            reference=first.reference,
            candidate=first.candidate,
            told=_told(first),
            lines=tuple(_line(one) for one in diverging),
            cost=cost,
            notes=found.notes,
        )
    return None


def _told(first: Divergence) -> tuple[Message, ...]:
    clipped = (message("node-clipped", share=f"{100 * first.clipped:.3g}"),) if first.clipped else ()
    said: list[Message] = []
    if first.excess is None:
        said.append(message("node-total", total=decibel(first.total_sqnr)))
    elif first.cause == "excess":
        said.append(message("node-excess", excess=_times(first.excess)))
        said.append(message("node-sqnr", own=decibel(first.own_sqnr), total=decibel(first.total_sqnr)))
    said.extend(clipped)
    if first.channels:
        said.append(message("node-channels", channels=tuple(str(c) for c in first.channels[:CHANNELS])))
    if len(first.region) > 1:
        said.append(message("node-region", nodes=first.region[:REGION]))
    if first.certainty < SURE:
        said.append(message("node-unsure", how=first.how, certainty=first.certainty))
    return tuple(said)


def _line(one: Divergence) -> NodeLine:
    return NodeLine(
        op=one.op,
        node=_node(one),
        tensor=one.candidate,
        own=decibel(one.own_sqnr),
        total=decibel(one.total_sqnr),
        excess="" if one.excess is None else _times(one.excess),
        clipped=f"{100 * one.clipped:.3g} %" if one.clipped else "",
        channels=one.channels[:CHANNELS],
    )


def _node(one: Divergence) -> str:
    return one.region[0] if one.region else one.candidate


def _times(excess: float) -> str:
    return f"{excess:.3g}"


def decibel(value: float | None) -> str:
    """A ratio in dB, with one decimal."""
    return "" if value is None else f"{value:.1f}" if abs(value) != float("inf") else "∞" if value > 0 else "-∞"
