"""A model with one thing changed, and what it explains if it gives the outputs of the other side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench, Side
from driftgate.diagnosis.surgery import label, with_attributes
from driftgate.diagnosis.trials import Fact, explained, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """A model with one thing changed."""

    code: str
    transform: str
    model: onnx.ModelProto
    nodes: tuple[str, ...]
    facts: tuple[Fact, ...] = ()


Vary = Callable[[Side, int, onnx.NodeProto], Iterator[Variant]]


def varied(side: Side, code: str, transform: str, place: int, **values: object) -> Variant:
    """A model with other attributes of one node."""
    model = side.whole_model
    return Variant(code, transform, with_attributes(model, (place,), **values), (label(model.graph.node[place]),))


def try_variant(bench: Bench, side: Side, variant: Variant, wanted: Mapping[str, Tensor]) -> tuple[Explanation, ...]:
    """What a variant explains if it gives the wanted outputs; else nothing."""
    e = bench.evidence
    feeds = e.feeds_a if side is bench.a else (e.feeds_b or e.feeds_a)
    made = bench.run(side, feeds, variant.model)
    if made is None:
        return ()
    after = bench.distance(wanted, {name: made[name] for name in wanted if name in made})
    tried = trial(variant.code, variant.transform, bench.start, after, bench.floor, target=variant.nodes[0])
    return explained(tried, subjects=variant.nodes, facts=variant.facts) if tried.result.value == "confirmed" else ()
