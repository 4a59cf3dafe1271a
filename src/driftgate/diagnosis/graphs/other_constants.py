"""Constants that both sides have, with other values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftgate.diagnosis.bench import FLOAT_FLOOR, Bench
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.surgery import label, with_constants, with_inputs
from driftgate.diagnosis.trials import explained, fact, trial
from driftgate.diagnosis.weights import paired_weights
from driftgate.domain.investigations import Explanation
from driftgate.localisation.points import LINEAR
from driftgate.numerics.alignment import equal

Tensor = NDArray[Any]

LEAST_WEIGHTS, LEAST_PAIRS = 16, 3
ANOTHER = 0.3  # rounding to half or to 8 bits stays far below this share
MOST = 0.6  # of the layers must be others


def changed_constants(bench: Bench) -> dict[str, tuple[Tensor, Tensor]]:
    """Constants of one name and shape that have other values: (reference's, candidate's)."""
    found = {}
    for name in bench.b.constants.names() if bench.b.constants is not None else ():
        a, b = bench.a.value(name), bench.b.value(name)
        if a is not None and b is not None and a.shape == b.shape and a.dtype == b.dtype and not equal(a, b):
            found[name] = (a, b)
    return found


def find_other_constants(bench: Bench) -> Iterator[Explanation]:
    """The candidate with the reference's weights and constants."""
    if bench.fixed_point:
        return
    changed = changed_constants(bench)
    weights = [row for row in paired_weights(bench) if residual(row[2], row[3]) > FLOAT_FLOOR]
    if not changed and not weights:
        return
    model = with_constants(bench.b.whole_model, {name: a for name, (a, _) in changed.items()})
    model = with_inputs(model, [(place, 1, a) for _, place, a, _ in weights])
    made = bench.run(bench.b, bench.evidence.feeds_b or bench.evidence.feeds_a, model)
    if made is None:
        return
    code = _constants_code(bench, changed, weights)
    worst = max((residual(a, b) for a, b in [*changed.values(), *((a, b) for _, _, a, b in weights)]), default=0.0)
    facts = (
        ("constants that differ", float(len(changed) or len(weights)), ""),
        ("largest difference", worst, "of the range"),
    )
    tried = trial(code, "constants of the reference", bench.start, bench.distance(bench.outputs_a, made), bench.floor)
    nodes = tuple(label(bench.b.whole_model.graph.node[place]) for _, place, _, _ in weights)
    yield from explained(tried, subjects=(*changed, *nodes)[:12], facts=facts)


def find_other_checkpoint(bench: Bench) -> Iterator[Explanation]:
    """Graphs that cannot be put into each other: most of the weights that they share by kind and shape are others.

    Read off, not tested: suspected only.
    """
    if bench.fixed_point:
        return
    pairs = [(a, b) for _, _, a, b in paired_weights(bench) if a.size >= LEAST_WEIGHTS]
    others = [away for a, b in pairs if (away := _away(a, b)) > ANOTHER]
    if len(pairs) >= LEAST_PAIRS and len(others) >= MOST * len(pairs):
        facts = (
            ("layers with other weights", float(len(others)), f"of {len(pairs)}"),
            ("typical difference", float(np.median(others)), "of the weights"),
        )
        yield from fact("weights-mismatch", *facts, confirmed=False, share=0.5)


def _away(a: Tensor, b: Tensor) -> float:
    """The length of the difference against that of the reference's weights."""
    x, y = np.asarray(a, np.float64).reshape(-1), np.asarray(b, np.float64).reshape(-1)
    length = float(np.linalg.norm(x))
    return float(np.linalg.norm(x - y)) / length if length else float(bool(y.any()))


def _constants_code(
    bench: Bench, changed: Mapping[str, tuple[Tensor, Tensor]], weights: Sequence[tuple[int, int, Tensor, Tensor]]
) -> str:
    model = bench.b.whole_model
    learnt = {
        name
        for node in model.graph.node
        if node.op_type in (*LINEAR, "BatchNormalization", "PRelu", "LSTM", "GRU")
        for name in node.input[1:]
    }
    if weights or any(name in learnt for name in changed):
        return "weights-mismatch"
    norms = [n for n in model.graph.node if "Normalization" in n.op_type and set(n.input[1:]) & set(changed)]
    if norms:
        theirs = {node.op_type for node in bench.a.whole_model.graph.node}
        return "weights-mismatch" if norms[0].op_type in theirs else "norm-fusion-error"
    if all(a.dtype.kind in "iub" for a, _ in changed.values()):
        return "trace-constant-baked"
    return "weights-mismatch" if any(a.ndim >= 2 for a, _ in changed.values()) else "constant-fold-bug"
