"""The first node that diverges, and which nodes add most, from what an investigation measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftgate.domain.chain import LinkKind
from driftgate.domain.investigations import Investigation, NodeError, VendorNode, VendorTable
from driftgate.domain.judgement import Divergence
from driftgate.domain.measurements import Moments
from driftgate.messages.message import Message, message
from driftgate.numerics.metrics import sqnr

#: How many times the error that its precision explains a node may add; healthy ones reach 2.3.
EXCESS_LIMIT = 3.0
#: The share of the reference's values that a node's calibrated range may cut off.
CLIPPED_LIMIT = 0.01
#: Without own errors: by how much the signal to noise ratio must fall from one pair to the next, in dB.
FALL_DB = 12.0
#: What differs less than this is float noise.
CEILING_DB = 120.0
MOST = 5
#: Below this cosine a node of the vendor's table is shown; the vendor takes it for acceptable from here on.
COSINE_LIMIT = 0.99
#: Signal to noise ratio, in dB, below which a node is off: float links hold 80 dB and more, INT8 seldom under 17.
OFF_DB = {LinkKind.EXACT: 80.0, LinkKind.EQUIVALENT: 60.0, LinkKind.LOSSY: 15.0}
LEAST_NODES, NEARLY_ALL = 4, 0.9


def diverges(node: NodeError) -> bool:
    """Whether a node adds more than its precision explains, or cuts off more than a calibrated range may."""
    return node.own is not None and (not node.excess <= EXCESS_LIMIT or node.clipped > CLIPPED_LIMIT)


def first_divergence(nodes: Sequence[NodeError]) -> NodeError | None:
    """The earliest diverging node in the candidate's order; None where none diverges.

    Where no own error could be measured it is the first pair at which the whole error rises by 12 dB; what is beyond
    120 dB counts as 120, so that pairs that are equal to the bit have something to rise from.
    """
    ordered = sorted(nodes, key=lambda node: node.order)
    if any(node.own is not None for node in ordered):
        return next((node for node in ordered if diverges(node)), None)
    best: float | None = None
    for node in ordered:
        found = min(_decibel(node.total), CEILING_DB)
        if best is not None and found < best - FALL_DB:
            return node
        best = found if best is None else min(best, found)
    return None


def ranked(nodes: Sequence[NodeError]) -> tuple[NodeError, ...]:
    """Diverging nodes first, then by their own noise against their own signal, the largest first."""
    measured = [node for node in nodes if node.own is not None]
    return tuple(sorted(measured, key=lambda node: (not diverges(node), _decibel(node.own), node.order)))


def by_badness(nodes: Sequence[NodeError]) -> tuple[NodeError, ...]:
    """Every node once: the first that diverges, the others as `ranked`, then those whose own error is not known, with
    the largest whole error first."""
    first = first_divergence(nodes)
    unknown = sorted((node for node in nodes if node.own is None), key=lambda node: (_decibel(node.total), node.order))
    by_order = {node.order: node for node in (*([first] if first is not None else []), *ranked(nodes), *unknown)}
    return tuple(by_order.values())


def divergences(investigation: Investigation) -> tuple[Divergence, ...]:
    """The first diverging node, then those that add most; empty where none diverges."""
    first = first_divergence(investigation.nodes)
    if first is None:
        return _as_the_vendor_says(investigation)
    rest = [node for node in ranked(investigation.nodes) if node is not first and diverges(node)]
    return tuple(_divergence(investigation.link, node) for node in (first, *rest[: MOST - 1]))


def low_vendor_nodes(table: VendorTable | None) -> tuple[VendorNode, ...]:
    """Nodes whose cosine is below 0.99 by the vendor's table: the first one there, then the lowest."""
    low = [node for node in table.nodes if node.cosine is not None and node.cosine < COSINE_LIMIT] if table else []
    rest = sorted(low[1:], key=lambda node: node.cosine if node.cosine is not None else 1.0)
    return (*low[:1], *rest)


def situation(investigation: Investigation, kind: LinkKind) -> Message | None:
    """The headline of a comparison node by node, by the vendor's three situations; None with few nodes.

    A node is off where its signal to noise ratio is below what the kind of link must hold.
    """
    least = OFF_DB.get(kind, OFF_DB[LinkKind.LOSSY])
    told = [_decibel(node.total) for node in sorted(investigation.nodes, key=lambda node: node.order)]
    if len(told) < LEAST_NODES:
        return None
    off = [ratio < least for ratio in told]
    share = sum(off) / len(off)
    said = {"count": sum(off), "nodes": len(off), "least": least}
    if not any(off):
        return message("situation-fine", **said)
    first = first_divergence(investigation.nodes)
    inherited = first is None or first.op == "Input"  # nothing within the network adds to it
    return message("situation-all-off" if inherited and share >= NEARLY_ALL else "situation-some-off", **said)


def _as_the_vendor_says(investigation: Investigation) -> tuple[Divergence, ...]:
    """Only where nothing was measured here."""
    low = low_vendor_nodes(investigation.vendor) if not investigation.nodes else ()
    return tuple(
        Divergence(
            link=investigation.link,
            reference=node.tensor,
            candidate=node.tensor or node.node,
            op=node.op,
            region=(node.node,),
            how="vendor",
            certainty=0.0,
            cause="vendor",
            excess=None,
            own_sqnr=None,
            total_sqnr=None,
            cosine=node.cosine,
        )
        for node in low[:MOST]
    )


def _divergence(link: str, node: NodeError) -> Divergence:
    worst = tuple(channel for channel, excess in node.top_channels if not excess <= EXCESS_LIMIT)
    return Divergence(
        link=link,
        reference=node.pair.tensor_a,
        candidate=node.pair.tensor_b,
        op=node.op,
        region=node.region,
        how=node.pair.how,
        certainty=node.pair.certainty,
        cause="total" if node.own is None else "clipped" if node.clipped > CLIPPED_LIMIT else "excess",
        excess=None if node.own is None else node.excess,
        own_sqnr=None if node.own is None else _decibel(node.own),
        total_sqnr=_decibel(node.total),
        clipped=node.clipped,
        channels=worst,
    )


def _decibel(moments: Moments | None) -> float:
    return float("inf") if moments is None else float(np.asarray(sqnr(moments))[0])
