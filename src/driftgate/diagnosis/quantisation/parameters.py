"""Scales and bits of the side file against those of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.quantisation.quantisers import can_change, reference_names, refitted
from driftgate.diagnosis.quantisation.spreads import SPREAD_UNIT, mended
from driftgate.diagnosis.surgery import Quantised, rescaled, unrounded
from driftgate.diagnosis.trials import Fact, explained, fact
from driftgate.domain.investigations import Explanation

HELPED = 0.1  # share of the error that the right parameters must take away
SAME_STEP = 0.01  # relative
COVERED = 0.5  # share of the graph's tensors from which on the side file is meant to list all of them
UNSET = 1.0  # the step that stands where nothing was calibrated


@dataclass(slots=True)
class _Disagreements:
    """Rounded tensors of the graph for which the side file has another step, more bits, or nothing: what it has."""

    wrong: dict[Quantised, float] = field(default_factory=dict)
    coarse: dict[Quantised, float] = field(default_factory=dict)
    missing: list[Quantised] = field(default_factory=list)
    facts: dict[str, list[Fact]] = field(default_factory=lambda: {"wrong": [], "coarse": []})


def contradicted(bench: Bench) -> frozenset[Quantised]:
    """Rounded tensors whose step is not what calibration gave, as the side file tells."""
    found = bench.once(_disagreements)
    return frozenset((*found.wrong, *found.coarse, *found.missing))


def _disagreements(bench: Bench) -> _Disagreements:
    found = _Disagreements()
    quant = bench.evidence.quant
    if quant is None:
        return found
    unlisted: list[Quantised] = []
    for tensor in bench.b.quantised:
        names = reference_names(bench, tensor)
        name = next((n for n in names if n in quant.steps), None)
        if name is None:
            is_blank = any(n in quant.unscaled for n in names) or not math.isfinite(tensor.step) or tensor.step <= 0
            (found.missing if is_blank else unlisted).append(tensor)
            continue
        bits = quant.bits_of.get(name, quant.bits)
        step = quant.steps[name]
        if tensor.bits < bits:
            found.coarse[tensor] = step
            told = ((f"bits asked for {name}", float(bits), ""), (f"bits of {name}", float(tensor.bits), ""))
            found.facts["coarse"] += told
        elif not math.isclose(tensor.step, step, rel_tol=SAME_STEP):
            found.wrong[tensor] = step
            steps = ((f"step of {name} in the graph", tensor.step, ""), (f"step of {name} in the file", step, ""))
            found.facts["wrong"] += steps
    if len(unlisted) <= (1 - COVERED) * len(bench.b.quantised):
        found.missing += unlisted
    return found


def find_parameters(bench: Bench) -> Iterator[Explanation]:
    """The side file against the graph: scales that differ, that are not there, bits that were not given."""
    if bench.evidence.quant is None:
        return
    found = bench.once(_disagreements)
    yield from _missing(bench, found.missing)
    kinds: tuple[tuple[str, str, Mapping[Quantised, float], _Changed], ...] = (
        ("quant-params-mismatch", "wrong", found.wrong, rescaled),
        ("precision-fallback", "coarse", found.coarse, unrounded),
    )
    for code, kind, tensors, changed in kinds:
        if not tensors:
            continue
        facts = found.facts[kind][:8]
        subjects = tuple(reference_names(bench, t)[-1] for t in tensors)
        share = 0.0
        if can_change(bench):
            transform = "steps of the file" if code == "quant-params-mismatch" else "not rounded"
            tried = mended(bench, code, transform, changed(bench.b.whole_model, tensors))
            told = explained(tried, subjects=subjects, facts=facts, unit=SPREAD_UNIT)
            if told and told[0].confirmed:
                yield from told
                continue
            share = 1 - tried.after / tried.before if math.isfinite(tried.after) and tried.before else 0.0
            facts = [("before", tried.before, SPREAD_UNIT), ("after", tried.after, SPREAD_UNIT), *facts]
        # That bits were asked for and not given is read off; that other steps matter is not.
        sure = share >= HELPED or code == "precision-fallback"
        yield from fact(code, *facts, subjects=subjects, confirmed=sure, share=max(share, HELPED))


_Changed = Callable[[onnx.ModelProto, Mapping[Quantised, float]], onnx.ModelProto]


def _missing(bench: Bench, blank: Sequence[Quantised]) -> Iterator[Explanation]:
    """Tensors without a scale, in the file or in the graph; of those that the file does not list only such as hold
    the step of a default, or for which real values ask for another one."""
    quant = bench.evidence.quant
    if quant is None:
        return
    code = "quant-params-missing"
    names = list(quant.unscaled)
    bound = [n for n in bench.evidence.weights if n not in quant.steps and n not in names]
    if quant.steps and bound and any(n in quant.steps for n in bench.evidence.weights):
        names += bound
    names += [reference_names(bench, t)[-1] for t in blank if not math.isfinite(t.step) or t.step <= 0]
    facts: tuple[Fact, ...] = (("tensors without a scale", float(len(names) or len(blank)), ""),)
    if names:
        yield from fact(code, *facts, subjects=tuple(dict.fromkeys(names))[:12])
    elif blank and can_change(bench):
        wanted = set(blank)
        tried = mended(
            bench,
            code,
            "ranges of the real values",
            refitted(bench, lambda tensor, step: step if tensor in wanted else None),
        )
        subjects = tuple(reference_names(bench, t)[-1] for t in blank)[:12]
        facts += tuple((f"step of {name} in the graph", t.step, "") for name, t in zip(subjects, blank, strict=False))
        share = 1 - tried.after / tried.before if math.isfinite(tried.after) and tried.before else 0.0
        if any(t.step == UNSET for t in blank) and share >= HELPED:
            yield from fact(
                code,
                ("before", tried.before, SPREAD_UNIT),
                ("after", tried.after, SPREAD_UNIT),
                *facts,
                subjects=subjects,
                share=share,
            )
        else:
            yield from explained(tried, subjects=subjects, facts=facts, unit=SPREAD_UNIT)
