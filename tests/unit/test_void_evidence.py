"""Evidence that keeps every limit and is of something else, or of nothing: what is told of it, and what sound networks
look like that come near to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pytest
from numpy.typing import NDArray

from driftgate.domain.chain import PTQ, QAT, Chain, LinkKind
from driftgate.domain.facts import OF_ARTIFACT, Facts, ToolFacts
from driftgate.domain.judgement import Outcome, Policy
from driftgate.domain.measurements import Measurement
from driftgate.domain.plan import Leg, Plan, PlannedArtifact, Where
from driftgate.domain.runs import Environment, Run, RunOutcome
from driftgate.domain.samples import SampleSet
from driftgate.domain.toolchain.releases import is_newer
from driftgate.judgement.judge import judge
from driftgate.messages.message import message
from driftgate.numerics.comparator import Comparator, OutputMap
from support.judging import a_plan, leg_facts

Array = NDArray[np.generic]
#: The outputs of one stage by name, samples along axis 0.
Outputs = Mapping[str, Array]
COUNT = 10
STALE, SKEW, INCOMPLETE = "stale-artifact", "toolchain-version-mismatch", "incomplete-evidence"
RANDOM = np.random.default_rng(0)
FLOAT = RANDOM.normal(size=(COUNT, 12)).astype(np.float32)
NOISE = RANDOM.normal(scale=1e-3, size=FLOAT.shape).astype(np.float32)


def chain_facts(
    outputs: Mapping[str, Outputs], chain: Chain = PTQ, digests: Mapping[str, str] = MappingProxyType({})
) -> Facts:
    """Facts of stages that gave these outputs; a stage with a digest is a model's, every other one a recording."""
    ids = tuple(f"{n:04}" for n in range(COUNT))
    plan = Plan(
        subject="net",
        target="J6M",
        chain=chain,
        artifacts=tuple(
            PlannedArtifact(stage, "onnxruntime" if stage in digests else "recorded", digests.get(stage, stage))
            for stage in outputs
        ),
        samples=SampleSet("set", ids, ids),
        legs=(Leg("host", Where.HOST, tuple(outputs), (0,)),),
    )
    measurements: list[Measurement] = []
    for link in plan.links:
        stages = link.reference, link.candidate
        comparator = Comparator(link.name, stages=stages, signatures=(None, None), outputs=OutputMap())
        for at, sample in enumerate(ids):
            a, b = ({name: value[at : at + 1] for name, value in outputs[stage].items()} for stage in stages)
            comparator.add(0, sample, a, b)
        measurements += comparator.measurements(*(f"{stage}@1" for stage in stages))
    runs = tuple(
        Run(f"{one.stage}@1", "host", one.stage, one.backend, one.digest, "", COUNT, RunOutcome.PASSED, None, 0.0)
        for one in plan.artifacts
    )
    return Facts(plan=plan, runs=runs, measurements=tuple(measurements))


def stale_of(facts: Facts) -> tuple[tuple[str, ...], ...]:
    """What is stale: the stage that it really is, and the one that it stands for."""
    return tuple(one.subjects for one in judge(facts, Policy()).findings if one.code == STALE and one.confirmed)


def by_stage(**values: Array) -> dict[str, Outputs]:
    """One output, `y`."""
    return {stage: {"y": value} for stage, value in values.items()}


# --- a quantised stage that is a float one


@pytest.mark.parametrize(
    ("outputs", "stale"),
    [
        (by_stage(optimized_float=FLOAT, calibrated=FLOAT), ("optimized_float", "calibrated")),
        (
            by_stage(optimized_float=FLOAT, calibrated=FLOAT + NOISE, quantized=FLOAT),
            ("optimized_float", "quantized"),
        ),
        (
            by_stage(onnx=FLOAT, optimized_float=FLOAT + np.float32(1e-6), calibrated=FLOAT + NOISE, hbm=FLOAT),
            ("onnx", "hbm"),
        ),
    ],
    ids=["calibrated", "quantized", "hbm-from-onnx"],
)
def test_a_quantised_stage_that_gives_a_float_stages_numbers_is_stale(
    outputs: dict[str, Outputs], stale: tuple[str, ...]
) -> None:
    assert stale_of(chain_facts(outputs)) == (stale,)


CLASSES = RANDOM.integers(0, 80, (COUNT, 12))
ANCHORS = np.repeat(RANDOM.uniform(0, 640, (1, 12)).astype(np.float32), COUNT, axis=0)
#: Where a heat map peaks, as a share of its width: decided, though no whole number.
PEAKS = (RANDOM.integers(0, 640, (COUNT, 12)) / np.float32(640)).astype(np.float32)
MOVED = PEAKS + np.float32(1 / 640) * (np.arange(COUNT) == 3)[:, None]
QUANTISED = {"calibrated": FLOAT + NOISE, "quantized": FLOAT + NOISE / 2, "hbm": FLOAT + NOISE / 2}


def always(value: Array) -> dict[str, Outputs]:
    """The same at every stage."""
    return by_stage(optimized_float=value, calibrated=value, quantized=value, hbm=value)


SOUND: Mapping[str, Callable[[], dict[str, Outputs]]] = {
    "its-own-numbers": lambda: by_stage(optimized_float=FLOAT, **QUANTISED),
    "classes": lambda: always(CLASSES),
    "classes-as-floats": lambda: always(CLASSES.astype(np.float32)),
    "masks": lambda: always((FLOAT > 0).astype(np.float32)),
    "anchors": lambda: always(ANCHORS),
    "a-constant": lambda: always(np.full_like(FLOAT, 0.25)),
    "classes-and-scores": lambda: {
        stage: {"classes": CLASSES.astype(np.float32), "anchors": ANCHORS, "scores": scores}
        for stage, scores in {"optimized_float": FLOAT, **QUANTISED}.items()
    },
    "peaks-of-which-one-moved": lambda: by_stage(optimized_float=PEAKS, calibrated=MOVED, quantized=PEAKS, hbm=PEAKS),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_sound_networks_have_in_common_with_float_ones_is_not(name: str) -> None:
    assert stale_of(chain_facts(SOUND[name]())) == ()


def test_a_bc_may_give_what_the_trained_network_gives() -> None:
    """In the QAT chain the numbers are quantised long before segment 3."""
    assert stale_of(chain_facts(by_stage(pytorch=FLOAT + NOISE, qat=FLOAT, quantized=FLOAT), QAT)) == ()


@pytest.mark.parametrize("stage", ["calibrated", "quantized", "hbm"])
def test_the_file_of_a_float_stage_is_stale_at_every_quantised_one(stage: str) -> None:
    outputs = by_stage(optimized_float=FLOAT, **QUANTISED)
    facts = chain_facts(outputs, digests={"optimized_float": "one file", stage: "one file"})
    assert stale_of(facts) == (("optimized_float", stage),)


def test_equal_recordings_of_classes_are_no_file() -> None:
    facts = chain_facts(always(CLASSES))
    artifacts = tuple(replace(one, digest="one content") for one in facts.plan.artifacts)
    runs = tuple(replace(run, artifact="one content") for run in facts.runs)
    assert stale_of(replace(facts, plan=replace(facts.plan, artifacts=artifacts), runs=runs)) == ()


# --- runs and numbers


def two(a: Array, b: Array, digests: Sequence[str] = ()) -> Facts:
    """Facts of two stages, of samples with these digests, else each with its own."""
    split = [[{"y": row[None]} for row in side] for side in (a, b)]
    plan = a_plan(LinkKind.EQUIVALENT, len(a))
    if digests:
        plan = replace(plan, samples=replace(plan.samples, digests=tuple(digests)))
    return leg_facts(plan, plan.samples.blocks, *split)


def told(facts: Facts) -> tuple[Outcome, set[str]]:
    """The outcome of the check, and why."""
    check = judge(facts, Policy()).checks[0]
    return check.outcome, {verdict.reason.code for verdict in check.verdicts if verdict.reason is not None}


@pytest.mark.parametrize("at", [0, 1], ids=["reference", "candidate"])
def test_a_run_of_another_artifact_fails_its_links(at: int) -> None:
    facts = two(FLOAT, FLOAT)
    runs = [replace(run, artifact="0" * 64) if n == at else run for n, run in enumerate(facts.runs)]
    changed = replace(facts, runs=tuple(runs))
    assert told(changed) == (Outcome.FAILED, {"run-other-artifact"})
    assert stale_of(changed) == ((facts.runs[at].stage, f"{'0' * 12}, not {facts.runs[at].artifact}"),)


@pytest.mark.parametrize(("run_a", "run_b"), [("a@2", "b@1"), ("a@1", "b@2"), ("a@1", "a@1")])
def test_numbers_of_no_run_of_their_stage_are_an_error(run_a: str, run_b: str) -> None:
    facts = two(FLOAT, FLOAT)
    (m,) = facts.measurements
    assert told(facts) == (Outcome.PASSED, set())
    changed = replace(facts, measurements=(replace(m, run_a=run_a, run_b=run_b),))
    assert told(changed) == (Outcome.ERROR, {"run-unknown"})


# --- samples


@pytest.mark.parametrize(
    ("digests", "outcome"),
    [
        (["same"], Outcome.PASSED),
        (["same"] * 2, Outcome.ERROR),
        (["same"] * COUNT, Outcome.ERROR),
        (["same"] * (COUNT - 1) + ["other"], Outcome.PASSED),
    ],
)
def test_one_input_again_and_again_proves_nothing(digests: list[str], outcome: Outcome) -> None:
    facts = two(FLOAT[: len(digests)], FLOAT[: len(digests)], digests)
    assert told(facts) == (outcome, {"samples-one"} if outcome is Outcome.ERROR else set())


def test_one_input_again_and_again_still_shows_a_fault() -> None:
    assert told(two(FLOAT, FLOAT + 1, ["same"] * COUNT))[0] is Outcome.FAILED


# --- what is missing


@dataclass(frozen=True, slots=True)
class Ended:
    """How the candidate's run ended, and whether anything is missing."""

    outcome: RunOutcome
    code: str
    is_missing: bool


@pytest.mark.parametrize(
    "one",
    [
        Ended(RunOutcome.ERROR, "board-unreachable", True),
        Ended(RunOutcome.PARTIAL, "interrupted", True),
        Ended(RunOutcome.REFUSED, "board-refused", False),
    ],
    ids=lambda one: one.code,
)
def test_nothing_was_compared_as_a_run_came_to_no_end(one: Ended) -> None:
    facts = two(FLOAT, FLOAT)
    a, b = facts.runs
    b = replace(b, outcome=one.outcome, reason=message(one.code), samples_done=0)
    findings = judge(replace(facts, runs=(a, b), measurements=()), Policy()).findings
    assert [finding.code for finding in findings] == ([INCOMPLETE] if one.is_missing else [])


def test_a_run_that_ended_badly_behind_all_samples_leaves_nothing_out() -> None:
    facts = two(FLOAT, FLOAT + 1)
    a, b = facts.runs
    judgement = judge(replace(facts, runs=(a, replace(b, outcome=RunOutcome.PARTIAL))), Policy())
    assert (judgement.outcome, judgement.findings) == (Outcome.FAILED, ())


# --- releases


@pytest.mark.parametrize(
    ("compiler", "runtime", "newer"),
    [
        ("4.12.0", "4.11.11", True),
        ("4.10.1", "4.9.7", True),
        ("4.11.12", "4.11.11", False),
        ("4.1.17", "4.3.2", False),
        ("4.3.2", "4.2.7post0.dev2023+6aaae37", True),
        ("4.12.0", "3.15.55", False),
        ("3.49.15", "3.15.55", False),
        ("5.1.0", "4.9.7", False),
        ("", "4.9.7", False),
        ("unknown", "4", False),
    ],
)
def test_only_releases_of_one_numbering_are_compared(compiler: str, runtime: str, newer: bool) -> None:
    assert is_newer(compiler, runtime) is newer


@pytest.mark.parametrize(("runtime", "is_told"), [("4.9.7", True), ("4.12.3", False), ("3.15.55", False), ("", False)])
def test_a_model_newer_than_the_runtime_is_told_where_the_numbers_agree(runtime: str, is_told: bool) -> None:
    facts = chain_facts(by_stage(quantized=FLOAT, hbm=FLOAT))
    board = Environment("hrt_model_exec", versions=(("hbrt", runtime),) if runtime else (), board="lab")
    runs = tuple(replace(run, environment=board.id) if run.stage == "hbm" else run for run in facts.runs)
    version = ToolFacts("hbm", OF_ARTIFACT, (("version", "4.12.0"),))
    judgement = judge(replace(facts, runs=runs, environments=(board,), tool_facts=(version,)), Policy())
    assert judgement.outcome is (Outcome.FAILED if is_told else Outcome.PASSED)
    found = [(finding.code, finding.subjects) for finding in judgement.findings]
    assert found == ([(SKEW, ("hbm 4.12.0", f"HBRT {runtime}"))] if is_told else [])
