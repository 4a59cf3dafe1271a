"""The verdict on one output of one link, from its moments and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driftgate.domain.chain import Link, LinkKind
from driftgate.domain.judgement import Limit, Outcome, Summary, Verdict
from driftgate.domain.measurements import Alignment, Measurement, Moments
from driftgate.judgement.criteria import CRITERIA, Scale
from driftgate.judgement.limits import Nature, step_unknown
from driftgate.messages.message import Message, message
from driftgate.numerics import metrics
from driftgate.numerics.moments import fold

FLOOR = 1e-5  # both sides below this are taken for zero, except on exact links


@dataclass(frozen=True, slots=True)
class Folded:
    """A measurement over all samples: the whole tensor, and each channel where it has channels."""

    measurement: Measurement
    total: Moments
    channels: Moments | None

    @property
    def scale(self) -> Scale:
        """What differences are held against."""
        return Scale(
            range=float(metrics.range_of(self.total)[0]),
            peak=float(metrics.peak(self.total)[0]),
            step=self.measurement.step,
        )


def folded(measurement: Measurement) -> Folded:
    """Fold rows and channels once, in sample order."""
    channels = None
    if measurement.channels is not None and measurement.blocks:
        channels = fold(measurement.channels, len(measurement.channels) // len(measurement.blocks))
    return Folded(measurement, fold(measurement.rows), channels)


def nature(measurement: Measurement, *, scored: bool, float_inside: bool = False) -> Nature:
    """What the default limits need to know of a measurement."""
    alignment = measurement.alignment
    integer = _whole(alignment.dtype_a) and _whole(alignment.dtype_b) and not alignment.scaled
    stepped = measurement.step is not None
    return Nature(integer=integer, stepped=stepped, scored=scored, float_inside=float_inside)


def judge_output(link: Link, folded: Folded, limits: Sequence[Limit], traits: Nature) -> Verdict:
    """One verdict: what is not finite first, then the limit that is broken most, or nearest to being so."""
    measurement, total = folded.measurement, folded.total
    notes = (*_notes(link, measurement.alignment, total, traits), *_spans(link))

    def verdict(outcome: Outcome, reason: Message | None = None, sample: str | None = None) -> Verdict:
        return Verdict(link.name, measurement.output, outcome, reason=reason, sample=sample, notes=notes)

    broken, lost = int(total.broken[0]), int(total.nonfinite_a[0] - total.infinite_same[0])
    if broken:
        worst = measurement.samples[int(measurement.rows.broken.argmax())]
        return verdict(Outcome.FAILED, message("candidate-nonfinite", count=broken, stage=link.candidate), worst)
    if lost:
        worst = measurement.samples[int((measurement.rows.nonfinite_a - measurement.rows.infinite_same).argmax())]
        return verdict(Outcome.ERROR, message("reference-nonfinite", count=lost, stage=link.reference), worst)
    if not total.count[0]:
        return verdict(Outcome.ERROR, message("zero-compared", output=measurement.output))
    if _below_floor(link, folded, traits):
        return verdict(Outcome.PASSED, message("below-floor", floor=FLOOR))
    if not limits:
        return verdict(Outcome.PASSED, message("judged-by-score"))
    found = [_apply(link, folded, limit) for limit in limits]
    found.sort(key=lambda item: (item[0].outcome is not Outcome.FAILED, -item[1]))
    first = found[0][0]
    also = tuple(v.criterion for v, _ in found[1:] if v.outcome is Outcome.FAILED and v.criterion)
    extra = (message("also-broken", criteria=also),) if also else ()
    return Verdict(
        link.name,
        measurement.output,
        first.outcome,
        first.criterion,
        first.value,
        first.limit,
        first.origin,
        first.sample,
        first.channel,
        notes=(*notes, *extra),
    )


def summarise(folded: Folded, verdict: Verdict) -> Summary:
    """All metrics of one measurement, and its worst sample by the deciding criterion."""
    measurement = folded.measurement
    values = [(metric.name, float(metric.compute(folded.total)[0])) for metric in metrics.METRICS.values()]
    if measurement.step is not None:
        values.append(("lsb", float(folded.total.max_abs[0]) / measurement.step))
    dead = () if folded.channels is None else tuple(int(c) for c in np.flatnonzero(metrics.dead(folded.channels)))
    sample, value = _worst_sample(folded, verdict.criterion or "max-abs")
    return Summary(
        link=measurement.link,
        output=measurement.output,
        count=int(folded.total.count[0]),
        metrics=tuple(values),
        worst_sample=sample,
        worst_value=value,
        dead_channels=dead,
    )


def _apply(link: Link, folded: Folded, limit: Limit) -> tuple[Verdict, float]:
    criterion = CRITERIA[limit.criterion]
    table = folded.channels if criterion.per_channel and folded.channels is not None else folded.total
    value = criterion.value(table, folded.scale)
    allowed = criterion.allowed(table, folded.scale, limit.value)
    severity = criterion.severity(value, allowed)
    worst = int(severity.argmax())
    sample, _ = _worst_sample(folded, limit.criterion)
    verdict = Verdict(
        target=link.name,
        output=folded.measurement.output,
        outcome=Outcome.FAILED if criterion.broken(value, allowed).any() else Outcome.PASSED,
        criterion=limit.criterion,
        value=float(value[worst]),
        limit=float(allowed[worst]),
        origin=limit.origin,
        sample=sample,
        channel=worst if table is folded.channels else None,
    )
    return verdict, float(severity[worst])


def _worst_sample(folded: Folded, criterion: str) -> tuple[str | None, float | None]:
    measurement = folded.measurement
    if not len(measurement.rows):
        return None, None
    rule = CRITERIA[criterion]
    value = rule.value(measurement.rows, folded.scale)
    worst = int(np.where(np.isnan(value), -np.inf, value if rule.better == "lower" else -value).argmax())
    return measurement.samples[worst], float(value[worst])


def _below_floor(link: Link, folded: Folded, traits: Nature) -> bool:
    peak = float(metrics.peak(folded.total)[0])
    return link.kind is not LinkKind.EXACT and not traits.integer and 0.0 < peak <= FLOOR


def _spans(link: Link) -> tuple[Message, ...]:
    return (message("link-spans", stages=link.spans, kind=link.kind.value),) if link.spans else ()


def _notes(link: Link, alignment: Alignment, total: Moments, traits: Nature) -> tuple[Message, ...]:
    notes: list[Message] = []
    if total.count[0] and not total.max_abs[0]:
        notes.append(message("bit-equal"))
    elif link.kind is LinkKind.EXACT:
        notes.append(message("float-floor"))
    if total.infinite_same[0]:
        notes.append(message("infinite-same", count=int(total.infinite_same[0])))
    if alignment.ties:
        notes.append(message("ties-settled", count=alignment.ties))
    if link.kind is LinkKind.COMPILED and traits.float_inside and not traits.integer:
        notes.append(message("float-inside"))
    if step_unknown(link, traits):
        notes.append(message("step-unknown"))
    if alignment.reshaped:
        notes.append(message("singleton-axes", shape=str(alignment.shape)))
    return tuple(notes)


def _whole(dtype: str) -> bool:
    return np.dtype(dtype).kind in "iub"
