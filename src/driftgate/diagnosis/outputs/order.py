"""The order of outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.outputs.undoing import BY_SPREAD, READ_FLOOR, structure_floor, told
from driftgate.diagnosis.residuals import residual, spread
from driftgate.diagnosis.trials import FALL, trial
from driftgate.domain.investigations import Explanation

Tensor = NDArray[Any]

BY_SHAPE = 0.5  # spread that may be left of an output which its shape alone tells from the others


def find_output_order(bench: Bench) -> Iterator[Explanation]:
    """Every output of the reference is another one of the candidate's."""
    names = [name for name in bench.outputs_a if name in bench.outputs_b]
    if not 2 <= len(names) <= 32:
        return
    order: dict[str, str] = {}
    for name in names:
        a = bench.outputs_a[name]
        gaps = {other: residual(a, bench.outputs_b[other]) for other in names if other not in order.values()}
        order[name] = min(gaps, key=lambda other: (gaps[other], other != name))
        found = bench.outputs_b[order[name]]
        if gaps[order[name]] > max(bench.floor, READ_FLOOR) and spread(a, found) > _limit(bench, name, found):
            return
    moved = [name for name, other in order.items() if name != other]
    if not moved:
        return
    undone = {name: bench.outputs_b[other] for name, other in order.items()}
    made = trial("output-permuted", "outputs", bench.start, bench.distance(bench.outputs_a, undone), bench.floor)
    if made.result.value != "confirmed":
        after = {name: spread(bench.outputs_a[name], undone[name]) for name in names}
        if all(spread(bench.outputs_a[name], bench.outputs_b[name]) >= FALL * after[name] for name in moved):
            limit = max(_limit(bench, name, undone[name]) for name in names)
            made = trial(
                "output-permuted", "outputs", bench.before_spread, max(after.values()), limit, params=BY_SPREAD
            )
    facts = tuple((f"{name} is output", float(names.index(order[name])), "") for name in moved)
    yield from told(made, subjects=tuple(moved), facts=facts)


def _limit(bench: Bench, name: str, found: Tensor) -> float:
    """The spread that may be left; more where no other output has the shape, and the one of the name has not."""
    a = bench.outputs_a[name]
    alike = [other for other, value in bench.outputs_b.items() if value.shape == a.shape]
    only = len(alike) == 1 and found.shape == a.shape and bench.outputs_b[name].shape != a.shape
    return max(structure_floor(a, found), BY_SHAPE if only else 0.0)
