"""The first diverging node of a link, and the nodes that add most."""

from __future__ import annotations

from dataclasses import dataclass

from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Investigation
from driftgate.domain.judgement import Divergence, Judgement
from driftgate.judgement.nodes import COSINE_LIMIT, situation
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
    cosine: str = ""


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
    headline: Message | None = None

    @property
    def of_vendor(self) -> bool:
        """Whether the numbers are the vendor's tool's, not measured here."""
        return any(line.cosine for line in self.lines)


def nodes(target: str, judgement: Judgement, facts: Facts | None) -> Nodes | None:
    """What is known of a link's nodes; None where nobody looked at them."""
    for found in facts.investigations if facts is not None else ():
        if found.link != target or _is_empty(found):
            continue
        diverging = [d for d in judgement.divergences if d.link == target]
        cost = _cost(found)
        kind = next((link.kind for link in facts.plan.links if link.name == target), None) if facts else None
        headline = None if kind is None else situation(found, kind)
        if not diverging:
            return Nodes("", "", "", "", (_nothing(found),), (), cost, found.notes, headline)
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
            headline=headline,
        )
    return None


def _is_empty(found: Investigation) -> bool:
    """Whether nobody looked at nodes and nothing is to be said of that, as where a cause was found without them."""
    looked = found.pairs or found.runs or found.vendor is not None or found.notes
    return not looked and found.explained


def _cost(found: Investigation) -> Message:
    """What the numbers come from."""
    if found.vendor is not None:
        table = found.vendor
        return message(
            "nodes-vendor", source=table.source, column=table.column, count=len(table.nodes), unread=table.unread
        )
    return message(
        "nodes-cost",
        pairs=len(found.pairs),
        samples=found.samples,
        unpaired=len(found.unpaired_a) + len(found.unpaired_b),
        runs=found.runs,
        seconds=found.seconds,
    )


def _nothing(found: Investigation) -> Message:
    """Why no node is named."""
    if found.vendor is not None:
        return message("nodes-vendor-none", limit=COSINE_LIMIT)
    return message("nodes-none", pairs=len(found.nodes)) if found.nodes else message("nodes-nothing")


def _told(first: Divergence) -> tuple[Message, ...]:
    clipped = (message("node-clipped", share=f"{100 * first.clipped:.3g}"),) if first.clipped else ()
    said: list[Message] = []
    if first.cosine is not None:
        return (message("node-vendor", cosine=f"{first.cosine:.6f}"),)
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
        cosine="" if one.cosine is None else f"{one.cosine:.6f}",
    )


def _node(one: Divergence) -> str:
    return one.region[0] if one.region else one.candidate


def _times(excess: float) -> str:
    return f"{excess:.3g}"


def decibel(value: float | None) -> str:
    """A ratio in dB, with one decimal."""
    return "" if value is None else f"{value:.1f}" if abs(value) != float("inf") else "∞" if value > 0 else "-∞"
