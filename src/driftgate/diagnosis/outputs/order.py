"""The order of outputs."""

from __future__ import annotations

from collections.abc import Iterator

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.outputs.undoing import READ_FLOOR
from driftgate.diagnosis.residuals import residual
from driftgate.diagnosis.trials import explained, trial
from driftgate.domain.investigations import Explanation


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
        if not gaps[order[name]] <= max(bench.floor, READ_FLOOR):
            return
    moved = [name for name, other in order.items() if name != other]
    if not moved:
        return
    undone = {name: bench.outputs_b[other] for name, other in order.items()}
    made = trial("output-permuted", "outputs", bench.start, bench.distance(bench.outputs_a, undone), bench.floor)
    facts = tuple((f"{name} is output", float(names.index(order[name])), "") for name in moved)
    yield from explained(made, subjects=tuple(moved), facts=facts)
