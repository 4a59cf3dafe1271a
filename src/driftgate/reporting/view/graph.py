"""The error along the graph: every compared node of a link with its own and its whole error, and the worst of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Investigation, NodeError, VendorNode
from driftgate.domain.judgement import Judgement
from driftgate.domain.measurements import Moments
from driftgate.escaping.characters import one_line, shortened
from driftgate.judgement.nodes import COSINE_LIMIT, EXCESS_LIMIT, by_badness, diverges, first_divergence
from driftgate.messages.message import Message, message
from driftgate.messages.text import number
from driftgate.numerics.metrics import sqnr
from driftgate.reporting.view.links import LinkName, link_name
from driftgate.reporting.view.nodes import Nodes, decibel, nodes

NAME = 120  # characters of a name
CHANNELS = 5
#: Bounds of the levels in which a channel's excess is shown: the second is what healthy nodes may reach.
LEVELS = (1.0, EXCESS_LIMIT, 10.0, 30.0)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node as it is drawn: `place` among all that were compared, `rank` from the worst, both from 0; signal to
    noise ratios in dB; None where a number is not known. Names are one line and not too long."""

    place: int
    rank: int
    op: str
    node: str
    reference: str
    candidate: str
    shape: str
    own: float | None
    total: float | None
    own_steps: float | None
    total_steps: float | None
    excess: float | None
    clipped: float | None
    cosine: float | None
    channels: tuple[tuple[int, float], ...]
    channel_excess: tuple[float, ...]
    is_off: bool


@dataclass(frozen=True, slots=True)
class Channel:
    """One channel of a node, how many times what is explained it adds, and the level of that, 0 … 4."""

    number: int
    excess: str
    level: int


@dataclass(frozen=True, slots=True)
class WorstNode:
    """One of the worst nodes as a row; empty where a number is not known. `place` counts from 1."""

    place: int
    op: str
    node: str
    tensor: str
    own: str
    total: str
    excess: str
    clipped: str
    cosine: str
    channels: tuple[Channel, ...]
    is_off: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes of one link, which is `target`: `nodes` in the order of the graph, `worst` the worst first, `first` the
    place of the first that diverges; `cut` says that not all nodes are here. `found` tells of them in words."""

    target: str
    link: LinkName
    nodes: tuple[GraphNode, ...]
    worst: tuple[WorstNode, ...]
    first: int | None
    is_of_vendor: bool
    off_told: Message
    found: Nodes | None
    cut: Message | None


def graphs(judgement: Judgement, facts: Facts | None, *, most: int, rows: int) -> tuple[Graph, ...]:
    """A graph of each link whose nodes are known, with at most `most` nodes, of which `rows` as rows."""
    found = facts.investigations if facts is not None else ()
    return tuple(
        _graph(one, judgement, facts, most=most, rows=rows)
        for one in found
        if one.nodes or (one.vendor is not None and one.vendor.nodes)
    )


def level(excess: float) -> int:
    """How bad a channel is, 0 … 4; NaN is the worst."""
    return sum(not excess <= bound for bound in LEVELS)


def _graph(found: Investigation, judgement: Judgement, facts: Facts | None, *, most: int, rows: int) -> Graph:
    every = _measured(found.nodes) if found.nodes else _told(found.vendor.nodes if found.vendor is not None else ())
    kept = [node for node in every if node.rank < most]
    first = next((node.place for node in kept if node.is_off), None)
    return Graph(
        target=found.link,
        link=link_name(found.link, facts),
        nodes=tuple(kept),
        worst=tuple(_row(node) for node in sorted(kept, key=lambda node: node.rank)[:rows]),
        first=first,
        is_of_vendor=not found.nodes,
        off_told=message("page-off") if found.nodes else message("page-off-vendor", limit=COSINE_LIMIT),
        found=nodes(found.link, judgement, facts),
        cut=None if len(kept) == len(every) else message("page-nodes-cut", shown=len(kept), total=len(every)),
    )


def _measured(found: Sequence[NodeError]) -> list[GraphNode]:
    ordered = sorted(found, key=lambda node: node.order)
    first = first_divergence(ordered)
    ratios = {node.order: _ratio(node.total) for node in ordered}
    ranks = {node.order: rank for rank, node in enumerate(by_badness(ordered))}
    return [
        GraphNode(
            place=place,
            rank=ranks[node.order],
            op=_name(node.op),
            node=_name(node.region[0] if node.region else node.pair.tensor_b),
            reference=_name(node.pair.tensor_a),
            candidate=_name(node.pair.tensor_b),
            shape=shortened("×".join(map(str, node.shape)), NAME),
            own=_ratio(node.own),
            total=ratios[node.order],
            own_steps=node.own_steps,
            total_steps=node.total_steps,
            excess=None if node.own is None else node.excess,
            clipped=node.clipped,
            cosine=None,
            channels=node.top_channels[:CHANNELS],
            channel_excess=node.channel_excess,
            is_off=node is first or diverges(node),
        )
        for place, node in enumerate(ordered)
    ]


def _told(found: Sequence[VendorNode]) -> list[GraphNode]:
    by_badness = sorted(range(len(found)), key=lambda place: (_or_infinite(found[place].cosine), place))
    ranks = {place: rank for rank, place in enumerate(by_badness)}
    return [
        GraphNode(
            place=place,
            rank=ranks[place],
            op=_name(node.op),
            node=_name(node.node),
            reference=_name(node.tensor),
            candidate=_name(node.tensor),
            shape="",
            own=None,
            total=None,
            own_steps=None,
            total_steps=None,
            excess=None,
            clipped=None,
            cosine=node.cosine,
            channels=(),
            channel_excess=(),
            is_off=node.cosine is not None and not node.cosine >= COSINE_LIMIT,
        )
        for place, node in enumerate(found)
    ]


def _row(node: GraphNode) -> WorstNode:
    return WorstNode(
        place=node.place + 1,
        op=node.op,
        node=node.node,
        tensor=node.candidate,
        own=decibel(node.own),
        total=decibel(node.total),
        excess="" if node.excess is None else times(node.excess),
        clipped=f"{100 * node.clipped:.3g} %" if node.clipped else "",
        cosine="" if node.cosine is None else f"{node.cosine:.6f}",
        channels=tuple(Channel(channel, times(excess), level(excess)) for channel, excess in node.channels),
        is_off=node.is_off,
    )


def times(value: float) -> str:
    """A factor with three digits."""
    return number(float(f"{value:.3g}")) if math.isfinite(value) else "NaN" if math.isnan(value) else "∞"


def _ratio(moments: Moments | None) -> float | None:
    """Signal to noise in dB; None where nothing was compared."""
    if moments is None or not moments.count.sum():
        return None
    return float(sqnr(moments)[0])


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None or math.isnan(value) else value


def _name(name: str) -> str:
    return shortened(one_line(name), NAME)
