"""What besides the numbers is another one in two versions: samples, artifacts, toolchain, settings, environments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from driftgate.comparing.pairing import SamplePairs
from driftgate.domain.comparisons import Changed, Thing
from driftgate.domain.facts import OF_ARTIFACT, Facts
from driftgate.domain.judgement import Judgement
from driftgate.domain.plan import ScoreSpec
from driftgate.domain.runs import Environment
from driftgate.judgement.scores import stage_records
from driftgate.messages.message import Param

SHOWN_DIGEST = 12
RECORDED = "recorded"
LABEL = "label"  # the column of a score's records that holds the truth
ABSENT = "-"
#: What a build's reports say of the toolchain: names that begin so, and those of an artifact.
TOOLCHAIN_PREFIX, OF_TOOLCHAIN = "version-", ("version", "march")
#: What they say of how the build was asked for, by kind.
CONFIG: Mapping[str, tuple[str, ...]] = {
    "log": ("march", "calibration-type", "selected", "calibration-samples", "calibration-folders", "inputs"),
}


def changed(base: Facts, head: Facts, pairs: SamplePairs) -> tuple[Changed, ...]:
    """Everything that may be why a number is another one, in the order of the route."""
    return (
        *_plan(base, head),
        *_samples(base, head, pairs),
        *_scoring(base, head, pairs),
        *_artifacts(base, head, pairs),
        *_told(base, head),
        *_environments(base, head),
    )


def limits(base: Judgement, head: Judgement) -> Iterator[Changed]:
    """Limits that are others by the two policies."""
    before = {(v.target, v.output, v.criterion): v.limit for check in base.checks for v in check.verdicts}
    for check in head.checks:
        for verdict in check.verdicts:
            known = before.get((verdict.target, verdict.output, verdict.criterion))
            if verdict.criterion is None or known is None or verdict.limit is None or known == verdict.limit:
                continue
            name = " ".join(part for part in (verdict.target, verdict.output, verdict.criterion) if part)
            yield Changed(Thing.LIMIT, name, f"{known:g}", f"{verdict.limit:g}")


def environment_of(facts: Facts, stage: str) -> tuple[str, ...]:
    """The ids of the environments that a stage ran in."""
    return tuple(sorted({run.environment for run in facts.runs_of(stage)}))


def artifact_of(facts: Facts, stage: str) -> str:
    """The digest of a stage's artifact; empty where it has none."""
    return next((one.digest for one in facts.plan.artifacts if one.stage == stage), "")


def _plan(base: Facts, head: Facts) -> Iterator[Changed]:
    if base.plan.target != head.plan.target:
        yield Changed(Thing.TARGET, head.plan.target, base.plan.target, head.plan.target)
    if base.plan.chain.name != head.plan.chain.name:
        yield Changed(Thing.PLAN, "chain", base.plan.chain.name, head.plan.chain.name)
    if base.plan.stages != head.plan.stages:
        yield Changed(Thing.PLAN, "stages", " ".join(base.plan.stages), " ".join(head.plan.stages))


def _samples(base: Facts, head: Facts, pairs: SamplePairs) -> Iterator[Changed]:
    if not pairs.all_common:
        yield Changed(Thing.SAMPLES, head.plan.samples.name, str(pairs.counts.base), str(pairs.counts.head))
    if base.plan.samples.origin is not head.plan.samples.origin:
        origins = (base.plan.samples.origin.value, head.plan.samples.origin.value)
        yield Changed(Thing.SAMPLES, "origin", *origins)


def other_labels(spec: ScoreSpec, known: ScoreSpec, base: Facts, head: Facts, pairs: SamplePairs) -> bool:
    """Whether the common samples have other labels: other files may say the same of them. Where the records hold no
    labels, another file counts as other labels."""
    if spec.labels == known.labels:
        return False
    for stage in head.plan.stages:
        old, new = stage_records(base, known, stage), stage_records(head, spec, stage)
        if old is None or new is None or not pairs.names or LABEL not in old.columns or LABEL not in new.columns:
            continue
        mine, theirs = pairs.head_records(new), pairs.base_records(old)
        return not np.array_equal(mine.column(LABEL), theirs.column(LABEL))
    return True


def _scoring(base: Facts, head: Facts, pairs: SamplePairs) -> Iterator[Changed]:
    before = {spec.name: spec for spec in base.plan.scores}
    for spec in head.plan.scores:
        known = before.get(spec.name)
        if known is None:
            continue
        for name, old, new in (
            ("labels", known.labels, spec.labels),
            ("postprocess", known.post, spec.post),
            ("params", _params(known), _params(spec)),
            ("declared", known.declared or "", spec.declared or ""),
        ):
            if old != new and (name != "labels" or other_labels(spec, known, base, head, pairs)):
                yield Changed(
                    Thing.SCORING, f"{spec.name} {name}", old[:SHOWN_DIGEST] or ABSENT, new[:SHOWN_DIGEST] or ABSENT
                )


def _params(spec: ScoreSpec) -> str:
    return " ".join(f"{name}={value:g}" for name, value in spec.params)


def _artifacts(base: Facts, head: Facts, pairs: SamplePairs) -> Iterator[Changed]:
    """A recording of other samples is another file, and says nothing of what was recorded."""
    recorded = {artifact.stage for artifact in head.plan.artifacts if artifact.backend == RECORDED}
    for stage in head.plan.stages:
        old, new = artifact_of(base, stage), artifact_of(head, stage)
        if old and old != new:
            anew = stage in recorded and not pairs.all_common
            what = Thing.RECORDING if anew else Thing.ARTIFACT
            yield Changed(what, stage, old[:SHOWN_DIGEST], new[:SHOWN_DIGEST])


def _told(base: Facts, head: Facts) -> Iterator[Changed]:
    """What tools and artifacts say of toolchain and settings."""
    before = {(one.source, one.kind): dict(one.values) for one in base.tool_facts}
    seen: set[tuple[Thing | str, str, str]] = set()
    for one in head.tool_facts:
        known = before.get((one.source, one.kind))
        if known is None:
            continue
        for name, new in one.values:
            old = known.get(name)
            what = _kind(one.kind, name)
            if what is None or old is None or old == new:
                continue
            label = name.removeprefix(TOOLCHAIN_PREFIX) if what is Thing.TOOLCHAIN else f"{one.kind} {name}"
            told = (what, _short(old), _short(new)) if what is Thing.TOOLCHAIN else (label, _short(old), _short(new))
            if told not in seen:  # each stage's artifact says the same, and so does the log
                seen.add(told)
                yield Changed(what, label, _short(old), _short(new))


def _kind(kind: str, name: str) -> Thing | None:
    if name.startswith(TOOLCHAIN_PREFIX) or (kind == OF_ARTIFACT and name in OF_TOOLCHAIN):
        return Thing.TOOLCHAIN
    return Thing.CONFIG if name in CONFIG.get(kind, ()) else None


def _short(value: Param) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _environments(base: Facts, head: Facts) -> Iterator[Changed]:
    known = {one.id: one for one in (*base.environments, *head.environments)}
    said: set[tuple[str, str, str]] = set()
    for stage in head.plan.stages:
        old, new = environment_of(base, stage), environment_of(head, stage)
        if not old or not new or old == new:
            continue
        for name, before, after in _differences(known.get(old[0]), known.get(new[0])):
            if (name, before, after) not in said:  # once, for the first stage
                said.add((name, before, after))
                yield Changed(Thing.ENVIRONMENT, f"{stage} {name}", before, after)


def _differences(old: Environment | None, new: Environment | None) -> Iterator[tuple[str, str, str]]:
    if old is None or new is None:
        return
    for name in ("provider", "level", "threads", "cpu", "board"):
        before, after = str(getattr(old, name)), str(getattr(new, name))
        if before != after:
            yield name, before or ABSENT, after or ABSENT
    before_versions, after_versions = dict(old.versions), dict(new.versions)
    for name in sorted({*before_versions, *after_versions}):
        first, second = before_versions.get(name, ABSENT), after_versions.get(name, ABSENT)
        if first != second:
            yield name, first, second
