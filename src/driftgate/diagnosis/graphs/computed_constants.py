"""Constants in the candidate that the reference computes: traced for one input, or folded wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench, Side, feed_sets
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.surgery import with_constants
from driftgate.diagnosis.trials import explained, fact, trial
from driftgate.diagnosis.weights import WEIGHTED
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]


def find_computed_constants(bench: Bench) -> Iterator[Explanation]:
    """What the reference computes is a constant in the candidate: is it the value that is computed here?"""
    if bench.a.model is None or bench.b.constants is None or not bench.a.runs:
        return
    computed = {name: node for node in bench.a.model.graph.node for name in node.output}
    reached = _reached(bench.a)
    suffix = next((given.suffix for given in feed_sets(bench.a.model, bench.evidence.feeds_a)), "")
    values = {name.removesuffix(suffix): value for name, value in bench.values_a.items()}
    for name in bench.b.constants.names():
        held = bench.b.value(name)
        if held is None or held.size > 4096 or bench.a.value(name) is not None:
            continue
        like = (
            [name]
            if name in computed
            else [
                t for t in computed if t in values and _alike(values[t], held) and computed[t].op_type not in WEIGHTED
            ]
        )
        for tensor in like[:16]:
            yield from _with_computed(bench, name, tensor, dynamic=tensor in reached)


def _alike(value: Tensor, held: Tensor) -> bool:
    return value.size == held.size and value.size <= 16 and value.dtype == held.dtype


def _reached(side: Side) -> set[str]:
    """Tensors that an input reaches."""
    model = side.whole_model
    held = {tensor.name for tensor in model.graph.initializer}
    found = {value.name for value in model.graph.input if value.name not in held}
    for node in model.graph.node:
        if any(name in found for name in node.input):
            found.update(node.output)
    return found


def _with_computed(bench: Bench, name: str, tensor: str, *, dynamic: bool) -> Iterator[Explanation]:
    """The value that the reference computes, run by run, given to the candidate."""
    e = bench.evidence
    sets = _sets(bench, e.feeds_a)
    made: dict[str, Tensor] = {}
    largest = 0.0
    held = bench.b.value(name)
    for suffix, feeds in sets:
        tapped = bench.run(bench.a, feeds, taps=(tensor,))
        if tapped is None or tensor not in tapped or held is None:
            return
        value = tapped[tensor]
        largest = max(
            largest,
            float(
                np.abs(
                    np.asarray(value, np.float64).reshape(-1)[:1] - np.asarray(held, np.float64).reshape(-1)[:1]
                ).max(initial=0.0)
            ),
        )
        found = bench.run(
            bench.b,
            feeds,
            with_constants(
                bench.b.whole_model,
                {
                    name: value.astype(held.dtype).reshape(held.shape)
                    if value.size == held.size
                    else value.astype(held.dtype)
                },
            ),
        )
        if found is None:
            return
        made.update({f"{output}{suffix}": result for output, result in found.items()})
    code = "trace-constant-baked" if dynamic else "constant-fold-bug"
    tried = trial(
        code, "value computed anew", bench.start, bench.distance(bench.outputs_a, made), bench.floor, target=name
    )
    if tried.result.value == "confirmed":
        yield from explained(
            tried,
            subjects=(name, tensor),
            facts=(("runs compared", float(len(sets)), ""), ("difference of the constant", largest, "")),
        )


def _sets(bench: Bench, feeds: Mapping[str, Tensor]) -> list[tuple[str, Mapping[str, Tensor]]]:
    return [(given.suffix, given.feeds) for given in feed_sets(bench.a.whole_model, feeds)]


def find_one_shape_only(bench: Bench) -> Iterator[Explanation]:
    """Of several feeds of other shapes, some agree and some do not."""
    good = [name for name, a, b in bench.pairs if residual(a, b) <= FLOAT_FLOOR]
    bad = [name for name, a, b in bench.pairs if residual(a, b) > FLOAT_FLOOR]
    model = bench.a.model or bench.b.model
    if not good or not bad or model is None or len(_feed_names(bench)) <= len(model.graph.output):
        return
    yield from fact(
        "trace-constant-baked",
        ("runs that agree", float(len(good)), ""),
        ("runs that differ", float(len(bad)), ""),
        subjects=bad,
        confirmed=False,
    )


def _feed_names(bench: Bench) -> list[str]:
    return list(bench.evidence.feeds_a)
