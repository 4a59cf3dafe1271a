"""Rounding between a layer and its activation, where the two could not be fused."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.quantisers import can_change, reference_names
from driftgate.diagnosis.quantisation.spreads import SPREAD_UNIT, mended
from driftgate.diagnosis.surgery import unrounded
from driftgate.diagnosis.trials import explained
from driftgate.domain.investigations import Explanation
from driftgate.localisation.points import LINEAR

_ACTIVATIONS = frozenset(
    {"Relu", "LeakyRelu", "Clip", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Elu", "PRelu", "Mish", "Mul"}
)


def find_blocked_fusion(bench: Bench) -> Iterator[Explanation]:
    """A convolution's wide output is rounded before its activation, because something else reads it."""
    if not can_change(bench):
        return
    model = bench.b.whole_model
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    blocked = [
        t
        for t in bench.b.quantised
        if (made := bench.b.makers.get(t.source)) is not None
        and made.op_type in (*LINEAR, "BatchNormalization", "Add")
        and any(r.op_type in _ACTIVATIONS for r in readers.get(t.tensor, ()))
        and (
            len(readers.get(t.tensor, ())) > 1
            or t.tensor in {o.name for o in model.graph.output}
            or len(readers.get(t.source, ())) > 1
        )
    ]
    if not blocked:
        return
    tried = mended(bench, "fusion-blocked", "not rounded before the activation", unrounded(model, blocked))
    others = max(len(readers.get(t.tensor, ())) for t in blocked)
    yield from explained(
        tried,
        subjects=tuple(reference_names(bench, t)[-1] for t in blocked),
        facts=(("readers", float(others), ""),),
        unit=SPREAD_UNIT,
    )
