"""Constants in the candidate that the reference computes: traced for one input, or folded wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench, feed_sets
from driftgate.diagnosis.graphs.twins import Twin
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.surgery import with_constants
from driftgate.diagnosis.trials import explained, fact, trial
from driftgate.domain.investigations import Explanation
from driftgate.localisation.points import LINEAR

Tensor = NDArray[Any]

MOST_NUMBERS = 4096  # of a constant that is looked at
FEW_NUMBERS = 16  # of one that is looked for by its size alone
MOST_TRIALS = 24
#: Constants, each with the tensor of the reference that computes it.
Pairs = Sequence[tuple[str, str]]


def find_computed_constants(bench: Bench) -> Iterator[Explanation]:
    """What the reference computes is a constant in the candidate: is it the value that is computed here?

    Constants that have the name of what is computed are tried together, then one by one, then those that are no
    constant of the reference and have the size of something that it computes.
    """
    if not (bench.a.runs and bench.b.runs) or bench.a.constants is None:
        return
    runs = [given.suffix for given in feed_sets(bench.a.whole_model, bench.evidence.feeds_a)]
    values = {suffix: _of_run(bench.values_a, suffix) for suffix in runs}
    if not runs:
        return
    a = Twin(bench.a, values[runs[0]])
    named, alike = _candidates(bench, a, values)
    trials: list[Pairs] = [named] if len(named) > 1 else []
    trials += [[pair] for pair in (*named, *alike)]
    for pairs in trials[:MOST_TRIALS]:
        if not bench.has_time:
            return
        found = _with_computed(bench, a, pairs, values)
        yield from found
        if found:
            return


def _candidates(bench: Bench, a: Twin, values: Mapping[str, Mapping[str, Tensor]]) -> tuple[Pairs, Pairs]:
    """(constant, tensor) by name, and by size; only where the constant is read and the numbers differ."""
    read_a, read = ({name for node in m.graph.node for name in node.input} for m in (a.model, bench.b.whole_model))
    theirs = bench.b.constants.names() if bench.b.constants is not None else ()
    named, alike = [], []
    for name in theirs:
        held = bench.b.value(name)
        if (
            name not in read
            or held is None
            or held.size > MOST_NUMBERS
            or (name in read_a and a.constant(name) is not None)
        ):
            continue
        if name in a.maker:
            named += [(name, name)] if _differs(held, name, values) else []
        elif held.size <= FEW_NUMBERS:
            alike += [
                (name, tensor)
                for tensor, place in a.maker.items()
                if a.node(place).op_type not in LINEAR and _differs(held, tensor, values)
            ]
    return named, alike


def _differs(held: Tensor, tensor: str, values: Mapping[str, Mapping[str, Tensor]]) -> bool:
    """Whether a tensor is like a constant, or like one for each sample, and has other numbers in some run."""
    made = [of[tensor] for of in values.values() if tensor in of]
    if len(made) != len(values) or any(value.dtype != held.dtype for value in made):
        return False
    each = [value.size // value.shape[0] if value.ndim and value.shape[0] else value.size for value in made]
    if any(value.size != held.size and count != held.size for value, count in zip(made, each, strict=True)):
        return False
    return any(value.size != held.size or not np.array_equal(value.reshape(-1), held.reshape(-1)) for value in made)


def _of_run(values: Mapping[str, Tensor], suffix: str) -> dict[str, Tensor]:
    return {name.removesuffix(suffix): value for name, value in values.items() if name.endswith(suffix)}


def _with_computed(
    bench: Bench, a: Twin, pairs: Pairs, values: Mapping[str, Mapping[str, Tensor]]
) -> tuple[Explanation, ...]:
    """The values that the reference computes, run by run, given to the candidate."""
    sets = feed_sets(bench.a.whole_model, bench.evidence.feeds_a)
    made: dict[str, Tensor] = {}
    largest = 0.0
    for given in sets:
        changes = {}
        for name, tensor in pairs:
            held, value = bench.b.value(name), values[given.suffix][tensor]
            if held is None:
                return ()
            changes[name] = value.astype(held.dtype).reshape(held.shape if value.size == held.size else value.shape)
            gap = np.asarray(value, np.float64).reshape(-1, held.size) - np.asarray(held, np.float64).reshape(-1)
            largest = max(largest, float(np.abs(gap).max(initial=0.0)))
        found = bench.run(bench.b, given.feeds, with_constants(bench.b.whole_model, changes))
        if found is None:
            return ()
        made.update({f"{output}{given.suffix}": result for output, result in found.items()})
    code = "trace-constant-baked" if any(tensor in a.reached for _, tensor in pairs) else "constant-fold-bug"
    after = bench.distance(bench.outputs_a, made)
    tried = trial(code, "value computed anew", bench.start, after, bench.floor, target=pairs[0][0])
    if tried.result.value != "confirmed":
        return ()
    facts = (("runs compared", float(len(sets)), ""), ("difference of the constant", largest, ""))
    return explained(tried, subjects=dict.fromkeys(name for pair in pairs for name in pair), facts=facts)


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
