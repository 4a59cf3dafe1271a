"""What a board says of speed and memory, beside the compiler's estimate."""

from __future__ import annotations

from dataclasses import dataclass

from driftgate.domain.facts import Facts
from driftgate.judgement.performance import (
    estimate_text,
    estimated,
    frame_rate,
    latency,
    memory,
    performance_line,
    performances,
    with_spread,
    with_unit,
)
from driftgate.messages.message import Message


@dataclass(frozen=True, slots=True)
class PerformanceLine:
    """One number of threads and core of one run; empty where it is not said. `told` is all of it in one line."""

    stage: str
    environment: str
    threads: str
    core: str
    runs: str
    frames: str
    latency: str
    fps: str
    memory: str
    estimate: str
    source: str
    told: Message


def performance_lines(facts: Facts) -> tuple[PerformanceLine, ...]:
    """All that was said, in the order of the chain, the fewest threads first."""
    estimate = estimated(facts)
    environments = {run.id: run.environment for run in facts.runs}
    return tuple(
        PerformanceLine(
            stage=stage.name,
            environment=environments[one.run],
            threads=_text(one.threads),
            core=one.core or "",
            runs=_text(max(len(one.latencies_ms), len(one.fps_runs)) or None),
            frames=_text(one.frames),
            latency=with_spread(latency(one), "ms"),
            fps=with_spread(frame_rate(one), "FPS"),
            memory=with_unit(memory(one), "MiB"),
            estimate=estimate_text(estimate),
            source=one.source,
            told=performance_line(one, estimate),
        )
        for stage in facts.plan.chain.stages
        for one in performances(facts, stage.name)
    )


def _text(count: int | None) -> str:
    return "" if count is None else str(count)
