"""What the page's script draws, as plain JSON: columns instead of rows, numbers of few digits, names in short."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence

from driftgate.messages.message import message
from driftgate.messages.text import text
from driftgate.reporting.view.graph import LEVELS, GraphNode
from driftgate.reporting.view.sheet import LinkGraph, Sheet
from driftgate.reporting.view.spread import Spread
from driftgate.reporting.view.waterfall import Waterfall

Json = object

#: The letters of a strip stand for excesses of 10^((place - STRIP_ZERO) / STRIP_STEPS).
LETTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase
STRIP_ZERO, STRIP_STEPS, NO_NUMBER = 20, 10, "!"

#: What the script says, with the names of the values that it fills in.
SAID = {
    "mark-comma": (),
    "mark-stop": (),
    "column-channels": (),
    "column-clipped": (),
    "column-cosine": (),
    "column-excess": (),
    "column-node": (),
    "column-own": (),
    "column-shape": (),
    "column-tensor": (),
    "column-total": (),
    "page-axis-cosine": (),
    "page-axis-count": (),
    "page-axis-error": (),
    "page-axis-node": (),
    "page-axis-value": (),
    "page-bin": (),
    "page-channel": ("channel", "excess"),
    "page-channel-strip": (),
    "page-channel-strip-how": (),
    "page-every": ("every",),
    "page-bins-of": ("tensor",),
    "page-candidate": (),
    "page-first-node": (),
    "page-hits": ("count", "total"),
    "page-inherited": (),
    "page-more": ("count",),
    "page-reference": (),
    "page-score-interval": ("low", "high"),
    "page-segment-cost": ("segment", "loss"),
    "page-steps": ("steps",),
    "score-at": ("stage", "score"),
}


def chart_data(sheets: Iterable[Sheet]) -> dict[str, Json]:
    """Everything that the script needs, by the ids of the parts of the page."""
    every = tuple(sheets)
    return {
        "texts": {code: text(message(code, **{name: f"{{{name}}}" for name in names})) for code, names in SAID.items()},
        "levels": LEVELS,
        "strip": {"letters": LETTERS, "zero": STRIP_ZERO, "steps": STRIP_STEPS},
        "waterfalls": {
            f"{sheet.id}-w{place}": _waterfall(found)
            for sheet in every
            for place, found in enumerate(sheet.waterfalls, 1)
        },
        "graphs": {found.id: _graph(found) for sheet in every for found in sheet.graphs},
    }


def _waterfall(found: Waterfall) -> dict[str, Json]:
    return {
        "lowerIsBetter": found.is_lower_better,
        "stages": [one.stage for one in found.levels],
        "segments": [one.segment for one in found.levels],
        "values": [one.value for one in found.levels],
        "texts": [one.text for one in found.levels],
        "lows": [one.low for one in found.levels],
        "highs": [one.high for one in found.levels],
        "costs": {one.segment: [one.loss, one.eroded] for one in found.segments},
    }


def _graph(found: LinkGraph) -> dict[str, Json]:
    graph = found.graph
    nodes = graph.nodes
    rows = sorted(nodes, key=lambda node: node.rank)[: len(graph.worst)]
    return {
        "vendor": graph.is_of_vendor,
        "first": graph.first,
        "place": [node.place for node in nodes],
        "rank": [node.rank for node in nodes],
        "op": _indexed([node.op for node in nodes]),
        "node": _after([node.node for node in nodes], ["", *(node.node for node in nodes)]),
        "candidate": _after([node.candidate for node in nodes], [node.node for node in nodes]),
        "reference": _after([node.reference for node in nodes], [node.candidate for node in nodes]),
        "shape": _indexed([node.shape for node in nodes]),
        **_numbers(nodes, is_of_vendor=graph.is_of_vendor),
        "off": [node.place for node in nodes if node.is_off],
        "channels": [[channel for channel, _ in node.channels] for node in nodes],
        "excesses": {node.place: [_number(excess, 3) for _, excess in node.channels] for node in rows if node.channels},
        "strips": {node.place: _strip(node.channel_excess) for node in rows if node.channel_excess},
        "spreads": [_spread(one) for one in found.spreads],
    }


def _numbers(nodes: Sequence[GraphNode], *, is_of_vendor: bool) -> dict[str, Json]:
    if is_of_vendor:
        return {"cosine": [_number(node.cosine, 6) for node in nodes]}
    return {
        "own": [_decibel(node.own) for node in nodes],
        "total": [_decibel(node.total) for node in nodes],
        "ownSteps": [_number(node.own_steps, 3) for node in nodes],
        "totalSteps": [_number(node.total_steps, 3) for node in nodes],
        "excess": [_number(node.excess, 3) for node in nodes],
        "clipped": [_number(node.clipped, 3) for node in nodes],
    }


def _spread(found: Spread) -> dict[str, Json]:
    return {
        "tensor": found.tensor,
        "low": _number(found.low, 6),
        "high": _number(found.high, 6),
        "every": found.every,
        "reference": found.reference,
        "candidate": found.candidate,
        "clip": found.clip if found.clip is None else [_number(bound, 6) for bound in found.clip],
    }


def _strip(excesses: Sequence[float]) -> str:
    """One letter a channel: its excess to a tenth of a decade, and NaN."""
    return "".join(NO_NUMBER if math.isnan(value) else LETTERS[_letter(value)] for value in excesses)


def _letter(value: float) -> int:
    if not value > 0:
        return 0
    return min(max(round(STRIP_STEPS * math.log10(min(value, 1e30)) + STRIP_ZERO), 0), len(LETTERS) - 1)


def _decibel(value: float | None) -> float | str | None:
    return _number(value, 17) if value is None or not math.isfinite(value) else round(value, 1)


def _number(value: float | None, digits: int) -> float | str | None:
    """The number with so many digits; ∞, -∞ and NaN as texts, which JSON has no numbers for."""
    if value is None:
        return None
    if math.isfinite(value):
        short = float(f"{value:.{digits}g}")
        return int(short) if short.is_integer() else short
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _indexed(names: Sequence[str]) -> dict[str, Json]:
    """Few different names: each once, and which one stands where."""
    distinct = list(dict.fromkeys(names))
    index = {name: place for place, name in enumerate(distinct)}
    return {"names": distinct, "at": [index[name] for name in names]}


def _after(names: Sequence[str], models: Sequence[str]) -> dict[str, Json]:
    """Names that begin like their models: how much of the model each keeps, in UTF-16 units, and what follows, which is
    often the same."""
    kept, rest = [], []
    for name, model in zip(names, models, strict=False):
        shared = _shared(name, model)
        kept.append(len(name[:shared].encode("utf-16-le")) // 2)
        rest.append(name[shared:])
    return {"kept": kept, "rest": _indexed(rest)}


def _shared(name: str, model: str) -> int:
    """How many characters two names begin with in common."""
    return next(
        (place for place, (a, b) in enumerate(zip(name, model, strict=False)) if a != b), min(len(name), len(model))
    )
