"""Two versions of results compared: each subject with itself, and where it began to be worse."""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import MappingProxyType

from driftgate.comparing.changed import changed, limits
from driftgate.comparing.pairing import pair_samples
from driftgate.comparing.rows import rows
from driftgate.comparing.side import Side
from driftgate.domain.comparisons import (
    Change,
    Changed,
    Comparison,
    Moved,
    Row,
    RowKind,
    SubjectComparison,
    Thing,
    Version,
)
from driftgate.domain.results import Results
from driftgate.messages.message import message

Key = tuple[str, str]
EVERY_SAMPLE: Mapping[Key, Set[str]] = MappingProxyType({})


def compare_results(
    base: Results,
    head: Results,
    *,
    labels: tuple[str, str],
    commits: tuple[str, str] = ("", ""),
    among: Mapping[Key, Set[str]] = EVERY_SAMPLE,
) -> Comparison:
    """Hold the head's results against the base's, over the samples that both have; of a subject that is in `among`
    only over those digests. Subjects go by name and target; one that has another target in the
    head, and is there once on either side, is compared all the same."""
    old, new = _sides(base), _sides(head)
    partners = _partners(old, new)
    tools = (base.tool.version, head.tool.version)
    other_tool = (Changed(Thing.TOOL, head.tool.name, *tools),) if tools[0] != tools[1] else ()
    found = tuple(
        compare_subject(old[partners[key]], side, also=other_tool, among=among.get(key))
        for key, side in new.items()
        if key in partners
    )
    return Comparison(
        base=Version(labels[0], base.tool.version, commits[0]),
        head=Version(labels[1], head.tool.version, commits[1]),
        subjects=found,
        new=tuple(key for key in new if key not in partners),
        gone=tuple(key for key in old if key not in partners.values()),
    )


def compare_subject(
    base: Side, head: Side, also: tuple[Changed, ...] = (), among: Set[str] | None = None
) -> SubjectComparison:
    """One subject in two versions, over the samples that both have, or those `among` them; `also` changed."""
    pairs = pair_samples(base.facts.plan.samples, head.facts.plan.samples, among)
    found = rows(base, head, pairs)
    return SubjectComparison(
        subject=head.facts.plan.subject,
        target=head.facts.plan.target,
        paired=pairs.counts,
        changed=(*changed(base.facts, head.facts, pairs), *limits(base.judgement, head.judgement), *also),
        rows=found,
        moved=_moved(head, found),
        problem=None if pairs.names else message("compare-no-common"),
    )


def _sides(results: Results) -> dict[Key, Side]:
    judged = {one.key: one for one in results.judgements or ()}
    return {facts.plan.key: Side(facts, judged[facts.plan.key]) for facts in results.facts if facts.plan.key in judged}


def _partners(old: Mapping[Key, Side], new: Mapping[Key, Side]) -> dict[Key, Key]:
    """The head's subject and target → the base's."""
    found = {key: key for key in new if key in old}
    for key in new:
        others = [one for one in old if one[0] == key[0] and one not in found.values()]
        mine = [one for one in new if one[0] == key[0] and one not in found]
        if key not in found and len(others) == len(mine) == 1:
            found[key] = others[0]
    return found


def _moved(head: Side, found: tuple[Row, ...]) -> Moved | None:
    """The first link in the route that became worse, else the first stage whose score did."""
    worse = [row for row in found if row.change is Change.WORSE]
    by_link = {row.key[0] for row in worse if row.kind in (RowKind.LINK, RowKind.LOSS, RowKind.NODE, RowKind.FINDING)}
    by_stage = {row.key[0] for row in worse if row.kind in (RowKind.SCORE, RowKind.SPEED)}
    stages = head.facts.plan.stages
    if stages and stages[0] in by_stage:
        return Moved(stages[0])
    for link in head.facts.plan.links:
        if link.name in by_link:
            node = next((d for d in head.judgement.divergences if d.link == link.name), None)
            if node is None:
                return Moved(link.name)
            return Moved(link.name, node.region[0] if node.region else node.candidate, node.op)
        if link.candidate in by_stage:
            return Moved(link.candidate)
    return None
