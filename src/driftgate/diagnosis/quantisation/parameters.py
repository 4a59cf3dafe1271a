"""Scales and bits of the side file against those of the graph."""

from __future__ import annotations

import math
from collections.abc import Iterator

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.quantisers import reference_names
from driftgate.diagnosis.quantisation.spreads import ORDINARY, SPREAD_UNIT, spread_with
from driftgate.diagnosis.surgery import Quantised, rescaled, unrounded
from driftgate.diagnosis.trials import Fact, explained, fact, trial
from driftgate.domain.investigations import Explanation

HELPED = 0.1  # share of the error that the right parameters must take away


def find_parameters(bench: Bench) -> Iterator[Explanation]:
    """The side file against the graph: scales that differ, that are not there, bits that were not given."""
    quant = bench.evidence.quant
    if quant is None:
        return
    missing = list(quant.unscaled)
    bound = [n for n in bench.evidence.weights if n not in quant.steps and n not in missing]
    if quant.steps and bound and any(n in quant.steps for n in bench.evidence.weights):
        missing += bound
    missing += [reference_names(bench, t)[-1] for t in bench.b.quantised if not math.isfinite(t.step) or t.step <= 0]
    if missing:
        yield from fact(
            "quant-params-missing",
            ("tensors without a scale", float(len(missing)), ""),
            subjects=tuple(dict.fromkeys(missing))[:12],
        )
    wrong: dict[Quantised, float] = {}
    coarse: dict[Quantised, float] = {}
    facts: list[Fact] = []
    for tensor in bench.b.quantised:
        name = next((n for n in reference_names(bench, tensor) if n in quant.steps), None)
        if name is None:
            continue
        bits = quant.bits_of.get(name, quant.bits)
        if tensor.bits < bits:
            coarse[tensor] = quant.steps[name]
            facts += [(f"bits asked for {name}", float(bits), ""), (f"bits of {name}", float(tensor.bits), "")]
        elif not math.isclose(tensor.step, quant.steps[name], rel_tol=0.01):
            wrong[tensor] = quant.steps[name]
            facts += [
                (f"step of {name} in the graph", tensor.step, ""),
                (f"step of {name} in the file", quant.steps[name], ""),
            ]
    for code, found, transform in (
        ("quant-params-mismatch", wrong, "steps of the file"),
        ("precision-fallback", coarse, "not rounded"),
    ):
        if not found:
            continue
        model = (
            rescaled(bench.b.whole_model, found)
            if code == "quant-params-mismatch"
            else unrounded(bench.b.whole_model, found)
        )
        after = spread_with(bench, model) if bench.b.runs else math.inf
        subjects = tuple(reference_names(bench, t)[-1] for t in found)
        tried = trial(code, transform, bench.before_spread, after, max(ORDINARY, bench.floor))
        share = 0.0 if not math.isfinite(after) or not bench.before_spread else 1 - after / bench.before_spread
        numbers = (("before", bench.before_spread, SPREAD_UNIT), ("after", after, SPREAD_UNIT), *facts[:8])
        told = explained(tried, subjects=subjects, facts=facts[:8], unit=SPREAD_UNIT)
        if told and told[0].confirmed:
            yield from told
        else:
            # That bits were asked for and not given is read off; that other steps matter is not.
            sure = share >= HELPED or code == "precision-fallback"
            yield from fact(code, *numbers, subjects=subjects, confirmed=sure, share=max(share, HELPED))
