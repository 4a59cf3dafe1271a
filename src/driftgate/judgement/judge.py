"""The judgement on one subject: every row of the table from facts and policy, and where the first break is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from driftgate.domain.chain import Check, CheckKind, Link, LinkKind
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import CheckResult, Finding, Judgement, Outcome, Policy, Summary, Verdict
from driftgate.domain.measurements import Measurement, Role, concatenate
from driftgate.domain.plan import ScoreSpec
from driftgate.domain.runs import RunOutcome
from driftgate.domain.samples import Origin
from driftgate.domain.scores import Flip
from driftgate.judgement.advice import advise
from driftgate.judgement.findings import ranked, settled
from driftgate.judgement.limits import output_limits, performance_limits, regression_limit, score_limit
from driftgate.judgement.losses import MOST_FLIPS, flipped, segment_losses
from driftgate.judgement.nodes import divergences
from driftgate.judgement.observed import Observed, observe
from driftgate.judgement.outputs import folded, judge_output, nature, summarise
from driftgate.judgement.performance import estimated, judge_performance, performance_notes, performances
from driftgate.judgement.precision import advised
from driftgate.judgement.scores import Scored, judge_declared, judge_drop, stage_score
from driftgate.judgement.staleness import other_runs
from driftgate.judgement.waivers import waived
from driftgate.messages.message import Message, message
from driftgate.scoring.tasks import scorer_of


def judge(facts: Facts, policy: Policy) -> Judgement:
    """Judge one subject on one target; the same facts and policy always give the same judgement."""
    bench = _Bench(facts, policy)
    checks = [bench.check(check) for check in facts.plan.chain.checks]
    excused, uses = waived(checks, bench.findings, policy, facts.plan.subject, facts.plan.target)
    checks = list(excused)
    broken = next((n for n, c in enumerate(checks) if c.outcome is Outcome.FAILED and not c.waived), None)
    if broken is not None:
        checks[broken + 1 :] = [
            replace(check, hidden=check.outcome is not Outcome.SKIPPED) for check in checks[broken + 1 :]
        ]
    found = tuple(d for one in facts.investigations for d in divergences(one))
    flips = bench.flips()
    scores = tuple(scored.score for scored in bench.scores.values())
    chain = facts.plan.chain
    return Judgement(
        subject=facts.plan.subject,
        target=facts.plan.target,
        policy=policy.name,
        plan=facts.plan.digest,
        outcome=_overall(checks),
        first_failure=None if broken is None else checks[broken].slug,
        checks=tuple(checks),
        summaries=tuple(bench.summaries),
        scores=scores,
        findings=tuple(bench.findings),
        divergences=found,
        losses=tuple(loss for spec in bench.judged for loss in segment_losses(chain, spec, scores, flips)),
        flips=flips[:MOST_FLIPS],
        flip_count=len(flips),
        waivers=uses,
        advice=advise(
            None if broken is None else _first_broken(facts, checks[broken]),
            found,
            lossy_passed=_lossy_passed(facts, checks),
            calibration_tuned=policy.calibration_tuned,
        ),
    )


def _first_broken(facts: Facts, check: CheckResult) -> Link | None:
    """The first link in the route that a check's failure is about; None for a baseline or the board's score."""
    failed = {verdict.target for verdict in check.verdicts if verdict.outcome is Outcome.FAILED}
    return next((link for link in facts.plan.links if link.name in failed), None)


def _lossy_passed(facts: Facts, checks: Sequence[CheckResult]) -> bool:
    """Whether a quantisation loss was judged, and nothing failed or stayed open."""
    lossy = {link.name for link in facts.plan.links if link.kind is LinkKind.LOSSY}
    judged = any(verdict.target in lossy for check in checks for verdict in check.verdicts)
    return judged and all(check.outcome in (Outcome.PASSED, Outcome.SKIPPED) for check in checks)


def _overall(checks: Sequence[CheckResult]) -> Outcome:
    required = {Outcome.PASSED if check.waived else check.outcome for check in checks if check.required}
    for outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.PASSED):
        if outcome in required:
            return outcome
    return Outcome.ERROR


class _Bench:
    """The facts at hand while one judgement is made."""

    def __init__(self, facts: Facts, policy: Policy) -> None:
        self._facts = facts
        self._plan = facts.plan
        self._policy = policy
        self.summaries: list[Summary] = []
        self.findings: list[Finding] = []
        self.scores: dict[tuple[str, str], Scored] = {}
        for spec in self._plan.scores:
            for stage in self._plan.stages:
                scored = stage_score(facts, spec, stage)
                if scored is not None:
                    self.scores[stage, spec.name] = scored

    @property
    def judged(self) -> tuple[ScoreSpec, ...]:
        """The scores that decide; others are shown, and held against what was declared."""
        return tuple(spec for spec in self._plan.scores if scorer_of(spec.task, spec.name, spec.better).judged)

    def flips(self) -> tuple[Flip, ...]:
        """The decisions that changed along the chain, by the scores that decide."""
        found: list[Flip] = []
        for spec in self.judged:
            records = {stage: self.scores[stage, spec.name].records for stage, name in self.scores if name == spec.name}
            found.extend(flipped(self._plan.chain, spec, records))
        return tuple(found)

    def check(self, check: Check) -> CheckResult:
        """One row of the table."""
        kinds: dict[CheckKind, Callable[[Check], tuple[list[Verdict], Message]]] = {
            CheckKind.BASELINE: self._baseline,
            CheckKind.LINKS: self._links,
            CheckKind.REGRESSION: self._regression,
        }
        verdicts, reason = kinds[check.kind](check)
        told = self._told(check)
        required = self._policy.required is None or check.slug in self._policy.required
        if not verdicts:
            if self._policy.required is not None and required:
                verdict = Verdict(check.slug, None, Outcome.ERROR, reason=message("required-absent", check=check.slug))
                return CheckResult(check.slug, check.title, Outcome.ERROR, (verdict,), (reason, *told))
            return CheckResult(check.slug, check.title, Outcome.SKIPPED, (), (reason, *told), required=False)
        if (void := self._void()) is not None:
            verdicts = [_unproven(verdict, void) for verdict in verdicts]
        outcomes = {verdict.outcome for verdict in verdicts}
        outcome = next(o for o in (Outcome.FAILED, Outcome.ERROR, Outcome.PASSED) if o in outcomes)
        return CheckResult(check.slug, check.title, outcome, tuple(verdicts), told, required=required)

    def _void(self) -> Message | None:
        """Why these samples prove nothing, whatever passes on them; None where they may."""
        samples = self._plan.samples
        if samples.origin is Origin.RANDOM:
            return message("random-samples")
        is_one = len(samples.ids) > 1 and len(set(samples.digests)) == 1
        return message("samples-one", count=len(samples.ids)) if is_one else None

    def _links(self, check: Check) -> tuple[list[Verdict], Message]:
        links = self._plan.links_of(check.slug)
        verdicts = [verdict for link in links for verdict in self._link(link)]
        return verdicts, self._absent(check)

    def _absent(self, check: Check) -> Message:
        for omission in self._plan.omitted:
            if omission.stage in check.stages:
                return omission.reason
        missing = tuple(stage for stage in check.stages if stage not in self._plan.stages)
        return message("not-asked", stages=missing) if missing else message("no-link", check=check.slug)

    def _link(self, link: Link) -> list[Verdict]:
        verdicts = [*self._runs(link), *self._problems(link)]
        measurements = [m for m in self._facts.measurements if m.link == link.name and m.role is Role.OUTPUT]
        outputs = dict.fromkeys(m.output for m in measurements)
        groups = [_joined([m for m in measurements if m.output == output]) for output in outputs]
        for measurement in (one for group in groups for one in group):
            verdicts.extend(self._output(link, measurement))
        for spec in self.judged:
            reference = self.scores.get((link.reference, spec.name))
            candidate = self.scores.get((link.candidate, spec.name))
            if all(verdict.outcome is Outcome.PASSED for verdict in verdicts):
                unscored = [s for s in (link.reference, link.candidate) if (s, spec.name) not in self.scores]
                verdicts.extend(self._unscored(link.name, spec.name, stage) for stage in unscored)
            if reference is not None and candidate is not None:
                limit = score_limit(link, chain=self._plan.chain, policy=self._policy)
                verdicts.append(
                    judge_drop(
                        link.name,
                        spec,
                        reference=reference,
                        candidate=candidate,
                        limit=limit,
                        uncertainty=self._policy.uncertainty,
                        tolerance=self._tolerance(link, spec),
                    )
                )
        if not verdicts:
            verdicts.append(Verdict(link.name, None, Outcome.ERROR, reason=message("nothing-compared")))
        return self._settled(link, verdicts, groups)

    def _settled(self, link: Link, verdicts: list[Verdict], groups: list[list[Measurement]]) -> list[Verdict]:
        """Verdicts after what the facts and the investigation say of causes."""
        told = [e for one in self._facts.investigations if one.link == link.name for e in one.explanations]
        told = [*observe(Observed(self._facts, link, verdicts, groups)), *told]
        found = advised(ranked(link.name, told), told, self._plan.target)
        self.findings.extend(found)
        return settled(link.name, verdicts, found, self._policy.accepts)

    def _tolerance(self, link: Link, spec: ScoreSpec) -> float | None:
        """On links that may differ by noise only: decisions closer than twice the largest difference are ties."""
        if link.kind not in (LinkKind.EXACT, LinkKind.EQUIVALENT):
            return None
        largest = [
            float(m.rows.max_abs.max())
            for m in self._facts.measurements
            if m.link == link.name and m.role is Role.OUTPUT and spec.output in (None, m.output) and len(m.rows)
        ]
        return 2.0 * max(largest, default=0.0)

    def _output(self, link: Link, measurement: Measurement) -> list[Verdict]:
        inside = bool(self._facts.told("node_info", "float-inside"))
        traits = nature(measurement, scored=self._scored(link, measurement.output), float_inside=inside)
        limits = output_limits(link, traits, chain=self._plan.chain, policy=self._policy)
        whole = folded(measurement)
        verdict = judge_output(link, whole, limits, traits)
        self.summaries.append(summarise(whole, verdict))
        done, planned = len(measurement.samples), len(self._plan.samples.ids)
        if done == planned:
            return [verdict]
        partial = message("samples-partial", done=done, planned=planned)
        incomplete = Verdict(link.name, measurement.output, Outcome.ERROR, reason=partial)
        return [verdict, incomplete] if verdict.outcome is Outcome.FAILED else [incomplete]

    def _scored(self, link: Link, output: str) -> bool:
        return any(
            (spec.output is None or spec.output == output)
            and (link.reference, spec.name) in self.scores
            and (link.candidate, spec.name) in self.scores
            for spec in self._plan.scores
        )

    def _runs(self, link: Link) -> list[Verdict]:
        """What went wrong with the runs of either stage; a refused candidate is a FAIL."""
        verdicts: list[Verdict] = []
        for stage in (link.reference, link.candidate):
            runs = self._facts.runs_of(stage)
            if not runs:
                verdicts.append(Verdict(link.name, None, Outcome.ERROR, reason=message("run-missing", stage=stage)))
            for run in runs:
                if run.outcome is RunOutcome.PASSED:
                    continue
                refused = run.outcome is RunOutcome.REFUSED and stage == link.candidate
                reason = run.reason or message("run-partial", stage=stage, done=run.samples_done)
                verdicts.append(Verdict(link.name, None, Outcome.FAILED if refused else Outcome.ERROR, reason=reason))
            compared = [m for m in self._facts.measurements if m.link == link.name and m.role is Role.OUTPUT]
            named = [m.run_a if stage == link.reference else m.run_b for m in compared]
            verdicts.extend(self._strays(link.name, stage, named))
        return list(dict.fromkeys(verdicts))

    def _strays(self, target: str, stage: str, named: Iterable[str] = ()) -> Iterator[Verdict]:
        """Runs of another artifact than the planned one; and runs that nobody reported, of which numbers of this stage
        are (`named`), or its scores."""
        for found, planned in other_runs(self._facts, stage):
            reason = message("run-other-artifact", stage=stage, found=found, planned=planned)
            yield Verdict(target, None, Outcome.FAILED, reason=reason)
        known = {run.id for run in self._facts.runs_of(stage)}
        scored = (one.run for one in self._facts.scores if one.stage == stage)
        for run in dict.fromkeys((*named, *scored)) if known else ():
            if run not in known:
                yield Verdict(target, None, Outcome.ERROR, reason=message("run-unknown", stage=stage, run=run))

    def _problems(self, link: Link) -> list[Verdict]:
        return [
            Verdict(link.name, problem.output, Outcome.ERROR, reason=problem.reason)
            for problem in self._facts.problems
            if problem.where == link.name
        ]

    def _baseline(self, check: Check) -> tuple[list[Verdict], Message]:
        verdicts: list[Verdict] = []
        stage = next((stage for stage in check.stages if stage in self._plan.stages), None)
        if stage is None:
            return [], self._absent(check)
        for spec in self._plan.scores:
            if spec.declared is None:
                continue
            verdicts.extend(self._stage_errors(check, stage))
            score = self.scores.get((stage, spec.name))
            if score is not None:
                verdicts.append(judge_declared(check.slug, spec, score.score))
            elif not verdicts:
                verdicts.append(self._unscored(check.slug, spec.name, stage))
        return verdicts, message("no-declared-score")

    def _regression(self, check: Check) -> tuple[list[Verdict], Message]:
        stage = self._stage_of(check)
        if stage is None:
            return [], self._absent(check)
        first = self._plan.stages[0]
        verdicts = self._board_scores(check, first, stage) if first != stage else []
        verdicts.extend(one for one in self._board_performance(check, stage) if one not in verdicts)
        absent = message("no-link", check=check.slug) if first == stage else message("no-board-score")
        return verdicts, absent

    def _stage_of(self, check: Check) -> str | None:
        return next((stage for stage in check.stages if stage in self._plan.stages), None)

    def _board_scores(self, check: Check, first: str, stage: str) -> list[Verdict]:
        """What the board's score loses of the first stage's."""
        verdicts: list[Verdict] = []
        for spec in self.judged:
            verdicts.extend(self._stage_errors(check, stage))
            candidate, reference = self.scores.get((stage, spec.name)), self.scores.get((first, spec.name))
            if candidate is None:
                verdicts = verdicts or [self._unscored(check.slug, spec.name, stage)]
            elif reference is None:
                verdicts.append(self._unscored(check.slug, spec.name, first))
            else:
                limit = regression_limit(check.slug, self._policy)
                verdicts.append(
                    judge_drop(
                        check.slug,
                        spec,
                        reference=reference,
                        candidate=candidate,
                        limit=limit,
                        uncertainty=self._policy.uncertainty,
                    )
                )
        return verdicts

    def _board_performance(self, check: Check, stage: str) -> list[Verdict]:
        """Speed and memory against what the policy bounds of them."""
        limits = performance_limits(check.slug, self._policy)
        if not limits:
            return []
        judged = judge_performance(
            check.slug,
            stage,
            limits=limits,
            told=performances(self._facts, stage),
            uncertainty=self._policy.uncertainty,
            declared=dict(self._policy.declared_speed),
        )
        return [*self._stage_errors(check, stage), *judged]

    def _told(self, check: Check) -> tuple[Message, ...]:
        """Speed and memory of the board, whether or not they are judged."""
        stage = self._stage_of(check) if check.kind is CheckKind.REGRESSION else None
        return () if stage is None else performance_notes(performances(self._facts, stage), estimated(self._facts))

    def _stage_errors(self, check: Check, stage: str) -> list[Verdict]:
        errors = [
            Verdict(check.slug, None, Outcome.ERROR, reason=run.reason or message("run-partial", stage=stage, done=0))
            for run in self._facts.runs_of(stage)
            if run.outcome is not RunOutcome.PASSED
        ]
        return [*errors, *self._strays(check.slug, stage)]

    def _unscored(self, target: str, score: str, stage: str) -> Verdict:
        reasons = [p.reason for p in self._facts.problems if p.where == stage]
        reason = reasons[0] if reasons else message("score-incomplete", score=score, stage=stage)
        return Verdict(target, score, Outcome.ERROR, reason=reason)


def _joined(parts: Sequence[Measurement]) -> list[Measurement]:
    """One output's measurements as one, unless a sample was measured in two environments: then each stands
    for itself."""
    samples = [sample for part in parts for sample in part.samples]
    if len(parts) == 1 or len(set(samples)) != len(samples):
        return list(parts)
    same = all(part.channels is not None and part.alignment.axis == parts[0].alignment.axis for part in parts)
    order = np.argsort([part.blocks[0] if part.blocks else 0 for part in parts], kind="stable")
    ordered = [parts[int(n)] for n in order]
    return [
        replace(
            ordered[0],
            samples=tuple(sample for part in ordered for sample in part.samples),
            rows=concatenate([part.rows for part in ordered]),
            blocks=tuple(block for part in ordered for block in part.blocks),
            channels=concatenate([p.channels for p in ordered if p.channels is not None]) if same else None,
        )
    ]


def _unproven(verdict: Verdict, reason: Message) -> Verdict:
    if verdict.outcome is not Outcome.PASSED:
        return verdict
    return replace(verdict, outcome=Outcome.ERROR, reason=reason)
