"""Rules that read facts only, on every link: what can be said of a cause without running anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from driftgate.domain.chain import Link
from driftgate.domain.facts import OF_ARTIFACT, Facts
from driftgate.domain.investigations import Explanation
from driftgate.domain.judgement import Outcome, Verdict
from driftgate.domain.measurements import Measurement, Role
from driftgate.domain.runs import RunOutcome
from driftgate.domain.samples import Origin
from driftgate.domain.toolchain.releases import is_newer
from driftgate.judgement import staleness
from driftgate.numerics import metrics
from driftgate.numerics.moments import fold

#: A sample is catastrophic where both cosines fall below this while the median sample stays above TYPICAL.
CATASTROPHIC, TYPICAL = 0.8, 0.98
#: Its signal must not be small beside that of the others, or noise explains the cosine.
LOUD = 0.1
LEAST_SAMPLES = 4
LEAST_NUMBERS = 8  # fewer that disagree may do so by chance
LEAST_VARIED = 16  # numbers of which a varied output has more than one value
#: Differences of float arithmetic: largest difference over the range; and what unrealistic tolerances trip over.
NOISE, UNREAL = 1e-5, 1e-3
UNKNOWN_OPERATORS = frozenset({"onnx-unknown-domain", "onnx-vendor-operator", "ort-refused-node"})
ON_THE_TARGET = frozenset({"quantized", "quantized_removed", "hbm"})
#: Stage of a .bc or .hbm → the phase that it must be in.
PHASES = {"qat_bc": "float", "nv12_quantized": "fixed-point", **dict.fromkeys(ON_THE_TARGET, "fixed-point")}
BY_SCORE = "judged-by-score"
INCOMPLETE = frozenset({"run-missing", "samples-partial", "nothing-compared", "zero-compared"})
#: Outcomes of a run after which nothing is open.
ENDED = frozenset({RunOutcome.PASSED, RunOutcome.REFUSED})
#: What an environment calls the version of the board's runtime; and the reason of a run that it refused as too new.
HBRT, NEWER = "hbrt", "board-newer"


@dataclass(frozen=True, slots=True)
class Observed:
    """One link with what was measured and judged of it so far."""

    facts: Facts
    link: Link
    verdicts: Sequence[Verdict]
    together: Sequence[Sequence[Measurement]]  # by output; more than one where environments differ

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All of them."""
        return tuple(m for group in self.together for m in group if m.role is Role.OUTPUT and len(m.rows))

    @property
    def failed(self) -> frozenset[str | None]:
        """The outputs that failed; None stands for the link itself."""
        return frozenset(v.output for v in self.verdicts if v.outcome is Outcome.FAILED)

    @property
    def scored(self) -> frozenset[str | None]:
        """The outputs that a score judges."""
        return frozenset(v.output for v in self.verdicts if v.reason is not None and v.reason.code == BY_SCORE)


Rule = Callable[[Observed], Iterable[Explanation]]


def observe(observed: Observed) -> tuple[Explanation, ...]:
    """What all rules say."""
    return tuple(found for rule in RULES for found in rule(observed))


def find_not_finite(observed: Observed) -> Iterator[Explanation]:
    """The candidate is not finite where the reference is."""
    for m in observed.measurements:
        broken = m.rows.broken
        if broken.any():
            sample = m.samples[int(broken.argmax())]
            numbers = ("not finite", float(broken.sum()), "elements"), ("samples", float((broken > 0).sum()), "")
            yield Explanation("nan-output", True, numbers, subjects=(m.output, sample))


def find_stale(observed: Observed) -> Iterator[Explanation]:
    """Another artifact was evaluated than the one that is meant."""
    yield from staleness.find_other_run(observed.facts, observed.link)
    yield from staleness.find_stale(observed.facts, observed.link, observed.measurements)


def find_hidden_sample(observed: Observed) -> Iterator[Explanation]:
    """One sample is lost while all together look well."""
    for m in observed.measurements:
        if len(m.rows) < LEAST_SAMPLES or m.output in observed.failed:
            continue
        cosines = np.maximum(metrics.cosine(m.rows), metrics.centred_cosine(m.rows))
        peaks = metrics.peak(m.rows)
        loud = peaks >= LOUD * float(np.median(peaks))
        lost = np.flatnonzero((cosines < CATASTROPHIC) & loud & (m.rows.count >= LEAST_NUMBERS))
        if len(lost) and float(np.median(cosines)) > TYPICAL:
            worst = int(lost[np.argmin(cosines[lost])])
            facts = (
                ("cosine of the worst sample", float(cosines[worst]), ""),
                ("cosine of all samples", float(metrics.cosine(fold(m.rows))[0]), ""),
                ("samples lost", float(len(lost)), f"of {len(m.rows)}"),
            )
            # Where a score judges the output, it counts the sample; then this is worth a look, no more.
            yield Explanation(
                "worst-sample-hidden", m.output not in observed.scored, facts, subjects=(m.samples[worst], m.output)
            )


def find_constant(observed: Observed) -> Iterator[Explanation]:
    """The candidate always says the same where the reference does not."""
    for m in observed.measurements:
        total = fold(m.rows)
        varied = float(total.m2_a[0]) > NOISE**2 * float(total.count[0]) * float(metrics.peak(total)[0]) ** 2
        if total.count[0] >= LEAST_VARIED and varied and total.min_b[0] == total.max_b[0]:
            numbers = ("value", float(total.min_b[0]), ""), ("samples", float(len(m.samples)), "")
            yield Explanation("constant-output", True, numbers, subjects=(m.output,))


def find_environment(observed: Observed) -> Iterator[Explanation]:
    """The same artifacts give other numbers on another machine."""
    if not observed.failed:
        return
    runs = {run.id: run for run in observed.facts.runs}
    for group in observed.together:
        by_environment = {
            tuple(runs[i].environment for i in (m.run_a, m.run_b) if i in runs): float(
                metrics.cosine(fold(m.rows))[0] if len(m.rows) else np.nan
            )
            for m in group
        }
        if len(by_environment) > 1:
            facts = tuple((f"cosine in {'/'.join(dict.fromkeys(k))[:24]}", v, "") for k, v in by_environment.items())
            named = tuple(_differences(observed.facts, by_environment))
            yield Explanation("environment-drift", True, facts, subjects=(group[0].output, *named))


def _differences(facts: Facts, keys: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """What the environments do not have in common: processor features and versions."""
    told = {environment.id: environment for environment in facts.environments}
    sides = [[told[i] for i in key if i in told] for key in keys]
    features = [{f for e in side for f in e.cpu.replace(",", " ").split()} for side in sides]
    versions = [{f"{name} {version}" for e in side for name, version in e.versions} for side in sides]
    for several in (features, versions):
        every: set[str] = set().union(*several)
        yield from sorted(name for name in every if not all(name in side for side in several))


def find_rounding(observed: Observed) -> Iterator[Explanation]:
    """Where a link failed: all differences are of one LSB, or of float arithmetic."""
    failed = [m for m in observed.measurements if m.output in observed.failed]
    if not failed or None in observed.failed or any(m.rows.broken.any() for m in failed):
        return
    totals = [(m, fold(m.rows)) for m in failed]
    if all(m.step is not None and total.max_abs[0] <= m.step * 1.001 for m, total in totals):
        largest = max(float(total.max_abs[0]) / float(m.step or 1) for m, total in totals)
        yield Explanation("rounding-lsb", True, (("largest difference", largest, "LSB"),))
    elif all(_relative(m) <= NOISE for m in failed if m.step is None) and all(m.step is None for m in failed):
        largest = max(_relative(m) for m in failed)
        yield Explanation("numeric-noise", True, (("largest difference", largest, "of the range"),))


def _relative(m: Measurement) -> float:
    total = fold(m.rows)
    reach = float(metrics.range_of(total)[0])
    return float(total.max_abs[0]) / reach if reach else float("inf")


def find_random(observed: Observed) -> Iterator[Explanation]:
    """Random input fails a tolerance that real data would not: no evidence of a fault."""
    if observed.facts.plan.samples.origin is not Origin.RANDOM or not observed.failed:
        return
    failed = [m for m in observed.measurements if m.output in observed.failed]
    largest = max((_relative(m) for m in failed), default=float("inf"))
    if largest <= UNREAL:
        yield Explanation("invalid-test-input", True, (("largest difference", largest, "of the range"),))


def find_incomplete(observed: Observed) -> Iterator[Explanation]:
    """Something that was planned is not there: so a verdict says, or nothing was compared as a run came to no end."""
    reasons = [v.reason for v in observed.verdicts if v.outcome is Outcome.ERROR and v.reason is not None]
    stages = (observed.link.reference, observed.link.candidate)
    ended = {run.outcome for stage in stages for run in observed.facts.runs_of(stage)} <= ENDED
    if any(reason.code in INCOMPLETE for reason in reasons) or not (ended or observed.measurements):
        planned = float(len(observed.facts.plan.samples.ids))
        done = float(min((len(m.samples) for m in observed.measurements), default=0))
        numbers = ("samples compared", done, ""), ("samples planned", planned, "")
        yield Explanation("incomplete-evidence", True, numbers)


def find_refused(observed: Observed) -> Iterator[Explanation]:
    """The candidate cannot be loaded for an operator that nobody defines."""
    for run in observed.facts.runs_of(observed.link.candidate):
        if run.outcome is RunOutcome.REFUSED and run.reason is not None and run.reason.code in UNKNOWN_OPERATORS:
            told = dict(run.reason.params)
            named = (str(told.get("operator", "")), str(told.get("node", "")))
            yield Explanation("custom-op-missing", True, (), subjects=tuple(name for name in named if name))


def find_other_march(observed: Observed) -> Iterator[Explanation]:
    """The build's log, or the artifact itself, tells a march that is not the target's."""
    facts, stage = observed.facts, observed.link.candidate
    if stage not in ON_THE_TARGET:
        return
    for kind, source in (("log", None), (OF_ARTIFACT, stage)):
        fits = facts.told(kind, "march-fits", source)  # 0 or 1 where it was stored in between
        if fits is not None and not fits:
            march = str(facts.told(kind, "march", source))
            yield Explanation("march-mismatch", True, (), subjects=(march, facts.plan.target))
            return


def find_other_phase(observed: Observed) -> Iterator[Explanation]:
    """A .bc before convert stands for a stage behind it, or the reverse: another file was evaluated."""
    stage = observed.link.candidate
    found, wanted = observed.facts.told(OF_ARTIFACT, "phase", stage), PHASES.get(stage)
    if found is not None and wanted is not None and found != wanted:
        yield Explanation("stale-artifact", True, (), subjects=(stage, f"{found}, not {wanted}"))


def find_version_skew(observed: Observed) -> Iterator[Explanation]:
    """Neighbouring artifacts that do not agree come from two versions of the toolchain."""
    facts, link = observed.facts, observed.link
    of_a, of_b = (facts.told(OF_ARTIFACT, "version", stage) for stage in (link.reference, link.candidate))
    if observed.failed and of_a is not None and of_b is not None and of_a != of_b:
        subjects = (f"{link.reference} {of_a}", f"{link.candidate} {of_b}")
        yield Explanation("toolchain-version-mismatch", True, (), subjects=subjects)


def find_newer_than_runtime(observed: Observed) -> Iterator[Explanation]:
    """The candidate was made by a later release than the runtime that loads it is of, whether it is refused or not."""
    facts, stage = observed.facts, observed.link.candidate
    made = facts.told(OF_ARTIFACT, "version", stage)
    known = {environment.id: dict(environment.versions) for environment in facts.environments}
    for run in facts.runs_of(stage):
        told = dict(run.reason.params) if run.reason is not None and run.reason.code == NEWER else {}
        hbdk, hbrt = told.get("hbdk", made), told.get(HBRT, known.get(run.environment, {}).get(HBRT))
        if is_newer(str(hbdk), str(hbrt)):
            yield Explanation("toolchain-version-mismatch", True, (), subjects=(f"{stage} {hbdk}", f"HBRT {hbrt}"))
            return


def find_uncalibrated(observed: Observed) -> Iterator[Explanation]:
    """Thresholds that are all exactly 1 were never calibrated."""
    if observed.link.candidate == "calibrated":
        for kind in ("node_info", "quant_info"):
            if observed.facts.told(kind, "never-calibrated"):
                yield Explanation("quant-params-missing", True, (("thresholds that are exactly 1", 1.0, "nearly all"),))
                return


RULES: tuple[Rule, ...] = (
    find_other_march,
    find_other_phase,
    find_newer_than_runtime,
    find_version_skew,
    find_uncalibrated,
    find_incomplete,
    find_refused,
    find_not_finite,
    find_stale,
    find_environment,
    find_hidden_sample,
    find_constant,
    find_rounding,
    find_random,
)
