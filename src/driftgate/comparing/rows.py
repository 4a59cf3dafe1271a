"""Every number of one subject in two versions, in the order of reports."""

from __future__ import annotations

from driftgate.comparing.boards import build_rows, speed_rows
from driftgate.comparing.links import link_rows
from driftgate.comparing.outcomes import check_rows, finding_rows, node_rows, over_samples
from driftgate.comparing.pairing import SamplePairs
from driftgate.comparing.scores import score_rows
from driftgate.comparing.side import Side
from driftgate.domain.comparisons import Row


def rows(base: Side, head: Side, pairs: SamplePairs) -> tuple[Row, ...]:
    """Everything that both versions have, and what only one of them has."""
    same = pairs.all_common
    return (
        *over_samples(check_rows(base, head), same=same),
        *score_rows(base.facts, head.facts, pairs),
        *link_rows(base.facts, head.facts, pairs),
        *over_samples(node_rows(base, head), same=same),
        *over_samples(finding_rows(base, head), same=same),
        *speed_rows(base.facts, head.facts),
        *build_rows(base.facts, head.facts),
    )
