"""One number of a verdict beside its limit, as it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from driftgate.domain.judgement import Outcome, Score, Verdict
from driftgate.domain.plan import ScoreSpec
from driftgate.judgement.criteria import CRITERIA, FPS_DROP, LATENCY_RISE, PERFORMANCE, SCORE_DECLARED, SCORE_DROP
from driftgate.messages.message import Message, message
from driftgate.messages.text import number, text

#: Metrics and criteria with a unit of their own; the others are ratios, or have the tensor's unit.
UNITS = {name: message(f"unit-{name}") for name in ("ulp", "lsb", "sqnr", "integers", SCORE_DROP, *PERFORMANCE)}
PERCENT = frozenset({"integers", SCORE_DROP, LATENCY_RISE, FPS_DROP})
SENTENCE = 120  # characters that a sentence shows of one parameter
RELATIONS = {"lower": "≤", "higher": "≥"}


@dataclass(frozen=True, slots=True)
class Reading:
    """A criterion's value and its limit; `relation` (≤ or ≥) and `limit` are empty where nothing bounds it."""

    title: Message
    value: str
    relation: str
    limit: str
    unit: Message | None


def shown(name: str, value: float) -> str:
    """A metric's or criterion's value, in its unit; cosines say something only in their last digits."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, "NaN")
    if name in PERCENT:
        value *= 100
    return number(value if "cosine" in name else float(f"{value:.4g}"))


def reading(verdict: Verdict) -> Reading | None:
    """The number that decided a verdict; None where no number did."""
    name = verdict.criterion
    if name is None or verdict.value is None:
        return None
    title, unit = message(f"criterion-{name}"), UNITS.get(name)
    value = shown(name, verdict.value)
    if verdict.limit is None:
        return Reading(title, value, "", "", unit)
    limit = shown(name, verdict.limit)
    if value == limit and verdict.value != verdict.limit and math.isfinite(verdict.value):
        scale = 100 if name in PERCENT else 1
        value, limit = f"{verdict.value * scale:.15g}", f"{verdict.limit * scale:.15g}"
    return Reading(title, value, _relation(verdict), limit, unit)


def as_written(
    given: Reading | None, verdict: Verdict, scores: Sequence[Score], specs: Sequence[ScoreSpec]
) -> Reading | None:
    """The reading of a declared score with both numbers as people write them (356/360)."""
    if given is None or verdict.criterion != SCORE_DECLARED:
        return given
    value = next((s.text for s in scores if s.name == verdict.output and s.value == verdict.value), given.value)
    limit = next((s.declared for s in specs if s.name == verdict.output and s.declared), given.limit)
    return replace(given, value=value, limit=limit)


def explanation(verdict: Verdict) -> Message | None:
    """Why a verdict is what it is, in one sentence; None where it says nothing."""
    number = reading(verdict)
    if verdict.reason is not None or number is None:
        return verdict.reason
    return message(
        "broken-limit",
        criterion=number.title,
        value=_with_unit(number.value, number.unit),
        relation=number.relation,
        limit=_with_unit(number.limit, number.unit),
    )


def long_texts(said: Message | None) -> tuple[str, ...]:
    """The parameters of a message that do not fit into its sentence: tails of logs and the like."""
    values = () if said is None else (value for _, value in said.params if isinstance(value, str))
    return tuple(value for value in values if len(value) > SENTENCE or "\n" in value.strip())


def severity(verdict: Verdict) -> float:
    """How near a verdict is to its limit, or how far beyond; -inf where no number decided."""
    value, limit = verdict.value, verdict.limit
    if value is None or limit is None:
        return -math.inf
    criterion = CRITERIA.get(verdict.criterion or "")
    if criterion is not None:
        return float(criterion.severity(np.array([value]), np.array([limit]))[0])
    if math.isnan(value):
        return math.inf
    if PERFORMANCE.get(verdict.criterion or "") == "higher":
        return limit / value if value else math.inf
    if _relation(verdict) == RELATIONS["higher"]:
        return 1.0 + limit - value
    return value / limit if limit else (math.inf if value > 0 else 0.0)


def _relation(verdict: Verdict) -> str:
    """The side a limit stands on; of a declared score, which may be better up or down, and of a criterion of
    a later version the outcome tells it."""
    criterion = CRITERIA.get(verdict.criterion or "")
    if criterion is not None:
        return RELATIONS[criterion.better]
    if verdict.criterion in PERFORMANCE:
        return RELATIONS[PERFORMANCE[verdict.criterion]]
    value, limit = verdict.value, verdict.limit
    if verdict.criterion == SCORE_DROP:
        return RELATIONS["lower"]
    if value is None or limit is None or value == limit:
        return RELATIONS["higher" if verdict.criterion == SCORE_DECLARED else "lower"]
    return RELATIONS["lower" if (value < limit) == (verdict.outcome is Outcome.PASSED) else "higher"]


def _with_unit(value: str, unit: Message | None) -> str:
    return value if unit is None else f"{value} {text(unit)}"
