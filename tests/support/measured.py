"""Facts of the last link: a measurement whose errors are given sample by sample, an investigation of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Investigation
from driftgate.domain.judgement import Divergence, Judgement
from driftgate.domain.measurements import Alignment, Measurement, Role, concatenate
from driftgate.messages.message import message
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


def investigated(facts: Facts, judged: Judgement, names: Sequence[str]) -> tuple[Facts, Judgement]:
    """The last link after an investigation that found a diverging node for each name."""
    found = tuple(
        Divergence(
            link=LINK,
            reference=name,
            candidate=name,
            op="Conv",
            region=(name, name),
            how="structure",
            certainty=0.5,
            cause="excess",
            excess=64.0,
            own_sqnr=12.5,
            total_sqnr=11.0,
            clipped=0.25,
            channels=(3, 5),
        )
        for name in names
    )
    notes = (message("from-a-newer-version", reason=names[0]),)
    investigation = Investigation(LINK, unpaired_a=(names[0],), samples=16, runs=2, seconds=1.5, notes=notes)
    return replace(facts, investigations=(investigation,)), replace(judged, divergences=found)
