"""Outputs that one side lacks."""

from __future__ import annotations

from collections.abc import Iterator

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.trials import fact
from driftgate.domain.investigations import Explanation


def find_missing_outputs(bench: Bench) -> Iterator[Explanation]:
    """Outputs of which one side has none."""
    missing = [name for name in bench.outputs_a if name not in bench.outputs_b]
    if missing and bench.outputs_b and bench.recorded_b:
        yield from fact("incomplete-evidence", ("outputs missing", float(len(missing)), ""), subjects=missing)
