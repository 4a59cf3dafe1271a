"""What became of the error of every output of every link, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from driftgate.comparing.pairing import SamplePairs, joined_by_samples
from driftgate.comparing.side import beyond, interval, unless_drift
from driftgate.domain.chain import Link
from driftgate.domain.comparisons import Change, Row, RowKind
from driftgate.domain.facts import Facts
from driftgate.domain.measurements import Array, Measurement, Moments, Role
from driftgate.messages.message import message

#: Errors that grow by less than this are not worth a word, however surely they grow.
LEAST_GROWTH = 1.1
#: The same where there are too few samples to tell noise.
LEAST_GROWTH_ALONE = 1.25
FEW_SAMPLES = 4
#: Root mean square of an error over that of the signal below which there is only the noise of floats.
FLOAT_ERROR = 1e-6
RELATIVE_ERROR = "relative-error"


def link_rows(base: Facts, head: Facts, pairs: SamplePairs) -> Iterator[Row]:
    """The outputs that both versions compare on a link."""
    for link in head.plan.links:
        if link not in base.plan.links:
            continue
        before, after = outputs_of(base, link.name), outputs_of(head, link.name)
        for output, parts in after.items():
            old, new = joined_by_samples(before.get(output, [])), joined_by_samples(parts)
            if old is not None and new is not None:
                yield _link_row(link, output, *pairs.rows(old, new), sides=(base, head))


def outputs_of(facts: Facts, link: str) -> dict[str, list[Measurement]]:
    """The measurements of a link's outputs, by output; those of several runs stand beside each other."""
    found: dict[str, list[Measurement]] = {}
    for one in facts.measurements:
        if one.link == link and one.role is Role.OUTPUT:
            found.setdefault(one.output, []).append(one)
    return found


def _link_row(link: Link, output: str, old: Moments, new: Moments, *, sides: tuple[Facts, Facts]) -> Row:
    row = Row(RowKind.LINK, (link.name, output), Change.UNKNOWN, RELATIVE_ERROR)
    if not len(old):
        return replace(row, note=message("compare-no-common"))
    broken = float(old.broken.sum()), float(new.broken.sum())
    errors = whole_error(old), whole_error(new)
    texts = tuple("NaN" if count else f"{100 * error:.3g} %" for count, error in zip(broken, errors, strict=True))
    row = replace(row, base=errors[0], head=errors[1], base_text=texts[0], head_text=texts[1], n=len(old))
    if any(broken):
        return replace(row, change=Change.SAME if all(broken) else Change.WORSE if broken[1] else Change.BETTER)
    growth = np.log(_each(new) / _each(old))
    if len(growth) < FEW_SAMPLES:
        middle, least = float(growth.mean()), math.log(LEAST_GROWTH_ALONE)
        low = high = None
        change = Change.WORSE if middle > least else Change.BETTER if middle < -least else Change.SAME
    else:
        bounds = interval(growth)
        low, high = (math.exp(bound) for bound in bounds)
        middle, least = float(growth.mean()), math.log(LEAST_GROWTH)
        change = beyond(*bounds) if abs(middle) > least else Change.SAME
    change = unless_drift(change, *sides, link.reference, link.candidate)
    return replace(row, change=change, low=low, high=high)


def _each(moments: Moments) -> Array:
    """Every sample's error over its signal, no less than the noise of floats."""
    signal = moments.m2_a + moments.count * moments.mean_a**2
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.sqrt(moments.sum_dd / signal)
    share = np.where(moments.sum_dd == 0, 0.0, np.where(signal > 0, share, 1.0))
    each: Array = np.maximum(np.nan_to_num(share, nan=1.0, posinf=1e30), FLOAT_ERROR)
    return each


def whole_error(moments: Moments) -> float:
    """Root mean square of the error over that of the signal, over all samples."""
    signal = float((moments.m2_a + moments.count * moments.mean_a**2).sum())
    error = float(moments.sum_dd.sum())
    return 0.0 if error == 0 else math.sqrt(error / signal) if signal > 0 else math.inf
