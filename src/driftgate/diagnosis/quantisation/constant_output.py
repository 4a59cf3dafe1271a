"""Outputs that are the same whatever is fed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.trials import fact
from driftgate.domain.investigations import Explanation


def find_constant(bench: Bench) -> Iterator[Explanation]:
    """An output of the candidate is the same whatever is fed."""
    for name, a, b in bench.pairs:
        if a.dtype.kind not in "fiu" or a.size < 2 or b.size < 2 or not np.isfinite(np.asarray(b, np.float64)).all():
            continue
        one_value = float(np.ptp(np.asarray(b, np.float64))) == 0.0 and float(np.ptp(np.asarray(a, np.float64))) > 0
        batched = a.ndim > 1 and a.shape[0] > 1 and a.shape == b.shape
        same_rows = batched and bool((b == b[:1]).all()) and not bool((a == a[:1]).all())
        if one_value or same_rows:
            yield from fact(
                "constant-output",
                ("values of the candidate", 1.0 if one_value else float(b[:1].size), ""),
                ("range of the reference", float(np.ptp(np.asarray(a, np.float64))), ""),
                subjects=(name,),
            )
