"""Facts with a measurement on the last link, whose errors are given sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from driftgate.domain.facts import Facts
from driftgate.domain.measurements import Alignment, Measurement, Role, concatenate
from driftgate.numerics.moments import by_channel

LINK = "quantized..hbm"
SIZE = 4


def measured(base: Facts, errors: Sequence[float], output: str = "logits") -> Facts:
    """The facts, and that the candidate is wrong by `errors[n]` in sample n; where that is NaN, it is so itself."""
    reference = np.zeros((1, SIZE), np.float32)
    rows = [by_channel(reference, np.full_like(reference, error), axis=None) for error in errors]
    made = Measurement(
        link=LINK,
        output=output,
        role=Role.OUTPUT,
        run_a="a",
        run_b="b",
        alignment=Alignment(output, output, "name", (1, SIZE)),
        step=None,
        samples=base.plan.samples.ids[: len(errors)],
        rows=concatenate(rows),
    )
    return replace(base, measurements=(*base.measurements, made))
