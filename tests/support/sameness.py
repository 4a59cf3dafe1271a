"""What two runs must have alike to be the same to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftgate.domain.facts import Facts


def measured(facts: Facts) -> dict[tuple[str, str], Any]:
    """Everything that was measured of an output of a link, as bytes."""
    found = {}
    for m in facts.measurements:
        tables = (m.rows, m.channels)
        columns = [getattr(table, name) for table in tables if table is not None for name in table.__slots__]
        found[m.link, m.output] = (m.samples, m.blocks, m.run_a, m.run_b, [np.asarray(c).tobytes() for c in columns])
    return found


def scored(facts: Facts) -> dict[tuple[str, str], Any]:
    """Every score's values, as bytes."""
    return {(s.stage, s.score): (s.samples, s.run, s.values.tobytes()) for s in facts.scores}
