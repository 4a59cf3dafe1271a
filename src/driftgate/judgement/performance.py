"""Verdicts on what a board says of speed and memory, and how that is told beside the compiler's estimate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Certainty, Limit, Outcome, Uncertainty, Verdict
from driftgate.domain.runs import Performance
from driftgate.judgement.criteria import FPS, FPS_DROP, LATENCY, LATENCY_RISE, MEMORY, PERFORMANCE
from driftgate.messages.message import Message, message
from driftgate.messages.text import number

ROUNDING = 1e-12
MEBIBYTE = 2**20
#: Times slower than the estimate, from which on it is said: the compiler counts no input preparation, no waiting and
#: no other user of the board (toolchain facts §2.5).
SLOW = 2.0


@dataclass(frozen=True, slots=True)
class Spread:
    """A number that was measured several times: its median, and the least and the largest of them."""

    middle: float
    least: float
    most: float
    runs: int = 1

    @property
    def is_sound(self) -> bool:
        """Whether it can have been measured."""
        return 0 < self.least <= self.middle <= self.most < math.inf


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the compiler expects without a board; None where it does not say."""

    latency_ms: float | None = None
    fps: float | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    """A row of the table: which number is bounded, and its unit.

    `chosen` picks from one run's performances those that the limit is of. `relative` makes the value from the
    measured and the declared number, which stands under `declared`; `absent` and `undeclared` are said without one.
    """

    read: Callable[[Performance], Spread | None]
    chosen: Callable[[Sequence[Performance]], Sequence[Performance]]
    unit: str
    absent: str
    declared: str = ""
    undeclared: str = ""
    relative: Callable[[float, float], float] | None = None


def latency(told: Performance) -> Spread | None:
    """Milliseconds of one frame."""
    return _spread(told.latency_ms, told.latencies_ms)


def frame_rate(told: Performance) -> Spread | None:
    """Frames a second of all threads together."""
    return _spread(told.fps, told.fps_runs)


def memory(told: Performance) -> Spread | None:
    """Memory of the board in MiB."""
    return None if told.memory_bytes is None else _spread(told.memory_bytes / MEBIBYTE, ())


def _spread(middle: float | None, runs: Sequence[float]) -> Spread | None:
    if middle is None:
        return None
    if any(math.isnan(value) for value in runs):
        return Spread(middle, math.nan, math.nan, len(runs))
    return Spread(middle, min(runs, default=middle), max(runs, default=middle), max(1, len(runs)))


def _fewest_threads(told: Sequence[Performance]) -> Sequence[Performance]:
    least = min(one.threads or 0 for one in told)
    return [one for one in told if (one.threads or 0) == least]


def _most_threads(told: Sequence[Performance]) -> Sequence[Performance]:
    most = max(one.threads or 0 for one in told)
    return [one for one in told if (one.threads or 0) == most]


def _with_memory(told: Sequence[Performance]) -> Sequence[Performance]:
    return [one for one in told if one.memory_bytes is not None]


def _rise(value: float, declared: float) -> float:
    return value / declared - 1.0


def _drop(value: float, declared: float) -> float:
    return 1.0 - value / declared


#: Threads that share the board's cores wait for each other: latency is that of the fewest threads, frames a second
#: are those of the most.
_RULES: Mapping[str, _Rule] = {
    LATENCY: _Rule(latency, _fewest_threads, "ms", "performance-no-latency"),
    FPS: _Rule(frame_rate, _most_threads, "FPS", "performance-no-fps"),
    MEMORY: _Rule(memory, _with_memory, "MiB", "performance-no-memory"),
    LATENCY_RISE: _Rule(
        latency,
        _fewest_threads,
        "%",
        "performance-no-latency",
        "latency_ms",
        "performance-undeclared-latency",
        _rise,
    ),
    FPS_DROP: _Rule(frame_rate, _most_threads, "%", "performance-no-fps", "fps", "performance-undeclared-fps", _drop),
}


def performances(facts: Facts, stage: str) -> tuple[Performance, ...]:
    """What was said of a stage's runs: run by run, the fewest threads first."""
    runs = {run.id for run in facts.runs_of(stage)}
    told = [one for one in facts.performance if one.run in runs]
    return tuple(sorted(told, key=lambda one: (one.run, one.threads or 0, one.core or "")))


def estimated(facts: Facts) -> Estimate:
    """The compiler's estimate, from its perf report."""
    microseconds, fps = (facts.told("perf", f"estimated-{name}") for name in ("latency-us", "fps"))
    return Estimate(
        latency_ms=microseconds / 1000 if isinstance(microseconds, (int, float)) and microseconds > 0 else None,
        fps=float(fps) if isinstance(fps, (int, float)) and fps > 0 else None,
    )


def judge_performance(
    slug: str,
    stage: str,
    *,
    limits: Iterable[Limit],
    told: Sequence[Performance],
    uncertainty: Uncertainty,
    declared: Mapping[str, float],
) -> list[Verdict]:
    """One verdict a limit and run; an ERROR where a bounded number is missing, or no number at all.

    `told` is in the order of `performances`; `declared` has the baseline's `latency_ms` and `fps` as far as there are
    such. The median decides; where some of its runs keep the limit and others break it, the policy decides whether
    that fails.
    """
    runs = [tuple(group) for _, group in groupby(told, key=lambda one: one.run)]
    return [
        _judged(slug, limit, _values(limit, stage, run, declared), uncertainty)
        for limit in limits
        for run in runs or [()]
    ]


def performance_notes(told: Sequence[Performance], estimate: Estimate) -> tuple[Message, ...]:
    """Every performance in one line, and what is much slower than the compiler thought."""
    lines = [performance_line(one, estimate) for one in told]
    runs = (tuple(group) for _, group in groupby(told, key=lambda one: one.run))
    slow = [note for group in runs for one in _fewest_threads(group) for note in _slow(one, estimate)]
    return tuple(dict.fromkeys((*lines, *slow)))


#: (whether it is one thread, whether there is an estimate) → how a performance is told.
_LINES = {
    (True, False): "performance-one-thread",
    (False, False): "performance-threads",
    (True, True): "performance-one-thread-estimate",
    (False, True): "performance-threads-estimate",
}


def performance_line(told: Performance, estimate: Estimate) -> Message:
    """Latency with its spread, frames a second, memory, threads and core; `?` where it is not said."""
    parts = (with_spread(latency(told), "ms"), with_unit(frame_rate(told), "FPS"), with_unit(memory(told), "MiB"))
    expected = estimate_text(estimate)
    return message(
        _LINES[told.threads == 1, bool(expected)],
        measured=tuple(part for part in parts if part) or ("?",),
        threads="?" if told.threads is None else told.threads,
        core=told.core or "?",
        estimate=expected,
    )


def estimate_text(estimate: Estimate) -> str:
    """The estimated latency, or else frames a second; empty where there is neither."""
    if estimate.latency_ms is not None:
        return f"{_short(estimate.latency_ms)} ms"
    return f"{_short(estimate.fps)} FPS" if estimate.fps is not None else ""


def with_unit(told: Spread | None, unit: str) -> str:
    """The median in its unit; empty where there is none."""
    return "" if told is None else f"{_short(told.middle)} {unit}"


def with_spread(told: Spread | None, unit: str) -> str:
    """The median, and between what the runs lie where there are several."""
    if told is None or told.runs < 2:
        return with_unit(told, unit)
    return f"{with_unit(told, unit)} ({_short(told.least)}–{_short(told.most)})"


def _short(value: float) -> str:
    """Three digits, or all that stand before the point."""
    return f"{value:.0f}" if abs(value) >= 100 and math.isfinite(value) else number(float(f"{value:.3g}"))


def _slow(told: Performance, estimate: Estimate) -> tuple[Message, ...]:
    """A note where it takes more than `SLOW` times as long as the compiler expects."""
    taken, rate = latency(told), frame_rate(told)
    if taken is not None and estimate.latency_ms is not None:
        slow = taken.middle > SLOW * estimate.latency_ms
        measured, expected = with_unit(taken, "ms"), f"{_short(estimate.latency_ms)} ms"
    elif rate is not None and estimate.fps is not None:
        slow = SLOW * rate.middle < estimate.fps
        measured, expected = with_unit(rate, "FPS"), f"{_short(estimate.fps)} FPS"
    else:
        return ()
    return (message("performance-slow", measured=measured, estimate=expected, times=SLOW),) if slow else ()


def _judged(
    slug: str,
    limit: Limit,
    values: Sequence[Spread] | Message,
    uncertainty: Uncertainty,
) -> Verdict:
    """The verdict on the worst of the values, or an ERROR by the message that stands in for them."""
    verdict = Verdict(slug, None, Outcome.ERROR, criterion=limit.criterion, limit=limit.value, origin=limit.origin)
    if isinstance(values, Message):
        return replace(verdict, reason=values)
    higher, slack = PERFORMANCE[limit.criterion] == "higher", ROUNDING if _RULES[limit.criterion].relative else 0.0

    def kept(value: float) -> bool:
        return value >= limit.value if higher else value <= limit.value + slack

    worst = (min if higher else max)(values, key=lambda one: one.middle)
    unsure = next((one for one in values if kept(one.least) is not kept(one.most)), None)
    unproven = unsure is not None and kept(worst.middle) and uncertainty is Uncertainty.FAIL
    return replace(
        verdict,
        outcome=Outcome.PASSED if kept(worst.middle) and not unproven else Outcome.FAILED,
        value=worst.middle,
        reason=message("performance-unsure", runs=unsure.runs) if unsure is not None and unproven else None,
        notes=() if unsure is None else (_noise(unsure, limit.criterion),),
        certainty=None if worst.runs < 2 else Certainty.CERTAIN if unsure is None else Certainty.WITHIN_NOISE,
    )


def _values(
    limit: Limit, stage: str, told: Sequence[Performance], declared: Mapping[str, float]
) -> tuple[Spread, ...] | Message:
    """What the limit bounds, of one run; a message instead where a number is missing or can be none."""
    rule = _RULES[limit.criterion]
    measured = [rule.read(one) for one in rule.chosen(told)] if told else []
    found = tuple(one for one in measured if one is not None)
    if not found or len(found) < len(measured):
        return message(rule.absent, limit=limit.criterion, stage=stage)
    unsound = next((one for one in found if not one.is_sound), None)
    if unsound is not None:
        numbers = tuple(f"{value:g}" for value in (unsound.middle, unsound.least, unsound.most))
        return message("performance-unsound", limit=limit.criterion, found=numbers)
    if rule.relative is None:
        return found
    base = declared.get(rule.declared, 0.0)
    if not 0 < base < math.inf:
        return message(rule.undeclared, limit=limit.criterion)
    return tuple(_held_against(one, base, rule.relative) for one in found)


def _held_against(told: Spread, declared: float, relative: Callable[[float, float], float]) -> Spread:
    least, most = sorted((relative(told.least, declared), relative(told.most, declared)))
    return Spread(relative(told.middle, declared), least, most, told.runs)


def _noise(told: Spread, criterion: str) -> Message:
    rule = _RULES[criterion]
    low, high = (
        f"{_short(value if rule.relative is None else 100 * value)} {rule.unit}" for value in (told.least, told.most)
    )
    return message("performance-noise", runs=told.runs, low=low, high=high)
