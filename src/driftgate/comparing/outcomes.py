"""What became of checks, causes and diverging nodes: there, gone, or another outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from driftgate.comparing.side import Side, unless_drift
from driftgate.domain.comparisons import Change, Row, RowKind
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Divergence, Outcome
from driftgate.judgement.codes import CODES, Verdict
from driftgate.messages.message import message

OUTCOME, FINDING, DIVERGENCE = "outcome", "finding", "divergence"
ORDER = (Outcome.PASSED, Outcome.FAILED)
#: What a finding is called.
SURE = {True: "confirmed", False: "suspected"}


def check_rows(base: Side, head: Side) -> Iterator[Row]:
    """The outcome of every check."""
    before = {check.slug: check for check in base.judgement.checks}
    for check in head.judgement.checks:
        known = before.pop(check.slug, None)
        old = Outcome.SKIPPED if known is None else known.outcome
        texts = (old.value, check.outcome.value)
        change = _outcome_change(old, check.outcome)
        yield Row(
            RowKind.CHECK,
            (check.slug,),
            unless_drift(change, base.facts, head.facts, *_behind(head.facts, check.slug)),
            OUTCOME,
            base_text=texts[0],
            head_text=texts[1],
        )
    for slug, check in before.items():
        change = Change.SAME if check.outcome is Outcome.SKIPPED else Change.GONE
        yield Row(RowKind.CHECK, (slug,), change, OUTCOME, base_text=check.outcome.value)


def _behind(facts: Facts, slug: str) -> tuple[str, ...]:
    """The stages that a check's outcome depends on: both sides of its links, else those up to its own."""
    if links := facts.plan.links_of(slug):
        return tuple(dict.fromkeys(stage for link in links for stage in (link.reference, link.candidate)))
    own = next((check.stages for check in facts.plan.chain.checks if check.slug == slug), ())
    last = max((facts.plan.stages.index(stage) for stage in own if stage in facts.plan.stages), default=-1)
    return facts.plan.stages[: last + 1]


def _outcome_change(old: Outcome, new: Outcome) -> Change:
    if old is new and old is not Outcome.ERROR:
        return Change.SAME
    if Outcome.ERROR in (old, new):
        return Change.UNKNOWN
    if old is Outcome.SKIPPED:
        return Change.NEW
    if new is Outcome.SKIPPED:
        return Change.GONE
    return Change.WORSE if ORDER.index(new) > ORDER.index(old) else Change.BETTER


def node_rows(base: Side, head: Side) -> Iterator[Row]:
    """Nodes that diverge in one version only; of links that were looked into on both sides, or failed on one."""
    old, new = ({(d.link, d.candidate): d for d in side.judgement.divergences} for side in (base, head))
    looked = {one.link for one in base.facts.investigations}
    for key, divergence in new.items():
        if key not in old:
            change = Change.WORSE if key[0] in looked else Change.NEW
            change = unless_drift(change, base.facts, head.facts, *_sides_of(head.facts, key[0]))
            yield Row(RowKind.NODE, (*key, divergence.op), change, DIVERGENCE, head_text=_excess(divergence))
    for key, divergence in old.items():
        if key not in new and any(one.link == key[0] for one in head.facts.investigations):
            yield Row(
                RowKind.NODE,
                (*key, divergence.op),
                Change.BETTER,
                DIVERGENCE,
                base_text=_excess(divergence),
            )


def _sides_of(facts: Facts, link: str) -> tuple[str, ...]:
    return next(((one.reference, one.candidate) for one in facts.plan.links if one.name == link), (link,))


def _excess(divergence: Divergence) -> str:
    """How many times what its precision explains the node adds, where that is known."""
    return "" if divergence.excess is None else f"×{divergence.excess:.3g}"


def finding_rows(base: Side, head: Side) -> Iterator[Row]:
    """Causes that only one version has."""
    old, new = ({(one.link, one.code): one for one in side.judgement.findings} for side in (base, head))
    for key, finding in new.items():
        if key not in old:
            fails = key[1] in CODES and CODES[key[1]].verdict is Verdict.FAIL
            change = Change.WORSE if fails and finding.confirmed else Change.NEW
            yield Row(
                RowKind.FINDING,
                key,
                unless_drift(change, base.facts, head.facts, *_sides_of(head.facts, key[0])),
                FINDING,
                head_text=SURE[finding.confirmed],
            )
    for key, finding in old.items():
        if key not in new:
            yield Row(RowKind.FINDING, key, Change.GONE, FINDING, base_text=SURE[finding.confirmed])


def over_samples(rows: Iterable[Row], *, same: bool) -> Iterator[Row]:
    """Rows that are of each version's own samples: where those are others, a change of an outcome is none of the
    network, and not counted. What the network does is told by numbers of the samples that both have."""
    for row in rows:
        moved = row.change in (Change.WORSE, Change.BETTER)
        yield row if same or not moved else replace(row, change=Change.SAMPLES, note=message("compare-other-samples"))
