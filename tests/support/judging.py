"""Judging two sets of outputs without a run: what a test of numerics needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from driftgate.domain.chain import Chain, Check, CheckKind, LinkKind, Stage
from driftgate.domain.facts import Facts, merge
from driftgate.domain.judgement import CheckResult, Judgement, Policy
from driftgate.domain.plan import Leg, Plan, PlannedArtifact, Where
from driftgate.domain.runs import Run, RunOutcome
from driftgate.domain.samples import Origin, SampleSet
from driftgate.domain.tensors import Signature
from driftgate.judgement.judge import judge
from driftgate.numerics.comparator import Comparator, OutputMap

Outputs = Mapping[str, NDArray[np.generic]]


def two_stages(kind: LinkKind) -> Chain:
    """A chain of the stages a and b with one check, `diff`."""
    return Chain("diff", (Stage("a", 1), Stage("b", 1, kind=kind)), (Check("diff", "A ↔ B", CheckKind.LINKS, ("b",)),))


def a_plan(kind: LinkKind, count: int, *, block: int = 16, origin: Origin = Origin.REAL) -> Plan:
    """A plan of two stages and `count` samples."""
    ids = tuple(f"{n:04}" for n in range(count))
    samples = SampleSet("test", ids, tuple(f"digest-{i}" for i in ids), origin, block)
    artifacts = (PlannedArtifact("a", "recorded", "aa"), PlannedArtifact("b", "recorded", "bb"))
    return Plan("net", "J6M", two_stages(kind), artifacts, samples)


def leg_facts(
    plan: Plan,
    blocks: Sequence[int],
    a: Sequence[Outputs],
    b: Sequence[Outputs],
    *,
    outputs: OutputMap | None = None,
    signatures: tuple[Signature | None, Signature | None] = (None, None),
) -> Facts:
    """The facts of one leg that did these blocks of samples."""
    comparator = Comparator("a..b", stages=("a", "b"), signatures=signatures, outputs=outputs or OutputMap())
    position = {sample: n for n, sample in enumerate(plan.samples.ids)}
    for block in blocks:
        for sample in plan.samples.of_blocks([block]):
            comparator.add(block, sample, a[position[sample]], b[position[sample]])
    leg = Leg(f"leg-{blocks[0]}", Where.HOST, ("a", "b"), tuple(blocks))
    done = len(plan.samples.of_blocks(blocks))
    runs = tuple(
        Run(f"{stage}@1", leg.id, stage, "recorded", stage * 2, "", done, RunOutcome.PASSED, None, 0.0)
        for stage in ("a", "b")
    )
    return merge(
        [
            Facts(
                plan=Plan(**{**{f: getattr(plan, f) for f in plan.__dataclass_fields__}, "legs": (leg,)}),
                runs=runs,
                measurements=comparator.measurements("a@1", "b@1"),
                problems=comparator.problems,
            )
        ]
    )


def judged(
    kind: LinkKind, a: Sequence[Outputs], b: Sequence[Outputs], *, policy: Policy | None = None, **facts: object
) -> Judgement:
    """The judgement on two lists of outputs, one entry a sample."""
    plan = a_plan(kind, len(a))
    return judge(leg_facts(plan, plan.samples.blocks, a, b, **facts), policy or Policy())  # type: ignore[arg-type]


def check_of(kind: LinkKind, a: NDArray[np.generic], b: NDArray[np.generic]) -> CheckResult:
    """The check of two single tensors, one sample along axis 0 each."""
    split = [[{"y": row[None]} for row in side] for side in (a, b)]
    return judged(kind, *split).checks[0]
