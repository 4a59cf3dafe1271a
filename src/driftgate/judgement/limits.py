"""Which limits hold for an output or a score: by the kind of its link, and what the policy says of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from driftgate.domain.chain import Chain, Link, LinkKind
from driftgate.domain.judgement import Limit, Policy
from driftgate.judgement.criteria import CRITERIA, PERFORMANCE, SCORE_DROP


@dataclass(frozen=True, slots=True)
class Nature:
    """What the default limits depend on: integers without a scale, a known step, judged by a score; whether the
    compiled network has float operators inside, with which bit equality cannot hold (vendor rules §2)."""

    integer: bool
    stepped: bool
    scored: bool
    float_inside: bool = False


_LOSSY = (
    Limit("cosine", 0.99),
    Limit("centred-cosine", 0.95),
    Limit("bulk-cosine", 0.9),
    Limit("norm-ratio", 1.2),
    Limit("dead-channels", 0.0),
)
_ALL_EQUAL = (Limit("integers", 0.0),)
_MOST_EQUAL = (Limit("integers", 0.01),)

_NUMBERS: dict[LinkKind, tuple[Limit, ...]] = {
    LinkKind.EXACT: (Limit("ulp", 4.0),),
    LinkKind.COMPILED: (Limit("decimals", 5.0),),
    LinkKind.EQUIVALENT: (Limit("range", 1e-4),),
    LinkKind.STEPPED: _LOSSY,
    LinkKind.LOSSY: _LOSSY,
}
_INTEGERS: dict[LinkKind, tuple[Limit, ...]] = {
    LinkKind.EXACT: _ALL_EQUAL,
    LinkKind.COMPILED: _ALL_EQUAL,
    LinkKind.EQUIVALENT: _ALL_EQUAL,
    LinkKind.STEPPED: _MOST_EQUAL,
    LinkKind.LOSSY: _MOST_EQUAL,
}
_STEPS = (Limit("lsb", 3.0),)

#: Relative loss of a score that a link may cost.
_DROPS: dict[LinkKind, float] = {
    LinkKind.EXACT: 0.0,
    LinkKind.EQUIVALENT: 0.0,
    LinkKind.COMPILED: 0.01,
    LinkKind.STEPPED: 0.01,
    LinkKind.LOSSY: 0.01,
}
#: Criteria of whose limits the larger one allows less; of all others the smaller one does.
_MORE_IS_STRICTER = frozenset(
    {"decimals"}
    | {name for name, criterion in CRITERIA.items() if criterion.better == "higher"}
    | {name for name, better in PERFORMANCE.items() if better == "higher"}
)
REGRESSION_DROP = Limit(SCORE_DROP, 0.01)


def output_limits(link: Link, nature: Nature, *, chain: Chain, policy: Policy) -> tuple[Limit, ...]:
    """The limits of one output on one link."""
    found = _overridden(_defaults(link.kind, nature), _named(link, chain, policy.limits), CRITERIA)
    return _tightened(found, _named(link, chain, policy.tightened), CRITERIA)


def score_limit(link: Link, *, chain: Chain, policy: Policy) -> Limit:
    """How much of a score one link may cost, relative to the reference's."""
    default = (Limit(SCORE_DROP, _DROPS[link.kind]),)
    found = _overridden(default, _named(link, chain, policy.limits), (SCORE_DROP,))
    return _tightened(found, _named(link, chain, policy.tightened), (SCORE_DROP,))[0]


def regression_limit(slug: str, policy: Policy) -> Limit:
    """How much of the float score the board may cost."""
    found = _overridden((REGRESSION_DROP,), dict(policy.limits).get(slug, ()), (SCORE_DROP,))
    return _tightened(found, dict(policy.tightened).get(slug, ()), (SCORE_DROP,))[0]


def performance_limits(slug: str, policy: Policy) -> tuple[Limit, ...]:
    """What the policy bounds of the board's speed and memory: nothing unless it says so."""
    found = tuple(limit for limit in dict(policy.limits).get(slug, ()) if limit.criterion in PERFORMANCE)
    return _tightened(found, dict(policy.tightened).get(slug, ()), PERFORMANCE)


def step_unknown(link: Link, nature: Nature) -> bool:
    """Whether a stepped link has to be judged by the looser criteria because nobody knows the step."""
    return link.kind is LinkKind.STEPPED and not nature.stepped and not nature.integer


def _defaults(kind: LinkKind, nature: Nature) -> tuple[Limit, ...]:
    if kind is LinkKind.COMPILED and nature.float_inside and not nature.integer:
        kind = LinkKind.LOSSY
    if kind is LinkKind.LOSSY and nature.scored:
        return ()
    if nature.integer:
        return _INTEGERS[kind]
    if kind is LinkKind.STEPPED and nature.stepped:
        return _STEPS
    return _NUMBERS[kind]


def is_stricter(criterion: str, value: float, than: float) -> bool:
    """Whether a limit of a criterion allows less than another one."""
    return value > than if criterion in _MORE_IS_STRICTER else value < than


def _named(link: Link, chain: Chain, places: tuple[tuple[str, tuple[Limit, ...]], ...]) -> tuple[Limit, ...]:
    """What is said of the link's check, then of the link itself, which goes first."""
    said = dict(places)
    check = chain.check_of(link)
    of_check = said.get(check.slug, ()) if check is not None else ()
    return (*of_check, *said.get(link.name, ()))


def _overridden(defaults: tuple[Limit, ...], said: tuple[Limit, ...], names: Collection[str]) -> tuple[Limit, ...]:
    chosen = {limit.criterion: limit for limit in defaults}
    chosen.update({limit.criterion: limit for limit in said if limit.criterion in names})
    return tuple(chosen.values())


def _tightened(found: tuple[Limit, ...], said: tuple[Limit, ...], names: Collection[str]) -> tuple[Limit, ...]:
    """The limits with those of the subject where they allow less, and those that only the subject has."""
    chosen = {limit.criterion: limit for limit in found}
    for limit in said:
        known = chosen.get(limit.criterion)
        if limit.criterion in names and (known is None or is_stricter(limit.criterion, limit.value, known.value)):
            chosen[limit.criterion] = limit
    return tuple(chosen.values())
