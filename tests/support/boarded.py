"""Results of a board that was asked for its speed and memory: the healthy chain, judged by limits that hold or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from driftgate.domain.facts import Facts, ToolFacts
from driftgate.domain.judgement import Judgement, Limit, LimitOrigin, Outcome, Uncertainty
from driftgate.domain.runs import Performance, performance
from driftgate.judgement.performance import estimated, judge_performance, performance_notes, performances
from support.results import healthy_pair

LATENCIES = (14.245, 13.9, 14.8)
RATES = (69.894, 71.6, 67.3)


def limit(criterion: str, value: float) -> Limit:
    """A limit of the policy."""
    return Limit(criterion, value, LimitOrigin.POLICY)


def told(
    run: str, latencies_ms: Sequence[float] = LATENCIES, fps_runs: Sequence[float] = RATES, *, threads: int = 1
) -> Performance:
    """What the board reached on any core, each time it was asked."""
    return performance(
        run,
        latencies_ms,
        fps_runs,
        source="hrt_model_exec perf",
        frames=200,
        threads=threads,
        core="any",
        memory_bytes=9 * 2**20,
    )


def estimate(microseconds: float = 12100.0) -> ToolFacts:
    """The compiler's estimate, as the build's perf report tells it."""
    return ToolFacts("net.json", "perf", (("estimated-fps", 82.6), ("estimated-latency-us", microseconds)))


def board_pair(*limits: Limit) -> tuple[Facts, Judgement]:
    """The healthy subject, of which the board told its speed; the limits are judged, and a broken one comes first."""
    facts, judged = healthy_pair()
    (run,) = facts.runs_of("hbm")
    facts = replace(facts, performance=(told(run.id),), tool_facts=(estimate(),))
    found = performances(facts, "hbm")
    verdicts = judge_performance("board", "hbm", limits=limits, told=found, uncertainty=Uncertainty.WARN, declared={})
    board = judged.check("board")
    failed = any(verdict.outcome is Outcome.FAILED for verdict in verdicts)
    board = replace(
        board,
        outcome=Outcome.FAILED if failed else board.outcome,
        verdicts=(*board.verdicts, *verdicts),
        notes=performance_notes(found, estimated(facts)),
    )
    return facts, replace(
        judged,
        outcome=board.outcome,
        first_failure="board" if failed else None,
        checks=(*judged.checks[:-1], board),
    )
