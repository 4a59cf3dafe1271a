"""Sums of products that are cut off at 16 bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx

from driftgate.diagnosis.bench import INTEGER_FLOOR, Bench
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT
from driftgate.diagnosis.residuals import spread
from driftgate.diagnosis.surgery import attribute, copied, label
from driftgate.diagnosis.trials import explained, trial
from driftgate.domain.investigations import Explanation, TrialResult


def find_accumulator(bench: Bench) -> Iterator[Explanation]:
    """Sums of products that were cut off at 16 bits."""
    if not bench.b.runs or bench.b.model is None:
        return
    limits = (32767.0, -32768.0, 65535.0)
    places = []
    for place, node in enumerate(bench.b.model.graph.node):
        bounds = [bench.b.value(name) for name in node.input[1:3] if name] if node.op_type == "Clip" else []
        told = [attribute(node, "min"), attribute(node, "max")] if node.op_type == "Clip" else []
        numbers = [float(v.reshape(-1)[0]) for v in bounds if v is not None and v.size] + [
            float(v) for v in told if v is not None
        ]
        if any(number in limits for number in numbers):
            places.append(place)
    if not places:
        return
    copy = copied(bench.b.model)
    for place in places:
        node = copy.graph.node[place]
        node.CopyFrom(onnx.helper.make_node("Identity", [node.input[0]], [node.output[0]], name=node.name))
    made = bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, copy)
    if made is not None:
        tried = trial(
            "accumulator-saturation",
            "wider sums",
            bench.start,
            bench.distance(bench.outputs_a, made),
            max(ORDINARY, bench.floor),
        )
        yield from explained(
            tried,
            subjects=tuple(label(bench.b.model.graph.node[p]) for p in places[:8]),
            facts=(("sums cut off", float(len(places)), ""),),
        )


def find_accumulator_by_hand(bench: Bench) -> Iterator[Explanation]:
    """Integer weights at hand: the layer computed with pairs of products cut off at 16 bits is the candidate's."""
    if not bench.a.runs or bench.a.model is None:
        return
    quant = bench.evidence.quant
    values = bench.values_a
    for node in bench.a.model.graph.node:
        weights = bench.evidence.weights.get(node.input[1]) if len(node.input) > 1 else None
        wanted = bench.values_b.get(node.output[0])
        fed, own = (
            values.get(node.input[0]) if node.input else None,
            bench.a.value(node.input[1]) if weights is not None else None,
        )
        right = values.get(node.output[0])
        if node.op_type not in ("MatMul", "Gemm") or weights is None or wanted is None or fed is None or own is None:
            continue
        if right is None or weights.ndim != 2 or fed.ndim < 2 or own.shape != weights.shape:
            continue
        if node.op_type == "Gemm" and attribute(node, "transB", 0):
            weights, own = weights.T, own.T
        integers = np.asarray(weights, np.float64)
        step_w = float((own * integers).sum() / max((integers**2).sum(), 1.0))
        steps = quant.steps if quant is not None else {}
        step_x = steps.get(node.input[0]) or float(np.abs(fed).max()) / 255 or 1.0
        codes = np.clip(np.rint(np.asarray(fed, np.float64) / step_x), 0, 255)
        count = integers.shape[0] // 2 * 2
        pairs = codes[..., 0:count:2, None] * integers[0:count:2] + codes[..., 1:count:2, None] * integers[1:count:2]
        whole = codes @ integers
        cut = np.clip(pairs, -32768, 32767).sum(-2) + whole - pairs.sum(-2)
        made = np.asarray(right, np.float64) + (cut - whole) * step_x * step_w
        lost = float((np.abs(pairs) > 32767).mean())
        tried = trial(
            "accumulator-saturation",
            "pairs cut off",
            spread(right, wanted),
            spread(made, wanted),
            INTEGER_FLOOR / 2,
            target=node.output[0],
        )
        if lost and tried.result is TrialResult.CONFIRMED:
            yield from explained(
                tried, subjects=(label(node), node.output[0]), facts=(("pairs cut off", lost, ""),), unit=SPREAD_UNIT
            )
            return
