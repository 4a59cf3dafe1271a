"""Limits of single subjects: they tighten what the policies allow, and never loosen it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from driftgate.judgement.limits import is_stricter
from driftgate.settings.policies import PolicySettings
from driftgate.settings.subjects import SubjectSettings


@dataclass(frozen=True, slots=True)
class Loosened:
    """A subject's limit that allows more than every policy which limits the same thing."""

    subject: str
    place: str
    criterion: str
    value: float
    policy: str
    ceiling: float


def loosened(subjects: Mapping[str, SubjectSettings], policies: Mapping[str, PolicySettings]) -> Iterator[Loosened]:
    """The limits of subjects that can never hold, since each policy that says something there is stricter."""
    for name, subject in subjects.items():
        for place, limits in subject.limits.items():
            for criterion, value in limits.items():
                said = {
                    policy: one.limits[place][criterion]
                    for policy, one in policies.items()
                    if criterion in one.limits.get(place, {})
                }
                if said and all(is_stricter(criterion, ceiling, value) for ceiling in said.values()):
                    policy, ceiling = next(iter(said.items()))
                    yield Loosened(name, place, criterion, value, policy, ceiling)
